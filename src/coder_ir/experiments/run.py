"""Names to measurements."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coder_ir.errors import InvalidValue, NotReproduced
from coder_ir.experiments.card import Card, compose_card
from coder_ir.experiments.comparison import comparing, described, without_expected
from coder_ir.experiments.detection import measure_detection
from coder_ir.experiments.development import measure_development
from coder_ir.experiments.durability import measure_durability
from coder_ir.experiments.efficiency import measure_efficiency
from coder_ir.experiments.encoding import measure_encoding
from coder_ir.experiments.goals import measure_goals
from coder_ir.experiments.nevir import measure_nevir
from coder_ir.experiments.page import Page, compose_results
from coder_ir.experiments.recipe import measure_recipe
from coder_ir.experiments.risk import measure_risk
from coder_ir.experiments.search_cost import measure_search_cost
from coder_ir.experiments.sensitivity import measure_sensitivity
from coder_ir.experiments.separation import measure_separation
from coder_ir.experiments.settings import measure_settings
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.survival import measure_survival
from coder_ir.experiments.systems import files_digest, package_digest, weights
from coder_ir.experiments.tables import Table
from coder_ir.experiments.verifier import measure_verifier

__all__ = ["EXPERIMENTS", "Setup", "run_experiments"]

EXPERIMENTS: dict[str, Callable[[Setup, Report], Table | Card | Page]] = {
    "development": measure_development,
    "settings": measure_settings,
    "recipe": measure_recipe,
    "detection": measure_detection,
    "risk": measure_risk,
    "diagnostics": comparing("diagnostics"),
    "survival": measure_survival,
    "benchmarks": comparing("benchmarks"),
    "nevir": measure_nevir,
    "negconstraint": comparing("negconstraint"),
    "beir": comparing("beir"),
    "torch": comparing("torch"),
    "encoders": comparing("encoders"),
    "separation": measure_separation,
    "reranker": comparing("reranker"),
    "verifier": measure_verifier,
    "sensitivity": measure_sensitivity,
    "efficiency": measure_efficiency,
    "encoding": measure_encoding,
    "search": measure_search_cost,
    "kill": measure_durability,
    "goals": measure_goals,
    "card": compose_card,
    "results": compose_results,
}
COMPARISONS = (
    "diagnostics",
    "benchmarks",
    "negconstraint",
    "beir",
    "torch",
    "encoders",
    "reranker",
)
WHEN_NAMED = ("settings", "recipe", "torch")  # five minutes, an hour, half an hour
_FROM_OTHERS = ("goals", "card", "results")  # cheap, and made of the other tables


def run_experiments(names: Sequence[str], setup: Setup, *, report: Report) -> Iterator[str]:
    """Run those named, or all but the longest; write each as it is done and give its Markdown.

    What was measured with the same code, model and data is read from `out`. Figures that are not
    what their TOML expects raise NotReproduced, after everything is written.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise InvalidValue(f"no measurement {name!r}; there are {', '.join(EXPERIMENTS)}")
    unexpected: list[str] = []
    for name in names or [name for name in EXPERIMENTS if name not in WHEN_NAMED]:
        mark = setup.cache / "done" / f"{name}.json"
        state = _state(name, setup)
        known = _read(mark)
        text = setup.out / f"{name}.md"
        if known.get("state") == state and text.is_file() and name not in _FROM_OTHERS:
            report(f"{name}: measured before with the same code, model and data")
            unexpected += known["unexpected"]
            yield text.read_text(encoding="utf-8")
            continue
        table = EXPERIMENTS[name](setup, report)
        table.save(setup.out)
        found = list(table.unexpected) if isinstance(table, Table) else []
        mark.parent.mkdir(parents=True, exist_ok=True)
        partial = mark.with_suffix(".partial")
        partial.write_text(json.dumps({"state": state, "unexpected": found}), encoding="utf-8")
        partial.replace(mark)
        unexpected += found
        yield table.markdown()
    if unexpected:
        raise NotReproduced("\n".join(unexpected))


def _read(mark: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8")) if mark.is_file() else {}
    return known


def _state(name: str, setup: Setup) -> str:
    """Equal exactly when measuring again would find the same: code, model, data at hand.

    What a description expects matters only to its own table.
    """
    files = sorted(
        (path.relative_to(setup.data).as_posix(), path.stat().st_size)
        for path in setup.data.rglob("*")
        if path.is_file()
    )
    parts = [
        package_digest(leave_out=("cli",)),
        weights(setup.model),
        files_digest(setup.reranker) if setup.reranker else "",
        (files, setup.reference, str(setup.written)),
        [without_expected(described(each)) for each in COMPARISONS],
        described(name) if name in COMPARISONS else "",
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
