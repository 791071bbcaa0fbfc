from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.metrics import (
    difference,
    first_violation_at,
    mean_with_interval,
    ndcg_at,
    over_pairs,
    p_value,
    pair_means,
    per_query,
    recall_at,
    violation_at,
)
from coder_ir.types import Qrels

QRELS = Qrels({"q1": {"good": 2, "bad": -1}, "q2": {"good": 2, "bad": -1}})


class TestPerQuery:
    def test_each_judged_query_gets_its_value(self):
        run = {"q1": ["bad", "good"], "q2": ["good", "bad"]}
        assert per_query(partial(violation_at, k=1), run, QRELS) == {"q1": 1.0, "q2": 0.0}

    @pytest.mark.parametrize(
        ("metric", "default"),
        [
            (partial(violation_at, k=10), 0.0),
            (partial(first_violation_at, k=10), 11.0),
            (partial(ndcg_at, k=10), 0.0),
            (partial(recall_at, k=5), 0.0),
        ],
        ids=["V@10", "FVR@10", "nDCG@10", "R@5"],
    )
    def test_a_query_the_run_does_not_answer_scores_its_default(
        self, metric: partial[float], default: float
    ):
        answered = metric(["bad", "good"], QRELS.grades["q1"])
        assert answered != default
        assert per_query(metric, {"q1": ["bad", "good"]}, QRELS) == {"q1": answered, "q2": default}

    def test_an_empty_run_scores_every_judged_query(self):
        assert per_query(first_violation_at, {}, QRELS) == {"q1": 11.0, "q2": 11.0}

    def test_a_query_without_judgements_is_passed_over(self):
        run = {"q1": ["good"], "q2": ["good"], "q3": ["bad"]}
        assert set(per_query(ndcg_at, run, QRELS)) == {"q1", "q2"}

    def test_values_come_in_the_order_of_the_judgements(self):
        assert list(per_query(ndcg_at, {"q2": ["good"], "q1": ["good"]}, QRELS)) == ["q1", "q2"]

    def test_the_mean_runs_over_judged_and_not_over_answered_queries(self):
        values = per_query(ndcg_at, {"q1": ["good"]}, QRELS)
        assert mean_with_interval(list(values.values())).mean == 0.5


class TestMeanWithInterval:
    values = np.random.default_rng(3).uniform(0, 1, 200).tolist()

    def test_the_mean_is_the_mean_and_n_the_number_of_values(self):
        estimate = mean_with_interval([0.0, 1.0, 1.0, 0.0, 1.0])
        assert (estimate.mean, estimate.n) == (pytest.approx(0.6), 5)

    def test_the_interval_holds_the_mean(self):
        estimate = mean_with_interval(self.values)
        assert estimate.low < estimate.mean < estimate.high

    def test_the_interval_is_about_two_standard_errors_to_each_side(self):
        estimate = mean_with_interval(self.values)
        error = np.std(self.values) / np.sqrt(len(self.values))
        assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * error, rel=0.1)

    def test_the_same_seed_gives_the_same_interval(self):
        assert mean_with_interval(self.values, seed=4) == mean_with_interval(self.values, seed=4)

    def test_another_seed_gives_another_interval_of_the_same_mean(self):
        one, two = (mean_with_interval(self.values, seed=seed) for seed in (4, 5))
        assert one.mean == two.mean
        assert (one.low, one.high) != (two.low, two.high)

    def test_more_values_narrow_the_interval(self):
        few, many = mean_with_interval(self.values[:20]), mean_with_interval(self.values)
        assert many.high - many.low < few.high - few.low

    def test_equal_values_have_an_interval_of_no_width(self):
        estimate = mean_with_interval([0.25] * 8)
        assert (estimate.low, estimate.high) == (0.25, 0.25)

    def test_no_values_are_refused(self):
        with pytest.raises(InvalidValue, match="at least one judged query"):
            mean_with_interval([])


