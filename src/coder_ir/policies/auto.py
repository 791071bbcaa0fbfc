"""The default: as much compatibility as the query's constraint calls for."""

from dataclasses import dataclass

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Candidates, Order, Scores, Space, Verdict
from coder_ir.vectors import FUSED_DECIMALS, best_first


@dataclass(frozen=True, slots=True)
class Auto:
    """Rank by s_T + w * s_C - exclusion * breach - rivalry * deficit.

    w grows with the probability that the query states a constraint, from 0 at `doubt` to
    `strength` at `sure`. A passage's deficit is what its compatibility lacks to the best of its
    near-copies (topical cosine of at least `twin`), since topic cannot tell those apart. So an
    ordinary query over documents that are no copies of each other gets the topical order as it is.
    """

    strength: float = 1.0  # weight of compatibility next to topical, where a constraint is sure
    exclusion: float = 0.3  # what a passage loses that goes wholly against the constraint's words
    rivalry: float = 0.5  # weight of the deficit
    twin: float = 0.93  # in [-1, 1]
    doubt: float = 0.3  # probability up to which a query counts as an ordinary one
    sure: float = 0.7  # probability from which a constraint counts in full
    name: str = "auto"
    spaces: tuple[Space, ...] = ("topical",)

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        for setting in ("strength", "exclusion", "rivalry"):
            if getattr(self, setting) < 0:
                raise InvalidValue(f"{setting} must not be negative, got {getattr(self, setting)}")
        if not 0 <= self.doubt < self.sure <= 1:
            raise InvalidValue(
                f"doubt and sure must satisfy 0 <= doubt < sure <= 1, got {self.doubt} "
                f"and {self.sure}"
            )

    def order(self, pool: Candidates) -> Order:
        """Sort by the sum; drops nothing."""
        weight = self.strength * self._share(pool)
        breach = self._share(pool) * pool.breach if pool.breach is not None else np.zeros(len(pool))
        deficit = self._deficit(pool)
        scores = np.round(
            pool.topical
            + weight * pool.compatibility
            - self.exclusion * breach
            - self.rivalry * deficit,
            FUSED_DECIMALS,
        )
        return Order(
            [
                Verdict(i, float(scores[i]), self._reason(pool, i, weight, (breach[i], deficit[i])))
                for i in best_first(scores, pool.doc_ids, len(pool))
            ]
        )

    def _share(self, pool: Candidates) -> float:
        """How much of the strength this query calls for, in [0, 1]."""
        stated = pool.constraint.probability if pool.constraint else 0.0
        return min(1.0, max(0.0, (stated - self.doubt) / (self.sure - self.doubt)))

    def _deficit(self, pool: Candidates) -> Scores:
        """What each passage's compatibility lacks to its best near-copy's; 0 without one."""
        if pool.alike is None or not len(pool):
            return np.zeros(len(pool))
        rivals = np.where(pool.alike >= self.twin, pool.compatibility[None, :], -np.inf)
        best = np.maximum(rivals.max(axis=1), pool.compatibility)
        return np.asarray(best - pool.compatibility)

    def _reason(self, pool: Candidates, i: int, weight: float, losses: tuple[float, float]) -> str:
        breach, deficit = losses
        words = f"Topical {pool.topical[i]:.3f}"
        if weight:
            words += f" + {weight:.2g} x compatibility {pool.compatibility[i]:.3f}"
        if breach:
            words += f" - {self.exclusion:g} x {breach:.2g} for going against its words"
        if deficit:
            words += f" - {self.rivalry:g} x {deficit:.3f} behind a near-copy's compatibility"
        return words + ("." if weight or breach or deficit else "; no constraint was found.")
