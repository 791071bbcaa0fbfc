"""Our own held-out topics: does the satisfying passage come before the violating one?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from coder_ir.encoders import Runtime
from coder_ir.experiments.runs import Run, policy_runs, scored
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent, ranks
from coder_ir.metrics import (
    Estimate,
    first_violation_at,
    mean_with_interval,
    recall_at,
    violation_at,
)
from coder_ir.policies import POLICIES
from coder_ir.training.sources import read_contrast_items
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING, Document, Policy, Qrels, Query

_METRICS = {
    "V@1": partial(violation_at, k=1),
    "FVR@10": partial(first_violation_at, k=10),
    "R@5": partial(recall_at, k=5),
}


def measure_development(setup: Setup, report: Report) -> Table:
    """Every named policy over all passages of the development topics."""
    title = "Development topics, never trained on"
    return measure_policies(setup, report, POLICIES, name="development", title=title)


def measure_policies(
    setup: Setup, report: Report, policies: Mapping[str, Policy], *, name: str, title: str
) -> Table:
    """Some policies over all passages of the development topics."""
    documents, queries, qrels = development_topics(setup)
    report(f"{name}: {len(documents)} passages, {len(queries)} queries")
    runs = policy_runs(setup, documents, queries, policies, Runtime())
    results = {label: development_scores(run, qrels) for label, run in runs.items()}
    ours = sum(_is_ours(query.query_id) for query in queries)
    return Table(
        name=name,
        title=title,
        columns=("policy", "satisfying first, ours ↑", "edits ↑", "V@1 ↓", "FVR@10 ↑", "R@5 ↑"),
        rows=tuple(
            (n, *(ranks(e) if m.startswith("FVR") else percent(e) for m, e in ms.items()))
            for n, ms in results.items()
        ),
        notes=(
            f"{len(queries)} queries ({ours} on passages of our own, the rest on edited "
            f"encyclopedia passages) over {len(documents)} passages. Satisfying first: the "
            "satisfying passage stands above the violating one; one past the tenth place counts as "
            "eleventh, a tie there as half. Policy settings were chosen on these topics.",
        ),
        figures={n: {m: asdict(e) for m, e in ms.items()} for n, ms in results.items()},
    )


def development_topics(setup: Setup) -> tuple[list[Document], list[Query], Qrels]:
    """All passages of the development topics, the queries and their labels."""
    rows = list(read_contrast_items(setup.written, "contrast.development.jsonl*"))
    documents, queries, grades = _pool(rows)
    return documents, queries, Qrels(grades)


def development_scores(run: Run, qrels: Qrels) -> dict[str, Estimate]:
    """Satisfying first, on passages of our own and on edited ones, and the usual metrics."""
    ours = {q: g for q, g in qrels.grades.items() if _is_ours(q)}
    edits = {q: g for q, g in qrels.grades.items() if not _is_ours(q)}
    return {
        "ours": _first(run, ours),
        "edits": _first(run, edits),
        **scored(run, qrels, _METRICS),
    }


def _is_ours(query_id: str) -> bool:
    return query_id.startswith("ours ")


def _pool(
    rows: Sequence[dict[str, str]],
) -> tuple[list[Document], list[Query], dict[str, dict[str, int]]]:
    names: dict[str, str] = {}  # text to document id
    queries, grades = [], {}
    for row in rows:
        texts = {part: row[part] for part in ("a", "b", "neutral") if row.get(part)}
        for part, text in texts.items():
            names.setdefault(text, f"{row['id']}-{part}")
        kind = "ours" if row["source"] == "ours" else "edits"
        for field, good, bad in (("qa", "a", "b"), ("qb", "b", "a")):
            if row.get(field):
                query = Query(f"{kind} {row['id']} {field}", row[field])
                queries.append(query)
                grades[query.query_id] = {
                    names[texts[good]]: SATISFYING,
                    names[texts[bad]]: VIOLATING,
                }
                if "neutral" in texts:
                    grades[query.query_id][names[texts["neutral"]]] = NEUTRAL
    return [Document(doc_id, text) for text, doc_id in names.items()], queries, grades


def _first(run: Run, grades: Mapping[str, Mapping[str, int]]) -> Estimate:
    """Share of queries with the satisfying passage before the violating one."""
    values = []
    for query_id, judged in grades.items():
        order = run[query_id]
        good, bad = (
            next(
                (order.index(d) for d, g in judged.items() if g == grade and d in order), len(order)
            )
            for grade in (SATISFYING, VIOLATING)
        )
        values.append(1.0 if good < bad else 0.5 if good == bad else 0.0)
    return mean_with_interval(values)
