"""A verifier that goes by words, so that what it reads can be told by looking."""

import re
from collections.abc import Sequence

from coder_ir.text import sentence_spans
from coder_ir.types import Reading, Span

_WANTED = re.compile(r"\b(without|with) ([^,]+)")


class FakeVerifier:
    """A passage that says X violates `without X` and satisfies `with X`; one that says `no X` the
    other way round.

    The last phrase of a query that a passage speaks of decides; one that speaks of none is silent,
    as is every passage where a query names nothing. The word `unclear` makes a reading of equal
    parts. `asked` keeps each call.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    @property
    def read_texts(self) -> list[str]:
        """Every passage that it was given, in order."""
        return [text for _, texts in self.asked for text in texts]

    def read(self, query: str, passages: Sequence[str]) -> list[Reading]:
        self.asked.append((query, list(passages)))
        return [self._read(query, passage) for passage in passages]

    def _read(self, query: str, passage: str) -> Reading:
        said = silent()
        for kind, phrase in _WANTED.findall(query):
            for span in sentence_spans(passage):
                sentence = passage[span.start : span.end]
                if not re.search(rf"\b{re.escape(phrase.strip())}\b", sentence, re.IGNORECASE):
                    continue
                denied = re.search(rf"\bno {re.escape(phrase.strip())}\b", sentence, re.IGNORECASE)
                agrees = (kind == "with") != bool(denied)
                said = satisfying(span) if agrees else violating(span)
        return said


def satisfying(decisive: Span | None = None) -> Reading:
    return Reading(0.9, 0.06, 0.04, 0.05, decisive)


def violating(decisive: Span | None = None) -> Reading:
    return Reading(0.06, 0.9, 0.04, 0.95, decisive)


def silent(decisive: Span | None = None) -> Reading:
    return Reading(0.2, 0.1, 0.7, 0.25, decisive)
