"""How long the first hits stay free of violations, on the diagnostic sets."""

from coder_ir.experiments.comparison import load_comparison
from coder_ir.experiments.figures import draw_survival_panels
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import DEPTH, answered, at_hand
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import measure_named, over_pairs, per_query

_SHOWN = (1, 2, 3, 5, 10)
_DRAWN = ("topical", "bm25", "deo, recorded", "seq", "union", "auto")  # more would be a thicket


def measure_survival(setup: Setup, report: Report) -> Table:
    """Share of queries without a violating document down to each rank; a curve a system."""
    asked = load_comparison("diagnostics")
    panels: dict[str, dict[str, list[float]]] = {}
    rows: list[tuple[str, ...]] = []
    sizes: list[str] = []
    tests, absent = at_hand(asked.data, setup, cells=len(_SHOWN))
    for data, test in tests.items():
        report(f"survival: {data}")
        sizes.append(f"{data} {len(test.queries)}")
        panels[data] = {}
        for system in asked.systems:
            run = answered(system, data, test, setup, report)
            curve = [
                over_pairs(
                    per_query(measure_named(f"Survival@{k}").function, run, test.qrels), test.pairs
                )
                for k in range(1, DEPTH + 1)
            ]
            if system.name in _DRAWN:
                panels[data][system.name] = [estimate.mean for estimate in curve]
            rows.append((data, system.name, *(percent(curve[k - 1]) for k in _SHOWN)))
    if panels:
        setup.out.mkdir(parents=True, exist_ok=True)
        draw_survival_panels(panels, setup.out / "survival.png")
    return Table(
        name="survival",
        title="Violation survival",
        columns=("data", "system", *(f"k = {k}" for k in _SHOWN)),
        rows=(*rows, *absent),
        notes=(
            "Percent of queries with no violating document among the first k, with 95% bootstrap "
            f"interval; higher is safer. Queries: {', '.join(sizes)}.",
            *(["![Violation survival](survival.png)"] if panels else []),
        ),
        figures=panels,
    )
