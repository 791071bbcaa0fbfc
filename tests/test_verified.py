"""Reading the first hits again with a verifier: order, scores and risk, all worked out by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest

from coder_ir import Candidates, Order, Sequential, Union, Verdict
from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidValue
from coder_ir.policies import CompatibilityOnly, TopicalOnly
from coder_ir.searching import STATED, SearchOptions, reading, risks, verified
from coder_ir.types import Constraint, Passage, Policy, Scores, Span

WHOLE = Passage(0, Span(0, 9))
# Ranks a, b, c, d, e by topic; c and e are the compatible ones by cosine.
POOL = Candidates(
    ["a", "b", "c", "d", "e"],
    [WHOLE] * 5,
    np.array([0.9, 0.8, 0.7, 0.6, 0.5]),
    np.array([0.4, 0.5, 0.9, 0.35, 0.8]),
)


def reads(**scores: float) -> Callable[[Sequence[int]], Scores]:
    """A verifier by document id; asked for another document, it fails."""

    def read(positions: Sequence[int]) -> Scores:
        return np.array([scores[POOL.doc_ids[position]] for position in positions])

    return read


def ids(order: Order, pool: Candidates = POOL) -> list[str]:
    return [pool.doc_ids[verdict.position] for verdict in order.kept]


def again(
    policy: Policy, first: int, pool: Candidates = POOL, **scores: float
) -> tuple[Candidates, Order]:
    return verified(pool, policy.order(pool), policy, first=first, read=reads(**scores))


SUM = Sequential(alpha=0.5, tau=-1.0)  # c .8, a and b .65, e .65, d .475


class TestVerified:
    def test_the_first_documents_are_ranked_by_what_was_read(self):
        _, order = again(CompatibilityOnly(), 3, c=0.1, e=0.7, b=0.6)
        assert ids(order) == ["e", "b", "c", "a", "d"]

    def test_only_they_are_read_and_the_rest_stays_in_its_order(self):
        before = CompatibilityOnly().order(POOL)
        _, order = again(CompatibilityOnly(), 2, c=0.0, e=0.01)
        assert ids(order) == ["e", "c", *ids(before)[2:]]
        assert [v.reason for v in order.kept[2:]] == [v.reason for v in before.kept[2:]]

    def test_a_first_document_stays_above_the_rest_however_it_reads(self):
        _, order = again(CompatibilityOnly(), 1, c=0.0)
        assert ids(order)[0] == "c"

    @pytest.mark.parametrize("policy", [CompatibilityOnly(), SUM, Union(p=0)], ids=lambda p: p.name)
    @pytest.mark.parametrize("first", [1, 2, 3, 5, 50])
    @pytest.mark.parametrize("seed", range(5))
    def test_scores_never_rise_and_every_document_comes_once(
        self, policy: Policy, first: int, seed: int
    ):
        drawn = np.random.default_rng(seed).random(5)
        _, order = again(policy, first, **dict(zip(POOL.doc_ids, drawn, strict=True)))
        scores = [verdict.score for verdict in order.kept]
        assert all(high >= low for high, low in pairwise(scores))
        assert sorted(ids(order)) == list(POOL.doc_ids)

    def test_gaps_within_the_rest_stay_as_they_were(self):
        _, order = again(CompatibilityOnly(), 2, c=0.2, e=0.1)
        assert [v.score for v in order.kept] == pytest.approx([0.2, 0.1, 0.1, 0.0, -0.05])

    def test_scores_that_fall_anyway_are_left_alone(self):
        _, order = again(CompatibilityOnly(), 2, c=0.9, e=0.8)
        assert [v.score for v in order.kept] == pytest.approx([0.9, 0.8, 0.5, 0.4, 0.35])

    def test_topic_counts_as_much_as_the_policy_gives_it(self):
        # Half of topic, half of what was read: a .45, c .85, e .5.
        _, order = again(SUM, 4, a=0.0, b=0.0, c=1.0, e=0.5)
        assert ids(order) == ["c", "e", "a", "b", "d"]

    def test_more_than_there_are_means_all(self):
        _, order = again(CompatibilityOnly(), 100, a=0.5, b=0.4, c=0.3, d=0.2, e=0.1)
        assert ids(order) == ["a", "b", "c", "d", "e"]

    def test_the_pool_says_what_was_read_and_what_was_not(self):
        pool, _ = again(CompatibilityOnly(), 2, c=0.25, e=0.75)
        assert pool.verified is not None
        assert pool.verified.tolist() == [False, False, True, False, True]
        assert pool.compatibility.tolist() == [0.4, 0.5, 0.25, 0.35, 0.75]

    def test_the_pool_it_was_given_is_left_as_it_was(self):
        before = POOL.compatibility.copy()
        again(CompatibilityOnly(), 5, a=0, b=0, c=0, d=0, e=0)
        assert POOL.compatibility.tolist() == before.tolist()
        assert POOL.verified is None

    def test_an_empty_pool_is_not_read(self):
        empty = POOL.part([])
        pool, order = verified(empty, Order([]), TopicalOnly(), first=5, read=reads())
        assert (len(pool), list(order.kept), list(order.dropped)) == (0, [], [])


class TestDropped:
    seq = Sequential(alpha=0.0, tau=0.3)

    def test_what_reads_below_the_threshold_is_dropped(self):
        _, order = again(self.seq, 2, c=0.2, e=0.9)
        assert ids(order) == ["e", "b", "a", "d"]
        [gone] = order.dropped
        assert POOL.doc_ids[gone.position] == "c"
        assert "compatibility 0.2 is below the threshold 0.3" in gone.reason

    def test_what_was_dropped_before_stays_dropped_and_is_not_read(self):
        pool = replace(POOL, compatibility=np.array([0.1, 0.5, 0.9, 0.2, 0.8]))
        _, order = again(self.seq, 5, pool, b=0.1, c=0.6, e=0.7)
        assert ids(order) == ["e", "c"]
        assert {POOL.doc_ids[verdict.position] for verdict in order.dropped} == {"a", "b", "d"}

    def test_where_all_that_was_read_goes_the_rest_moves_up(self):
        class Strict:
            name, spaces = "strict", ("compatibility",)

            def order(self, pool: Candidates) -> Order:
                verdicts = [Verdict(i, s, "") for i, s in enumerate(pool.compatibility.tolist())]
                verdicts.sort(key=lambda verdict: -verdict.score)
                kept = [verdict for verdict in verdicts if verdict.score >= 0.3]
                return Order(kept, [verdict for verdict in verdicts if verdict.score < 0.3])

        _, order = again(Strict(), 2, c=0.0, e=0.0)
        assert ids(order) == ["b", "a", "d"]
        assert [verdict.score for verdict in order.kept] == [0.5, 0.4, 0.35]


class TestPassages:
    # Two documents in two passages each; x is found by its second one.
    pool = Candidates(
        ["x", "x", "y", "y"],
        [Passage(0, Span(0, 5)), Passage(1, Span(5, 9))] * 2,
        np.array([0.5, 0.9, 0.8, 0.1]),
        np.array([0.5, 0.9, 0.8, 0.1]),
    )

    def read_as(self, scores: Mapping[int, float], first: int) -> Order:
        """A verifier by position in the pool."""
        policy = CompatibilityOnly()
        return verified(
            self.pool,
            policy.order(self.pool),
            policy,
            first=first,
            read=lambda positions: np.array([scores[position] for position in positions]),
        )[1]

    def test_a_document_is_read_by_its_best_passage_alone(self):
        order = self.read_as({1: 0.2, 2: 0.6}, first=2)
        assert [verdict.position for verdict in order.kept] == [2, 1]

    def test_its_other_passages_do_not_bring_it_back(self):
        order = self.read_as({1: 0.0}, first=1)
        assert [self.pool.doc_ids[verdict.position] for verdict in order.kept] == ["x", "y", "y"]


class TestReading:
    def test_ten_units_of_a_logit_count_for_three_tenths_of_cosine(self):
        found = reading(np.array([0.1, 0.9, -0.2]), np.array([10.0, -20.0, -10.0]))
        assert found == pytest.approx([0.4, 0.3, -0.5])

    def test_a_verifier_that_cannot_decide_leaves_the_cosine(self):
        assert reading(np.array([0.1, 0.9]), np.zeros(2)).tolist() == [0.1, 0.9]

    def test_it_stays_a_cosine_however_sure_the_verifier_is(self):
        found = reading(np.array([0.9, -0.9, 0.2]), np.array([10.0, -10.0, 1000.0]))
        assert found.tolist() == [1, -1, 1]

    def test_its_arguments_are_left_as_they_were(self):
        cosines, logits = np.array([0.5]), np.array([10.0])
        reading(cosines, logits)
        assert (cosines.tolist(), logits.tolist()) == ([0.5], [10.0])

    def test_nothing_to_read_has_no_reading(self):
        assert reading(np.zeros(0), np.zeros(0)).shape == (0,)


class TestRisks:
    pool = replace(
        POOL,
        constraint=Constraint(1.0),
        compatibility=np.array([1.0, 1.0, 1.0, 0.0, 0.0]),
        verified=np.array([True, False, True, True, False]),
    )
    by_cosine = Logistic((0.0, 0.0, 0.0), -log(3))  # 1/4 for all
    by_reading = Logistic((0.0, -log(9), 0.0), log(9))  # 1/2 where it satisfies, 9/10 where not

    def test_what_was_read_has_the_risk_fitted_for_it(self):
        fitted = Calibration(self.by_cosine, read_risk=self.by_reading)
        assert risks(self.pool, fitted) == pytest.approx([1 / 2, 1 / 4, 1 / 2, 9 / 10, 1 / 4])

    def test_a_doubtful_constraint_lowers_it_in_proportion(self):
        fitted = Calibration(self.by_cosine, read_risk=self.by_reading)
        doubtful = replace(self.pool, constraint=Constraint(STATED / 5))
        found = risks(doubtful, fitted)
        assert found == pytest.approx([0.1, 0.05, 0.1, 0.18, 0.05])

    def test_without_a_fit_for_readings_all_passages_have_one_risk_of_their_compatibility(self):
        found = risks(self.pool, Calibration(self.by_reading))
        assert found == pytest.approx([1 / 2, 1 / 2, 1 / 2, 9 / 10, 9 / 10])

    def test_a_pool_that_was_not_read_has_the_risk_of_cosines(self):
        fitted = Calibration(self.by_cosine, read_risk=self.by_reading)
        assert risks(replace(self.pool, verified=None), fitted) == pytest.approx([1 / 4] * 5)


def test_nothing_is_verified_by_default():
    assert SearchOptions().verify == 0


def test_a_negative_number_to_verify_is_refused():
    with pytest.raises(InvalidValue, match="verify must not be negative, got -1"):
        SearchOptions(verify=-1)
