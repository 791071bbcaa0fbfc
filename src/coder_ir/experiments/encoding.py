"""Encoding speed: documents against sentence-transformers, and what a parse adds to a query."""

import time
from collections.abc import Callable
from statistics import median

from coder_ir.datasets.beir import load_corpus, load_queries
from coder_ir.encoders import OnnxEncoder, Runtime, load_encoder
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.query import load_parser, read_queries

_DOCUMENTS, _ROUNDS, THREADS, _TOKENS = 400, 3, 2, 256
_QUERIES, _QUERY_ROUNDS = 100, 5
BOTH = "coder-ir, both vectors"
PARSED = "both vectors and the parse"


def measure_encoding(setup: Setup, report: Report) -> Table:
    """Documents a second, systems taking turns, median of rounds."""
    documents = load_corpus(setup.file("scifact"))
    step = len(documents) // _DOCUMENTS
    texts = [document.content for document in documents[::step]][:_DOCUMENTS]
    runtime = Runtime(threads=THREADS, max_length=_TOKENS)
    torch_encoder = SentenceTransformerEncoder(setup.reference, runtime=runtime)
    own = load_encoder(setup.model, runtime=runtime)
    if not isinstance(own, OnnxEncoder):
        raise InvalidValue(f"encoding measures a model folder, got {setup.model!r}")
    systems: dict[str, Callable[[], object]] = {
        "sentence-transformers, torch float32, one vector": lambda: torch_encoder.model.encode(
            texts, batch_size=32, show_progress_bar=False
        ),
        "coder-ir, topical vector": lambda: own.encode_space(
            texts, space="topical", kind="document"
        ),
        BOTH: lambda: own.encode(texts, kind="document"),
    }
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(_ROUNDS):
        for name, encode in systems.items():
            started = time.perf_counter()
            encode()
            rates[name].append(len(texts) / (time.perf_counter() - started))
            report(f"encoding round {number + 1}: {name} {rates[name][-1]:.1f} documents/s")
    return _table(rates, len(texts))


def measure_query_encoding(setup: Setup, report: Report) -> Table:
    """Milliseconds a query, with and without its parse, one query at a time."""
    asked = load_queries(setup.file("negconstraint", "queries.jsonl"))
    queries = [query.text for query in asked[:: len(asked) // _QUERIES]][:_QUERIES]
    own = load_encoder(setup.model, runtime=Runtime(threads=1))
    parser = load_parser(own)
    ways: dict[str, Callable[[str], object]] = {
        "both vectors": lambda query: own.encode([query], kind="query"),
        PARSED: lambda query: read_queries([query], own, parser),
    }
    times = {name: [float("inf")] * len(queries) for name in ways}
    for number in range(_QUERY_ROUNDS):
        for name, encode in ways.items():  # all queries in one way, as a service answers them
            report(f"query-encoding round {number + 1}: {name}")
            for i, query in enumerate(queries):
                started = time.perf_counter()
                encode(query)
                times[name][i] = min(times[name][i], 1000 * (time.perf_counter() - started))
    ratio = sum(times[PARSED]) / sum(times["both vectors"])
    return Table(
        name="query-encoding",
        title="What a parse adds to encoding a query",
        columns=("of a query", "median ms", "against both vectors"),
        rows=(
            ("both vectors", f"{median(times['both vectors']):.2f}", "1.00x"),
            (PARSED, f"{median(times[PARSED]):.2f}", f"{ratio:.2f}x"),
        ),
        notes=(
            f"{len(queries)} NegConstraint queries, one at a time, one thread, the best of "
            f"{_QUERY_ROUNDS} rounds in turn on one machine. The parser reads what the shared "
            "layers made of the query.",
        ),
        figures={"queries": len(queries), "milliseconds": times, "ratio": ratio},
    )


def _table(rates: dict[str, list[float]], texts: int) -> Table:
    reference = next(iter(rates.values()))
    ratios = {
        name: median(own / base for own, base in zip(values, reference, strict=True))
        for name, values in rates.items()
    }
    return Table(
        name="encoding",
        title="Encoding speed",
        columns=("system", "documents/s", "against torch"),
        rows=tuple((n, f"{median(v):.1f}", f"{ratios[n]:.2f}x") for n, v in rates.items()),
        notes=(
            f"{texts} SciFact documents, {_TOKENS} tokens, {THREADS} threads, median of {_ROUNDS} "
            "rounds in turn on one machine.",
        ),
        figures={
            "documents": texts,
            "threads": THREADS,
            "documents_per_second": rates,
            "ratio": ratios,
        },
    )
