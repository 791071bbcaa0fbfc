"""What each part of `auto` is worth, on the development topics that its settings were chosen on."""

from coder_ir.experiments.development import measure_policies
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.policies import Auto
from coder_ir.types import Policy

_VARIANTS: dict[str, Policy] = {
    "auto": Auto(),
    "no compatibility": Auto(strength=0),
    "half the compatibility": Auto(strength=0.5),
    "twice the compatibility": Auto(strength=2),
    "no breach": Auto(exclusion=0),
    "a third of the breach": Auto(exclusion=0.15),
    "two thirds of the breach": Auto(exclusion=0.3),
    "a third more breach": Auto(exclusion=0.6),
    "no deficit": Auto(rivalry=0),
    "half the deficit": Auto(rivalry=0.25),
    "twice the deficit": Auto(rivalry=1),
    "near-copies from .90": Auto(twin=0.90),
    "near-copies from .96": Auto(twin=0.96),
    "constraints from .1 to .5": Auto(doubt=0.1, sure=0.5),
    "constraints from .5 to .9": Auto(doubt=0.5, sure=0.9),
}


def measure_settings(setup: Setup, report: Report) -> Table:
    """One setting changed at a time."""
    return measure_policies(
        setup, report, _VARIANTS, name="settings", title="Settings of auto, one changed at a time"
    )
