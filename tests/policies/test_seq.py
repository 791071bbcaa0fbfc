"""Seq against SPEC.md: keep s_C >= tau, rank by alpha s_T + (1 - alpha) s_C, else topical order."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.policies import Sequential
from coder_ir.types import Candidates, Order, Passage, Span

PASSAGE = Passage(0, Span(0, 1))


def pool_of(rows: Sequence[tuple[str, float, float]]) -> Candidates:
    ids, topical, compatibility = zip(*rows, strict=True) if rows else ((), (), ())
    return Candidates(ids, [PASSAGE] * len(ids), np.array(topical), np.array(compatibility))


def kept(order: Order, pool: Candidates) -> list[str]:
    return [pool.doc_ids[verdict.position] for verdict in order.kept]


def dropped(order: Order, pool: Candidates) -> list[str]:
    return [pool.doc_ids[verdict.position] for verdict in order.dropped]


def second_opinion(pool: Candidates, alpha: Fraction, tau: Fraction) -> tuple[list[str], list[str]]:
    """Kept and dropped ids by SPEC.md's text, in exact arithmetic."""
    exact = {
        doc_id: (Fraction(str(t)), Fraction(str(c)))
        for doc_id, t, c in zip(
            pool.doc_ids, pool.topical.tolist(), pool.compatibility.tolist(), strict=True
        )
    }
    passing = {doc_id for doc_id, (_, c) in exact.items() if c >= tau}
    if not passing:
        return sorted(exact, key=lambda d: (-exact[d][0], d)), []
    ranked = sorted(exact, key=lambda d: (-(alpha * exact[d][0] + (1 - alpha) * exact[d][1]), d))
    return [d for d in ranked if d in passing], [d for d in ranked if d not in passing]


def random_pools(*, seed: int, step: Fraction, count: int = 150) -> list[Candidates]:
    """Pools of 0 to 25 documents whose scores are multiples of `step`."""
    rng = np.random.default_rng(seed)
    pools = []
    for _ in range(count):
        n = int(rng.integers(0, 26))
        top = int(1 / step)
        scores = rng.integers(-top, top + 1, (2, n))
        topical, compatibility = ([float(int(s) * step) for s in row] for row in scores)
        ids = sorted(f"d{i}" for i in range(n))
        pools.append(pool_of(list(zip(ids, topical, compatibility, strict=True))))
    return pools


HOTELS = pool_of([("a", 0.9, 0.1), ("b", 0.5, 0.6), ("c", 0.7, 0.5), ("d", 0.8, 0.29)])


class TestHandWorked:
    def test_what_reaches_tau_is_ranked_by_the_weighted_sum(self):
        # b: .2 x .5 + .8 x .6 = .58; c: .2 x .7 + .8 x .5 = .54
        order = Sequential(0.2, 0.3).order(HOTELS)
        assert kept(order, HOTELS) == ["b", "c"]
        assert [verdict.score for verdict in order.kept] == pytest.approx([0.58, 0.54])

    def test_what_is_below_tau_is_dropped_best_first(self):
        # d: .2 x .8 + .8 x .29 = .392; a: .2 x .9 + .8 x .1 = .26
        order = Sequential(0.2, 0.3).order(HOTELS)
        assert dropped(order, HOTELS) == ["d", "a"]
        assert [verdict.score for verdict in order.dropped] == pytest.approx([0.392, 0.26])

    def test_a_heavier_topical_weight_turns_the_order(self):
        # b: .9 x .5 + .1 x .6 = .51; c: .9 x .7 + .1 x .5 = .68
        assert kept(Sequential(0.9, 0.3).order(HOTELS), HOTELS) == ["c", "b"]

    def test_a_compatibility_of_exactly_tau_is_kept(self):
        assert kept(Sequential(0.2, 0.6).order(HOTELS), HOTELS) == ["b"]

    def test_alpha_one_ranks_what_passed_by_topic_alone(self):
        assert kept(Sequential(1, -1).order(HOTELS), HOTELS) == ["a", "d", "c", "b"]

    def test_alpha_zero_ranks_by_compatibility_alone(self):
        assert kept(Sequential(0, -1).order(HOTELS), HOTELS) == ["b", "c", "d", "a"]

    def test_equal_sums_go_by_ascending_id(self):
        pool = pool_of([("a", 0.25, 0.75), ("b", 0.75, 0.25), ("c", 0.5, 0.5)])
        assert kept(Sequential(0.5, -1).order(pool), pool) == ["a", "b", "c"]

    @pytest.mark.parametrize("rows", [[(0.1, 0.6), (0.9, 0.4)], [(0.9, 0.4), (0.1, 0.6)]])
    def test_sums_that_are_equal_but_for_float_noise_go_by_ascending_id(
        self, rows: list[tuple[float, float]]
    ):
        # Both are .5, but .2 x .1 + .8 x .6 and .2 x .9 + .8 x .4 differ in their last bit.
        pool = pool_of([(doc_id, *row) for doc_id, row in zip("ab", rows, strict=True)])
        assert kept(Sequential(0.2, 0.3).order(pool), pool) == ["a", "b"]

    def test_two_passages_of_one_document_both_get_a_verdict(self):
        pool = pool_of([("a", 0.5, 0.5), ("a", 0.9, 0.9), ("b", 0.6, 0.6)])
        assert [verdict.position for verdict in Sequential(0.5, 0.3).order(pool).kept] == [1, 2, 0]


