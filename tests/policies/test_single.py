from dataclasses import dataclass

import numpy as np
import pytest

from coder_ir.policies import CompatibilityOnly, TopicalOnly
from coder_ir.retriever import Retriever
from coder_ir.types import Candidates, Document, Order, Passage, Policy, Space, Span, Verdict

POOL = Candidates(
    ["a", "b", "c", "d"],
    [Passage(0, Span(0, 1))] * 4,
    np.array([0.5, 0.9, 0.5, 0.1]),
    np.array([0.2, 0.1, 0.7, 0.7]),
)
EMPTY = Candidates([], [], np.array([]), np.array([]))


def ids(order: Order) -> list[str]:
    return [POOL.doc_ids[verdict.position] for verdict in order.kept]


def test_topical_alone_orders_by_the_topical_score_with_ties_by_id():
    assert ids(TopicalOnly().order(POOL)) == ["b", "a", "c", "d"]


def test_compatibility_alone_orders_by_the_compatibility_score_with_ties_by_id():
    assert ids(CompatibilityOnly().order(POOL)) == ["c", "d", "a", "b"]


@pytest.mark.parametrize("policy", [TopicalOnly(), CompatibilityOnly()], ids=lambda p: p.name)
class TestEither:
    def test_drops_nothing(self, policy: Policy):
        assert list(policy.order(POOL).dropped) == []

    def test_pools_only_the_best_of_its_own_space(self, policy: Policy):
        assert list(policy.spaces) == [policy.name]

    def test_scores_are_the_scores_of_its_space(self, policy: Policy):
        scores = POOL.topical if policy.name == "topical" else POOL.compatibility
        for verdict in policy.order(POOL).kept:
            assert verdict.score == scores[verdict.position]

    def test_the_reason_names_the_space_and_the_score(self, policy: Policy):
        for verdict in policy.order(POOL).kept:
            assert f"{policy.name} score of {verdict.score:.3f}" in verdict.reason

    def test_orders_an_empty_pool(self, policy: Policy):
        assert policy.order(EMPTY) == Order([], ())


@dataclass(frozen=True)
class Product:
    """The policy a user might write: the product of both scores, nothing negative."""

    name: str = "product"
    spaces: tuple[Space, ...] = ("topical", "compatibility")

    def order(self, pool: Candidates) -> Order:
        scores = pool.topical * pool.compatibility
        by_score = sorted(range(len(pool)), key=lambda i: (-scores[i], pool.doc_ids[i]))
        said = [Verdict(i, float(scores[i]), f"Product {scores[i]:.2f}.") for i in by_score]
        return Order([v for v in said if v.score > 0.5], [v for v in said if v.score <= 0.5])


class TestPolicyOfAUser:
    @pytest.fixture
    def filled(self, retriever: Retriever) -> Retriever:
        retriever.add(
            [
                Document("both", "quiet hotel"),
                Document("topic", "hotel- quiet- noisy+"),
                Document("neither", "garden"),
            ]
        )
        return retriever

    def test_search_ranks_by_it(self, filled: Retriever):
        ranking = filled.search("quiet hotel", policy=Product())
        assert [(hit.doc_id, hit.reason) for hit in ranking] == [("both", "Product 1.00.")]

    def test_search_reports_what_it_dropped(self, filled: Retriever):
        ranking = filled.search("quiet hotel", policy=Product())
        assert [dropped.doc_id for dropped in ranking.filtered] == ["topic", "neither"]

    def test_the_ranking_carries_its_name(self, filled: Retriever):
        assert filled.search("quiet hotel", policy=Product()).policy == "product"
