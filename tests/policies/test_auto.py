"""Auto by hand: the lead over the pool's floor, what the constraint and near-copies take of it."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Auto, TopicalOnly
from coder_ir.policies.auto import floor_of
from coder_ir.types import Candidates, Constraint, Order, Passage, Span

ROWS = [("a", 0.9, 0.1), ("b", 0.5, 0.6), ("c", 0.7, 0.5), ("d", 0.8, 0.3)]
# The floor of ROWS: ten passages at 0.5 - 0.4, four with a median of 0.75.
FLOOR = (10 * 0.1 + 4 * 0.75) / 14
PLAIN = Auto(
    strength=1.0, unnamed=1.0, exclusion=0.4, firmness=1.0, rivalry=0.5, doubt=0.2, sure=0.5
)


def pool_of(
    scored: Sequence[tuple[str, float, float]],
    *,
    stated: float | None = None,
    breach: Sequence[float] | None = None,
    topic: Sequence[float] | None = None,
    copies: Sequence[tuple[int, int]] = (),
    apart: Sequence[float] | None = None,
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
        copies=tuple(copies),
        apart=None if apart is None else np.array(apart, dtype=np.float64),
    )


def scores(order: Order, pool: Candidates) -> dict[str, float]:
    """Document ids with their scores, best first."""
    return {pool.doc_ids[verdict.position]: verdict.score for verdict in order.kept}


def reasons(order: Order, pool: Candidates) -> dict[str, str]:
    return {pool.doc_ids[verdict.position]: verdict.reason for verdict in order.kept}


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


def test_of_two_near_copies_the_less_compatible_loses():
    # Both are as topical as b, who lacks 0.6 - 0.2 and loses half of that.
    pool = pool_of([("a", 0.7, 0.6), ("b", 0.8, 0.2), ("c", 0.75, 0.1)], copies=[(0, 1)])
    found = scores(PLAIN.order(pool), pool)
    assert list(found) == ["a", "c", "b"]
    assert found == pytest.approx({"a": 0.8, "c": 0.75, "b": 0.6})


def test_near_copies_share_what_the_constraint_leaves():
    pool = pool_of([("a", 0.9, 0.3), ("b", 0.8, 0.3)], stated=1.0, breach=[1, 0], copies=[(0, 1)])
    found = scores(PLAIN.order(pool), pool)
    assert found["a"] == found["b"] == pytest.approx(0.8)


def test_of_three_near_copies_each_is_held_against_the_best_of_its_own():
    # a is a copy of b, b of a and c, c of b: a is not measured against c, who is no copy of it.
    pool = pool_of([("a", 0.5, 0.1), ("b", 0.5, 0.3), ("c", 0.5, 0.9)], copies=[(0, 1), (1, 2)])
    found = scores(PLAIN.order(pool), pool)
    # c lacks nothing; a lacks 0.2 to b; b lacks 0.6 to c
    assert list(found) == ["c", "a", "b"]
    assert found == pytest.approx({"c": 0.5, "a": 0.4, "b": 0.2})


NOT_READ = float("nan")


def test_near_copies_lose_by_what_they_lack_where_they_differ_as_well():
    # b lacks 0.1 as a whole, a lacks 0.4 of what only it says; c is no copy of theirs.
    rows = [("a", 0.7, 0.6), ("b", 0.7, 0.5), ("c", 0.7, 0.9)]
    pool = pool_of(rows, copies=[(0, 1)], apart=[0.2, 0.6, 0.9])
    found = scores(replace(PLAIN, apart=0.75).order(pool), pool)
    assert list(found) == ["c", "b", "a"]
    assert found == pytest.approx({"c": 0.7, "b": 0.65, "a": 0.55})  # 0.5 x 0.1, 0.5 x 0.75 x 0.4


@pytest.mark.parametrize(
    "apart", [None, [NOT_READ, NOT_READ], [0.9, NOT_READ], [NOT_READ, 0.9]], ids=str
)
def test_a_copy_that_was_not_read_is_held_against_no_difference(apart: list[float] | None):
    pool = pool_of([("a", 0.7, 0.6), ("b", 0.7, 0.5)], copies=[(0, 1)], apart=apart)
    assert scores(PLAIN.order(pool), pool) == pytest.approx({"a": 0.7, "b": 0.65})


@pytest.mark.parametrize("stated", [None, 1.0])
def test_an_empty_pool_has_an_empty_order(stated: float | None):
    pool = pool_of([], stated=stated, breach=[], topic=[])
    assert PLAIN.order(pool) == Order([], ())


def test_equal_scores_go_by_id():
    pool = pool_of([("c", 0.3, 0.4), ("a", 0.3, 0.4), ("b", 0.3, 0.4)], stated=1.0)
    assert list(scores(PLAIN.order(pool), pool)) == ["a", "b", "c"]


def test_it_drops_nothing():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, copies=[(0, 1), (0, 2)])
    order = PLAIN.order(pool)
    assert sorted(verdict.position for verdict in order.kept) == [0, 1, 2, 3]
    assert list(order.dropped) == []


def test_the_pool_stays_as_it_was():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, copies=[(0, 1)])
    before = pool.topical.copy(), pool.compatibility.copy(), pool.breach.copy()
    PLAIN.order(pool)
    for old, new in zip(before, (pool.topical, pool.compatibility, pool.breach), strict=True):
        assert (old == new).all()


@pytest.mark.parametrize(
    "setting", ["strength", "unnamed", "exclusion", "firmness", "rivalry", "apart"]
)
def test_a_negative_weight_is_refused(setting: str):
    with pytest.raises(InvalidValue, match=f"{setting} must not be negative, got -0.1"):
        Auto(**{setting: -0.1})


@pytest.mark.parametrize(
    "settings",
    [{"doubt": 0.99}, {"doubt": 0.995}, {"doubt": -0.1}, {"sure": 1.1}, {"sure": 0.1}],
    ids=["equal", "doubt above sure", "doubt below 0", "sure above 1", "sure below doubt"],
)
def test_bounds_that_contradict_each_other_are_refused(settings: dict[str, Any]):
    with pytest.raises(InvalidValue, match="doubt and sure must satisfy 0 <= doubt < sure <= 1"):
        Auto(**settings)


def test_a_reason_without_a_constraint_says_so():
    pool = pool_of([("a", 0.9, 0.1)])
    assert reasons(PLAIN.order(pool), pool) == {"a": "Topic 0.900; no constraint was found."}


def test_a_reason_names_the_scores_before_and_after():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0, 0, 0, 0])
    found = reasons(PLAIN.order(pool), pool)
    after = scores(PLAIN.order(pool), pool)["a"]
    assert found["c"] == "Topic 0.700, kept by compatibility 0.500."
    assert found["a"] == (
        f"Topic 0.900, lowered to {after:.3f} by compatibility 0.100 and 1.00 of what is ruled out."
    )


def test_a_reason_calls_a_score_kept_that_reads_the_same():
    pool = pool_of([("a", 0.9, 0.5), ("b", 0.1, 0.50001)], stated=1.0, breach=[1e-5, 0])
    (reason, _) = reasons(PLAIN.order(pool), pool).values()
    assert reason == "Topic 0.900, kept by compatibility 0.500."


def test_a_reason_tells_of_a_near_copy_without_a_constraint():
    pool = pool_of([("a", 0.5, 0.6), ("b", 0.5, 0.2)], copies=[(0, 1)])
    found = reasons(PLAIN.order(pool), pool)["b"]
    assert found == "Topic 0.500; - 0.5 x 0.400 behind a near-copy."


def test_it_is_known_by_its_name():
    assert isinstance(POLICIES["auto"], Auto)
    assert Auto().name == "auto"
