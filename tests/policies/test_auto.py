"""Auto by hand: the lead over the floor, and what constraint and readings make of it."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Auto, TopicalOnly
from coder_ir.policies.auto import floor_of
from coder_ir.types import Candidates, Constraint, Order, Passage, Reading, Span

ROWS = [("a", 0.9, 0.1), ("b", 0.5, 0.6), ("c", 0.7, 0.5), ("d", 0.8, 0.3)]
# The floor of ROWS: ten passages at 0.5 - 0.4, four with a median of 0.75.
FLOOR = (10 * 0.1 + 4 * 0.75) / 14
PLAIN = Auto(strength=1.0, unnamed=1.0, exclusion=0.4, firmness=1.0, doubt=0.2, sure=0.5)
# Nothing but what a verifier reads counts.
BY_READING = replace(PLAIN, strength=0, exclusion=0, firmness=0, affirmation=1.0, denial=0.8)


def pool_of(
    scored: Sequence[tuple[str, float, float]],
    *,
    stated: float | None = None,
    breach: Sequence[float] | None = None,
    topic: Sequence[float] | None = None,
    near_duplicates: Sequence[tuple[int, int]] = (),
    readings: Sequence[Reading | None] = (),
) -> Candidates:
    """Ids with their topical and compatibility scores."""
    ids, topical, compatibility = zip(*scored, strict=True) if scored else ((), (), ())
    return Candidates(
        ids,
        [Passage(0, Span(0, 1))] * len(ids),
        np.array(topical, dtype=np.float64),
        np.array(compatibility, dtype=np.float64),
        None if stated is None else Constraint(stated),
        topic=None if topic is None else np.array(topic, dtype=np.float64),
        breach=None if breach is None else np.array(breach, dtype=np.float64),
        near_duplicates=tuple(near_duplicates),
        readings=readings,
    )


def scores(order: Order, pool: Candidates) -> dict[str, float]:
    """Document ids with their scores, best first."""
    return {pool.doc_ids[verdict.position]: verdict.score for verdict in order.kept}


def reasons(order: Order, pool: Candidates) -> dict[str, str]:
    return {pool.doc_ids[verdict.position]: verdict.reason for verdict in order.kept}


def gain(score: float) -> float:
    """What a passage of ROWS gains that surely satisfies: the mean of its lead and the longest."""
    return ((score - FLOOR) * (0.9 - FLOOR)) ** 0.5


def left(score: float, wanted: float, best: float, firmness: float = 1.0) -> float:
    """What a passage of ROWS keeps, worked out as the docstring says."""
    gap = 0.9 - FLOOR
    return FLOOR + (score - FLOOR) * exp(-firmness * (best - wanted) / gap)


@pytest.mark.parametrize("stated", [None, 0.0, 0.1, 0.2], ids=["nobody looked", "0", "0.1", "0.2"])
def test_an_ordinary_query_gets_the_topical_order_and_scores(stated: float | None):
    pool = pool_of(ROWS, stated=stated, breach=[1, 0, 0, 0], topic=[0, 1, 0, 0])
    found = scores(PLAIN.order(pool), pool)
    assert list(found.items()) == [("a", 0.9), ("d", 0.8), ("c", 0.7), ("b", 0.5)]
    assert list(found) == list(scores(TopicalOnly().order(pool), pool))


@pytest.mark.parametrize(
    ("stated", "share"),
    [(1 / 5, 0), (1 / (1 + 2**1.5), 0.25), (1 / 3, 0.5), (1 / 2, 1), (0.9, 1), (1, 1)],
    ids=["1 to 4", "1 to 2.8", "1 to 2", "1 to 1", "9 to 1", "certain"],
)
def test_the_constraint_takes_more_the_better_its_odds_are(stated: float, share: float):
    pool = pool_of(ROWS, stated=stated)
    found = scores(PLAIN.order(pool), pool)
    wanted = {d: t + share * c for d, t, c in ROWS}
    best = max(wanted.values())
    expected = {d: left(t, wanted[d], best) if share else t for d, t, _ in ROWS}
    assert found == pytest.approx(expected, abs=1e-6)


def test_what_loses_nothing_keeps_its_topical_score():
    pool = pool_of(ROWS, stated=1.0)
    assert scores(PLAIN.order(pool), pool)["c"] == pytest.approx(0.7)  # 0.7 + 0.5 is the best


@pytest.mark.parametrize(("named", "strength"), [(("x",), 1.0), ((), 0.25)], ids=["x", "nothing"])
def test_compatibility_counts_less_where_the_query_names_nothing(
    named: tuple[str, ...], strength: float
):
    pool = replace(pool_of(ROWS), constraint=Constraint(1.0, excluded=named))
    found = scores(replace(PLAIN, unnamed=0.25).order(pool), pool)
    wanted = {d: t + strength * c for d, t, c in ROWS}
    best = max(wanted.values())
    assert found == pytest.approx({d: left(t, wanted[d], best) for d, t, _ in ROWS}, abs=1e-6)


def test_a_breach_can_turn_the_order():
    pool = pool_of([("a", 0.9, 0.1), ("b", 0.8, 0.1)], stated=1.0, breach=[1.0, 0.0])
    assert list(scores(PLAIN.order(pool), pool)) == ["b", "a"]


def test_the_topic_is_that_of_the_query_without_what_it_rules_out():
    pool = pool_of([("a", 0.9, 0.1), ("b", 0.8, 0.1)], stated=1.0, topic=[0.4, 0.8])
    assert list(scores(PLAIN.order(pool), pool)) == ["b", "a"]


def test_more_firmness_takes_more():
    pool = pool_of(ROWS, stated=1.0)
    soft, firm = (scores(replace(PLAIN, firmness=f).order(pool), pool)["a"] for f in (1.0, 3.0))
    assert firm == pytest.approx(left(0.9, 1.0, 1.2, firmness=3.0), abs=1e-6)
    assert FLOOR < firm < soft < 0.9


def on_topic(size: int, seed: int) -> Candidates:
    """A pool of any size, its constraint as wrong as can be."""
    draw = np.random.default_rng(seed)
    scored = [(f"{i:03}", float(draw.random()), float(draw.random())) for i in range(size)]
    return pool_of(scored, stated=1.0, breach=draw.random(size), topic=draw.random(size))


@pytest.mark.parametrize("size", [1, 2, 3, 10, 100, 500])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_on_the_topic_falls_below_what_is_not(size: int, seed: int):
    pool = on_topic(size, seed)
    floor = floor_of(pool.topical)
    found = scores(Auto(strength=9, exclusion=9, firmness=9).order(pool), pool)
    for doc_id, topical in zip(pool.doc_ids, pool.topical, strict=True):
        if topical >= floor:
            assert floor - 1e-6 <= found[doc_id] <= topical + 1e-6
        else:
            assert found[doc_id] == pytest.approx(topical, abs=1e-6)


class TestFloor:
    def test_of_a_large_pool_is_about_its_median(self):
        topical = np.concatenate([np.full(900, 0.5), np.full(100, 0.9)])
        assert floor_of(topical) == pytest.approx(0.5, abs=0.01)

    def test_of_a_few_passages_is_below_them_all(self):
        assert floor_of(np.array([0.7, 0.6])) == pytest.approx((10 * 0.5 + 2 * 0.65) / 12)

    def test_of_equal_scores_is_that_score(self):
        assert floor_of(np.full(7, 0.4)) == pytest.approx(0.4)


def test_a_pool_of_two_lets_the_second_overtake():
    """Few passages say nothing of what is off the topic."""
    pool = replace(
        pool_of([("club", 0.75, 0.1), ("silent", 0.62, 0.5)], breach=[0.7, 0.1]),
        constraint=Constraint(1.0, ("noise",)),
    )
    assert list(scores(Auto().order(pool), pool)) == ["silent", "club"]


SATISFIES, VIOLATES, SILENT = (
    Reading(1.0, 0.0, 0.0, 0.0),
    Reading(0.0, 1.0, 0.0, 1.0),
    Reading(0.0, 0.0, 1.0, 0.5),
)


class TestReadings:
    def found(
        self, *readings: Reading | None, stated: float = 1.0, policy: Auto = BY_READING
    ) -> dict[str, float]:
        """Scores of ROWS, whose leads are a's 0.9 - FLOOR and so on."""
        pool = pool_of(ROWS, stated=stated, readings=readings)
        return scores(policy.order(pool), pool)

    def test_what_surely_violates_loses_a_share_of_its_lead(self):
        found = self.found(VIOLATES, None, None, None)
        assert found["a"] == pytest.approx(FLOOR + 0.2 * (0.9 - FLOOR))
        assert [found[d] for d in "bcd"] == pytest.approx([0.5, 0.7, 0.8])

    def test_what_surely_satisfies_gains_the_mean_of_its_lead_and_the_longest(self):
        found = self.found(None, None, SATISFIES, None)
        assert found["c"] == pytest.approx(0.7 + gain(0.7))
        assert list(found) == ["c", "a", "d", "b"]

    def test_what_is_silent_neither_gains_nor_loses(self):
        unread = {d: pytest.approx(t) for d, t, _ in ROWS}
        assert self.found(SILENT, SILENT, SILENT, SILENT) == unread

    def test_a_reading_counts_as_far_as_it_is_sure(self):
        found = self.found(Reading(0.5, 0.25, 0.25, 0.3), None, None, None)
        # 1 - 0.8 x 0.25 of the lead is left, and half of the lead is gained.
        assert found["a"] == pytest.approx(FLOOR + (0.8 + 0.5) * (0.9 - FLOOR))

    def test_a_denial_takes_of_what_the_vectors_left(self):
        policy = replace(BY_READING, strength=1.0, firmness=1.0)
        found = self.found(VIOLATES, None, None, None, policy=policy)
        assert found["a"] == pytest.approx(FLOOR + 0.2 * (left(0.9, 1.0, 1.2) - FLOOR), abs=1e-6)

    def test_an_affirmation_gives_by_topic_whatever_the_vectors_left(self):
        policy = replace(BY_READING, strength=1.0, firmness=1.0)
        found = self.found(SATISFIES, None, None, None, policy=policy)
        assert found["a"] == pytest.approx(left(0.9, 1.0, 1.2) + (0.9 - FLOOR), abs=1e-6)

    def test_topic_decides_among_those_that_say_the_same(self):
        assert list(self.found(*[SATISFIES] * 4)) == ["a", "d", "c", "b"]
        assert list(self.found(*[VIOLATES] * 4)) == ["a", "d", "c", "b"]

    def test_a_doubtful_constraint_lets_readings_count_in_part(self):
        found = self.found(VIOLATES, None, SATISFIES, None, stated=1 / 3)  # half of it
        assert found["a"] == pytest.approx(FLOOR + 0.6 * (0.9 - FLOOR))
        assert found["c"] == pytest.approx(0.7 + 0.5 * gain(0.7))

    def test_without_a_constraint_readings_change_nothing(self):
        assert self.found(VIOLATES, None, SATISFIES, None, stated=0.1) == {
            d: pytest.approx(t) for d, t, _ in ROWS
        }

    @pytest.mark.parametrize("seed", range(5))
    def test_nothing_on_the_topic_falls_off_it_and_nothing_off_it_rises(self, seed: int):
        pool = on_topic(100, seed)
        draw = np.random.default_rng(seed)
        readings = [Reading(s, v, 0.0, v) for s, v in draw.dirichlet((1, 1), 100).tolist()]
        pool = replace(pool, readings=[r if i % 3 else None for i, r in enumerate(readings)])
        floor = floor_of(pool.topical)
        policy = Auto(strength=9, exclusion=9, firmness=9, affirmation=2.0, denial=1.0)
        found = scores(policy.order(pool), pool)
        for doc_id, topical in zip(pool.doc_ids, pool.topical.tolist(), strict=True):
            if topical >= floor:
                lead, longest = topical - floor, pool.topical.max() - floor
                most = topical + 2 * (lead * longest) ** 0.5
                assert floor - 1e-6 <= found[doc_id] <= most + 1e-6
            else:
                assert found[doc_id] == pytest.approx(topical, abs=1e-6)

    def test_a_reason_names_what_was_read(self):
        pool = pool_of(ROWS, stated=1.0, readings=[VIOLATES, None, None, None])
        found = reasons(BY_READING.order(pool), pool)
        after = FLOOR + 0.2 * (0.9 - FLOOR)
        assert found["a"] == (
            f"Topic 0.900, now {after:.3f} by compatibility 0.100, read as satisfying 0.00, "
            "violating 1.00."
        )
        assert "read as" not in found["b"]


