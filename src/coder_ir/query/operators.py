"""Operators that people type: `-word`, `-"a phrase"`, `NOT x`, `AND NOT x`, `w/o x`.

They are read by rule, and for certain.
"""

import re
from collections.abc import Iterator, Sequence

from coder_ir.query.constraint import constraint_of
from coder_ir.types import Constraint, Mark, Span

_TERM = r"[\"“](?P<{0}_quoted>[^\"”]+)[\"”]|(?P<{0}_word>[^\W_][\w'’.+#-]*(?<!-)(?![\w-]))"
_OPERATORS = ("NOT", "AND", "OR", "w")  # `w` begins w/o
_READ = 2000  # characters of a query that are looked at
_ARTICLE = r"(?:(?:an?|the|any)\s+)?"
_MINUS = re.compile(rf"(?<!\S)(?P<cue>-)(?:{_TERM.format('minus')})")
_NOT = re.compile(rf"(?<!\S)(?P<cue>(?:AND\s+)?NOT)\s+\(?{_ARTICLE}(?:{_TERM.format('not')})")
_WITHOUT = re.compile(
    rf"(?<!\S)(?P<cue>w/o)\s+{_ARTICLE}(?:{_TERM.format('without')})", re.IGNORECASE
)
# Before these NOT is a word said loudly: "why does it NOT work".
_AUXILIARY = re.compile(
    r"\b(?:am|is|are|was|were|be|do|does|did|has|have|had|can|could|may|might|must|shall|should|"
    r"will|would|to|or|if|why|i|you|he|she|it|we|they|this|that|there)\s+$",
    re.IGNORECASE,
)


class OperatorParser:
    """Reads operators and nothing else; for encoders that come without a trained parser."""

    def parse(self, queries: Sequence[str]) -> list[Constraint]:
        """The constraint of each query that has an operator; none of the others."""
        marks = [operator_marks(query) for query in queries]
        return [
            constraint_of(query, own, (), certain=bool(own))
            for query, own in zip(queries, marks, strict=True)
        ]


def operator_marks(query: str) -> list[Mark]:
    """Cues and what they rule out, in order; looks at the first two thousand characters."""
    marks: list[Mark] = []
    for pair in sorted(_found(query[:_READ]), key=lambda pair: pair[0].span.start):
        if not marks or pair[0].span.start >= marks[-1].span.end:
            marks += pair
    return marks


def _found(query: str) -> Iterator[tuple[Mark, Mark]]:
    """Each cue with what it rules out; they may overlap."""
    shouted = query.upper() == query
    for name, pattern in (("minus", _MINUS), ("not", _NOT), ("without", _WITHOUT)):
        for match in pattern.finditer(query):
            if match["cue"] == "NOT" and (shouted or _AUXILIARY.search(query[: match.start()])):
                continue
            group = f"{name}_quoted" if match[f"{name}_quoted"] else f"{name}_word"
            text = match[group].rstrip(".,")
            if group.endswith("_word") and (text in _OPERATORS or text.isnumeric()):
                continue  # -5 is a number
            start = match.start(group)
            cue = Mark(Span(*match.span("cue")), "cue", match["cue"])
            yield cue, Mark(Span(start, start + len(text)), "excluded", text)
