"""The default: as much of the constraint as the query states, within what topic allows."""

from collections.abc import Sequence
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

    Where a verifier has read passages of the pool, one that violates loses up to a share `denial`
    of what is left of its lead, and one that satisfies gains up to `affirmation` times the
    geometric mean of its lead and the longest. So topic decides among those that say the same, and
    nothing is gained off the topic.

    Without a constraint a verifier reads near-duplicates alone, which topic cannot tell apart: they
    share the best score among them, and each loses `rivalry` times what it is behind the best of
    them in s_C + word * (probability of satisfying - that of violating).
    """

    strength: float = 0.6  # weight of compatibility next to topical
    unnamed: float = 0.6  # share of the strength where a query names nothing it excludes
    exclusion: float = 0.4  # what a passage loses that goes wholly against the excluded words
    firmness: float = 2.0  # how fast the lead goes with the loss
    affirmation: float = 1.0  # of that mean, what a passage gains which surely satisfies
    denial: float = 0.9  # share of its lead that a passage loses which surely violates
    rivalry: float = 0.3  # of what a near-duplicate is behind the best of its like, what it loses
    word: float = 0.125  # cosine that a verifier's certain word counts for among near-duplicates
    doubt: float = STATED  # probability up to which a query counts as an ordinary one
    sure: float = 0.99  # probability from which a constraint counts in full
    name: str = "auto"
    spaces: tuple[Space, ...] = ("topical",)
    uses_readings: bool = True

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        for setting in (
            "strength",
            "unnamed",
            "exclusion",
            "firmness",
            "affirmation",
            "denial",
            "rivalry",
            "word",
        ):
            if getattr(self, setting) < 0:
                raise InvalidValue(f"{setting} must not be negative, got {getattr(self, setting)}")
        if self.denial > 1:
            raise InvalidValue(f"denial is a share of the lead, at most 1, got {self.denial}")
        if not 0 <= self.doubt < self.sure <= 1:
            raise InvalidValue(
                f"doubt and sure must satisfy 0 <= doubt < sure <= 1, got {self.doubt} "
                f"and {self.sure}"
            )

    def order(self, pool: Candidates) -> Order:
        """Sort by what is left of the topical score; drops nothing."""
        share = self._share(pool) if len(pool) else 0.0
        scores = self._kept(pool, share) if share else self._told_apart(pool)
        scores = np.round(scores, FUSED_DECIMALS)
        return Order(
            [
                Verdict(i, float(scores[i]), _reason(pool, scores, stated=share > 0, i=i))
                for i in best_first(scores, pool.doc_ids, len(pool))
            ]
        )

    def _kept(self, pool: Candidates, share: float) -> Scores:
        """The topical scores, lowered by what goes against the constraint."""
        floor = floor_of(pool.topical)
        lead = np.maximum(pool.topical - floor, 0)
        longest = max(float(lead.max()), _LEAST_GAP)
        wanted = self.wanted(pool)
        left = lead * np.exp(-self.firmness * (wanted.max() - wanted) / longest)
        for i, reading in enumerate(pool.readings):
            if reading is not None:
                left[i] *= 1 - share * self.denial * reading.violates
                gain = share * self.affirmation * reading.satisfies
                left[i] += gain * np.sqrt(lead[i] * longest)
        return np.asarray(floor + left + np.minimum(pool.topical - floor, 0))

    def _told_apart(self, pool: Candidates) -> Scores:
        """Topical scores; near-duplicates share their best one, less what each is behind."""
        scores = pool.topical.copy()
        for group in _groups(pool.near_duplicates):
            readings = [(pool.readings[i], i) for i in group] if pool.readings else []
            worth = {
                i: pool.compatibility[i] + self.word * (reading.satisfies - reading.violates)
                for reading, i in readings
                if reading is not None
            }
            level = max((pool.topical[i] for i in worth), default=0.0)
            for i, own in worth.items():
                scores[i] = level - self.rivalry * (max(worth.values()) - own)
        return scores

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


def _reason(pool: Candidates, scores: Scores, *, stated: bool, i: int) -> str:
    topical, score = f"{pool.topical[i]:.3f}", f"{scores[i]:.3f}"
    if not stated:
        traded = score != topical
        return f"Topic {topical}" + (f", {score} among near-duplicates." if traded else ".")
    words = f"Topic {topical}, now {score} by compatibility {pool.compatibility[i]:.3f}"
    if pool.breach is not None and pool.breach[i]:
        words += f", {pool.breach[i]:.2f} of what is ruled out"
    if pool.readings and (reading := pool.readings[i]):
        words += f", read as satisfying {reading.satisfies:.2f}, violating {reading.violates:.2f}"
    return words + "."


def _groups(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Positions that pairs join, directly or over others."""
    group_of: dict[int, set[int]] = {}
    for i, j in pairs:
        joined = group_of.get(i, {i}) | group_of.get(j, {j})
        group_of |= dict.fromkeys(joined, joined)
    return [sorted(group) for group in {id(group): group for group in group_of.values()}.values()]


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
