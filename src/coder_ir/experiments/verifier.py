"""What a closer look at the first hits is worth, and what it costs."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import median
from time import perf_counter

from coder_ir.experiments.development import development_scores, development_topics
from coder_ir.experiments.nevir import NEVIR_METRICS
from coder_ir.experiments.runs import Run, scored
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import benchmark
from coder_ir.experiments.tables import Table, percent, ranks
from coder_ir.metrics import Estimate
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import Document, Qrels, Query

_DEPTH = 20
_MOST = 100  # queries of NevIR that are asked, in pairs; a verified search takes its time
_ASKED = {"auto": SearchOptions(), f"auto, verify {_DEPTH}": SearchOptions(verify=_DEPTH)}
_COLUMNS = ("ours", "edits", "V@1", "FVR@10", "R@5")
Scoring = Callable[[Run, Qrels], dict[str, Estimate]]


def measure_verifier(setup: Setup, report: Report) -> Table:
    """`auto` with and without the verifier, on development topics and on NevIR."""
    nevir = benchmark("nevir-open", setup, _MOST)
    sets: dict[str, tuple[Sequence[Document], Sequence[Query], Qrels, Scoring]] = {
        "development": (*development_topics(setup), development_scores),
        "NevIR": (nevir.documents, nevir.queries, nevir.qrels, _nevir_scores),
    }
    rows, figures, sizes = [], {}, []
    for name, (documents, queries, qrels, scoring) in sets.items():
        report(f"verifier: {name}, {len(queries)} queries")
        sizes.append(f"{name}: {len(queries)} queries over {len(documents)} passages")
        runs, times = _search(setup, documents, queries)
        for label, run in runs.items():
            found = scoring(run, qrels)
            figures[f"{name}, {label}"] = {
                "milliseconds": times[label],
                **{metric: asdict(estimate) for metric, estimate in found.items()},
            }
            rows.append((name, label, *map(_cell(found), _COLUMNS), f"{times[label]:.0f}"))
    return Table(
        name="verifier",
        title="Reading the first hits together with the query",
        columns=(
            *("data", "search", "satisfying first, ours ↑", "edits ↑", "V@1 ↓", "FVR@10 ↑"),
            *("R@5 ↑", "ms a query"),
        ),
        rows=tuple(rows),
        notes=(
            f"{'; '.join(sizes)}. Percent, 95% bootstrap interval; time is the median of whole "
            "searches, one at a time, in the same run. Neither was trained on; what a logit of the "
            "verifier counts for was chosen on the development topics. The package has no "
            "verifier; `make verifier` writes its model with one beside the same vectors.",
        ),
        figures=figures,
    )


def _search(
    setup: Setup, documents: Sequence[Document], queries: Sequence[Query]
) -> tuple[dict[str, Run], dict[str, float]]:
    """Rankings and median milliseconds of each way to search."""
    runs: dict[str, Run] = {}
    times: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Retriever.open(folder, model=setup.model) as retriever,
    ):
        retriever.add(documents)
        for label, options in _ASKED.items():
            run, spent = {}, []
            for query in queries:
                start = perf_counter()
                (ranking,) = retriever.search_many([query.text], options)
                spent.append(1000 * (perf_counter() - start))
                run[query.query_id] = [hit.doc_id for hit in ranking]
            runs[label], times[label] = run, median(spent)
    return runs, times


def _nevir_scores(run: Run, qrels: Qrels) -> dict[str, Estimate]:
    return scored(run, qrels, NEVIR_METRICS)


def _cell(found: dict[str, Estimate]) -> Callable[[str], str]:
    def cell(metric: str) -> str:
        if metric not in found:
            return "–"
        return ranks(found[metric]) if metric.startswith("FVR") else percent(found[metric])

    return cell