class TestDifference:
    def test_it_is_the_second_minus_the_first(self):
        assert difference([0.2, 0.4], [0.5, 0.9]).mean == pytest.approx(0.4)

    def test_pairs_stay_together_when_resampled(self):
        # Each pair differs by exactly .1 although the values vary widely.
        one = np.random.default_rng(6).uniform(0, 1, 50)
        estimate = difference(one.tolist(), (one + 0.1).tolist())
        assert (estimate.low, estimate.high) == (pytest.approx(0.1), pytest.approx(0.1))

    def test_it_is_seeded(self):
        one, two = np.random.default_rng(7).uniform(0, 1, (2, 50)).tolist()
        assert difference(one, two, seed=1) == difference(one, two, seed=1)
        assert difference(one, two, seed=1) != difference(one, two, seed=2)

    def test_unequal_lengths_are_refused(self):
        with pytest.raises(InvalidValue, match="needs equal lengths, got 2 and 1"):
            difference([0.1, 0.2], [0.1])


class TestPValue:
    one, two = np.random.default_rng(8).uniform(0, 1, (2, 40)).tolist()

    @pytest.mark.parametrize(
        "apart",
        [[1.0, 1.0, 1.0], [0.5, -0.1, 0.3, 0.2], [0.1] * 6, [1.0, -1.0, 0.25, 0.0, 0.5]],
        ids=["three alike", "mixed", "six alike", "with a zero"],
    )
    def test_it_is_the_share_of_sign_flips_that_part_the_runs_as_far(self, apart: list[float]):
        flips = [abs(np.dot(signs, apart)) for signs in product((-1, 1), repeat=len(apart))]
        exact = np.mean([far >= abs(sum(apart)) - 1e-9 for far in flips])
        # 10,000 flips: three standard errors are at most 0.015.
        assert p_value([0.0] * len(apart), apart) == pytest.approx(exact, abs=0.015)

    def test_equal_runs_have_a_value_of_one(self):
        assert p_value(self.one, self.one) == 1.0

    def test_which_run_comes_first_does_not_matter(self):
        assert p_value(self.one, self.two) == p_value(self.two, self.one)

    def test_a_gap_on_every_query_is_next_to_zero_but_not_zero(self):
        assert p_value([0.0] * 100, [1.0] * 100) == pytest.approx(1 / 10_001)

    def test_chance_alone_is_significant_as_often_as_it_claims(self):
        rng = np.random.default_rng(9)
        pairs = [rng.uniform(0, 1, (2, 30)).tolist() for _ in range(200)]
        found = sum(p_value(one, two) < 0.1 for one, two in pairs)
        assert 8 <= found <= 34  # 20 expected, three standard errors to each side

    def test_it_is_seeded(self):
        assert p_value(self.one, self.two, seed=1) == p_value(self.one, self.two, seed=1)
        assert p_value(self.one, self.two, seed=1) != p_value(self.one, self.two, seed=2)

    @pytest.mark.parametrize(
        ("one", "two"), [([], []), ([0.1], [0.1, 0.2])], ids=["none", "uneven"]
    )
    def test_lengths_that_do_not_pair_are_refused(self, one: list[float], two: list[float]):
        with pytest.raises(InvalidValue, match=f"got {len(one)} and {len(two)}"):
            p_value(one, two)


class TestOverPairs:
    values: ClassVar = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}

    def test_the_mean_is_that_over_queries_and_the_number_theirs(self):
        found = over_pairs(self.values, [("a", "b"), ("c", "d")])
        assert (found.mean, found.n) == (0.5, 4)

    def test_queries_that_share_their_luck_widen_the_interval(self):
        many = {f"{name}{n}": value for n in range(20) for name, value in self.values.items()}
        alike = [pair for n in range(20) for pair in ((f"a{n}", f"b{n}"), (f"c{n}", f"d{n}"))]
        apart = [pair for n in range(20) for pair in ((f"a{n}", f"c{n}"), (f"b{n}", f"d{n}"))]
        alone = over_pairs(many, [])
        assert over_pairs(many, alike).low < alone.low < over_pairs(many, apart).low == 0.5

    def test_pair_means_are_means_of_two(self):
        assert pair_means(self.values, [("a", "c"), ("b", "a")]) == [0.5, 1.0]
