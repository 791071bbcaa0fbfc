"""What reading the first hits costs, beside the cross-encoder that people put there today."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from coder_ir.baselines.rerank import CrossEncoder, Reranked
from coder_ir.datasets.beir import load_corpus, load_queries
from coder_ir.encoders import OnnxEncoder, Runtime, load_encoder
from coder_ir.encoders.registry import load_calibration
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.query import load_parser
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Floats, Ranking, Record, Span, VectorPair
from coder_ir.vectors import unit_rows
from coder_ir.verifier import load_verifier

_WORDS, _DEPTH, _THREADS = 80, 20, 1
_DOCUMENTS, _BATCH, _QUERIES, _ROUNDS = 100_000, 5000, 30, 3
READING, PEER = "the verifier reads 20 passages", "ms-marco-MiniLM-L12 int8 reads them"
CONSTRAINED, PLAIN = "auto, with a constraint", "auto, without one"
TOPICAL, RERANKED = "topical", "topical, and that cross-encoder over its first 20"


def measure_reading_cost(setup: Setup, report: Report) -> Table:
    """Median milliseconds a query, the ways taking turns."""
    if setup.reranker is None:
        raise NotFound("this measurement needs a cross-encoder to compare with; see --reranker")
    passages = _passages(setup)
    asked = [query.text for query in load_queries(setup.file("negconstraint", "queries.jsonl"))]
    plain = [query.text for query in load_queries(setup.file("scifact", "queries.jsonl"))]
    peer = CrossEncoder(setup.reranker, threads=_THREADS)
    with tempfile.TemporaryDirectory() as folder:
        report(f"reading-cost: storing {_DOCUMENTS} documents")
        with _opened(Path(folder), passages, setup) as retriever:
            bench = _Bench(retriever, peer, passages, _stated(retriever, asked), plain)
            times = bench.times(report)
    return _table(times, len(passages))


@dataclass(frozen=True, slots=True)
class _Bench:
    """A large index and what is asked of it."""

    retriever: Retriever
    peer: CrossEncoder
    passages: Sequence[str]
    constrained: Sequence[str]  # queries that state a constraint
    plain: Sequence[str]

    def times(self, report: Report) -> dict[str, float]:
        """Median milliseconds of each way."""
        verifier = load_verifier(threads=_THREADS)
        reranked = Reranked(_Topical(self.retriever), self.peer, depth=_DEPTH)
        ways: dict[str, Callable[[int], object]] = {
            READING: lambda i: verifier.read(self.constrained[i], self._twenty(i)),
            PEER: lambda i: self.peer.score(self.constrained[i], self._twenty(i)),
            CONSTRAINED: lambda i: self.retriever.search(self.constrained[i]),
            RERANKED: lambda i: reranked.search(self.constrained[i]),
            PLAIN: lambda i: self.retriever.search(self.plain[i]),
            TOPICAL: lambda i: self.retriever.search(self.plain[i], policy="topical"),
        }
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(_ROUNDS + 1):  # the first round warms up
            report(f"reading-cost: round {number} of {_ROUNDS}")
            for i in range(_QUERIES):
                for name, run in ways.items():
                    start = time.perf_counter()
                    run(i)
                    if number:
                        spent[name].append(1000 * (time.perf_counter() - start))
        return {name: median(values) for name, values in spent.items()}

    def _twenty(self, i: int) -> Sequence[str]:
        return self.passages[i * _DEPTH : (i + 1) * _DEPTH]


@dataclass(frozen=True, slots=True)
class _Topical:
    retriever: Retriever

    def search(self, query: str, k: int = 10) -> Ranking:
        return self.retriever.search(query, k, policy="topical")


def _passages(setup: Setup) -> list[str]:
    """Stretches of eighty words of SciFact's documents."""
    words = (document.content.split() for document in load_corpus(setup.file("scifact")))
    return [
        " ".join(own[start : start + _WORDS])
        for own in words
        for start in range(0, len(own) - _WORDS + 1, _WORDS)
    ]


def _stated(retriever: Retriever, queries: Sequence[str]) -> list[str]:
    found = zip(queries, retriever.parser.parse(queries), strict=True)
    return list(islice((query for query, parsed in found if parsed.stated), _QUERIES))


def _opened(folder: Path, passages: Sequence[str], setup: Setup) -> Retriever:
    """An index of real texts under random vectors, searched by the real encoder and parser."""
    encoder = load_encoder(setup.model, runtime=Runtime(threads=_THREADS))
    if not isinstance(encoder, OnnxEncoder):
        raise InvalidValue(f"reading-cost measures a model folder, got {setup.model!r}")
    store = SqliteStore(folder, exact=True)
    draw = np.random.default_rng(13)
    for start in range(0, _DOCUMENTS, _BATCH):
        rows = [unit_rows(draw.standard_normal((_BATCH, 384)).astype(np.float32)) for _ in "tc"]
        store.write([_record(start + i, passages, rows, i) for i in range(_BATCH)])
    return Retriever(
        encoder,
        store,
        parser=load_parser(encoder),
        calibration=load_calibration(setup.model),
        verifier=load_verifier(threads=_THREADS),
    )


def _record(number: int, passages: Sequence[str], rows: Sequence[Floats], i: int) -> Record:
    text = passages[number % len(passages)]
    pair = VectorPair(rows[0][i : i + 1], rows[1][i : i + 1])
    return Record(Document(f"{number:06}", text), str(number), [Span(0, len(text))], pair)


def _table(times: Mapping[str, float], distinct: int) -> Table:
    pairs = ((READING, PEER), (CONSTRAINED, RERANKED), (PLAIN, TOPICAL))
    ratios = {name: times[name] / times[peer] for name, peer in pairs}
    return Table(
        name="reading-cost",
        title="What reading the first hits costs",
        columns=("what", "median ms", "against"),
        rows=tuple(
            row
            for name, peer in pairs
            for row in (
                (name, f"{times[name]:.1f}", f"{ratios[name]:.2f}x"),
                (peer, f"{times[peer]:.1f}", "1.00x"),
            )
        ),
        notes=(
            f"{_DEPTH} passages of {_WORDS} words; whole searches, encoding and parse included, "
            f"over {_DOCUMENTS:,} documents ({distinct:,} texts under random vectors), k=10, "
            f"exact, {_THREADS} thread, {_QUERIES} queries in {_ROUNDS} rounds, taking turns on "
            "one machine. The cross-encoder is the int8 model that FlashRank brings.",
        ),
        figures={"milliseconds": dict(times), "ratio": ratios},
    )
