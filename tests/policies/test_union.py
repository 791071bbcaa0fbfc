"""Union against SPEC.md: reciprocal ranks in the pool, cut at their p-quantile, weighted sum."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.policies import Union
from coder_ir.types import Candidates, Order, Passage, Span

PASSAGE = Passage(0, Span(0, 1))


def pool_of(rows: Sequence[tuple[str, float, float]]) -> Candidates:
    ids, topical, compatibility = zip(*rows, strict=True) if rows else ((), (), ())
    return Candidates(ids, [PASSAGE] * len(ids), np.array(topical), np.array(compatibility))


def of_ranks(pairs: Sequence[tuple[int, int]]) -> Candidates:
    """A pool whose documents a, b, ... have these topical and compatibility ranks."""
    ids = "abcdefghijklmnopqrstuvwxyz"
    return pool_of([(ids[i], 1 - t / 100, 1 - c / 100) for i, (t, c) in enumerate(pairs)])


def kept(order: Order, pool: Candidates) -> list[str]:
    return [pool.doc_ids[verdict.position] for verdict in order.kept]


def dropped(order: Order, pool: Candidates) -> list[str]:
    return [pool.doc_ids[verdict.position] for verdict in order.dropped]


def exact_scores(pool: Candidates, alpha: Fraction) -> dict[str, tuple[Fraction, Fraction]]:
    """Fused score and reciprocal compatibility rank of each document, by SPEC.md's text."""

    def reciprocal(scores: np.ndarray) -> dict[str, Fraction]:
        listed = sorted(
            (-score, doc_id) for score, doc_id in zip(scores, pool.doc_ids, strict=True)
        )
        return {doc_id: Fraction(1, rank) for rank, (_, doc_id) in enumerate(listed, 1)}

    by_topic, by_compatibility = reciprocal(pool.topical), reciprocal(pool.compatibility)
    return {
        d: (alpha * by_topic[d] + (1 - alpha) * by_compatibility[d], by_compatibility[d])
        for d in pool.doc_ids
    }


def quantile(values: list[Fraction], p: Fraction) -> Fraction:
    """The p-quantile with linear interpolation between neighbours."""
    values = sorted(values)
    place = p * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def second_opinion(pool: Candidates, alpha: Fraction, p: Fraction) -> tuple[list[str], list[str]]:
    """Kept and dropped ids by SPEC.md's text, in exact arithmetic."""
    if not len(pool):
        return [], []
    scores = exact_scores(pool, alpha)
    cut = quantile([closeness for _, closeness in scores.values()], p)
    ranked = sorted(scores, key=lambda d: (-scores[d][0], d))
    return [d for d in ranked if scores[d][1] >= cut], [d for d in ranked if scores[d][1] < cut]


