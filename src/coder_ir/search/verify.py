"""The verifier's part in a search: which passages it reads, and what is done with its word."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from coder_ir.types import Candidates, Order, Policy, Reading

DEPTH = 20  # documents, from the top, that are read unless a search says otherwise
Read = Callable[[Sequence[int]], list[Reading]]  # positions in a pool to what is read there


@runtime_checkable
class ReadingPolicy(Policy, Protocol):
    """A policy that orders a pool anew once a verifier has read some of it."""

    @property
    def uses_readings(self) -> bool:
        """Whether what a verifier reads changes the order."""


def takes_readings(policy: Policy) -> bool:
    """Whether what a verifier reads changes a policy's order."""
    return isinstance(policy, ReadingPolicy) and policy.uses_readings


def read_first(
    pool: Candidates, order: Order, policy: Policy, read: Read, *, depth: int
) -> tuple[Candidates, Order]:
    """The order once a verifier has read what it should of the first documents.

    Under a constraint it reads the best passage of each of the first `depth` documents; without
    one only near-duplicates among the first passages, which topic cannot tell apart.
    """
    if not takes_readings(policy):
        return pool, order
    stated = pool.constraint is not None and pool.constraint.stated
    chosen = best_passages(order, pool)[:depth] if stated else _doubles(pool, depth)
    if not chosen:
        return pool, order
    readings: list[Reading | None] = [None] * len(pool)
    for position, reading in zip(chosen, read(chosen), strict=True):
        readings[position] = reading
    pool = replace(pool, readings=readings)
    return pool, policy.order(pool)


def best_passages(order: Order, pool: Candidates) -> list[int]:
    """Positions of the kept documents' best passages, best first."""
    best: dict[str, int] = {}
    for verdict in order.kept:
        best.setdefault(pool.doc_ids[verdict.position], verdict.position)
    return list(best.values())


def _doubles(pool: Candidates, depth: int) -> list[int]:
    """Positions that have a near-duplicate, at most `depth` of them."""
    return sorted({i for pair in pool.near_duplicates for i in pair})[:depth]
