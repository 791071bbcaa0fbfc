"""Stage 1 data: word-level triplets of WordNet's antonym pairs."""

from collections.abc import Iterator

from coder_ir.datasets.wordnet import AntonymPair
from coder_ir.types import Triplet

LICENCE = "WordNet 3.0 licence (Princeton University)"


def polarity_triplets(pairs: list[AntonymPair]) -> list[Triplet]:
    """Word-level triplets, both directions of each pair.

    A word asks for its own gloss and synonym and against its antonym's; `not` with the antonym
    asks for the word.
    """
    return [triplet for pair in pairs for triplet in _triplets(pair)]


def _triplets(pair: AntonymPair) -> Iterator[Triplet]:
    there = (pair.word, pair.antonym, pair.synonym, pair.gloss, pair.antonym_gloss)
    back = (pair.antonym, pair.word, pair.antonym_synonym, pair.antonym_gloss, pair.gloss)
    group = f"wordnet:{pair.word}/{pair.antonym}"
    for word, antonym, synonym, gloss, antonym_gloss in (there, back):
        if gloss and antonym_gloss and gloss != antonym_gloss:
            yield Triplet(word, gloss, antonym_gloss, group, "WordNet", LICENCE)
        if synonym and synonym != antonym:
            yield Triplet(word, synonym, antonym, group, "WordNet", LICENCE)
        if word != antonym:
            yield Triplet(f"not {antonym}", word, antonym, group, "WordNet", LICENCE)
