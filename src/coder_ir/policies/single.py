"""One space alone: plain semantic search, and the compatibility encoder by itself."""

from dataclasses import dataclass

from coder_ir.types import Candidates, Order, Scores, Space, Verdict
from coder_ir.vectors import best_first


@dataclass(frozen=True, slots=True)
class TopicalOnly:
    """Order by s_T; drops nothing."""

    name: str = "topical"
    spaces: tuple[Space, ...] = ("topical",)

    def order(self, pool: Candidates) -> Order:
        """Best topical score first."""
        return _by(pool, pool.topical, "topical")


@dataclass(frozen=True, slots=True)
class CompatibilityOnly:
    """Order by s_C; drops nothing."""

    name: str = "compatibility"
    spaces: tuple[Space, ...] = ("compatibility",)

    def order(self, pool: Candidates) -> Order:
        """Best compatibility score first."""
        return _by(pool, pool.compatibility, "compatibility")


def _by(pool: Candidates, scores: Scores, word: str) -> Order:
    return Order(
        [
            Verdict(i, float(scores[i]), f"Ranked by its {word} score of {scores[i]:.3f} alone.")
            for i in best_first(scores, pool.doc_ids, len(pool))
        ]
    )
