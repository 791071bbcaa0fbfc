"""What a rule hands to the builder: a pair without neutrals, and what its neutrals must be like."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from coder_ir.datasets.diagnostics.passages import Passage
from coder_ir.datasets.diagnostics.sheet import Pair

NEVER = re.compile(r"(?!)")
ALWAYS = re.compile("")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair before the shared filters; its neutrals are still empty."""

    pair: Pair
    word: str  # what was changed or excluded; or the topic of an exclusion
    topic: frozenset[str]  # content words that both queries and all six documents are about
    needed: re.Pattern[str] = ALWAYS  # a neutral document has it
    refused: re.Pattern[str] = NEVER  # and does not have this
    minimal: bool = True  # side b is side a with one change
    most: int = 3  # pairs that may have the word
    alone: tuple[str, ...] = ()  # what no second pair may be about, beside its sources

    @property
    def sources(self) -> tuple[str, ...]:
        """Ids of the source documents."""
        return tuple(self.pair.source.split("+"))


Rule = Callable[[Sequence[Passage], int], Iterator[Candidate]]  # passages in order, seed


def pick(options: Sequence[str], seed: int, key: str) -> str:
    """The option that the seed and the key choose: the same in every run."""
    return random.Random(f"{seed} {key}").choice(options)
