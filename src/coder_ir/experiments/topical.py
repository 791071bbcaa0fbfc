"""BEIR: what the policies cost ordinary queries."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from coder_ir.datasets.beir import load_beir
from coder_ir.encoders import Runtime
from coder_ir.experiments.runs import policy_runs, scored
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import Estimate, average_precision_at, ndcg_at
from coder_ir.policies import Auto, Sequential, TopicalOnly, Union
from coder_ir.types import Policy

BEIR_SETS = ("scifact", "nfcorpus")
BEIR_METRICS = {"nDCG@10": partial(ndcg_at, k=10), "MAP@10": partial(average_precision_at, k=10)}
BEIR_RUNTIME = Runtime(max_length=256)
BEIR_NOTE = f"{BEIR_RUNTIME.max_length} tokens, percent, 95% bootstrap interval."
Results = dict[str, Mapping[str, Mapping[str, Estimate]]]  # dataset, system, metric
_POLICIES: dict[str, Policy] = {
    "topical": TopicalOnly(),
    "auto": Auto(),
    "seq, α .5 τ .9": Sequential(alpha=0.5, tau=0.9),
    "union, α .8 p .8": Union(alpha=0.8, p=0.8),
    "seq, default": Sequential(),
    "union, default": Union(),
}


def measure_topical(setup: Setup, report: Report) -> Table:
    """nDCG@10 and MAP@10 of the policies."""
    results: Results = {}
    sizes = []
    for name in BEIR_SETS:
        data = load_beir(setup.file(name))
        sizes.append(f"{name} {len(data.documents)} documents, {len(data.queries)} queries")
        report(f"{name}: {len(data.documents)} documents")
        runs = policy_runs(setup, data.documents, data.queries, _POLICIES, BEIR_RUNTIME)
        results[name] = {s: scored(run, data.qrels, BEIR_METRICS) for s, run in runs.items()}
    costs = {
        name: results[name]["auto"]["nDCG@10"].mean - results[name]["topical"]["nDCG@10"].mean
        for name in BEIR_SETS
    }
    cost = ", ".join(f"{name} {100 * value:+.2f}" for name, value in costs.items())
    return beir_table(
        "topical",
        "Ordinary queries (BEIR)",
        results,
        note=f"{'; '.join(sizes)}; {BEIR_NOTE} Auto minus topical, nDCG@10 in points: {cost}.",
        figures={"cost_of_auto": costs},
    )


def beir_table(
    name: str, title: str, results: Results, *, note: str, figures: dict[str, Any]
) -> Table:
    """Systems down, datasets and metrics across."""
    systems = list(results[BEIR_SETS[0]])
    rows = [
        (system, *(percent(results[data][system][m]) for data in BEIR_SETS for m in BEIR_METRICS))
        for system in systems
    ]
    return Table(
        name=name,
        title=title,
        columns=("system", *(f"{data} {metric}" for data in BEIR_SETS for metric in BEIR_METRICS)),
        rows=tuple(rows),
        notes=(note,),
        figures={
            "results": {
                data: {s: {m: asdict(e) for m, e in ms.items()} for s, ms in own.items()}
                for data, own in results.items()
            },
            **figures,
        },
    )
