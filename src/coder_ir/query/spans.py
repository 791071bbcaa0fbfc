"""From what a network says of tokens to marks on a query's words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Self, get_args

import numpy as np

from coder_ir.types import Floats, Mark, Role, Span

_ROLES: tuple[Role, ...] = get_args(Role)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_")
_MOST_WORDS = 1000  # of a sentence; a model reads 512 tokens
_LEAST_MARK = 0.5  # mean probability of a mark's tokens
_LEAST_NAME = 0.0  # logit from which an implied word rules a thing out


@dataclass(frozen=True, slots=True)
class Tagged:
    """The network's word on each token."""

    offsets: Sequence[tuple[int, int]]  # characters of the query
    tags: Floats  # (tokens, 1 + roles) logits, the first for no role
    implied: Floats  # (tokens, names) logits
    names: tuple[str, ...]

    def part(self, rows: list[int]) -> Self:
        """Some of the tokens."""
        offsets = [self.offsets[row] for row in rows]
        return type(self)(offsets, self.tags[rows], self.implied[rows], self.names)

    def names_said(self) -> tuple[str, ...]:
        """What these tokens rule out, at least the likeliest thing."""
        if not self.names:
            return ()
        logits = self.implied.mean(axis=0)
        least = min(_LEAST_NAME, float(logits.max()))
        return tuple(n for n, logit in zip(self.names, logits, strict=True) if logit >= least)


def words(text: str, span: Span) -> list[Span]:
    """Words and signs of a part of a text; what a hyphen joins are two words."""
    found = islice(_WORD.finditer(text, span.start, span.end), _MOST_WORDS)
    return [Span(match.start(), match.end()) for match in found]


def marks_of(text: str, tagged: Tagged, places: Sequence[Span]) -> list[Mark]:
    """Runs of words with one role, in order; a word has the role its tokens agree on."""
    votes = _votes(tagged.offsets, places)
    if not votes:
        return []
    shares = _softmax(tagged.tags)
    roles = [int(shares[rows].sum(axis=0).argmax()) for _, rows in votes]
    found: list[Mark] = []
    for role, run in groupby(zip(roles, votes, strict=True), key=lambda pair: pair[0]):
        part = [vote for _, vote in run]
        if role:
            rows = [row for _, own in part for row in own]
            span = Span(part[0][0].start, part[-1][0].end)
            found += _mark(text, span, role, tagged.part(rows))
    return found


def _votes(
    offsets: Sequence[tuple[int, int]], places: Sequence[Span]
) -> list[tuple[Span, list[int]]]:
    """Each word that was read, with its tokens; both are in order."""
    found, first = [], 0
    for place in places:
        while first < len(offsets) and offsets[first][1] <= place.start:
            first += 1
        last = first
        while last < len(offsets) and offsets[last][0] < place.end:
            last += 1
        if last > first:
            found.append((place, list(range(first, last))))
    return found


def _mark(text: str, span: Span, role: int, tagged: Tagged) -> list[Mark]:
    """One mark, or none where it has no letters, rules nothing out or is more likely wrong."""
    words_in_it = text[span.start : span.end]
    if not any(letter.isalnum() for letter in words_in_it) and _ROLES[role - 1] != "cue":
        return []
    probability = float(_softmax(tagged.tags)[:, role].mean())
    if probability < _LEAST_MARK:
        return []
    names = tagged.names_said() if _ROLES[role - 1] == "implied" else ()
    return [Mark(span, _ROLES[role - 1], words_in_it, names, probability)]


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float32)
