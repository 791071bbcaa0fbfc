import math
from collections.abc import Callable

import pytest

from coder_ir.metrics import average_precision_at, ndcg_at, recall_at, reciprocal_rank_at

GRADES = {"a": 2, "b": 1, "c": 1, "bad": -1, "none": 0}
METRICS = [ndcg_at, average_precision_at, recall_at, reciprocal_rank_at]


class TestHandWorked:
    def test_ndcg_discounts_by_the_logarithm_of_the_rank(self):
        found = 1 / math.log2(2) + 2 / math.log2(4)
        best = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
        assert ndcg_at(["b", "x", "a"], GRADES) == pytest.approx(found / best)

    def test_ndcg_of_the_ideal_order_is_one(self):
        assert ndcg_at(["a", "c", "b"], GRADES) == pytest.approx(1.0)

    def test_the_ideal_of_ndcg_is_cut_at_k_too(self):
        assert ndcg_at(["a"], GRADES, k=1) == 1.0

    def test_average_precision_sums_precision_at_relevant_ranks(self):
        # Ranks 1 and 3 of three relevant documents: (1/1 + 2/3) / 3.
        assert average_precision_at(["b", "x", "a"], GRADES) == pytest.approx(5 / 9)

    def test_average_precision_divides_by_all_relevant_documents(self):
        assert average_precision_at(["a"], GRADES, k=1) == pytest.approx(1 / 3)

    def test_recall_is_the_share_of_relevant_documents_found(self):
        assert recall_at(["x", "a", "y", "b", "z", "c"], GRADES, k=5) == pytest.approx(2 / 3)

    @pytest.mark.parametrize(
        ("ranked", "value"),
        [(["b", "a"], 1), (["bad", "none", "c", "a"], 1 / 3)],
        ids=["first", "third"],
    )
    def test_reciprocal_rank_is_one_over_the_first_relevant_rank(
        self, ranked: list[str], value: float
    ):
        assert reciprocal_rank_at(ranked, GRADES) == pytest.approx(value)

    @pytest.mark.parametrize(
        ("metric", "k"),
        [(ndcg_at, 10), (average_precision_at, 10), (recall_at, 5), (reciprocal_rank_at, 10)],
        ids=["nDCG", "AP", "recall", "RR"],
    )
    def test_what_comes_after_the_default_cut_does_not_count(
        self, metric: Callable[..., float], k: int
    ):
        assert metric([*map(str, range(k)), "a"], GRADES) == 0.0
        assert metric([*map(str, range(k - 1)), "a"], GRADES) > 0.0


@pytest.mark.parametrize("metric", METRICS, ids=["nDCG", "AP", "recall", "RR"])
class TestEveryMetric:
    def test_nothing_retrieved_scores_zero(self, metric: Callable[..., float]):
        assert metric([], GRADES) == 0.0

    @pytest.mark.parametrize("grades", [{}, {"a": 0}, {"a": -1}], ids=["none", "zero", "negative"])
    def test_nothing_relevant_scores_zero(
        self, metric: Callable[..., float], grades: dict[str, int]
    ):
        assert metric(["a"], grades) == 0.0

    def test_a_violating_document_gains_no_more_than_an_unjudged_one(
        self, metric: Callable[..., float]
    ):
        assert metric(["bad", "a"], GRADES) == metric(["unknown", "a"], GRADES) > 0
