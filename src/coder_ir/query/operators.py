"""Operators that people type: `-word`, `-"a phrase"`, `NOT x`, `AND NOT (x OR y)`, `w/o x`.

They are read by rule, and for certain, in queries as short as people type into a search box. In
longer texts a dash or a loud NOT is a part of the prose.
"""

import re
from collections.abc import Iterator, Sequence

from coder_ir.query.constraint import constraint_of
from coder_ir.types import Constraint, Mark, Span

_TERM = r"[\"“](?P<{0}_quoted>[^\"”]+)[\"”]|(?P<{0}_word>[^\W_][\w'’.+#-]*(?<!-)(?![\w-]))"
_OPERATORS = ("NOT", "AND", "OR", "w")  # `w` begins w/o
_READ = 2000  # characters of a query that are looked at
_MOST_PROSE = 40  # words beside the operators and what they rule out
_ARTICLE = r"(?:(?:an?|the|any)\s+)?"
_MINUS = re.compile(rf"(?<!\S)(?P<cue>-)(?:{_TERM.format('minus')})")
_NOT = re.compile(rf"(?<!\S)(?P<cue>(?:AND\s+)?NOT)\s+\(?{_ARTICLE}(?:{_TERM.format('not')})")
_MORE = re.compile(rf"\s*(?:,|\bOR\b|\bAND\b)\s*{_ARTICLE}(?:{_TERM.format('more')})")
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
    """Cues and what they rule out, in order; none in a text too long for a search box."""
    query = query[:_READ]
    marks: list[Mark] = []
    for found in sorted(_found(query), key=lambda found: found[0].span.start):
        if not marks or found[0].span.start >= marks[-1].span.end:
            marks += found
    prose = len(query.split()) - sum(len(mark.text.split()) for mark in marks)
    return marks if prose <= _MOST_PROSE else []


def _found(query: str) -> Iterator[list[Mark]]:
    """Each cue with what it rules out; they may overlap."""
    shouted = query.upper() == query
    for name, pattern in (("minus", _MINUS), ("not", _NOT), ("without", _WITHOUT)):
        for match in pattern.finditer(query):
            if match["cue"] == "NOT" and (shouted or _AUXILIARY.search(query[: match.start()])):
                continue
            cue = Mark(Span(*match.span("cue")), "cue", match["cue"])
            if terms := [*_term(match, name), *_rest_of_group(query, match)]:
                yield [cue, *terms]


def _term(match: re.Match[str], name: str) -> Iterator[Mark]:
    """What a match rules out, if it is a word or a phrase: -5 is a number, grep -v has a flag."""
    quoted = match[f"{name}_quoted"]
    group = f"{name}_quoted" if quoted else f"{name}_word"
    text = match[group].rstrip(".,")
    flag = name == "minus" and len(text) == 1
    if quoted or (text not in _OPERATORS and not flag and any(map(str.isalpha, text))):
        start = match.start(group)
        yield Mark(Span(start, start + len(text)), "excluded", text)


def _rest_of_group(query: str, match: re.Match[str]) -> Iterator[Mark]:
    """The other members of `NOT (x OR y)`."""
    close = query.find(")", match.end())
    if "(" not in match[0] or close < 0:
        return
    at = match.end()
    while (more := _MORE.match(query, at, close)) is not None:
        yield from _term(more, "more")
        at = more.end()
