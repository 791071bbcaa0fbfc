"""What can be told of a triplet without understanding it; near one half, or the data has a leak."""

from collections.abc import Callable, Sequence

from coder_ir.errors import InvalidValue
from coder_ir.text import EMPTY_WORDS, stem_of, words_of
from coder_ir.training.sources import negates
from coder_ir.types import Triplet

Clue = Callable[[Triplet, str], float]  # higher: taken for the satisfying passage


def negations(text: str) -> int:
    """How many words of a text negate."""
    return sum(map(negates, words_of(text)))


def _shared_words(triplet: Triplet, passage: str) -> float:
    asked, found = (
        {stem_of(word) for word in words_of(text) if word not in EMPTY_WORDS}
        for text in (triplet.query, passage)
    )
    return len(asked & found)


CLUES: dict[str, Clue] = {
    "fewer negation words": lambda _, passage: -negations(passage),
    "negation in query and passage, or in neither": lambda triplet, passage: (
        bool(negations(triplet.query)) == bool(negations(passage))
    ),
    "more words of the query": _shared_words,
    "shorter passage": lambda _, passage: -len(words_of(passage)),
}
"""Name to clue."""


def clue_scores(triplets: Sequence[Triplet]) -> dict[str, float]:
    """Share of triplets each clue gets right, in [0, 1]; a tie counts as half of one."""
    if not triplets:
        raise InvalidValue("clues need at least one triplet, got none")
    scores = {}
    for name, clue in CLUES.items():
        margins = [clue(t, t.satisfying) - clue(t, t.violating) for t in triplets]
        scores[name] = sum((m > 0) + (m == 0) / 2 for m in margins) / len(margins)
    return scores
