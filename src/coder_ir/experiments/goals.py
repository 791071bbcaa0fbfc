"""What the model is held to, beside what the other measurements found."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table

_NEEDED = (
    *("nevir", "negconstraint", "beir", "detection", "encoding", "risk", "development"),
    "verifier",
)
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of the table."""

    words: str
    value: Callable[[Figures], float]
    bound: float
    least: bool  # the value must be at least the bound; else at most
    unit: str = ""

    def row(self, figures: Figures) -> tuple[str, str, str, str]:
        """What is asked for, what was found, whether it holds."""
        found = self.value(figures)
        sign = "≥" if self.least else "≤"
        met = found >= self.bound if self.least else found <= self.bound
        asked = f"{sign} {self.bound:g}{self.unit}"
        return self.words, asked, f"{found:.2f}{self.unit}", "yes" if met else "no"


def _nevir(policy: str, metric: str) -> Callable[[Figures], float]:
    return lambda f: float(f["nevir"]["policies"][policy][metric]["mean"])


def _change(metric: str) -> Callable[[Figures], float]:
    """Relative change of auto against topical, percent."""
    return lambda f: 100 * (_nevir("auto", metric)(f) / _nevir("topical", metric)(f) - 1)


def _negconstraint(metric: str) -> Callable[[Figures], float]:
    return lambda f: 100 * _mean(f["negconstraint"], "negconstraint", "auto", metric)


def _cost(data: str) -> Callable[[Figures], float]:
    """nDCG@10 of auto minus that of topical, points."""

    def value(figures: Figures) -> float:
        auto, topical = (
            _mean(figures["beir"], data, name, "nDCG@10") for name in ("auto", "topical")
        )
        return 100 * (auto - topical)

    return value


def _mean(table: Figures, data: str, system: str, metric: str) -> float:
    return float(table["results"][data][system][metric]["mean"])


def _share(name: str) -> Callable[[Figures], float]:
    return lambda f: 100 * float(f["detection"][name]["mean"])


GOALS = (
    Goal(
        "NevIR, pairwise accuracy of s_C",
        lambda f: 100 * _nevir("compatibility", "pairwise")(f),
        28,
        True,
    ),
    Goal("NevIR, V@1 of auto against topical", _change("V@1"), -30, False, "%"),
    Goal("NevIR, FVR@10 of auto against topical", _change("FVR@10"), 16, True, "%"),
    Goal(
        "NevIR, R@5 of auto minus topical",
        lambda f: 100 * (_nevir("auto", "R@5")(f) - _nevir("topical", "R@5")(f)),
        -4,
        True,
    ),
    Goal("NegConstraint, nDCG@5 of auto", _negconstraint("nDCG@5"), 81.6, True),
    Goal("NegConstraint, MAP@10 of auto", _negconstraint("AP@10"), 76.4, True),
    Goal("SciFact, nDCG@10 of auto minus topical", _cost("scifact"), -0.3, True),
    Goal("NFCorpus, nDCG@10 of auto minus topical", _cost("nfcorpus"), -0.3, True),
    Goal(
        "ExcluIR exclusion queries found",
        _share("ExcluIR, exclusion query (RQ_rewrite)"),
        97,
        True,
        "%",
    ),
    Goal("False alarms, SciFact test queries", _share("SciFact, test"), 3, False, "%"),
    Goal("False alarms, NFCorpus test queries", _share("NFCorpus, test"), 3, False, "%"),
    Goal(
        "Encoding both vectors against topical alone",
        lambda f: (
            f["encoding"]["ratio"]["coder-ir, topical vector"]
            / f["encoding"]["ratio"]["coder-ir, both vectors"]
        ),
        1.4,
        False,
        "x",
    ),
    Goal(
        "Expected calibration error of risk", lambda f: float(f["risk"]["risk_error"]), 0.08, False
    ),
    Goal(
        "Development topics of our own, satisfying first with auto",
        lambda f: 100 * float(f["development"]["auto"]["ours"]["mean"]),
        80,
        True,
        "%",
    ),
    Goal(
        "The same with verify 20",
        lambda f: 100 * float(f["verifier"]["development, auto, verify 20"]["ours"]["mean"]),
        90,
        True,
        "%",
    ),
)


def measure_goals(setup: Setup, report: Report) -> Table:
    """Read the other measurements' JSON and compare."""
    figures = {}
    for name in _NEEDED:
        path = setup.out / f"{name}.json"
        if not path.is_file():
            raise NotFound(f"no {path}; run first: coder-ir bench {name}")
        figures[name] = json.loads(path.read_text(encoding="utf-8"))
    report("goals: " + ", ".join(_NEEDED))
    rows = [goal.row(figures) for goal in GOALS]
    return Table(
        name="goals",
        title="Goals of the built-in model",
        columns=("what", "asked", "found", "holds"),
        rows=tuple(rows),
        notes=(
            "One setting for everything; the figures are those of the tables beside this one. "
            "Three settings of auto were chosen with NevIR's figures in view, one with "
            "NegConstraint's. verify: with the verifier that `make verifier` trains, which the "
            "package leaves out, and with the settings that auto had then.",
        ),
        figures={
            "goals": [
                dict(zip(("what", "asked", "found", "holds"), row, strict=True)) for row in rows
            ]
        },
    )
