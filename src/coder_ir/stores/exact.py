"""Exact search over vectors in memory; another index with these four methods can take its place."""

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
        faiss = _faiss()
        self._flat: Any = faiss.IndexFlatIP(dimensions)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._flat.ntotal)

    def add(self, rows: Floats) -> None:
        """Append rows (n, dimensions); they take the next positions."""
        self._flat.add(np.ascontiguousarray(rows, dtype=np.float32))

    def remove(self, gone: Mask) -> None:
        """Drop the marked positions; the rest close up in order."""
        self._flat.remove_ids(_selector(gone))

    def rows(self, positions: Positions) -> Floats:
        """The vectors at these positions."""
        matrix = _faiss().rev_swig_ptr(self._flat.get_xb(), len(self) * self._flat.d)
        return np.asarray(matrix.reshape(len(self), self._flat.d)[positions])

    def top(self, query: Floats, n: int, allowed: Mask | None) -> tuple[Positions, Floats]:
        """Positions and scores of the n best rows, best first, only among those allowed."""
        if not len(self):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        parameters = None if allowed is None else _faiss().SearchParameters(sel=_selector(allowed))
        with _one_thread():
            scores, found = self._flat.search(query[None, :], min(n, len(self)), params=parameters)
        real = found[0] >= 0
        return found[0][real], scores[0][real]


def _faiss() -> Any:
    import faiss  # takes a while to import, so only a search pays for it

    return faiss


@contextmanager
def _one_thread() -> Iterator[None]:
    """One query is answered faster by one thread: several cost more to wake than they save."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # of this thread's own calls
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _selector(mask: Mask) -> Any:
    return _faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))
