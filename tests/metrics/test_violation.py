import pytest

from coder_ir.metrics import (
    first_violation_at,
    over_exclusion,
    pairwise_accuracy,
    survival_at,
    violation_at,
)
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING

GRADES = {"good": SATISFYING, "plain": NEUTRAL, "bad": VIOLATING, "worse": VIOLATING}
FOUR_GOOD = {"a": SATISFYING, "b": SATISFYING, "c": 3, "d": 2, "plain": NEUTRAL, "bad": VIOLATING}


class TestViolationAt:
    @pytest.mark.parametrize(
        ("ranked", "k", "value"),
        [
            (["bad", "good"], 1, 1.0),
            (["good", "bad"], 1, 0.0),
            (["good", "bad"], 2, 1.0),
            (["good", "plain", "bad"], 2, 0.0),
            (["bad", "worse"], 2, 1.0),
            (["good", "plain"], 10, 0.0),
        ],
        ids=["first", "past k", "at k", "just past k", "two count once", "none"],
    )
    def test_it_is_one_when_any_of_the_first_k_violates(
        self, ranked: list[str], k: int, value: float
    ):
        assert violation_at(ranked, GRADES, k=k) == value

    def test_nothing_retrieved_violates_nothing(self):
        assert violation_at([], GRADES, k=10) == 0.0

    def test_documents_without_a_judgement_do_not_violate(self):
        assert violation_at(["unknown"], GRADES, k=10) == 0.0

    def test_a_grade_of_zero_does_not_violate(self):
        assert violation_at(["d"], {"d": 0}, k=10) == 0.0


class TestFirstViolationAt:
    @pytest.mark.parametrize(
        ("ranked", "rank"),
        [
            (["bad", "good"], 1),
            (["good", "bad", "worse"], 2),
            (["good", "plain", "unknown", "worse"], 4),
        ],
        ids=["first", "the earlier of two", "after others"],
    )
    def test_it_is_the_rank_of_the_first_violating_document(self, ranked: list[str], rank: int):
        assert first_violation_at(ranked, GRADES) == rank

    def test_the_last_place_within_k_still_counts(self):
        assert first_violation_at([*"abcdefghi", "bad"], GRADES, k=10) == 10

    def test_a_violation_past_k_counts_as_none(self):
        assert first_violation_at([*"abcdefghij", "bad"], GRADES, k=10) == 11

    @pytest.mark.parametrize("k", [1, 5, 10])
    def test_nothing_retrieved_gives_k_plus_one(self, k: int):
        assert first_violation_at([], GRADES, k=k) == k + 1

    def test_no_violation_gives_k_plus_one_even_for_a_short_ranking(self):
        assert first_violation_at(["good"], GRADES, k=10) == 11

    def test_k_is_ten_unless_given(self):
        assert first_violation_at(["good"], GRADES) == 11


class TestSurvivalAt:
    @pytest.mark.parametrize(("k", "value"), [(1, 1.0), (2, 1.0), (3, 0.0), (10, 0.0)], ids=str)
    def test_it_lasts_until_the_first_violating_document(self, k: int, value: float):
        assert survival_at(["good", "plain", "bad", "worse"], GRADES, k=k) == value

    @pytest.mark.parametrize("ranked", [[], ["good", "unknown"]], ids=["nothing", "none violates"])
    def test_without_a_violating_document_it_lasts_for_ever(self, ranked: list[str]):
        assert survival_at(ranked, GRADES, k=1000) == 1.0


class TestOverExclusion:
    @pytest.mark.parametrize(
        ("filtered", "share"),
        [([], 0.0), (["a"], 0.25), (["b", "c", "d"], 0.75), (["a", "b", "c", "d"], 1.0)],
        ids=["none", "one of four", "three of four", "all"],
    )
    def test_it_is_the_share_of_satisfying_documents_filtered(
        self, filtered: list[str], share: float
    ):
        assert over_exclusion(filtered, FOUR_GOOD) == share

    def test_filtering_any_other_document_costs_nothing(self):
        assert over_exclusion(["plain", "bad", "unknown"], FOUR_GOOD) == 0.0

    def test_it_is_zero_when_nothing_is_satisfying(self):
        assert over_exclusion(["plain", "bad"], {"plain": NEUTRAL, "bad": VIOLATING}) == 0.0


class TestPairwiseAccuracy:
    @pytest.mark.parametrize(
        ("one", "two", "value"),
        [(0.1, 0.2, 1.0), (0.1, -0.2, 0.0), (-0.1, 0.2, 0.0), (-0.1, -0.2, 0.0)],
        ids=["both right", "second wrong", "first wrong", "both wrong"],
    )
    def test_a_pair_counts_when_both_queries_prefer_their_own_document(
        self, one: float, two: float, value: float
    ):
        assert pairwise_accuracy({"q1": one, "q2": two}, [("q1", "q2")]) == [value]

    def test_a_tie_counts_as_wrong(self):
        assert pairwise_accuracy({"q1": 0.0, "q2": 0.5}, [("q1", "q2")]) == [0.0]

    def test_values_come_in_the_order_of_the_pairs(self):
        margins = {"a1": 1, "a2": 1, "b1": -1, "b2": 1, "c1": 2, "c2": 2}
        pairs = [("b1", "b2"), ("a1", "a2"), ("c1", "c2")]
        assert pairwise_accuracy(margins, pairs) == [0.0, 1.0, 1.0]

    def test_a_query_without_a_margin_is_an_error(self):
        with pytest.raises(KeyError, match="q2"):
            pairwise_accuracy({"q1": 1.0}, [("q1", "q2")])