class TestNearDuplicates:
    """What no query constrains: those that a verifier read are held against each other."""

    def found(
        self, pairs: Sequence[tuple[int, int]], *readings: Reading | None, rivalry: float = 0.5
    ) -> dict[str, float]:
        """With a certain word worth a quarter of a cosine; `s_C` of ROWS counts as well."""
        pool = pool_of(ROWS, near_duplicates=pairs, readings=readings)
        policy = replace(PLAIN, rivalry=rivalry, word=0.25)
        return scores(policy.order(pool), pool)

    def test_they_share_the_best_score_and_lose_what_they_are_behind(self):
        # a: 0.1 - 0.25, c: 0.5 + 0.25; d stands between and is no near-duplicate of theirs.
        found = self.found([(0, 2)], VIOLATES, None, SATISFIES, None)
        assert found == pytest.approx({"c": 0.9, "d": 0.8, "b": 0.5, "a": 0.9 - 0.5 * 0.9})
        assert list(found) == ["c", "d", "b", "a"]

    def test_compatibility_counts_beside_what_was_read(self):
        found = self.found([(0, 3)], SILENT, None, None, SILENT)  # a and d, of 0.1 and 0.3
        assert found == pytest.approx({"d": 0.9, "a": 0.8, "c": 0.7, "b": 0.5})

    def test_satisfying_less_violating_decides_among_the_compatible(self):
        unsure, more = Reading(0.5, 0.4, 0.1, 0.4), Reading(0.9, 0.1, 0.0, 0.2)
        found = self.found([(1, 2)], None, more, unsure, None)
        # b: 0.6 + 0.25 x 0.8, c: 0.5 + 0.25 x 0.1
        assert (found["b"], found["c"]) == pytest.approx((0.7, 0.7 - 0.5 * 0.275))

    def test_pairs_that_share_one_are_a_group(self):
        # b: 0.6, c: 0.5 + 0.25, d: 0.3 - 0.25; the best topical score is d's 0.8.
        found = self.found([(1, 2), (2, 3)], None, SILENT, SATISFIES, VIOLATES)
        expected = {"a": 0.9, "c": 0.8, "b": 0.8 - 0.5 * 0.15, "d": 0.8 - 0.5 * 0.7}
        assert found == pytest.approx(expected)

    def test_groups_do_not_mix(self):
        found = self.found([(0, 3), (1, 2)], VIOLATES, SATISFIES, VIOLATES, SATISFIES)
        assert (found["d"], found["b"]) == pytest.approx((0.9, 0.7))

    def test_one_that_was_not_read_keeps_its_score(self):
        found = self.found([(0, 2), (0, 3)], VIOLATES, None, None, SATISFIES)
        assert (found["c"], found["d"]) == pytest.approx((0.7, 0.9))

    @pytest.mark.parametrize("readings", [(), (None,) * 4], ids=["nobody read", "none read"])
    def test_without_readings_all_stay(self, readings: tuple[None, ...]):
        assert self.found([(0, 2)], *readings) == {d: t for d, t, _ in ROWS}

    def test_a_reason_tells_of_it(self):
        pool = pool_of(ROWS, near_duplicates=[(0, 2)], readings=[VIOLATES, None, SATISFIES, None])
        policy = replace(PLAIN, rivalry=0.5, word=0.25)
        assert reasons(policy.order(pool), pool) == {
            "a": "Topic 0.900, 0.450 among near-duplicates.",
            "b": "Topic 0.500.",
            "c": "Topic 0.700, 0.900 among near-duplicates.",
            "d": "Topic 0.800.",
        }

    def test_under_a_constraint_they_are_ranked_as_all_others(self):
        pool = pool_of(ROWS, stated=1.0, near_duplicates=[(0, 2)])
        alone = pool_of(ROWS, stated=1.0)
        assert PLAIN.order(pool) == PLAIN.order(alone)


