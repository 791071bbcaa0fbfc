"""Why a hit stands where it stands, in a sentence for people."""

from coder_ir.types import Constraint, Reading, Span

_LONGEST = 160  # characters of a quotation


def decisive_sentence(reading: Reading | None, content: str, passage: Span) -> str:
    """The sentence of a passage of a document that decided what was read of it."""
    if reading is None or reading.decisive is None:
        return ""
    words = content[passage.start : passage.end]
    return " ".join(words[reading.decisive.start : reading.decisive.end].split())


def reason_of(reading: Reading | None, constraint: Constraint | None, decisive: str) -> str:
    """What a passage says on the constraint, with the sentence that decided it.

    Args:
        reading: what a verifier read of the passage; None: it was not read.
        constraint: what the query states.
        decisive: the sentence that decided the reading.
    """
    if constraint is None or not constraint.stated:
        return "On the topic; the query rules nothing out."
    point = _point(constraint)
    if reading is None:
        return f"On the topic; not read for {point}."
    if reading.silent >= max(reading.satisfies, reading.violates):
        return f"Says nothing about {_subject(constraint)}."
    verb = "Fits" if reading.satisfies > reading.violates else "Goes against"
    return f"{verb} {point}: “{_shortened(decisive)}”" if decisive else f"{verb} {point}."


def _point(constraint: Constraint) -> str:
    """The constraint by its phrases: “no nuts, no milk”."""
    parts = [f"no {phrase}" for phrase in constraint.excluded]
    parts = parts or [f"with {phrase}" for phrase in constraint.required]
    return f"“{', '.join(parts)}”" if parts else "what the query asks"


def _subject(constraint: Constraint) -> str:
    """What the constraint is about: “nuts, milk”."""
    phrases = constraint.excluded or constraint.required
    return f"“{', '.join(phrases)}”" if phrases else "what the query asks"


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1].rstrip() + "…"
