"""CoDeR-Union: candidates of both spaces, ranks instead of scores, a query-relative cut."""

from dataclasses import dataclass

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Candidates, Order, Space, Verdict
from coder_ir.vectors import best_first, fused, ranks


@dataclass(frozen=True, slots=True)
class Union:
    """Rank by alpha / rho_T + (1 - alpha) / rho_C after dropping the least compatible.

    rho are 1-based ranks inside the pool; the cut keeps 1 / rho_C at or above its p-quantile over
    the pool. The paper uses alpha .8, p .8 on BEIR and the defaults here elsewhere.
    """

    alpha: float = 0.3  # weight of the topical rank, in [0, 1]
    p: float = 0.1  # quantile of the cut, in [0, 1]; 0 keeps everything
    name: str = "union"
    spaces: tuple[Space, ...] = ("topical", "compatibility")

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not 0 <= self.alpha <= 1:
            raise InvalidValue(f"alpha must be between 0 and 1, got {self.alpha}")
        if not 0 <= self.p <= 1:
            raise InvalidValue(f"p must be between 0 and 1, got {self.p}")

    def order(self, pool: Candidates) -> Order:
        """Fuse reciprocal ranks; if nothing passes the cut, only the cut is skipped."""
        if not len(pool):
            return Order([])
        topical = ranks(pool.topical, pool.doc_ids)
        compatibility = ranks(pool.compatibility, pool.doc_ids)
        closeness = 1.0 / compatibility
        passes = closeness >= np.quantile(closeness, self.p)
        if not passes.any():
            passes[:] = True
        last = int(compatibility[passes].max())
        scores = fused(self.alpha, 1.0 / topical, closeness)
        kept, dropped = [], []
        for i in best_first(scores, pool.doc_ids, len(pool)):
            if passes[i]:
                reason = (
                    f"Kept as number {topical[i]} of {len(pool)} by topic and "
                    f"{compatibility[i]} by compatibility; scored {self.alpha:g} / {topical[i]} + "
                    f"{1 - self.alpha:g} / {compatibility[i]}."
                )
                kept.append(Verdict(i, float(scores[i]), reason))
            else:
                reason = (
                    f"Filtered as number {compatibility[i]} of {len(pool)} by compatibility, past "
                    f"the cut at {last} (number {topical[i]} by topic)."
                )
                dropped.append(Verdict(i, float(scores[i]), reason))
        return Order(kept, dropped)