@pytest.mark.parametrize("stated", [None, 1.0])
def test_an_empty_pool_has_an_empty_order(stated: float | None):
    pool = pool_of([], stated=stated, breach=[], topic=[])
    assert PLAIN.order(pool) == Order([], ())


def test_equal_scores_go_by_id():
    pool = pool_of([("c", 0.3, 0.4), ("a", 0.3, 0.4), ("b", 0.3, 0.4)], stated=1.0)
    assert list(scores(PLAIN.order(pool), pool)) == ["a", "b", "c"]


def test_it_drops_nothing():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, near_duplicates=[(0, 1), (0, 2)])
    order = PLAIN.order(pool)
    assert sorted(verdict.position for verdict in order.kept) == [0, 1, 2, 3]
    assert list(order.dropped) == []


def test_the_pool_stays_as_it_was():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, near_duplicates=[(0, 1)])
    before = pool.topical.copy(), pool.compatibility.copy(), pool.breach.copy()
    PLAIN.order(pool)
    for old, new in zip(before, (pool.topical, pool.compatibility, pool.breach), strict=True):
        assert (old == new).all()


@pytest.mark.parametrize(
    "setting",
    ["strength", "unnamed", "exclusion", "firmness", "affirmation", "denial", "rivalry", "word"],
)
def test_a_negative_weight_is_refused(setting: str):
    with pytest.raises(InvalidValue, match=f"{setting} must not be negative, got -0.1"):
        Auto(**{setting: -0.1})


