"""What each part of `auto` is worth, on the development topics that its settings were chosen on."""

from coder_ir.experiments.development import measure_policies
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.policies import Auto
from coder_ir.types import Policy

_VARIANTS: dict[str, Policy] = {
    "auto": Auto(),
    "no compatibility": Auto(strength=0),
    "twice the compatibility": Auto(strength=1),
    "four times the compatibility": Auto(strength=2),
    "no breach": Auto(exclusion=0),
    "half the breach": Auto(exclusion=0.15),
    "half more breach": Auto(exclusion=0.45),
    "no deficit": Auto(rivalry=0),
    "twice the deficit": Auto(rivalry=0.5),
    "near-copies from .90": Auto(twin=0.90),
    "near-copies from .96": Auto(twin=0.96),
}


def measure_settings(setup: Setup, report: Report) -> Table:
    """One setting changed at a time."""
    return measure_policies(
        setup, report, _VARIANTS, name="settings", title="Settings of auto, one changed at a time"
    )
