"""Index kinds: codes, lists and a graph over the same vectors, each as fast as recall allows."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from coder_ir.datasets.registry import load_benchmark
from coder_ir.encoders import load_encoder
from coder_ir.experiments.ann import LOOSE, TIGHT, Case, Mixture
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.stores.sqlite.approximate import DEPTH, build_codes
from coder_ir.stores.sqlite.exact import Positions, import_faiss, one_thread, top_of
from coder_ir.text import split_sentences
from coder_ir.types import Floats

_ROWS, _SENTENCES, _QUERIES, _SEED = 100_000, 20_000, 50, 13
_CORPORA = ("scifact", "nfcorpus")
_AIM = 0.99


@dataclass(frozen=True, slots=True)
class Vectors:
    """What is searched, and for what."""

    name: str
    rows: Floats
    queries: Floats


@dataclass(frozen=True, slots=True)
class Step:
    """How hard an index tries."""

    label: str
    fetch: int  # rows it brings, whose true scores then decide
    parameters: Any = None  # as FAISS takes them


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to build an index, and how hard it may try, least first."""

    name: str
    build: Callable[[Floats], Any]
    steps: Callable[[Any], Iterator[Step]]


def measure_index_kinds(setup: Setup, report: Report, sets: Sequence[Vectors] = ()) -> Table:
    """Each kind over each set: the least effort that finds 99 of the 100 best."""
    found = []
    for vectors in sets or _sets(setup, report):
        exact, true = _exact(vectors)
        for kind in _KINDS:
            report(f"kinds: {kind.name}, {vectors.name}")
            found.append({"vectors": vectors.name, "rows": len(vectors.rows), "exact ms": exact})
            found[-1] |= _measured(kind, vectors, true)
    return _table(found)


def _sets(setup: Setup, report: Report) -> Iterator[Vectors]:
    for label, case in (("clusters of 500", TIGHT[-1]), ("clusters of 50", LOOSE[-1])):
        mixture = Mixture.of(Case(_ROWS, case.cluster, case.noise), _SEED)
        draw = np.random.default_rng(_SEED)
        yield Vectors(label, mixture.draw(_ROWS, draw), mixture.draw(_QUERIES, draw))
    yield from _sentences(setup, report)


def _sentences(setup: Setup, report: Report) -> Iterator[Vectors]:
    """The built-in model's vectors of sentences, drawn by lot, and of real queries."""
    sets = [load_benchmark(name, setup.data) for name in _CORPORA]
    texts = [each.text for one in sets for each in one.documents]
    sentences = sorted({part for text in texts for part in split_sentences(text)})
    draw = np.random.default_rng(_SEED)
    chosen = draw.choice(len(sentences), size=min(_SENTENCES, len(sentences)), replace=False)
    queries = [query.text for one in sets for query in one.queries]
    asked = draw.choice(len(queries), size=min(_QUERIES, len(queries)), replace=False)
    report(f"kinds: encoding {len(chosen)} sentences")
    encoder = load_encoder(setup.model)
    rows = encoder.encode([sentences[i] for i in chosen], kind="document")
    vectors = encoder.encode([queries[i] for i in asked], kind="query")
    yield Vectors("sentences, topical", rows.topical, vectors.topical)
    yield Vectors("sentences, compatibility", rows.compatibility, vectors.compatibility)


def _exact(vectors: Vectors) -> tuple[float, list[Positions]]:
    """Milliseconds, and the best rows for each query."""
    times, found = [], []
    for query in vectors.queries:
        started = time.perf_counter()
        found.append(top_of(vectors.rows, query, DEPTH, None)[0])
        times.append(1000 * (time.perf_counter() - started))
    return median(times), found


def _measured(kind: Kind, vectors: Vectors, true: Sequence[Positions]) -> dict[str, Any]:
    started = time.perf_counter()
    index = kind.build(vectors.rows)
    built = time.perf_counter() - started
    size = import_faiss().serialize_index(index).nbytes / len(vectors.rows)
    figures: dict[str, Any] = {"kind": kind.name, "build seconds": built, "bytes a vector": size}
    for step in kind.steps(index):
        figures |= {"step": step.label, **_searched(index, step, vectors, true)}
        if figures["recall"] >= _AIM:
            break
    return figures


def _searched(
    index: Any, step: Step, vectors: Vectors, true: Sequence[Positions]
) -> dict[str, float]:
    times, shares = [], []
    for query, best in zip(vectors.queries, true, strict=True):
        started = time.perf_counter()
        with one_thread():
            _, [found] = index.search(query[None, :], step.fetch, params=step.parameters)
        found = np.sort(found[found >= 0])
        order = np.argsort(-(vectors.rows[found] @ query), kind="stable")
        times.append(1000 * (time.perf_counter() - started))
        shares.append(len(np.intersect1d(found[order[:DEPTH]], best)) / len(best))
    return {"recall": float(np.mean(shares)), "milliseconds": median(times)}


def _made(name: str) -> Callable[[Floats], Any]:
    def build(rows: Floats) -> Any:
        faiss = import_faiss()
        lists = round(2 * math.sqrt(len(rows)))
        factory = name.format(lists=lists)
        index = faiss.index_factory(rows.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(rows)
        index.add(rows)
        return index

    return build


def _code_steps(_: Any) -> Iterator[Step]:
    for width in (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32):
        yield Step(f"{width * DEPTH} rows", width * DEPTH)


def _list_steps(index: Any) -> Iterator[Step]:
    probes, lists = 1, int(index.nlist)
    while True:
        parameters = import_faiss().SearchParametersIVF(nprobe=probes)
        yield Step(f"{probes} of {lists} lists", 2 * DEPTH, parameters)
        if probes == lists:
            return
        probes = min(lists, math.ceil(1.25 * probes))


def _graph_steps(_: Any) -> Iterator[Step]:
    for effort in (200, 280, 400, 560, 800, 1120, 1600, 2240, 3200):
        parameters = import_faiss().SearchParametersHNSW(efSearch=effort)
        yield Step(f"ef {effort}", 2 * DEPTH, parameters)


_KINDS = (
    Kind("codes, two bits a number", build_codes, _code_steps),
    Kind("IVF, eight bits", _made("IVF{lists},SQ8"), _list_steps),
    Kind("HNSW, 32 links, eight bits", _made("HNSW32,SQ8"), _graph_steps),
)


def _table(found: Sequence[dict[str, Any]]) -> Table:
    return Table(
        name="kinds",
        title="Index kinds",
        columns=(
            *("vectors", "rows", "index", "effort", "build s", "bytes a vector", "recall@100"),
            *("ms", "exact ms", "times faster"),
        ),
        rows=tuple(
            (
                each["vectors"],
                f"{each['rows']:,}",
                each["kind"],
                each["step"],
                f"{each['build seconds']:.1f}",
                f"{each['bytes a vector']:.0f}",
                f"{each['recall']:.3f}",
                f"{each['milliseconds']:.2f}",
                f"{each['exact ms']:.2f}",
                f"{each['exact ms'] / each['milliseconds']:.1f}",
            )
            for each in found
        ),
        notes=(
            "FAISS alone, one space, one thread to search, all to build. Each index tries harder "
            f"until {_QUERIES} queries find {100 * _AIM:.0f} of their {DEPTH} best on average; "
            "what it brings is scored again with the vectors themselves, which is counted. "
            "Clusters as in [Scale](ann.md); sentences of SciFact and NFCorpus, drawn by lot, "
            "with real queries of both, encoded by the built-in model.",
        ),
        figures={"kinds": list(found)},
    )
