"""Near-duplicates: passages edited from one another, which topic cannot tell apart."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from coder_ir.text import words_of
from coder_ir.types import Candidates
from coder_ir.vectors import best_first

FIRST = 20  # passages, from the top by topic, among which near-duplicates are looked for
_CLOSE = 0.93  # topical cosine of two near-duplicates, at least
_SHARED_WORDS = 0.6  # of all words of two near-duplicates, at least
Texts = Callable[[Candidates], list[str]]  # the words of each passage of a pool


def with_near_duplicates(pool: Candidates, texts: Texts) -> Candidates:
    """The pool with the pairs of near-duplicates among its first passages.

    Their vectors are close and they share most of their words; passages that are merely on one
    subject share fewer.
    """
    if pool.rows is None or len(pool) < 2:
        return pool
    first = best_first(pool.topical, pool.doc_ids, FIRST)
    rows = pool.rows[first]
    close = np.argwhere(np.triu(rows @ rows.T >= _CLOSE, k=1))
    pairs = [(first[a], first[b]) for a, b in close.tolist()]
    if not pairs:
        return pool
    involved = sorted({i for pair in pairs for i in pair})
    words = dict(zip(involved, texts(pool.part(involved)), strict=True))
    kept = tuple((i, j) for i, j in pairs if shared_words(words[i], words[j]) >= _SHARED_WORDS)
    return replace(pool, near_duplicates=kept)


def shared_words(one: str, other: str) -> float:
    """Words that both have, of all words of either, repeated ones counted; in [0, 1]."""
    a, b = (Counter(words_of(text)) for text in (one, other))
    return (a & b).total() / max(1, (a | b).total())
