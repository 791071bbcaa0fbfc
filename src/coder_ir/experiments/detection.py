"""Which queries are taken for one with a constraint: those that state one, and ordinary ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from coder_ir.datasets.beir import load_queries
from coder_ir.datasets.documents import json_lines
from coder_ir.datasets.qrels import load_qrels
from coder_ir.encoders import load_encoder
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import mean_with_interval
from coder_ir.query import load_parser
from coder_ir.training.parser import is_learnt, stated_by


def measure_detection(setup: Setup, report: Report) -> Table:
    """The share of each set's queries that are taken for one with a constraint."""
    parser = load_parser(load_encoder(setup.model))
    sets = _sets(setup)
    estimates = {}
    for name, texts in sets.items():
        report(f"detection: {name}, {len(texts)} queries")
        found = [float(constraint.stated) for constraint in parser.parse(texts)]
        estimates[name] = mean_with_interval(found)
    return Table(
        name="detection",
        title="Queries taken for one with a constraint",
        columns=("queries", "n", "share"),
        rows=tuple((n, str(len(sets[n])), percent(e)) for n, e in estimates.items()),
        notes=(
            "Percent, 95% bootstrap interval. The shares of ExcluIR's exclusion queries and of "
            "NegConstraint should be high. All others should be low. Real queries that do state a "
            "constraint on reading are left out (recipes/queries/real-constraints.jsonl). Half of "
            "each set marked *learnt* was shown to the parser as ordinary queries; the figure is "
            "that of the other half.",
        ),
        figures={n: {"n": len(sets[n]), **asdict(e)} for n, e in estimates.items()},
    )


def _sets(setup: Setup) -> Mapping[str, Sequence[str]]:
    queries = load_queries(setup.file("negconstraint", "queries.jsonl"))
    return {
        "ExcluIR, exclusion query (RQ_rewrite)": _excluir(setup, "RQ_rewrite"),
        "ExcluIR, plain question (question0)": _excluir(setup, "question0"),
        "NegConstraint": [query.text for query in queries],
        "SciFact, test": _test_queries(setup, "scifact"),
        "NFCorpus, test": _test_queries(setup, "nfcorpus"),
        **_real(setup),
    }


def _excluir(setup: Setup, field: str) -> Sequence[str]:
    path = setup.file("excluir", "queries_open.jsonl")
    with path.open("rb") as lines:
        return [str(row[field]) for _, row in json_lines(lines, str(path))]


def _test_queries(setup: Setup, name: str) -> Sequence[str]:
    judged = load_qrels(setup.file(name, "qrels", "test.tsv")).grades
    asked = load_queries(setup.file(name, "queries.jsonl"))
    return [query.text for query in asked if query.query_id in judged]


def _real(setup: Setup) -> Mapping[str, Sequence[str]]:
    """Queries of people by set; of those that may be learnt from, the half that was held out."""
    path, stated = setup.file("real-queries", "open.jsonl"), stated_by(setup.queries)
    found: dict[str, list[str]] = {}
    with path.open("rb") as lines:
        for _, row in json_lines(lines, str(path)):
            text, learnt = str(row["text"]), row["use"] == "Train"
            if text not in stated and not (learnt and is_learnt(text)):
                name = f"{row['set']} (learnt)" if learnt else str(row["set"])
                found.setdefault(name, []).append(text)
    return found
