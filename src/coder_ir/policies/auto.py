"""The default: as much compatibility as the query's constraint calls for."""

from dataclasses import dataclass

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Candidates, Order, Scores, Space, Verdict
from coder_ir.vectors import FUSED_DECIMALS, best_first, near_copies

_BLOCK = 1000  # passages compared with the pool at a time


@dataclass(frozen=True, slots=True)
class Auto:
    """Rank by topic + w * s_C - exclusion * breach - rivalry * deficit.

    How much of this applies grows with the probability that the query states a constraint, from
    nothing at `doubt` to all at `sure`: `topic` moves from s_T to the score of the query without
    the words that rule something out, w and the weight of the breach from 0 to their settings. A
    query that turns a fact round and names nothing to keep away from gets a share of w.

    Near-copies (topical cosine of at least `twin`) are what topic cannot tell apart, whatever the
    query: they share the best topic among them, and each loses by its deficit, what its
    compatibility lacks to the best of its copies, of the whole passage and, less, of what it says
    that a copy does not, where that was read. So an ordinary query over documents that are
    no copies of each other gets the topical order as it is.
    """

    strength: float = 0.6  # weight of compatibility next to topical
    unnamed: float = 0.6  # share of the strength where a query names nothing it excludes
    exclusion: float = 0.4  # what a passage loses that goes wholly against the excluded words
    rivalry: float = 0.17  # weight of the deficit
    apart: float = 0.5  # what a deficit where copies differ counts beside that of the whole
    twin: float = 0.93  # in [-1, 1]
    doubt: float = 0.45  # probability up to which a query counts as an ordinary one
    sure: float = 0.85  # probability from which a constraint counts in full
    name: str = "auto"
    spaces: tuple[Space, ...] = ("topical",)

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        for setting in ("strength", "unnamed", "exclusion", "rivalry", "apart"):
            if getattr(self, setting) < 0:
                raise InvalidValue(f"{setting} must not be negative, got {getattr(self, setting)}")
        if not 0 <= self.doubt < self.sure <= 1:
            raise InvalidValue(
                f"doubt and sure must satisfy 0 <= doubt < sure <= 1, got {self.doubt} "
                f"and {self.sure}"
            )

    def order(self, pool: Candidates) -> Order:
        """Sort by the sum; drops nothing."""
        share = self._share(pool)
        weight = share * self.strength * (1.0 if self._names(pool) else self.unnamed)
        topic = pool.topical if pool.topic is None else _between(pool.topical, pool.topic, share)
        level, best = self._best_of_copies(pool, topic, pool.compatibility)
        parts = _Parts(
            topic=level,
            compatibility=weight * pool.compatibility,
            breach=np.zeros(len(pool)) if pool.breach is None else share * pool.breach,
            deficit=best - pool.compatibility + self.apart * self._lacking_apart(pool),
        )
        scores = np.round(
            parts.topic
            + parts.compatibility
            - self.exclusion * parts.breach
            - self.rivalry * parts.deficit,
            FUSED_DECIMALS,
        )
        return Order(
            [
                Verdict(i, float(scores[i]), self._reason(parts, i, share, weight))
                for i in best_first(scores, pool.doc_ids, len(pool))
            ]
        )

    def _share(self, pool: Candidates) -> float:
        """How much of the strength this query calls for, in [0, 1]."""
        stated = pool.constraint.probability if pool.constraint else 0.0
        return min(1.0, max(0.0, (stated - self.doubt) / (self.sure - self.doubt)))

    def _names(self, pool: Candidates) -> bool:
        """Whether the query, or its caller, names something to keep away from or to hold to."""
        return pool.constraint is not None and bool(pool.constraint.phrases)

    def _lacking_apart(self, pool: Candidates) -> Scores:
        """What each passage lacks to its best copy where they differ; 0 if it was not read."""
        if pool.apart is None:
            return np.zeros(len(pool))
        read = ~np.isnan(pool.apart)
        known = np.where(read, pool.apart, -1.0)  # no cosine is lower
        (best,) = self._best_of_copies(pool, known)
        return np.where(read, best - known, 0.0)

    def _best_of_copies(self, pool: Candidates, *scores: Scores) -> list[Scores]:
        """Each score, raised to the highest among a passage's near-copies and itself."""
        best = [score.copy() for score in scores]
        if pool.rows is not None and len(pool):
            for start in range(0, len(pool), _BLOCK):
                part = slice(start, start + _BLOCK)
                copies = near_copies(pool.rows[part], pool.rows, self.twin)  # (block, pool)
                for score, high in zip(scores, best, strict=True):
                    rivals = np.where(copies, score[None, :], -np.inf).max(axis=1)
                    high[part] = np.maximum(high[part], rivals)
        return best

    def _reason(self, parts: "_Parts", i: int, share: float, weight: float) -> str:
        words = f"Topic {parts.topic[i]:.3f}"
        if share:
            words += f" + {weight:.2g} of compatibility = {parts.compatibility[i]:.3f}"
        if parts.breach[i]:
            words += f" - {self.exclusion:g} x {parts.breach[i]:.2f} for what is ruled out"
        if parts.deficit[i]:
            words += f" - {self.rivalry:g} x {parts.deficit[i]:.3f} behind a near-copy"
        return words + ("." if share or parts.deficit[i] else "; no constraint was found.")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a score is the sum of, each one number a candidate."""

    topic: Scores
    compatibility: Scores
    breach: Scores
    deficit: Scores


def _between(one: Scores, other: Scores, share: float) -> Scores:
    return np.asarray((1 - share) * one + share * other)
