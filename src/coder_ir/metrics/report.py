"""Runs side by side: every measure of every run, and which differences chance would not give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coder_ir.metrics.evaluate import Estimate, mean_with_interval, p_value, per_query
from coder_ir.metrics.measures import Measure
from coder_ir.types import Qrels

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run scores."""

    name: str
    answered: int  # judged queries the run has documents for
    surplus: int  # queries of the run that are not judged
    values: Mapping[str, Mapping[str, float]]  # measure to query to value
    estimates: Mapping[str, Estimate]  # by measure
    p_values: Mapping[str, float]  # by measure, against the first run; empty for the first


def report_runs(
    runs: Mapping[str, Mapping[str, Sequence[str]]],
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    seed: int = 13,
) -> list[RunReport]:
    """Score runs on the same judgements, in the order given; the first is the one to beat."""
    reports: list[RunReport] = []
    for name, run in runs.items():
        values = {m.name: per_query(m.function, run, qrels) for m in measures}
        first = reports[0].values if reports else {}
        reports.append(
            RunReport(
                name=name,
                answered=sum(bool(run.get(query_id)) for query_id in qrels.grades),
                surplus=sum(query_id not in qrels.grades for query_id in run),
                values=values,
                estimates={
                    m: mean_with_interval(list(v.values()), seed=seed) for m, v in values.items()
                },
                p_values={
                    m: p_value(list(first[m].values()), list(values[m].values()), seed=seed)
                    for m in first
                },
            )
        )
    return reports


def best_of(reports: Sequence[RunReport], measure: Measure) -> set[str]:
    """Names of the runs with the best mean of a measure, ties included."""
    means = {report.name: report.estimates[measure.name].mean for report in reports}
    best = max(means.values()) if measure.higher_is_better else min(means.values())
    return {name for name, mean in means.items() if mean == best}
