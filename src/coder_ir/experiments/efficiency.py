"""What each system costs in time, and what that time buys."""

import tempfile
from dataclasses import replace
from statistics import mean, median
from time import perf_counter

from coder_ir.datasets.testset import TestSet
from coder_ir.experiments.comparison import load_comparison
from coder_ir.experiments.figures import draw_tradeoff
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import System, answered, at_hand, benchmark, searcher, thinned
from coder_ir.experiments.tables import Table
from coder_ir.metrics import measure_named, per_query
from coder_ir.retriever import Retriever

_DATA = ("antonym", "negation", "exclusion", "nevir-open", "excluir")
_QUERIES = 20  # timed of a set, evenly spread
_SHOWN, _QUALITY = "nevir-open", "FVR@10"  # of the picture
_PAPER = "HyDE 46.67 h, NS-IR 53.76 h, DEO 9.64 h, CoDeR-Seq 0.08 h, CoDeR-Union 0.07 h"


def measure_efficiency(setup: Setup, report: Report) -> Table:
    """Seconds to index and milliseconds a query, one at a time; quality against latency."""
    systems = _systems(setup)
    rows: list[tuple[str, ...]] = []
    figures: dict[str, dict[str, float]] = {}
    tests, absent = at_hand(_DATA, setup, cells=1 + len(systems))
    for data, test in tests.items():
        report(f"efficiency: {data}")
        found = _timed(systems, test, setup)
        figures[data] = {**found, "documents": len(test.documents), "queries": len(test.queries)}
        cells = (f"{found[system.name]:.1f}" for system in systems)
        rows.append((data, str(len(test.documents)), f"{found['indexing']:.1f}", *cells))
    total = _hours(figures, [system.name for system in systems])
    picture = _picture(setup, report, systems, figures)
    return Table(
        name="efficiency",
        title="Efficiency",
        columns=("data", "documents", "seconds to index", *(f"{s.name}, ms" for s in systems)),
        rows=(*rows, *absent),
        notes=(
            f"Median of at most {_QUERIES} queries of a set, asked one at a time, encoding "
            "included, on one machine in one run; no language model, so no tokens and no fees. "
            "Indexing and all queries of "
            f"the sets above take {total}. The paper, on its six sets and its machine: {_PAPER}, "
            f"and 5 to 32 dollars for the first three. {picture}".strip(),
        ),
        figures=figures,
    )


def _systems(setup: Setup) -> list[System]:
    """Those of the diagnostics table, and each topical or default search with the reranker."""
    systems = list(load_comparison("diagnostics").systems)
    if setup.reranker is not None and setup.reranker.is_dir():
        reranked = [system for system in load_comparison("reranker").systems if system.rerank]
        systems += [system for system in reranked if system.policy in ("topical", "auto")]
    return systems


def _timed(systems: list[System], test: TestSet, setup: Setup) -> dict[str, float]:
    """Seconds to index and milliseconds of each system."""
    texts = [query.text for query in thinned(test, _QUERIES).queries]
    with (
        tempfile.TemporaryDirectory() as folder,
        Retriever.open(folder, model=setup.model) as retriever,
    ):
        start = perf_counter()
        retriever.add(test.documents)
        found = {"indexing": perf_counter() - start}
        for system in systems:
            asked = searcher(system, retriever, setup)
            asked.search(texts[0], k=10)  # loads what is loaded on first use
            spent = []
            for text in texts:
                start = perf_counter()
                asked.search(text, k=10)
                spent.append(1000 * (perf_counter() - start))
            found[system.name] = median(spent)
    return found


def _hours(figures: dict[str, dict[str, float]], names: list[str]) -> str:
    """Total time of each system over all sets, in words."""
    words = []
    for name in names:
        seconds = sum(
            own["indexing"] + own["queries"] * own[name] / 1000 for own in figures.values()
        )
        words.append(f"{name} {seconds / 3600:.2f} h")
    return ", ".join(words)


def _picture(
    setup: Setup, report: Report, systems: list[System], figures: dict[str, dict[str, float]]
) -> str:
    """Quality on one set against milliseconds; empty where the set is not there."""
    if _SHOWN not in figures:
        return ""
    asked = load_comparison("reranker")
    test = benchmark(_SHOWN, setup, asked.queries)
    points = {}
    for system in systems:
        own = replace(system, tokens=asked.tokens)
        run = answered(own, _SHOWN, test, setup, report)
        ranks = per_query(measure_named(_QUALITY).function, run, test.qrels).values()
        points[system.name] = (figures[_SHOWN][system.name], mean(ranks))
    setup.out.mkdir(parents=True, exist_ok=True)
    draw_tradeoff(points, setup.out / "tradeoff.png", y_label=f"{_QUALITY} on {_SHOWN}")
    return "![Quality against latency](tradeoff.png)"
