"""Two score vectors to an order with reasons; policies know neither encoder nor store."""

from coder_ir.errors import InvalidValue
from coder_ir.policies.auto import Auto
from coder_ir.policies.seq import Sequential
from coder_ir.policies.single import CompatibilityOnly, TopicalOnly
from coder_ir.policies.union import Union
from coder_ir.types import Policy

__all__ = [
    "POLICIES",
    "Auto",
    "CompatibilityOnly",
    "Sequential",
    "TopicalOnly",
    "Union",
    "policy_named",
]

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (Auto(), TopicalOnly(), CompatibilityOnly(), Sequential(), Union())
}
"""The policies that have a name, with their default settings."""


def policy_named(name: str) -> Policy:
    """The policy of that name with its default settings."""
    if name not in POLICIES:
        raise InvalidValue(f"policy must be one of {', '.join(POLICIES)}, got {name!r}")
    return POLICIES[name]
