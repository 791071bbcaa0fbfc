"""Auto by hand: topic + w s_C - exclusion x breach - rivalry x deficit, as a query calls for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Auto, TopicalOnly
from coder_ir.types import Candidates, Constraint, Order, Passage, Span

ROWS = [("a", 0.9, 0.1), ("b", 0.5, 0.6), ("c", 0.7, 0.5), ("d", 0.8, 0.3)]
PLAIN = Auto(strength=1.0, unnamed=1.0, exclusion=0.4, rivalry=0.5, twin=0.9, doubt=0.2, sure=0.6)


def pool_of(
    scored: Sequence[tuple[str, float, float]],
    *,
    stated: float | None = None,
    breach: Sequence[float] | None = None,
    topic: Sequence[float] | None = None,
    angles: Sequence[float] | None = None,
    apart: Sequence[float] | None = None,
) -> Candidates:
    """Topical vectors are given as angles in a plane; twin = 0.9 is 0.45 of them."""
    ids, topical, compatibility = zip(*scored, strict=True) if scored else ((), (), ())
    return Candidates(
        ids,
        [Passage(0, Span(0, 1))] * len(ids),
        np.array(topical, dtype=np.float64),
        np.array(compatibility, dtype=np.float64),
        None if stated is None else Constraint(stated),
        topic=None if topic is None else np.array(topic, dtype=np.float64),
        breach=None if breach is None else np.array(breach, dtype=np.float64),
        rows=None if angles is None else np.stack([np.cos(angles), np.sin(angles)], axis=1),
        apart=None if apart is None else np.array(apart, dtype=np.float64),
    )


def scores(order: Order, pool: Candidates) -> dict[str, float]:
    """Document ids with their scores, best first."""
    return {pool.doc_ids[verdict.position]: verdict.score for verdict in order.kept}


def reasons(order: Order, pool: Candidates) -> dict[str, str]:
    return {pool.doc_ids[verdict.position]: verdict.reason for verdict in order.kept}


@pytest.mark.parametrize("stated", [None, 0.0, 0.1, 0.2], ids=["nobody looked", "0", "0.1", "0.2"])
def test_an_ordinary_query_gets_the_topical_order_and_scores(stated: float | None):
    pool = pool_of(ROWS, stated=stated, angles=[0, 1, 2, 3])
    found = scores(PLAIN.order(pool), pool)
    assert list(found.items()) == [("a", 0.9), ("d", 0.8), ("c", 0.7), ("b", 0.5)]
    assert list(found) == list(scores(TopicalOnly().order(pool), pool))


@pytest.mark.parametrize(
    ("stated", "weight"),
    [(0.2, 0.0), (0.3, 0.25), (0.4, 0.5), (0.5, 0.75), (0.6, 1.0), (0.9, 1.0), (1.0, 1.0)],
)
def test_compatibility_counts_more_the_surer_the_constraint(stated: float, weight: float):
    pool = pool_of(ROWS, stated=stated)
    found = scores(PLAIN.order(pool), pool)
    assert found == pytest.approx({d: t + weight * c for d, t, c in ROWS})


def test_a_sure_constraint_ranks_by_the_sum():
    pool = pool_of(ROWS, stated=1.0)
    found = scores(PLAIN.order(pool), pool)
    # 0.7 + 0.5, then two of 1.1 and one of 1.0
    assert list(found.items()) == [("c", 1.2), ("b", 1.1), ("d", 1.1), ("a", 1.0)]


def test_strength_is_the_weight_of_a_sure_constraint():
    pool = pool_of(ROWS, stated=1.0)
    found = scores(Auto(strength=3.0, unnamed=1.0).order(pool), pool)
    # b 0.5 + 1.8, c 0.7 + 1.5, d 0.8 + 0.9, a 0.9 + 0.3
    assert list(found) == ["b", "c", "d", "a"]
    assert found == pytest.approx({"b": 2.3, "c": 2.2, "d": 1.7, "a": 1.2})


@pytest.mark.parametrize(
    ("stated", "share"), [(None, 0.0), (0.1, 0.0), (0.3, 0.25), (0.5, 0.75), (1.0, 1.0)]
)
def test_a_breach_costs_only_as_far_as_the_constraint_is_sure(stated: float | None, share: float):
    pool = pool_of([("a", 0.9, 0.0), ("b", 0.6, 0.0)], stated=stated, breach=[1.0, 0.5])
    found = scores(PLAIN.order(pool), pool)
    assert found == pytest.approx({"a": 0.9 - 0.4 * share, "b": 0.6 - 0.2 * share})


@pytest.mark.parametrize(
    ("stated", "topic"), [(None, 0.9), (0.2, 0.9), (0.3, 0.8), (0.4, 0.7), (0.6, 0.5), (1.0, 0.5)]
)
def test_the_topic_moves_to_the_query_without_what_it_rules_out(stated: float | None, topic: float):
    pool = pool_of([("a", 0.9, 0.0)], stated=stated, topic=[0.5])
    assert scores(PLAIN.order(pool), pool) == pytest.approx({"a": topic})


@pytest.mark.parametrize(
    ("named", "weight"), [({}, 0.25), ({"excluded": ("x",)}, 1.0), ({"required": ("x",)}, 1.0)]
)
def test_compatibility_counts_less_where_the_query_names_nothing(
    named: dict[str, tuple[str, ...]], weight: float
):
    pool = replace(pool_of(ROWS), constraint=Constraint(1.0, **named))
    found = scores(replace(PLAIN, unnamed=0.25).order(pool), pool)
    assert found == pytest.approx({d: t + weight * c for d, t, c in ROWS})


@pytest.mark.parametrize(("named", "weight"), [((), 0.36), (("x",), 0.6)], ids=["nothing", "x"])
def test_by_default_compatibility_counts_less_than_topic_and_less_still_where_nothing_is_named(
    named: tuple[str, ...], weight: float
):
    pool = replace(pool_of(ROWS), constraint=Constraint(1.0, excluded=named))
    assert scores(Auto().order(pool), pool) == pytest.approx(
        {d: t + weight * c for d, t, c in ROWS}
    )


def test_a_breach_can_turn_the_order():
    pool = pool_of([("a", 0.9, 0.1), ("b", 0.6, 0.1)], stated=1.0, breach=[1.0, 0.0])
    found = scores(PLAIN.order(pool), pool)
    assert list(found.items()) == [("b", 0.7), ("a", 0.6)]


def test_of_two_near_copies_the_less_compatible_loses():
    # a and b are copies: both are as topical as b, who lacks 0.6 - 0.2 and loses half of that.
    # c is like neither.
    pool = pool_of(
        [("a", 0.7, 0.6), ("b", 0.8, 0.2), ("c", 0.75, 0.1)],
        angles=[0, 0.3, 2],
    )
    found = scores(PLAIN.order(pool), pool)
    assert list(found) == ["a", "c", "b"]
    assert found == pytest.approx({"a": 0.8, "c": 0.75, "b": 0.6})


def test_near_copies_share_the_topic_that_the_constraint_leaves():
    pool = pool_of([("a", 0.9, 0), ("b", 0.5, 0)], stated=1.0, topic=[0.2, 0.6], angles=[0, 0])
    assert scores(PLAIN.order(pool), pool) == pytest.approx({"a": 0.6, "b": 0.6})


def test_of_three_near_copies_each_is_held_against_the_best_of_its_own():
    # a is a copy of b, b of a and c, c of b: a is not measured against c, who is no copy of it.
    pool = pool_of(
        [("a", 0.5, 0.1), ("b", 0.5, 0.3), ("c", 0.5, 0.9)],
        angles=[0, 0.4, 0.8],
    )
    found = scores(PLAIN.order(pool), pool)
    # c lacks nothing; a lacks 0.2 to b; b lacks 0.6 to c
    assert list(found) == ["c", "a", "b"]
    assert found == pytest.approx({"c": 0.5, "a": 0.4, "b": 0.2})


def test_three_copies_of_each_other_are_all_held_against_the_best():
    pool = pool_of([("a", 0.5, 0.1), ("b", 0.5, 0.3), ("c", 0.5, 0.9)], angles=[0, 0.1, 0.2])
    found = scores(PLAIN.order(pool), pool)
    assert list(found) == ["c", "b", "a"]
    assert found == pytest.approx({"c": 0.5, "b": 0.2, "a": 0.1})


@pytest.mark.parametrize(("twin", "loses"), [(0.5, True), (0.51, False)], ids=["at", "above"])
def test_near_copies_begin_at_the_twin_cosine(twin: float, loses: bool):
    pool = pool_of([("a", 0.5, 0.6), ("b", 0.5, 0.2)])
    rows = np.array([[1, 0], [0.5, 0.75**0.5]], dtype=np.float32)  # cosine exactly 0.5
    pool = replace(pool, rows=rows)
    found = scores(Auto(rivalry=0.5, twin=twin).order(pool), pool)
    assert found == pytest.approx({"a": 0.5, "b": 0.3 if loses else 0.5})


def test_near_copies_are_found_in_a_pool_larger_than_a_block():
    names = [f"{n:04}" for n in range(1500)]
    apart = np.linspace(0, 3, 1500)
    apart[-1] = apart[0]  # the last is a copy of the first
    pool = pool_of([(name, 0.5, 0.2) for name in names], angles=apart)
    pool.compatibility[0] = 0.6
    found = scores(Auto(rivalry=0.5, twin=0.9999995).order(pool), pool)
    assert [name for name, score in found.items() if score < 0.5] == ["1499"]
    assert found["1499"] == pytest.approx(0.3)


NOT_READ = float("nan")


def test_near_copies_lose_by_what_they_lack_where_they_differ_as_well():
    # b lacks 0.1 as a whole, a lacks 0.4 of what only it says; c is no copy of theirs.
    rows = [("a", 0.7, 0.6), ("b", 0.7, 0.5), ("c", 0.7, 0.9)]
    pool = pool_of(rows, angles=[0, 0.1, 2], apart=[0.2, 0.6, 0.9])
    found = scores(replace(PLAIN, apart=0.75).order(pool), pool)
    assert list(found) == ["c", "b", "a"]
    assert found == pytest.approx({"c": 0.7, "b": 0.65, "a": 0.55})  # 0.5 x 0.1, 0.5 x 0.75 x 0.4


@pytest.mark.parametrize(
    "apart", [None, [NOT_READ, NOT_READ], [0.9, NOT_READ], [NOT_READ, 0.9]], ids=str
)
def test_a_copy_that_was_not_read_is_held_against_no_difference(apart: list[float] | None):
    pool = pool_of([("a", 0.7, 0.6), ("b", 0.7, 0.5)], angles=[0, 0.1], apart=apart)
    assert scores(PLAIN.order(pool), pool) == pytest.approx({"a": 0.7, "b": 0.65})


def test_a_pool_nobody_compared_has_no_near_copies():
    rows = [("a", 0.5, 0.6), ("b", 0.6, 0.2)]
    pool = pool_of(rows, angles=None)
    assert scores(PLAIN.order(pool), pool) == {"b": 0.6, "a": 0.5}


def test_every_part_of_the_sum_counts_at_once():
    pool = pool_of(
        [("a", 0.8, 0.2), ("b", 0.6, 0.6)],
        stated=0.4,
        breach=[1.0, 0.0],
        topic=[0.8, 0.4],
        angles=[0, 0],
    )
    # half sure, both as topical as a: a 0.8 + 0.1 - 0.4 x 0.5 - 0.5 x 0.4, b 0.8 + 0.3
    assert scores(PLAIN.order(pool), pool) == pytest.approx({"b": 1.1, "a": 0.5})


@pytest.mark.parametrize("stated", [None, 1.0])
def test_an_empty_pool_has_an_empty_order(stated: float | None):
    for angles in (None, []):
        pool = pool_of([], stated=stated, breach=[], topic=[], angles=angles)
        assert PLAIN.order(pool) == Order([], ())


def test_equal_scores_go_by_id():
    pool = pool_of([("a", 0.3, 0.4), ("b", 0.6, 0.1), ("c", 0.1, 0.6)], stated=1.0)
    assert list(scores(PLAIN.order(pool), pool)) == ["a", "b", "c"]


def test_it_drops_nothing():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, angles=[0, 0, 0, 0])
    order = PLAIN.order(pool)
    assert sorted(verdict.position for verdict in order.kept) == [0, 1, 2, 3]
    assert list(order.dropped) == []


def test_the_pool_stays_as_it_was():
    pool = pool_of(ROWS, stated=1.0, breach=[1.0] * 4, angles=[0, 0, 0, 0])
    before = pool.topical.copy(), pool.compatibility.copy(), pool.breach.copy(), pool.rows.copy()
    PLAIN.order(pool)
    for old, new in zip(
        before, (pool.topical, pool.compatibility, pool.breach, pool.rows), strict=True
    ):
        assert (old == new).all()


@pytest.mark.parametrize("setting", ["strength", "unnamed", "exclusion", "rivalry", "apart"])
def test_a_negative_weight_is_refused(setting: str):
    with pytest.raises(InvalidValue, match=f"{setting} must not be negative, got -0.1"):
        Auto(**{setting: -0.1})


@pytest.mark.parametrize(
    "settings",
    [
        {"doubt": 0.85},
        {"doubt": 0.9},
        {"doubt": -0.1},
        {"sure": 1.1},
        {"sure": 0.1},
    ],
    ids=["equal", "doubt above sure", "doubt below 0", "sure above 1", "sure below doubt"],
)
def test_bounds_that_contradict_each_other_are_refused(settings: dict[str, Any]):
    with pytest.raises(InvalidValue, match="doubt and sure must satisfy 0 <= doubt < sure <= 1"):
        Auto(**settings)


def test_a_reason_without_a_constraint_says_so():
    pool = pool_of([("a", 0.9, 0.1)])
    assert reasons(PLAIN.order(pool), pool) == {"a": "Topic 0.900; no constraint was found."}


def test_a_reason_names_every_number_that_was_used():
    pool = pool_of([("a", 0.8, 0.2), ("b", 0.6, 0.6)], stated=0.4, breach=[1.0, 0.0], angles=[0, 0])
    assert reasons(PLAIN.order(pool), pool) == {
        "a": (
            "Topic 0.800 + 0.5 of compatibility = 0.100 - 0.4 x 0.50 for what is ruled out "
            "- 0.5 x 0.400 behind a near-copy."
        ),
        "b": "Topic 0.800 + 0.5 of compatibility = 0.300.",
    }


def test_a_reason_tells_of_a_near_copy_without_a_constraint():
    pool = pool_of([("a", 0.5, 0.6), ("b", 0.5, 0.2)], angles=[0, 0])
    assert reasons(PLAIN.order(pool), pool)["b"] == "Topic 0.500 - 0.5 x 0.400 behind a near-copy."


def test_it_is_known_by_its_name():
    assert isinstance(POLICIES["auto"], Auto)
    assert Auto().name == "auto"
