"""The default: as much of the constraint as the query states, within what topic allows."""

from dataclasses import dataclass
from math import log

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import STATED, Candidates, Order, Scores, Space, Verdict
from coder_ir.vectors import FUSED_DECIMALS, best_first

_LEAST_GAP = 1e-6  # topical scores nearer than this are one
_LEAST_ODDS = 1e-9
_UNSEEN = 10  # passages off the topic that every pool is taken to have


@dataclass(frozen=True, slots=True)
class Auto:
    """Topic, of which a passage keeps the less the more it goes against the constraint.

    The pool shows what is on the topic: whatever scores above its *floor*, the median of a large
    pool (see `floor_of`). How far above is a passage's *lead*. A constraint takes a share of the
    lead and never more. So nothing on the topic falls below what is not, however wrong the
    constraint was understood, and a query without a constraint gets the topical order as it is.

    The share grows with the passage's *loss*: how far it is behind the best of the pool in
    topic + strength * s_C - exclusion * breach, all in cosine. `topic` is there the score of the
    query without the words that rule something out. The lead that is left is
    exp(-firmness * loss / gap), the gap being the longest lead of the pool. All of it is scaled by
    how likely the query is to state a constraint: its log-odds, from nothing at `doubt` to all at
    `sure`, for most queries that people ask are ordinary and one taken wrongly costs much;
    a query that names nothing to keep away from gets a share `unnamed` of the strength.

    Near-copies, passages edited from one another, are what topic cannot tell apart, whatever the
    query: they share the best score among them, and each loses `rivalry` times its deficit, what
    its compatibility lacks to the best of its copies, of the whole passage and, less, of what it
    says that a copy does not.
    """

    strength: float = 0.6  # weight of compatibility next to topical
    unnamed: float = 0.6  # share of the strength where a query names nothing it excludes
    exclusion: float = 0.4  # what a passage loses that goes wholly against the excluded words
    firmness: float = 2.0  # how fast the lead goes with the loss
    rivalry: float = 0.17  # weight of the deficit
    apart: float = 0.5  # what a deficit where copies differ counts beside that of the whole
    twin: float = 0.93  # in [-1, 1]
    doubt: float = STATED  # probability up to which a query counts as an ordinary one
    sure: float = 0.99  # probability from which a constraint counts in full
    name: str = "auto"
    spaces: tuple[Space, ...] = ("topical",)

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        for setting in ("strength", "unnamed", "exclusion", "firmness", "rivalry", "apart"):
            if getattr(self, setting) < 0:
                raise InvalidValue(f"{setting} must not be negative, got {getattr(self, setting)}")
        if not 0 <= self.doubt < self.sure <= 1:
            raise InvalidValue(
                f"doubt and sure must satisfy 0 <= doubt < sure <= 1, got {self.doubt} "
                f"and {self.sure}"
            )

    def order(self, pool: Candidates) -> Order:
        """Sort by what is left of the topical score; drops nothing."""
        kept = self._kept(pool)
        level, best = _best_of_copies(pool, kept.score, pool.compatibility)
        deficit = best - pool.compatibility + self.apart * _lacking_apart(pool)
        scores = np.round(level - self.rivalry * deficit, FUSED_DECIMALS)
        return Order(
            [
                Verdict(i, float(scores[i]), self._reason(pool, kept, deficit, i))
                for i in best_first(scores, pool.doc_ids, len(pool))
            ]
        )

    def _kept(self, pool: Candidates) -> "_Kept":
        """The topical scores, lowered by what goes against the constraint."""
        share = self._share(pool)
        if not share or not len(pool):
            return _Kept(pool.topical, pool.topical, stated=False)
        floor = floor_of(pool.topical)
        lead = np.maximum(pool.topical - floor, 0)
        wanted = self.wanted(pool)
        loss = wanted.max() - wanted
        left = np.exp(-self.firmness * loss / max(float(lead.max()), _LEAST_GAP))
        below = np.minimum(pool.topical - floor, 0)
        return _Kept(floor + lead * left + below, pool.topical, stated=True)

    def wanted(self, pool: Candidates) -> Scores:
        """How far each passage is what the query asks for and permits, in cosine."""
        share = self._share(pool)
        named = pool.constraint is not None and bool(pool.constraint.excluded)
        weight = share * self.strength * (1.0 if named else self.unnamed)
        topic = pool.topical if pool.topic is None else pool.topic
        breach = np.zeros(len(pool)) if pool.breach is None else pool.breach
        return np.asarray(
            (1 - share) * pool.topical
            + share * topic
            + weight * pool.compatibility
            - share * self.exclusion * breach
        )

    def _share(self, pool: Candidates) -> float:
        """How much of the constraint this query calls for, in [0, 1]."""
        stated = pool.constraint.probability if pool.constraint else 0.0
        least, most = _log_odds(self.doubt), _log_odds(self.sure)
        return min(1.0, max(0.0, (_log_odds(stated) - least) / (most - least)))

    def _reason(self, pool: Candidates, kept: "_Kept", deficit: Scores, i: int) -> str:
        words = f"Topic {kept.topic[i]:.3f}"
        if kept.stated:
            lowered = f"{kept.score[i]:.3f}" != f"{kept.topic[i]:.3f}"
            words += f", lowered to {kept.score[i]:.3f}" if lowered else ", kept"
            words += f" by compatibility {pool.compatibility[i]:.3f}"
            if lowered and pool.breach is not None and pool.breach[i]:
                words += f" and {pool.breach[i]:.2f} of what is ruled out"
        if deficit[i]:
            words += f"; - {self.rivalry:g} x {deficit[i]:.3f} behind a near-copy"
        return words + ("." if kept.stated or deficit[i] else "; no constraint was found.")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is left of each topical score."""

    score: Scores
    topic: Scores  # before
    stated: bool  # whether a constraint had a part in it


def _log_odds(probability: float) -> float:
    """Finite for 0 and 1 too."""
    return log(max(probability, _LEAST_ODDS) / max(1 - probability, _LEAST_ODDS))


def floor_of(topical: Scores) -> float:
    """The topical score below which a pool's passages count as off the topic.

    It is the median, for most of a pool that was cut from many documents is off the topic. A few
    passages show no such thing, so the median is mixed with what stands for ten passages more: one
    range of the scores below the lowest.
    """
    low, high = float(topical.min()), float(topical.max())
    size = len(topical)
    return (_UNSEEN * (2 * low - high) + size * float(np.median(topical))) / (_UNSEEN + size)


def _best_of_copies(pool: Candidates, *scores: Scores) -> list[Scores]:
    """Each score, raised to the highest among a passage's near-copies and itself."""
    best = [score.copy() for score in scores]
    for i, j in pool.copies:
        for score, high in zip(scores, best, strict=True):
            high[i], high[j] = max(high[i], score[j]), max(high[j], score[i])
    return best


def _lacking_apart(pool: Candidates) -> Scores:
    """What each passage lacks to its best copy where they differ; 0 if it was not read."""
    if pool.apart is None:
        return np.zeros(len(pool))
    read = ~np.isnan(pool.apart)
    known = np.where(read, pool.apart, -1.0)  # no cosine is lower
    (best,) = _best_of_copies(pool, known)
    return np.where(read, best - known, 0.0)
