"""From marks on a query to the constraint that a search uses."""

import re
from collections.abc import Sequence

from coder_ir.text import EMPTY_WORDS, words_of
from coder_ir.types import Constraint, Mark, Role, Sentence, Span


def constraint_of(
    query: str, marks: Sequence[Mark], sentences: Sequence[Sentence], *, certain: bool
) -> Constraint:
    """The constraint that a query's marks state; `certain` where an operator states it."""
    stated = max((sentence.probability for sentence in sentences), default=0.0)
    return Constraint(
        probability=1.0 if certain else stated,
        excluded=tuple(dict.fromkeys(phrase for mark in marks for phrase in mark.excluded)),
        required=tuple(dict.fromkeys(mark.text for mark in marks if mark.role == "required")),
        topic=topic_of(query, marks),
        marks=tuple(marks),
        sentences=tuple(sentences),
    )


def merged(parsed: Sequence[Mark], operators: Sequence[Mark]) -> list[Mark]:
    """Parsed marks and those of operators, in order.

    Where they overlap the operator's stays, unless the parser found more to be ruled out there.
    """
    found = list(operators)
    for mark in parsed:
        rivals = [other for other in found if _overlap(mark.span, other.span)]
        longer = all(_length(mark.span) > _length(other.span) for other in rivals)
        if not rivals or (mark.role == "excluded" and longer):
            found = [other for other in found if other not in rivals] + [mark]
    return sorted(found, key=lambda mark: mark.span.start)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _length(span: Span) -> int:
    return span.end - span.start


def topic_of(query: str, marks: Sequence[Mark]) -> str:
    """The query less its cues and what they rule out; "" where nothing was or would be left."""
    gone: tuple[Role, ...] = ("cue", "excluded")
    out = [mark.span for mark in marks if mark.role in gone]
    if not any(mark.role == "excluded" for mark in marks):
        return ""
    kept, at = "", 0
    for span in out:
        between = query[at : span.start]
        small = at > 0 and all(word in EMPTY_WORDS for word in words_of(between))
        kept += " " if small else between
        at = span.end
    rest = _tidy(kept + query[at:])
    return rest if any(word not in EMPTY_WORDS for word in words_of(rest)) else ""


def _tidy(text: str) -> str:
    """What is left of a text from which parts were taken, without signs that hang in the air."""
    text = re.sub(r"\s+", " ", re.sub(r"[\"“”]|[(\[]\s*[)\]]", " ", text))
    text = re.sub(r"(?<=[(\[])[\s,]+", "", text)
    text = re.sub(r"\s+(?=[,.;:?!)])|,\s*(?=[,.;:?!)])", "", text)
    if text.count("(") != text.count(")"):
        text = re.sub(r"\s*[()]\s*", " ", text)
    return text.strip(" ,;:.-–—")
