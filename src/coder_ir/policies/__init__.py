"""Two score vectors to an order with reasons; policies know neither encoder nor store."""

from dataclasses import replace
from typing import Any

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
    "policy_with",
]
_SETTINGS = {"seq": {"alpha", "tau"}, "union": {"alpha", "p"}}

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


def policy_with(
    name: str, *, alpha: float | None = None, tau: float | None = None, p: float | None = None
) -> Policy:
    """The policy of that name, its settings changed where they are not None."""
    policy: Any = policy_named(name)
    given = {"alpha": alpha, "tau": tau, "p": p}
    settings = {key: value for key, value in given.items() if value is not None}
    if odd := ", ".join(sorted(set(settings) - _SETTINGS.get(name, set()))):
        raise InvalidValue(
            f"policy {name} has no setting {odd}; seq takes alpha, tau; union alpha, p"
        )
    changed: Policy = replace(policy, **settings) if settings else policy
    return changed
