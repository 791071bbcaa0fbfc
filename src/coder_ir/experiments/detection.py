"""Constraint detection: exclusion queries found, and false alarms on ordinary ones."""

from collections.abc import Sequence
from dataclasses import asdict

from coder_ir.datasets.beir import load_queries
from coder_ir.datasets.documents import json_lines
from coder_ir.datasets.qrels import load_qrels
from coder_ir.encoders import load_encoder
from coder_ir.encoders.registry import load_calibration
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import mean_with_interval
from coder_ir.searching import STATED, SearchOptions, stated


def measure_detection(setup: Setup, report: Report) -> Table:
    """The share of each set's queries that are taken for one with a constraint."""
    sets = {
        "ExcluIR, exclusion query (RQ_rewrite)": _excluir(setup, "RQ_rewrite"),
        "ExcluIR, plain question (question0)": _excluir(setup, "question0"),
        "NegConstraint": [
            q.text for q in load_queries(setup.file("negconstraint", "queries.jsonl"))
        ],
        "SciFact, test": _test_queries(setup, "scifact"),
        "NFCorpus, test": _test_queries(setup, "nfcorpus"),
    }
    encoder = load_encoder(setup.model)
    calibration = load_calibration(setup.model)
    estimates = {}
    for name, texts in sets.items():
        report(f"detection: {name}, {len(texts)} queries")
        vectors = encoder.encode(texts, kind="query").topical
        found = [
            stated(text, vector, calibration, SearchOptions()).probability >= STATED
            for text, vector in zip(texts, vectors, strict=True)
        ]
        estimates[name] = mean_with_interval([float(value) for value in found])
    return Table(
        name="detection",
        title="Queries taken for one with a constraint",
        columns=("queries", "n", "share"),
        rows=tuple((n, str(len(sets[n])), percent(e)) for n, e in estimates.items()),
        notes=(
            f"Share with a probability of at least {STATED:g}, percent, 95% bootstrap interval. "
            "The first and third should be high, the others low. None of it was trained on.",
        ),
        figures={n: {"n": len(sets[n]), **asdict(e)} for n, e in estimates.items()},
    )


def _excluir(setup: Setup, field: str) -> Sequence[str]:
    path = setup.file("excluir", "queries_open.jsonl")
    with path.open("rb") as lines:
        return [str(row[field]) for _, row in json_lines(lines, str(path))]


def _test_queries(setup: Setup, name: str) -> Sequence[str]:
    judged = load_qrels(setup.file(name, "qrels", "test.tsv")).grades
    asked = load_queries(setup.file(name, "queries.jsonl"))
    return [query.text for query in asked if query.query_id in judged]
