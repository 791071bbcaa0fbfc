"""What HyDE, DEO and NS-IR ask of a text, and rules that answer without a language model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coder_ir.baselines.formulas import query_formula, text_formula
from coder_ir.constraints import Cue, detect, find_cues
from coder_ir.types import Constraint

_TURNING = ("negation", "lack")  # families of cues that turn a claim into its opposite
_WHOLE = {"won't": "will", "can't": "can", "cannot": "can", "no": "any", "none of": "some of"}
_NOT = re.compile(r"\s*\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Intents:
    """What a query wants and what it rules out, in short phrases."""

    positive: tuple[str, ...]  # at least one
    negative: tuple[str, ...] = ()


class Decomposer(Protocol):
    """Reads a text for a method that works on its parts."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def intents(self, query: str) -> Intents:
        """What the query wants and what it rules out."""

    def passages(self, query: str, n: int) -> list[str]:
        """Between one and n passages that would satisfy the query."""

    def formula(self, query: str) -> str:
        """The query in first-order logic."""

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """Each document in first-order logic."""


class Rules:
    """No language model: the words that constraint detection finds."""

    name = "rules"

    def intents(self, query: str) -> Intents:
        """The query without what it rules out, and that; or a negated claim and its opposite.

        "Which king was never crowned?" rules out what "Which king was crowned?" asks for.
        """
        found = _stated(query)
        if found.excluded:
            return Intents((found.topic or query,), found.excluded)
        opposite = _affirmative(query, find_cues(query))
        return Intents((query,), (opposite,) if opposite != query else ())

    def passages(self, query: str, n: int) -> list[str]:
        """One, however many were asked for: the query without what it rules out."""
        return [self.intents(query).positive[0]]

    def formula(self, query: str) -> str:
        """Words as predicates; denied ones and what the query rules out are negated."""
        found = _stated(query)
        return query_formula(found.topic or query, found.excluded)

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """Words as predicates, denied ones negated."""
        return [text_formula(document) for document in documents]


def _stated(query: str) -> Constraint:
    """What cue words alone tell."""
    return detect(query, np.zeros(0, dtype=np.float32), None)


def _affirmative(query: str, cues: Sequence[Cue]) -> str:
    """The query with every negation of its claim taken out."""
    said, at = "", 0
    for cue in cues:
        if cue.family in _TURNING:
            words = cue.words.lower().replace("’", "'")
            said += query[at : cue.start] + _WHOLE.get(words, _NOT.sub("", cue.words))
            at = cue.start + len(cue.words)
    return re.sub(r"\s+", " ", said + query[at:]).strip()
