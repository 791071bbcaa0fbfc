"""Encoding speed: the built-in model against sentence-transformers, same run, same threads."""

import time
from collections.abc import Callable
from statistics import median

from coder_ir.datasets.beir import load_corpus
from coder_ir.encoders import OnnxEncoder, Runtime, load_encoder
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table

_DOCUMENTS, _ROUNDS, THREADS, _TOKENS = 400, 3, 2, 256
BOTH = "coder-ir, both vectors"


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
