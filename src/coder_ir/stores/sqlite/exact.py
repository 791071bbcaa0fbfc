"""Exact search over vectors, in memory or mapped from a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.types import Floats

Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ExactIndex:
    """Unit rows addressed by position; inner product, nothing approximated."""

    def __init__(self, dimensions: int) -> None:
        """Start empty."""
        faiss = import_faiss()
        self._flat: Any = faiss.IndexFlatIP(dimensions)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._flat.ntotal)

    def add(self, rows: Floats) -> None:
        """Append rows (n, dimensions); they take the next positions."""
        self._flat.add(np.ascontiguousarray(rows, dtype=np.float32))

    def remove(self, gone: Mask) -> None:
        """Drop the marked positions; the rest close up in order."""
        self._flat.remove_ids(selector(gone))

    def rows(self, positions: Positions) -> Floats:
        """The vectors at these positions."""
        return np.asarray(self._matrix()[positions])

    def top(self, query: Floats, n: int, allowed: Mask | None) -> tuple[Positions, Floats]:
        """Positions and scores of the n best rows, best first, only among those allowed."""
        return top_of(self._matrix(), query, n, allowed)

    def _matrix(self) -> Floats:
        matrix = import_faiss().rev_swig_ptr(self._flat.get_xb(), len(self) * self._flat.d)
        return np.asarray(matrix.reshape(len(self), self._flat.d))


def top_of(rows: Floats, query: Floats, n: int, allowed: Mask | None) -> tuple[Positions, Floats]:
    """Positions and scores of the n best of contiguous rows, best first; every row is looked at."""
    faiss, n = import_faiss(), min(n, len(rows))
    scores, found = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.int64)
    if not n:
        return found, scores
    query = np.ascontiguousarray(query)
    chosen = None if allowed is None else selector(allowed)
    with one_thread():
        faiss.knn_inner_product(
            *(faiss.swig_ptr(query), faiss.swig_ptr(rows), rows.shape[1], 1, len(rows), n),
            *(faiss.swig_ptr(scores), faiss.swig_ptr(found), chosen),
        )
    real = found >= 0
    return found[real], scores[real]


def import_faiss() -> Any:
    """FAISS; it takes a while to import, so only a search pays for it."""
    import faiss

    return faiss


@contextmanager
def one_thread() -> Iterator[None]:
    """One query is answered faster by one thread: several cost more to wake than they save."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # of this thread's own calls
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def selector(mask: Mask) -> Any:
    """What FAISS takes to look at the marked positions alone."""
    return import_faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))
