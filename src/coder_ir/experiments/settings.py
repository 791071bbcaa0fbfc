"""What each part of `auto` is worth, on the development topics that its settings were chosen on."""

from coder_ir.experiments.development import measure_policies
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.policies import Auto
from coder_ir.types import Policy

_VARIANTS: dict[str, Policy] = {
    "auto": Auto(),
    "no compatibility": Auto(strength=0),
    "half the compatibility": Auto(strength=0.3),
    "twice the compatibility": Auto(strength=1.2),
    "all of it where nothing is named": Auto(unnamed=1),
    "none of it where nothing is named": Auto(unnamed=0),
    "no breach": Auto(exclusion=0),
    "three quarters of the breach": Auto(exclusion=0.3),
    "half more breach": Auto(exclusion=0.6),
    "nothing read": Auto(uses_readings=False),
    "half of the denial": Auto(denial=0.45),
    "all of the lead lost by a denial": Auto(denial=1),
    "no affirmation": Auto(affirmation=0),
    "half of the affirmation": Auto(affirmation=0.5),
    "twice the affirmation": Auto(affirmation=2),
    "half the rivalry of near-duplicates": Auto(rivalry=0.15),
    "twice the rivalry": Auto(rivalry=0.6),
    "near-duplicates by compatibility alone": Auto(word=0),
    "half as firm": Auto(firmness=1),
    "twice as firm": Auto(firmness=4),
    "sooner sure (.5 to .9)": Auto(sure=0.9),
}


def measure_settings(setup: Setup, report: Report) -> Table:
    """One setting changed at a time."""
    return measure_policies(
        setup, report, _VARIANTS, name="settings", title="Settings of auto, one changed at a time"
    )
