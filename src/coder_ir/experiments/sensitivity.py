"""How much the settings of seq and union matter: recall and first violation over whole grids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

from coder_ir.datasets.testset import TestSet
from coder_ir.experiments.figures import Grid, draw_heatmaps
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import DEPTH, System, at_hand, opened, pools
from coder_ir.experiments.tables import Table
from coder_ir.metrics import measure_named, per_query
from coder_ir.policies import Sequential, Union
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import Candidates, Policy, Qrels

_DATA = ("negation", "excluir", "nevir-open")
_MOST = 300  # queries of a set, evenly spread
_ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Cells = dict[tuple[float, float], tuple[float, float]]  # alpha, threshold to recall, FVR share


@dataclass(frozen=True, slots=True)
class _Family:
    """A policy with two settings."""

    make: Callable[[float, float], Policy]
    threshold: str
    values: tuple[float, ...]
    default: tuple[float, float]


_FAMILIES = {
    "seq": _Family(
        lambda alpha, tau: Sequential(alpha=alpha, tau=tau),
        "τ",
        (0.0, 0.3, 0.5, 0.6, 0.7, 0.8),
        (Sequential().alpha, Sequential().tau),
    ),
    "union": _Family(
        lambda alpha, p: Union(alpha=alpha, p=p),
        "p",
        (0.0, 0.1, 0.3, 0.5, 0.7, 0.9),
        (Union().alpha, Union().p),
    ),
}


def measure_sensitivity(setup: Setup, report: Report) -> Table:
    """R@10 and FVR@10 / 11 at every setting; four pictures and the settings that stand out."""
    found: dict[str, dict[str, Cells]] = {}
    rows: list[tuple[str, ...]] = []
    sizes = []
    tests, absent = at_hand(_DATA, setup, cells=3, most=_MOST)
    for data, test in tests.items():
        report(f"sensitivity: {data}")
        sizes.append(f"{data} {len(test.queries)} queries")
        with opened(System("grid"), data, test, setup, report) as retriever:
            found[data] = {
                name: _cells(_pools(retriever, test, family), test.qrels, family)
                for name, family in _FAMILIES.items()
            }
        rows += [row for name in _FAMILIES for row in _rows(data, name, found[data][name])]
    pictures = " ".join(
        f"![{kind} of {name}]({_draw(setup, found, name, kind)})"
        for name in _FAMILIES
        for kind in _KINDS
        if found
    )
    return Table(
        name="sensitivity",
        title="Policy sensitivity",
        columns=("data", "policy", "setting", "R@10 ↑", "FVR@10 / 11 ↑"),
        rows=(*rows, *absent),
        notes=(
            f"{'; '.join(sizes)}. R@10 counts satisfying and neutral documents. Every cell "
            "of the grids is in the JSON file.",
            pictures,
        ),
        figures={
            data: {
                name: [
                    {"alpha": a, "threshold": t, "R@10": r, "FVR@10 / 11": f}
                    for (a, t), (r, f) in cells.items()
                ]
                for name, cells in own.items()
            }
            for data, own in found.items()
        },
    )


def _pools(retriever: Retriever, test: TestSet, family: _Family) -> dict[str, Candidates]:
    policy = family.make(*family.default)
    found = pools(retriever, test, policy, SearchOptions())
    return {query.query_id: pool for query, pool in found}


def _cells(held: Mapping[str, Candidates], qrels: Qrels, family: _Family) -> Cells:
    settings = {(a, t) for a in _ALPHAS for t in family.values} | {family.default}
    return {
        (alpha, threshold): _score(held, qrels, family.make(alpha, threshold))
        for alpha, threshold in sorted(settings)
    }


def _score(held: Mapping[str, Candidates], qrels: Qrels, policy: Policy) -> tuple[float, float]:
    run = {
        query_id: list(
            dict.fromkeys(pool.doc_ids[verdict.position] for verdict in policy.order(pool).kept)
        )[:DEPTH]
        for query_id, pool in held.items()
    }
    recall, first = (
        mean(per_query(measure_named(f"{kind}@{DEPTH}").function, run, qrels).values())
        for kind in ("R", "FVR")
    )
    return recall, first / (DEPTH + 1)


def _rows(data: str, name: str, cells: Cells) -> list[tuple[str, ...]]:
    family = _FAMILIES[name]
    chosen = {
        "default": family.default,
        "best R@10": max(cells, key=lambda cell: cells[cell][0]),
        "best FVR": max(cells, key=lambda cell: cells[cell][1]),
    }
    return [
        (
            data,
            name,
            f"{words}: α {alpha:g} {family.threshold} {threshold:g}",
            *(f"{value:.3f}" for value in cells[alpha, threshold]),
        )
        for words, (alpha, threshold) in chosen.items()
    ]


_KINDS = {"recall": "Recall@10", "fvr": "FVR@10 / 11"}


def _draw(setup: Setup, found: Mapping[str, Mapping[str, Cells]], name: str, kind: str) -> str:
    """One picture: a panel a data set; returns its file name."""
    family, place = _FAMILIES[name], list(_KINDS).index(kind)
    grids = [
        Grid(
            title=f"{data}, {name}",
            x_label=family.threshold,
            y_label="α",
            xs=family.values,
            ys=_ALPHAS,
            values=tuple(
                tuple(own[name][alpha, threshold][place] for threshold in family.values)
                for alpha in _ALPHAS
            ),
        )
        for data, own in found.items()
    ]
    file = f"sensitivity-{name}-{kind}.png"
    setup.out.mkdir(parents=True, exist_ok=True)
    draw_heatmaps(grids, setup.out / file, label=_KINDS[kind])
    return file
