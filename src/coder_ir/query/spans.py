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
_LEAST_MARK = 0.55  # mean probability of a mark's tokens
_LEAST_NAME = 0.0  # logit from which an implied word rules a thing out


@dataclass(frozen=True, slots=True)
class Tagged:
    """The network's word on each token."""

    offsets: Sequence[tuple[int, int]]  # characters of the query
    tags: Floats  # (tokens, 1 + roles) logits, the first for no role
    implied: Floats  # (tokens, names) logits
    names: tuple[str, ...]

    def part(self, rows: slice) -> Self:
        """Some tokens in a row."""
        return type(self)(self.offsets[rows], self.tags[rows], self.implied[rows], self.names)

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
    shares = _softmax(tagged.tags)  # (tokens, 1 + roles)
    found: list[Mark] = []
    pairs = zip(_roles(shares, [rows for _, rows in votes]), votes, strict=True)
    for role, run in groupby(pairs, key=lambda pair: pair[0]):
        part = [vote for _, vote in run]
        if role:
            rows = slice(part[0][1].start, part[-1][1].stop)
            span = Span(part[0][0].start, part[-1][0].end)
            probability = float(shares[rows, role].mean())
            if probability >= _LEAST_MARK:
                found += _mark(text, span, _ROLES[role - 1], probability, tagged, rows)
    return found


def _roles(shares: Floats, words: Sequence[range]) -> list[int]:
    """The role that the tokens of each word agree on; 0 for none."""
    sums = np.vstack([np.zeros_like(shares[:1]), shares.cumsum(axis=0)])
    first, last = [rows.start for rows in words], [rows.stop for rows in words]
    return [int(role) for role in (sums[last] - sums[first]).argmax(axis=1)]


def _votes(offsets: Sequence[tuple[int, int]], places: Sequence[Span]) -> list[tuple[Span, range]]:
    """Each word that was read, with its tokens; both are in order."""
    starts, ends = [start for start, _ in offsets], [end for _, end in offsets]
    first = np.searchsorted(ends, [place.start for place in places], side="right").tolist()
    last = np.searchsorted(starts, [place.end for place in places]).tolist()
    rows = map(range, first, last)
    return [(place, own) for place, own in zip(places, rows, strict=True) if own]


def _mark(
    text: str, span: Span, role: Role, probability: float, tagged: Tagged, rows: slice
) -> list[Mark]:
    """One mark, or none where it has no letters and is no cue."""
    words_in_it = text[span.start : span.end]
    if role != "cue" and not any(letter.isalnum() for letter in words_in_it):
        return []
    names = tagged.part(rows).names_said() if role == "implied" else ()
    return [Mark(span, role, words_in_it, names, probability)]


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float32)
