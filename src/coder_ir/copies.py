"""Near-copies: passages that topic cannot tell apart, and what each says that another does not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from coder_ir.mentions import split_sentences
from coder_ir.types import Candidates, Encoder, Floats, Policy
from coder_ir.vectors import best_first, cosine, near_copies

_KEPT = 4096  # vectors, of 1.5 kB each
_FIRST = 20  # passages, from the top by topic, among which near-copies are told apart
Texts = Callable[[Candidates], list[str]]  # the words of each passage of a pool
Row = Callable[[str], Floats]  # a text to its compatibility vector


@runtime_checkable
class TellsApart(Policy, Protocol):
    """A policy that holds near-copies against each other and wants to know where they differ."""

    @property
    def twin(self) -> float:
        """Topical cosine from which two passages are near-copies, in [-1, 1]."""


def own_words(texts: Sequence[str], copies: NDArray[np.bool_]) -> list[str]:
    """Of each text the sentences that one of its copies lacks; "" where no copy lacks any."""
    sentences = [split_sentences(text) for text in texts]
    held = [set(parts) for parts in sentences]
    return [
        " ".join(
            sentence
            for sentence in parts
            if any(sentence not in held[j] for j in np.flatnonzero(copies[i]))
        )
        for i, parts in enumerate(sentences)
    ]


def encoded_alone(encoder: Encoder) -> Row:
    """One text after another to its vector; those read last are kept.

    In int8 a vector depends on what else is in its batch, by about as much as the sentences differ
    that copies are told apart by.
    """
    return lru_cache(_KEPT)(lambda part: encoder.encode([part], kind="document").compatibility[0])


def told_apart(
    pool: Candidates, query: Floats, *, twin: float, texts: Texts, encode: Row
) -> Candidates:
    """The pool with how compatible near-copies among its first passages are where they differ.

    A long passage's vector holds little of the one clause that a copy has otherwise. So each copy
    is read again by the sentences that another lacks, `query` being the query's compatibility
    vector. One that has no such sentence is not read; one that shares none keeps its score.
    """
    first = best_first(pool.topical, pool.doc_ids, _FIRST)
    if pool.rows is None or not first:
        return pool
    rows = pool.rows[first]
    copies = near_copies(rows, rows, twin)  # each of itself too
    some = copies.sum(axis=1) > 1
    chosen = [i for i, any_copy in zip(first, some, strict=True) if any_copy]
    if not chosen:
        return pool
    whole = texts(pool.part(chosen))
    apart = np.full(len(pool), np.nan)
    places: dict[str, list[int]] = {}  # what to encode, and for which passages
    for i, text, own in zip(chosen, whole, own_words(whole, copies[some][:, some]), strict=True):
        if own == " ".join(split_sentences(text)):
            apart[i] = pool.compatibility[i]
        elif own:
            places.setdefault(own, []).append(i)
    for own, positions in places.items():
        apart[positions] = cosine(encode(own)[None], query)[0]
    return replace(pool, apart=apart)
