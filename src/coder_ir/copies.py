"""Near-copies: passages that topic cannot tell apart, and what each says that another does not."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from coder_ir.mentions import split_sentences, words_of
from coder_ir.types import Candidates, Encoder, Floats, Policy, Scores
from coder_ir.vectors import best_first, cosine

_CACHED = 4096  # vectors, of 1.5 kB each
_FIRST = 20  # passages, from the top by topic, among which near-copies are looked for
_SHARED_WORDS = 0.6  # of all words of two near-copies, at least
Pairs = tuple[tuple[int, int], ...]  # positions in a pool
Texts = Callable[[Candidates], list[str]]  # the words of each passage of a pool
Row = Callable[[str], Floats]  # a text to its compatibility vector


@runtime_checkable
class ComparesCopies(Policy, Protocol):
    """A policy that holds near-copies against each other and wants to know where they differ."""

    @property
    def twin(self) -> float:
        """Topical cosine that two near-copies have at least, in [-1, 1]."""


def encoded_alone(encoder: Encoder) -> Row:
    """One text after another to its vector; those read last are kept."""
    return lru_cache(_CACHED)(lambda part: encoder.encode([part], kind="document").compatibility[0])


def compared_copies(
    pool: Candidates, query: Floats, *, twin: float, texts: Texts, encode: Row
) -> Candidates:
    """The pool with its near-copies, and how compatible each is where it differs from another.

    Two of the first passages are near-copies if their vectors are close and they share most of
    their words: passages that were edited from one another, not ones on the same subject. A long
    passage's vector holds little of the one clause that a copy has otherwise, so each copy is read
    again by the sentences that another lacks, `query` being the query's compatibility vector. One
    that has no such sentence is not read; one that shares none keeps its score.
    """
    first = best_first(pool.topical, pool.doc_ids, _FIRST)
    close = _close(pool, first, twin)
    if not close:
        return pool
    read = sorted({i for pair in close for i in pair})
    words = dict(zip(read, texts(pool.part(read)), strict=True))
    pairs = tuple((i, j) for i, j in close if shared_words(words[i], words[j]) >= _SHARED_WORDS)
    return replace(pool, copies=pairs, apart=_apart(pool, pairs, words, query, encode))


def _close(pool: Candidates, first: Sequence[int], twin: float) -> Pairs:
    if pool.rows is None or not first:
        return ()
    rows = pool.rows[list(first)]
    near = np.triu(rows @ rows.T >= twin, k=1)
    return tuple((first[a], first[b]) for a, b in np.argwhere(near))


def shared_words(one: str, other: str) -> float:
    """Words that both have, of all words of either, repeated ones counted; in [0, 1]."""
    a, b = (Counter(words_of(text)) for text in (one, other))
    return (a & b).total() / max(1, (a | b).total())


def _apart(
    pool: Candidates, pairs: Pairs, words: Mapping[int, str], query: Floats, encode: Row
) -> Scores | None:
    if not pairs:
        return None
    apart = np.full(len(pool), np.nan)
    places: dict[str, list[int]] = {}  # what to encode, and for which passages
    for i, own in own_words(pairs, words).items():
        if own == " ".join(split_sentences(words[i])):
            apart[i] = pool.compatibility[i]
        elif own:
            places.setdefault(own, []).append(i)
    for own, positions in places.items():
        apart[positions] = cosine(encode(own)[None], query)[0]
    return apart


def own_words(pairs: Sequence[tuple[int, int]], words: Mapping[int, str]) -> dict[int, str]:
    """Of each near-copy the sentences that one of its copies lacks; "" where none lacks any."""
    sentences = {i: split_sentences(words[i]) for pair in pairs for i in pair}
    held = {i: set(parts) for i, parts in sentences.items()}
    copies: dict[int, list[int]] = {i: [] for i in sentences}
    for i, j in pairs:
        copies[i].append(j)
        copies[j].append(i)
    return {
        i: " ".join(part for part in parts if any(part not in held[j] for j in copies[i]))
        for i, parts in sentences.items()
    }