class TestNothingPasses:
    def test_the_topical_order_is_returned(self):
        assert kept(Sequential(0.2, 0.9).order(HOTELS), HOTELS) == ["a", "d", "c", "b"]

    def test_nothing_is_filtered(self):
        assert list(Sequential(0.2, 0.9).order(HOTELS).dropped) == []

    def test_topical_ties_go_by_ascending_id(self):
        pool = pool_of([("a", 0.5, 0.1), ("b", 0.9, 0.0), ("c", 0.5, 0.2)])
        assert kept(Sequential(0.2, 0.9).order(pool), pool) == ["b", "a", "c"]

    def test_scores_are_the_topical_ones(self):
        scores = [verdict.score for verdict in Sequential(0.2, 0.9).order(HOTELS).kept]
        assert scores == [0.9, 0.8, 0.7, 0.5]

    def test_the_reason_says_so_and_names_the_threshold(self):
        for verdict in Sequential(0.2, 0.9).order(HOTELS).kept:
            assert "No candidate reached compatibility 0.9" in verdict.reason
            assert "topical order" in verdict.reason


def test_an_empty_pool_has_an_empty_order():
    order = Sequential().order(pool_of([]))
    assert (list(order.kept), list(order.dropped)) == ([], [])


def test_the_pool_is_the_best_of_the_topical_space_alone():
    assert list(Sequential().spaces) == ["topical"]


def test_the_defaults_are_the_published_settings():
    assert (Sequential().alpha, Sequential().tau) == (0.2, 0.3)


# Eighths and these weights are exact in binary, so a tie here is a tie to the last bit.
@pytest.mark.parametrize("alpha", ["0", "0.25", "0.5", "0.75", "1"])
@pytest.mark.parametrize("tau", ["-1", "0", "0.25", "0.875", "1"])
def test_random_pools_full_of_ties_agree_with_a_second_implementation(alpha: str, tau: str):
    policy = Sequential(float(alpha), float(tau))
    for pool in random_pools(seed=7, step=Fraction(1, 8), count=100):
        order = policy.order(pool)
        expected = second_opinion(pool, Fraction(alpha), Fraction(tau))
        assert (kept(order, pool), dropped(order, pool)) == expected


@pytest.mark.parametrize(
    ("alpha", "tau"), [("0.5", "0.9"), ("0.2", "0.3")], ids=["BEIR", "elsewhere"]
)
def test_random_pools_at_published_settings_agree_with_a_second_implementation(
    alpha: str, tau: str
):
    policy = Sequential(float(alpha), float(tau))
    for pool in random_pools(seed=8, step=Fraction(1, 10**6), count=300):
        order = policy.order(pool)
        expected = second_opinion(pool, Fraction(alpha), Fraction(tau))
        assert (kept(order, pool), dropped(order, pool)) == expected


@pytest.mark.parametrize("alpha", ["0.2", "0.3", "0.8"])
def test_random_pools_of_one_decimal_agree_with_exact_arithmetic(alpha: str):
    for pool in random_pools(seed=9, step=Fraction(1, 10)):
        order = Sequential(float(alpha), 0.3).order(pool)
        expected = second_opinion(pool, Fraction(alpha), Fraction("0.3"))
        assert (kept(order, pool), dropped(order, pool)) == expected


def test_every_candidate_gets_exactly_one_verdict():
    for pool in random_pools(seed=10, step=Fraction(1, 10), count=50):
        order = Sequential().order(pool)
        positions = [verdict.position for verdict in (*order.kept, *order.dropped)]
        assert sorted(positions) == list(range(len(pool)))


class TestReasons:
    def test_a_kept_candidate_shows_both_scores_the_threshold_and_the_weights(self):
        reason = Sequential(0.2, 0.3).order(HOTELS).kept[0].reason
        for part in ("Kept", "compatibility 0.6", "0.3", "topical 0.5", "0.2 x", "0.8 x"):
            assert part in reason

    def test_a_dropped_candidate_shows_both_scores_and_the_threshold(self):
        reason = Sequential(0.2, 0.3).order(HOTELS).dropped[0].reason
        for part in ("Filtered", "compatibility 0.29", "0.3", "topical 0.8"):
            assert part in reason

    def test_a_score_just_below_the_threshold_does_not_read_as_equal_to_it(self):
        pool = pool_of([("a", 0.5, 0.299999), ("b", 0.5, 0.5)])
        assert "0.300 " not in Sequential(0.2, 0.3).order(pool).dropped[0].reason


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), float("inf")])
def test_an_alpha_out_of_range_is_refused(alpha: float):
    with pytest.raises(InvalidValue, match=f"alpha must be between 0 and 1, got {alpha}"):
        Sequential(alpha=alpha)


@pytest.mark.parametrize("tau", [-1.1, 1.1, float("nan")])
def test_a_tau_out_of_range_is_refused(tau: float):
    with pytest.raises(InvalidValue, match=f"tau must be between -1 and 1, got {tau}"):
        Sequential(tau=tau)


@pytest.mark.parametrize(("alpha", "tau"), [(0, -1), (1, 1)], ids=["least", "most"])
def test_the_ends_of_the_ranges_are_allowed(alpha: float, tau: float):
    assert Sequential(alpha, tau).alpha == alpha


def test_ordering_does_not_change_the_pool():
    pool = pool_of([("a", 0.9, 0.1), ("b", 0.5, 0.6)])
    Sequential().order(pool)
    assert (pool.topical.tolist(), pool.compatibility.tolist()) == ([0.9, 0.5], [0.1, 0.6])
