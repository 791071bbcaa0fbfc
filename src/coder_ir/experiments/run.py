"""Names to measurements."""

from collections.abc import Callable, Iterator, Sequence

from coder_ir.errors import InvalidValue
from coder_ir.experiments.detection import measure_detection
from coder_ir.experiments.development import measure_development
from coder_ir.experiments.durability import measure_durability
from coder_ir.experiments.encoding import measure_encoding
from coder_ir.experiments.goals import measure_goals
from coder_ir.experiments.negconstraint import measure_negconstraint
from coder_ir.experiments.nevir import measure_nevir
from coder_ir.experiments.risk import measure_risk
from coder_ir.experiments.search_cost import measure_search_cost
from coder_ir.experiments.settings import measure_settings
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.experiments.topical import measure_topical

__all__ = ["EXPERIMENTS", "Setup", "run_experiments"]

EXPERIMENTS: dict[str, Callable[[Setup, Report], Table]] = {
    "development": measure_development,
    "settings": measure_settings,
    "detection": measure_detection,
    "risk": measure_risk,
    "nevir": measure_nevir,
    "negconstraint": measure_negconstraint,
    "topical": measure_topical,
    "encoding": measure_encoding,
    "search": measure_search_cost,
    "kill": measure_durability,
    "goals": measure_goals,
}


def run_experiments(names: Sequence[str], setup: Setup, *, report: Report) -> Iterator[str]:
    """Run those named, or all; write each table as it is done and give its Markdown."""
    for name in names:
        if name not in EXPERIMENTS:
            raise InvalidValue(f"no measurement {name!r}; there are {', '.join(EXPERIMENTS)}")
    for name in names or EXPERIMENTS:
        table = EXPERIMENTS[name](setup, report)
        table.save(setup.out)
        yield table.markdown()
