"""CoDeR-Seq: topical candidates, a compatibility threshold, a weighted sum."""

from dataclasses import dataclass

from coder_ir.errors import InvalidValue
from coder_ir.types import Candidates, Order, Space, Verdict
from coder_ir.vectors import best_first, fused


@dataclass(frozen=True, slots=True)
class Sequential:
    """Keep s_C >= tau, rank by alpha * s_T + (1 - alpha) * s_C.

    If nothing passes, the topical order is returned unchanged. The paper uses alpha .5, tau .9 on
    BEIR and the defaults here elsewhere.
    """

    alpha: float = 0.2  # weight of the topical score, in [0, 1]
    tau: float = 0.3  # least compatibility, in [-1, 1]
    name: str = "seq"
    spaces: tuple[Space, ...] = ("topical",)

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not 0 <= self.alpha <= 1:
            raise InvalidValue(f"alpha must be between 0 and 1, got {self.alpha}")
        if not -1 <= self.tau <= 1:
            raise InvalidValue(f"tau must be between -1 and 1, got {self.tau}")

    def order(self, pool: Candidates) -> Order:
        """Drop what is below tau, sort the rest by the weighted sum."""
        passes = pool.compatibility >= self.tau
        if not passes.any():
            return self._topical(pool)
        scores = fused(self.alpha, pool.topical, pool.compatibility)
        kept, dropped = [], []
        for i in best_first(scores, pool.doc_ids, len(pool)):
            if passes[i]:
                kept.append(Verdict(i, float(scores[i]), self._kept(pool, i)))
            else:
                dropped.append(Verdict(i, float(scores[i]), self._dropped(pool, i)))
        return Order(kept, dropped)

    def _topical(self, pool: Candidates) -> Order:
        reason = f"No candidate reached compatibility {self.tau:g}, so the topical order stands."
        order = best_first(pool.topical, pool.doc_ids, len(pool))
        return Order([Verdict(i, float(pool.topical[i]), reason) for i in order])

    def _kept(self, pool: Candidates, i: int) -> str:
        return (
            f"Kept, since compatibility {pool.compatibility[i]:.3f} reaches {self.tau:g}; scored "
            f"{self.alpha:g} x topical {pool.topical[i]:.3f} + {1 - self.alpha:g} x compatibility."
        )

    def _dropped(self, pool: Candidates, i: int) -> str:
        return (
            f"Filtered, since compatibility {pool.compatibility[i]:.6g} is below the threshold "
            f"{self.tau:g} (topical {pool.topical[i]:.3f})."
        )
