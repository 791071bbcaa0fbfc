"""Search cost: a fused search over both vector sets against one plain FAISS search."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.policies import POLICIES
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Floats, Kind, Progress, Record, Span, VectorPair
from coder_ir.vectors import unit_rows

_DOCUMENTS, _DIMENSIONS, _QUERIES, _BATCH = 100_000, 384, 60, 5000


class _Prepared:
    """An encoder whose query vectors are given, so that only the search is timed."""

    fingerprint = spec = "prepared"

    def __init__(self, queries: VectorPair) -> None:
        self._queries = queries

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        if progress:
            progress(len(texts))
        rows = [int(text) for text in texts] if kind == "query" else []
        return VectorPair(self._queries.topical[rows], self._queries.compatibility[rows])

    def split(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


def measure_search_cost(setup: Setup, report: Report) -> Table:
    """Median time of each policy, in turn with FAISS, over the same vectors."""
    import faiss

    draw = np.random.default_rng(13)
    topical, compatibility = (_unit(draw, _DOCUMENTS) for _ in range(2))
    queries = VectorPair(_unit(draw, _QUERIES), _unit(draw, _QUERIES))
    flat = faiss.IndexFlatIP(_DIMENSIONS)
    flat.add(topical)
    report(f"search: storing {_DOCUMENTS} documents")
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder), exact=True)
        for start in range(0, _DOCUMENTS, _BATCH):
            store.write([_record(i, topical, compatibility) for i in range(start, start + _BATCH)])
        with Retriever(_Prepared(queries), store) as retriever:
            retriever.search("0")  # loads the vectors
            faiss.omp_set_num_threads(1)  # the faster way for one query; ours searches so too
            systems: dict[str, Callable[[int], object]] = {
                "FAISS flat, one vector set": lambda i: flat.search(queries.topical[i : i + 1], 10)
            }
            for name in POLICIES:
                systems[f"coder-ir, {name}"] = lambda i, name=name: retriever.search(  # type: ignore[misc]
                    str(i), k=10, policy=name
                )
            times = _timed(systems)
    return _table(times)


def _unit(draw: np.random.Generator, rows: int) -> Floats:
    return unit_rows(draw.standard_normal((rows, _DIMENSIONS), dtype=np.float32))


def _record(i: int, topical: Floats, compatibility: Floats) -> Record:
    pair = VectorPair(topical[i : i + 1], compatibility[i : i + 1])
    return Record(Document(f"d{i}", f"document {i}"), str(i), [Span(0, 10)], pair)


def _timed(systems: dict[str, Callable[[int], object]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in systems}
    for i in range(_QUERIES):
        for name, call in systems.items():
            started = time.perf_counter()
            call(i)
            times[name].append(1000 * (time.perf_counter() - started))
    return times


def _table(times: dict[str, list[float]]) -> Table:
    reference = median(next(iter(times.values())))
    ratios = {name: median(values) / reference for name, values in times.items()}
    return Table(
        name="search",
        title="Search cost",
        columns=("system", "median ms", "against FAISS"),
        rows=tuple((n, f"{median(v):.1f}", f"{ratios[n]:.2f}x") for n, v in times.items()),
        notes=(
            f"{_DOCUMENTS:,} synthetic documents, two sets of {_DIMENSIONS} floats, k=10, pool "
            f"100, one thread, {_QUERIES} queries in turn on one machine; query encoding not "
            "counted, reading the hits' texts from SQLite counted.",
        ),
        figures={"documents": _DOCUMENTS, "milliseconds": times, "ratio": ratios},
    )
