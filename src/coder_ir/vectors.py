"""Pure numpy over vectors and scores; the only place that sorts scores."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coder_ir.types import Floats, Scores

SCORE_DECIMALS = 6
"""Scores are rounded to this, so that two vectors score the same in any store or BLAS kernel."""
FUSED_DECIMALS = 12
"""Finer than any real difference of two weighted sums, coarser than float noise."""
_BLOCK = 8192  # rows whose float64 copy is held at once


def unit_rows(rows: NDArray[np.floating]) -> Floats:
    """Rows scaled to length 1 as float32; a zero row stays zero."""
    rows = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.float32(1e-12)), dtype=np.float32)


def cosine(rows: Floats, vector: Floats) -> Scores:
    """Dot products of unit rows (n, dim) with one unit vector (dim,), rounded to SCORE_DECIMALS."""
    return np.round(rows.astype(np.float64) @ vector.astype(np.float64), SCORE_DECIMALS)


def inner_products(rows: Floats, vector: Floats) -> Scores:
    """As `cosine`, for rows of any length and number: no second copy of all of them is made."""
    blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    return np.concatenate([np.zeros(0), *(cosine(block, vector) for block in blocks)])


def best_first(scores: Sequence[float] | Scores, ids: Sequence[str], k: int) -> list[int]:
    """Positions of the k highest scores; equal scores go by ascending id, then by position."""
    return sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))[:k]


def best_of_many(scores: Scores, ids: Sequence[str], k: int) -> list[int]:
    """As `best_first`, without a sort of all the scores."""
    if not 0 < k < len(ids):
        return best_first(scores, ids, k)
    lowest = np.partition(scores, -k)[-k]
    top: list[int] = np.flatnonzero(scores >= lowest).tolist()  # every tie at the cut
    return [top[i] for i in best_first(scores[top], [ids[i] for i in top], k)]


def fused(alpha: float, topical: Scores, compatibility: Scores) -> Scores:
    """Weighted sum of two score vectors, rounded so that equal sums are ties to the last bit."""
    return np.round(alpha * topical + (1 - alpha) * compatibility, FUSED_DECIMALS)


def ranks(scores: Scores, ids: Sequence[str]) -> NDArray[np.int64]:
    """1-based rank of each score, highest first, ties by ascending id."""
    places = np.empty(len(ids), dtype=np.int64)
    places[best_first(scores, ids, len(ids))] = np.arange(1, len(ids) + 1)
    return places
