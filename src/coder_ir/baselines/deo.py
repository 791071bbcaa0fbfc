"""DEO (Lee et al., 2026): move the query's vector to what is wanted, away from what is not."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Decomposer
from coder_ir.errors import InvalidValue
from coder_ir.types import Floats, Ranking

Vector = NDArray[np.float64]
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Adam's constants
_NOWHERE = 1e-9  # a shorter distance is rounding


@dataclass(frozen=True, slots=True)
class Descent:
    """How far the vector moves, and what draws it."""

    positive: float = 1.0  # weight of the distance to what is wanted
    stay: float = 0.2  # weight of the distance to the query
    negative: float = 1.0  # weight of the distance from what is ruled out
    rate: float = 0.001  # Adam's
    steps: int = 20

    def __post_init__(self) -> None:
        """Refuse what would not move, or move at random."""
        if min(self.positive, self.stay, self.negative) < 0 or self.rate <= 0 or self.steps < 1:
            raise InvalidValue(f"weights, rate and steps must be positive, got {self}")


class DEO:
    """Nearest to a vector that descends w+ mean|u-p| + wr |u-q| - w- mean|u-n|."""

    def __init__(
        self, base: Indexed, decomposer: Decomposer, *, descent: Descent | None = None
    ) -> None:
        """Intents are encoded as queries, for the vector they move is a query's."""
        self._base, self._decomposer = base, decomposer
        self._descent = descent or Descent()

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits, best first."""
        own = self._base.encode(query, k)
        found = self._decomposer.intents(query)
        said = [*found.positive, *found.negative]
        rows = self._base.encoder.encode(said, kind="query").topical
        wanted, unwanted = rows[: len(found.positive)], rows[len(found.positive) :]
        moved = descend(own.topical[0], wanted, unwanted, self._descent)
        return self._base.by_distance(query, "deo", self._base.nearest(own, moved, k), k)


def descend(query: Floats, wanted: Floats, unwanted: Floats, how: Descent) -> Floats:
    """The unit vector after the last step; without any intents it is the query's."""
    anchor = query.astype(np.float64) / np.linalg.norm(query.astype(np.float64))
    moved = anchor
    first, second = np.zeros_like(moved), np.zeros_like(moved)
    for step in range(1, how.steps + 1):
        slope = gradient(moved, anchor, wanted, unwanted, how)
        first = _FIRST * first + (1 - _FIRST) * slope
        second = _SECOND * second + (1 - _SECOND) * slope**2
        ahead, spread = first / (1 - _FIRST**step), second / (1 - _SECOND**step)
        moved = moved - how.rate * ahead / (np.sqrt(spread) + _TINY)
        moved /= np.linalg.norm(moved)
    return moved.astype(np.float32)


def gradient(
    moved: Vector, query: Vector, wanted: Floats, unwanted: Floats, how: Descent
) -> Vector:
    """Slope of the objective at a vector; a distance of 0 has none."""
    terms = ((how.positive, wanted), (how.stay, query[None, :]), (-how.negative, unwanted))
    return sum(_slopes(moved, terms), np.zeros_like(moved))


def _slopes(moved: Vector, terms: tuple[tuple[float, Floats | Vector], ...]) -> Iterator[Vector]:
    for weight, rows in terms:
        if len(rows):
            apart = moved - rows
            length = np.linalg.norm(apart, axis=1, keepdims=True)
            away = np.divide(apart, length, where=length > _NOWHERE, out=np.zeros_like(apart))
            yield weight * away.mean(axis=0)