def test_more_than_all_of_a_lead_cannot_be_denied():
    with pytest.raises(InvalidValue, match=r"denial is a share of the lead, at most 1, got 1\.1"):
        Auto(denial=1.1)


@pytest.mark.parametrize(
    "settings",
    [{"doubt": 0.99}, {"doubt": 0.995}, {"doubt": -0.1}, {"sure": 1.1}, {"sure": 0.1}],
    ids=["equal", "doubt above sure", "doubt below 0", "sure above 1", "sure below doubt"],
)
def test_bounds_that_contradict_each_other_are_refused(settings: dict[str, Any]):
    with pytest.raises(InvalidValue, match="doubt and sure must satisfy 0 <= doubt < sure <= 1"):
        Auto(**settings)


def test_a_reason_without_a_constraint_names_the_topic_alone():
    pool = pool_of([("a", 0.9, 0.1)])
    assert reasons(PLAIN.order(pool), pool) == {"a": "Topic 0.900."}


def test_a_reason_names_the_scores_before_and_after():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0, 0, 0, 0])
    found = reasons(PLAIN.order(pool), pool)
    after = scores(PLAIN.order(pool), pool)["a"]
    assert found["c"] == "Topic 0.700, now 0.700 by compatibility 0.500."
    assert found["a"] == (
        f"Topic 0.900, now {after:.3f} by compatibility 0.100, 1.00 of what is ruled out."
    )


def test_it_is_known_by_its_name():
    assert isinstance(POLICIES["auto"], Auto)
    assert Auto().name == "auto"
