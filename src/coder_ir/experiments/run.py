"""Names to measurements."""

from collections.abc import Callable, Iterator, Sequence

from coder_ir.errors import InvalidValue
from coder_ir.experiments.against_torch import measure_torch
from coder_ir.experiments.card import Card, compose_card
from coder_ir.experiments.detection import measure_detection
from coder_ir.experiments.development import measure_development
from coder_ir.experiments.durability import measure_durability
from coder_ir.experiments.encoding import measure_encoding
from coder_ir.experiments.goals import measure_goals
from coder_ir.experiments.negconstraint import measure_negconstraint
from coder_ir.experiments.nevir import measure_nevir
from coder_ir.experiments.recipe import measure_recipe
from coder_ir.experiments.risk import measure_risk
from coder_ir.experiments.search_cost import measure_search_cost
from coder_ir.experiments.settings import measure_settings
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.experiments.topical import measure_topical
from coder_ir.experiments.verifier import measure_verifier

__all__ = ["EXPERIMENTS", "Setup", "run_experiments"]

EXPERIMENTS: dict[str, Callable[[Setup, Report], Table | Card]] = {
    "development": measure_development,
    "settings": measure_settings,
    "recipe": measure_recipe,
    "detection": measure_detection,
    "risk": measure_risk,
    "nevir": measure_nevir,
    "negconstraint": measure_negconstraint,
    "topical": measure_topical,
    "torch": measure_torch,
    "verifier": measure_verifier,
    "encoding": measure_encoding,
    "search": measure_search_cost,
    "kill": measure_durability,
    "goals": measure_goals,
    "card": compose_card,
}

_WHEN_NAMED = ("recipe",)  # an hour of training


def run_experiments(names: Sequence[str], setup: Setup, *, report: Report) -> Iterator[str]:
    """Run those named, or all but training; write each as it is done and give its Markdown."""
    for name in names:
        if name not in EXPERIMENTS:
            raise InvalidValue(f"no measurement {name!r}; there are {', '.join(EXPERIMENTS)}")
    for name in names or [name for name in EXPERIMENTS if name not in _WHEN_NAMED]:
        table = EXPERIMENTS[name](setup, report)
        table.save(setup.out)
        yield table.markdown()