def random_pools(*, seed: int, count: int = 150) -> Iterator[Candidates]:
    """Pools of 0 to 15 documents with scores of one decimal, so that ties are frequent."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(0, 16))
        ids = sorted(f"d{i}" for i in range(n))
        topical, compatibility = np.round(rng.uniform(-1, 1, (2, n)), 1)
        yield Candidates(ids, [PASSAGE] * n, topical, compatibility)


class TestHandWorked:
    # a: 1st by topic, 4th by compatibility; b: 2, 1; c: 3, 2; d: 4, 3
    pool = pool_of([("a", 0.9, -0.5), ("b", 0.8, 0.9), ("c", 0.7, 0.8), ("d", 0.6, 0.7)])

    def test_documents_are_ranked_by_the_weighted_sum_of_reciprocal_ranks(self):
        # a: .3/1 + .7/4 = .475; b: .3/2 + .7/1 = .85; c: .3/3 + .7/2 = .45; d: .3/4 + .7/3 = .308
        order = Union(0.3, 0).order(self.pool)
        assert kept(order, self.pool) == ["b", "a", "c", "d"]
        assert [verdict.score for verdict in order.kept] == pytest.approx(
            [0.85, 0.475, 0.45, 0.075 + 0.7 / 3]
        )

    def test_what_is_below_the_quantile_is_dropped(self):
        # 1/rho_C is 1/4, 1, 1/2, 1/3; its .5-quantile lies between 1/3 and 1/2.
        order = Union(0.3, 0.5).order(self.pool)
        assert kept(order, self.pool) == ["b", "c"]
        assert dropped(order, self.pool) == ["a", "d"]

    def test_what_equals_the_quantile_is_kept(self):
        # Of three values 1/3, 1/2, 1 the .5-quantile is 1/2 itself.
        pool = of_ranks([(1, 1), (2, 2), (3, 3)])
        assert kept(Union(0.3, 0.5).order(pool), pool) == ["a", "b"]

    def test_p_zero_keeps_everything(self):
        assert list(Union(0.3, 0).order(self.pool).dropped) == []

    def test_p_one_keeps_only_the_most_compatible(self):
        order = Union(0.3, 1).order(self.pool)
        assert kept(order, self.pool) == ["b"]
        assert dropped(order, self.pool) == ["a", "c", "d"]

    def test_alpha_one_ranks_by_topic_alone(self):
        assert kept(Union(1, 0).order(self.pool), self.pool) == ["a", "b", "c", "d"]

    def test_alpha_zero_ranks_by_compatibility_alone(self):
        assert kept(Union(0, 0).order(self.pool), self.pool) == ["b", "c", "d", "a"]

    def test_ranks_count_and_the_size_of_the_scores_does_not(self):
        far = pool_of([("a", 0.9, -1.0), ("b", 0.1, 1.0), ("c", 0.0, 0.99), ("d", -1.0, 0.98)])
        order, same = Union(0.3, 0.5).order(far), Union(0.3, 0.5).order(self.pool)
        assert [v.position for v in order.kept] == [v.position for v in same.kept]

    def test_equal_scores_take_different_ranks_by_ascending_id(self):
        pool = pool_of([("a", 0.5, 0.5), ("b", 0.5, 0.5), ("c", 0.5, 0.5)])
        order = Union(0.3, 0).order(pool)
        assert kept(order, pool) == ["a", "b", "c"]
        assert [verdict.score for verdict in order.kept] == pytest.approx([1, 1 / 2, 1 / 3])

    def test_equal_sums_go_by_ascending_id(self):
        pool = of_ranks([(2, 1), (1, 2), (3, 3)])
        assert kept(Union(0.5, 0).order(pool), pool) == ["a", "b", "c"]

    @pytest.mark.parametrize("pairs", [[(2, 3), (3, 1)], [(3, 1), (2, 3)]])
    def test_sums_that_are_equal_but_for_float_noise_go_by_ascending_id(
        self, pairs: list[tuple[int, int]]
    ):
        # Both are 7/15, but .8/2 + .2/3 and .8/3 + .2/1 differ in their last bit.
        pool = of_ranks([*pairs, (1, 2)])
        assert kept(Union(0.8, 0).order(pool), pool) == ["c", "a", "b"]


class TestOneSpaceOnly:
    def test_union_keeps_a_document_only_the_topical_space_ranks_high(self):
        pool = of_ranks([(1, 9), *((i, i - 1) for i in range(2, 10)), (10, 10)])
        assert "a" in kept(Union(0.3, 0.1).order(pool), pool)[:3]

    def test_union_keeps_a_document_only_the_compatibility_space_ranks_high(self):
        pool = of_ranks([(10, 1), *((i - 1, i) for i in range(2, 11))])
        assert kept(Union(0.3, 0.1).order(pool), pool)[0] == "a"

    def test_the_pool_is_the_best_of_both_spaces(self):
        assert list(Union().spaces) == ["topical", "compatibility"]


def test_an_empty_pool_has_an_empty_order():
    order = Union().order(pool_of([]))
    assert (list(order.kept), list(order.dropped)) == ([], [])


@pytest.mark.parametrize("p", [0, 0.1, 0.8, 1])
def test_a_single_candidate_is_always_kept(p: float):
    pool = pool_of([("a", -0.9, -0.9)])
    assert kept(Union(0.3, p).order(pool), pool) == ["a"]


def test_the_defaults_are_the_published_settings():
    assert (Union().alpha, Union().p) == (0.3, 0.1)


@pytest.mark.parametrize("alpha", ["0", "0.3", "0.5", "0.8", "1"])
@pytest.mark.parametrize("p", ["0", "0.1", "0.5", "0.8", "1"])
def test_random_pools_full_of_ties_agree_with_a_second_implementation(alpha: str, p: str):
    compared = 0
    for pool in random_pools(seed=7):
        scores = [fused for fused, _ in exact_scores(pool, Fraction(alpha)).values()]
        if len(set(scores)) < len(scores):
            continue  # equal sums have tests of their own
        order = Union(float(alpha), float(p)).order(pool)
        expected = second_opinion(pool, Fraction(alpha), Fraction(p))
        assert (kept(order, pool), dropped(order, pool)) == expected
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("alpha", ["0.2", "0.5", "0.8"])
def test_random_pools_with_equal_sums_agree_with_exact_arithmetic(alpha: str):
    for pool in random_pools(seed=9):
        order = Union(float(alpha), 0.1).order(pool)
        expected = second_opinion(pool, Fraction(alpha), Fraction("0.1"))
        assert (kept(order, pool), dropped(order, pool)) == expected


def test_every_candidate_gets_exactly_one_verdict():
    for pool in random_pools(seed=10, count=50):
        order = Union(0.3, 0.4).order(pool)
        positions = [verdict.position for verdict in (*order.kept, *order.dropped)]
        assert sorted(positions) == list(range(len(pool)))


class TestReasons:
    pool = of_ranks([(1, 4), (2, 1), (3, 2), (4, 3)])

    def test_a_kept_candidate_shows_both_ranks_and_the_weights(self):
        reason = Union(0.3, 0.5).order(self.pool).kept[1].reason  # c
        for part in ("Kept", "number 3 of 4 by topic", "2 by compatibility", "0.3 / 3", "0.7 / 2"):
            assert part in reason

    def test_a_dropped_candidate_shows_both_ranks_and_the_cut(self):
        reason = Union(0.3, 0.5).order(self.pool).dropped[0].reason  # a
        for part in ("Filtered", "number 4 of 4 by compatibility", "cut at 2", "number 1 by topic"):
            assert part in reason


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_an_alpha_out_of_range_is_refused(alpha: float):
    with pytest.raises(InvalidValue, match=f"alpha must be between 0 and 1, got {alpha}"):
        Union(alpha=alpha)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_p_out_of_range_is_refused(p: float):
    with pytest.raises(InvalidValue, match=f"p must be between 0 and 1, got {p}"):
        Union(p=p)


def test_ordering_does_not_change_the_pool():
    pool = pool_of([("a", 0.9, 0.1), ("b", 0.5, 0.6)])
    Union().order(pool)
    assert (pool.topical.tolist(), pool.compatibility.tolist()) == ([0.9, 0.5], [0.1, 0.6])
