"""Approximate search: vectors in lists around centres, eight bits a number, few lists a query.

FAISS calls it IVF with a scalar quantiser. It finds; the vectors themselves then give the scores.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from coder_ir.stores.sqlite.exact import Mask, Positions, import_faiss, one_thread, selector
from coder_ir.types import Floats

DEPTH = 100
"""Recall is measured among this many best, which is the default of a pool."""
LEAST_RECALL = 0.98
_AIM = 0.99  # queries are no stored vectors, and a little harder than those
_WIDTH = 2 * (DEPTH + 16)  # rows looked for; the vectors themselves put the best of them first
_QUERIES = 200  # stored vectors that recall is measured with
_POINTS = 40  # a centre, to place it by
_ROUNDS = 8  # of k-means
_BLOCK = 50_000  # rows added at once
_SEED = 13


@dataclass(frozen=True, slots=True)
class Tuned:
    """How many lists a query reads, and what that finds."""

    probes: int
    recall: float  # among the DEPTH best, mean over stored vectors as queries, in [0, 1]


class ApproximateIndex:
    """The lists of one space, mapped from a file."""

    def __init__(self, index: Any, probes: int) -> None:
        """Take what FAISS built or read; `probes` suits a search for DEPTH documents."""
        self._index = index
        self.lists = int(index.nlist)
        self._probes = probes

    @classmethod
    def open(cls, path: Path, probes: int) -> Self:
        """Map a file; lists are read from it as queries ask for them."""
        faiss = import_faiss()
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        # Else every query starts threads to fetch its lists, which takes longer than to read them.
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0
        return cls(index, probes)

    def probes(self, n: int, share: float) -> int:
        """Lists to read for n rows where only a share of all rows, in (0, 1], is allowed.

        The n best of those allowed are about as far as the n / share best of all.
        """
        return min(self.lists, math.ceil(self._probes * max(1.0, n / _WIDTH) / share))

    def top(
        self, query: Floats, n: int, *, probes: int, allowed: Mask | None
    ) -> tuple[Positions, Floats]:
        """Positions and rounded scores of the n best rows found, best first."""
        faiss = import_faiss()
        chosen = None if allowed is None else selector(allowed)
        parameters = faiss.SearchParametersIVF(nprobe=probes, sel=chosen)
        with one_thread():
            scores, found = self._index.search(query[None, :], n, params=parameters)
        real = found[0] >= 0
        return found[0][real], scores[0][real]


def build_lists(rows: Floats) -> Any:
    """A FAISS index of unit rows, which may be mapped from a file; the same rows give the same."""
    faiss = import_faiss()
    count, dimensions = rows.shape
    lists = max(1, min(round(2 * math.sqrt(count)), count // _POINTS))
    index = faiss.index_factory(dimensions, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.cp.seed = _ROUNDS, _SEED
    draw = np.random.default_rng(_SEED)
    chosen = np.sort(draw.choice(count, size=min(count, _POINTS * lists), replace=False))
    index.train(np.ascontiguousarray(rows[chosen]))
    for start in range(0, count, _BLOCK):
        index.add(np.ascontiguousarray(rows[start : start + _BLOCK]))
    return index


def kind_of(index: Any) -> str:
    """What FAISS calls such an index."""
    return f"IVF{index.nlist},SQ8"


def tuned(index: Any, rows: Floats) -> Tuned:
    """Read more lists, step by step, until recall is what it should be."""
    draw = np.random.default_rng(_SEED + 1)
    asked = np.sort(draw.choice(len(rows), size=min(_QUERIES, len(rows)), replace=False))
    cut = _exact_cut(rows, asked)
    probes = 1
    while True:
        recall = _recall(index, rows, asked, cut, probes)
        if recall >= _AIM or probes >= index.nlist:
            return Tuned(probes, recall)
        probes = min(int(index.nlist), max(probes + 1, math.ceil(1.25 * probes)))


def _exact_cut(rows: Floats, asked: Positions) -> Floats:
    """Scores (queries, DEPTH) of the best rows for each query, itself left out; best first."""
    faiss = import_faiss()
    depth = min(DEPTH, len(rows) - 1)
    queries = np.ascontiguousarray(rows[asked])
    scores, found = faiss.knn(queries, rows, depth + 1, metric=faiss.METRIC_INNER_PRODUCT)
    others = found != asked[:, None]
    others[others.all(axis=1), -1] = False  # copies of it came before it: the last one goes
    return np.asarray(scores[others].reshape(len(asked), depth))


def _recall(index: Any, rows: Floats, asked: Positions, cut: Floats, probes: int) -> float:
    """Share of the best rows that are found, or others that score the same."""
    if not cut.shape[1]:
        return 1.0
    parameters = import_faiss().SearchParametersIVF(nprobe=probes)
    queries = np.ascontiguousarray(rows[asked])
    _, found = index.search(queries, min(_WIDTH + 1, len(rows)), params=parameters)
    hits = 0
    for query, own, positions, best in zip(queries, asked, found, cut, strict=True):
        there = positions[(positions >= 0) & (positions != own)]
        hits += min(int((rows[there] @ query >= best[-1] - 1e-5).sum()), len(best))
    return hits / cut.size
