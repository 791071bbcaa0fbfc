"""Approximate search: every row is looked at by a code of two bits a number, the best by itself.

FAISS calls it a product quantiser with fast scan: codes lie so that one instruction reads 32 of
them. A random rotation first makes all numbers of a vector weigh the same. It finds; the vectors
themselves then give the scores.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from coder_ir.stores.sqlite.exact import Mask, Positions, import_faiss, one_thread, selector
from coder_ir.types import Floats

DEPTH = 100
"""Recall is measured among this many best, which is the default of a pool."""
LEAST_RECALL = 0.98
_AIM = 0.995  # queries are no stored vectors, and a little harder than those
_WIDTHS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_QUERIES = 200  # stored vectors that recall is measured with
_SAMPLE = 20_000  # rows that codes are fitted to
_BLOCK = 50_000  # rows added at once
_SEED = 13


@dataclass(frozen=True, slots=True)
class Tuned:
    """How many rows codes have to bring for one that is wanted, and what that finds."""

    width: int
    recall: float  # among the DEPTH best, mean over stored vectors as queries, in [0, 1]


class ApproximateIndex:
    """The codes of one space, in memory."""

    def __init__(self, index: Any, width: int) -> None:
        """Take what FAISS built or read, and how many rows to take from it for one wanted."""
        self._index = index
        self._width = width

    @classmethod
    def open(cls, path: Path, width: int) -> Self:
        """Read a file, a sixteenth the size of the vectors."""
        return cls(import_faiss().read_index(str(path)), width)

    def rows_for(self, wanted: int) -> int:
        """How many of its best rows hold nearly all of the best ones; never few."""
        return self._width * max(wanted, DEPTH)

    def top(self, query: Floats, n: int, allowed: Mask | None) -> tuple[Positions, Floats]:
        """Positions and rough scores of the n best rows, best first, only among those allowed."""
        chosen = None if allowed is None else selector(allowed)
        parameters = import_faiss().SearchParametersIVF(sel=chosen)
        with one_thread():
            scores, found = self._index.search(query[None, :], n, params=parameters)
        real = found[0] >= 0
        return found[0][real], scores[0][real]


def build_codes(rows: Floats) -> Any:
    """A FAISS index of unit rows, which may be mapped from a file; the same rows give the same."""
    faiss = import_faiss()
    count, dimensions = rows.shape
    even = dimensions + dimensions % 2
    # One list that holds all: without lists, FAISS cannot leave out rows.
    name = f"RR{even},IVF1,{_kind(even)}fs"
    index = faiss.index_factory(dimensions, name, faiss.METRIC_INNER_PRODUCT)
    draw = np.random.default_rng(_SEED)
    chosen = np.sort(draw.choice(count, size=min(count, _SAMPLE), replace=False))
    index.train(np.ascontiguousarray(rows[chosen]))
    for start in range(0, count, _BLOCK):
        index.add(np.ascontiguousarray(rows[start : start + _BLOCK]))
    return index


def kind_of(index: Any) -> str:
    """What FAISS calls such codes: how many parts of a vector, bits for each."""
    return _kind(index.index.d)


def _kind(dimensions: int) -> str:
    return f"PQ{dimensions // 2}x4"


def tuned(index: Any, rows: Floats) -> Tuned:
    """Take more rows from the codes, step by step, until recall is what it should be."""
    draw = np.random.default_rng(_SEED + 1)
    asked = np.sort(draw.choice(len(rows), size=min(_QUERIES, len(rows)), replace=False))
    recalls = _recalls(index, rows, asked)
    enough = (width for width, recall in recalls.items() if recall >= _AIM)
    width = next(enough, _WIDTHS[-1])
    return Tuned(width, recalls[width])


def _recalls(index: Any, rows: Floats, asked: Positions) -> dict[int, float]:
    """For each width the share of the best rows that are found, or others that score the same."""
    cut = _exact_cut(rows, asked)
    depth = cut.shape[1]
    if not depth:
        return dict.fromkeys(_WIDTHS, 1.0)
    queries = np.ascontiguousarray(rows[asked])
    _, found = index.search(queries, min(_WIDTHS[-1] * depth + 1, len(rows)))
    hits = dict.fromkeys(_WIDTHS, 0)
    for query, own, positions, best in zip(queries, asked, found, cut, strict=True):
        there = positions[(positions >= 0) & (positions != own)]
        good = np.cumsum(rows[there] @ query >= best[-1] - 1e-5)
        for width in _WIDTHS:
            hits[width] += min(int(good[min(width * depth, len(good)) - 1]), depth)
    return {width: count / cut.size for width, count in hits.items()}


def _exact_cut(rows: Floats, asked: Positions) -> Floats:
    """Scores (queries, DEPTH) of the best rows for each query, itself left out; best first."""
    faiss = import_faiss()
    depth = min(DEPTH, len(rows) - 1)
    queries = np.ascontiguousarray(rows[asked])
    scores, found = faiss.knn(queries, rows, depth + 1, metric=faiss.METRIC_INNER_PRODUCT)
    others = found != asked[:, None]
    others[others.all(axis=1), -1] = False  # copies of it came before it: the last one goes
    return np.asarray(scores[others].reshape(len(asked), depth))
