"""From a policy's order to a ranking: what is dropped, and what is told of hits; all by hand."""

from collections.abc import Sequence

import numpy as np

from coder_ir.policies import Sequential, TopicalOnly
from coder_ir.searching import assemble, decide
from coder_ir.types import Candidates, Constraint, Order, Policy, Ranking, Scores, Verdict
from tests.bar_pool import BARRED, WHOLE, fetch, pool_of


def kept(order: Order) -> list[int]:
    return [verdict.position for verdict in order.kept]


def dropped(order: Order) -> list[tuple[int, str]]:
    return [(verdict.position, verdict.reason) for verdict in order.dropped]


def decided(
    pool: Candidates,
    *,
    policy: Policy | None = None,
    refused: Sequence[bool] = (False, False, False),
    risk: Sequence[float] | None = None,
    max_risk: float = 1.0,
) -> Order:
    """By default in the topical order, with nothing refused and no risk known."""
    return decide(
        (policy or TopicalOnly()).order(pool),
        pool,
        refused=np.array(refused),
        risk=None if risk is None else np.array(risk),
        max_risk=max_risk,
    )


class TestDecide:
    WORDS = "Filtered, since it affirms an excluded phrase or lacks a required one."

    def test_with_nothing_refused_the_policys_order_is_left_alone(self):
        pool = pool_of(breach=[1, 1, 1])
        order = decided(pool)
        assert (order.kept, dropped(order)) == (TopicalOnly().order(pool).kept, [])

    def test_what_is_refused_is_dropped_with_the_reason(self):
        order = decided(pool_of(), refused=[False, True, False])
        assert dropped(order) == [(1, self.WORDS)]
        assert kept(order) == [0, 2]

    def test_what_stays_keeps_order_score_and_reason(self):
        pool = pool_of(topical=[0.7, 0.9, 0.8])
        order = decided(pool, refused=[False, True, False])
        assert kept(order) == [2, 0]
        assert list(order.kept) == [v for v in TopicalOnly().order(pool).kept if v.position != 1]

    def test_what_goes_keeps_its_score(self):
        order = decided(pool_of(), refused=[False, True, False])
        assert [verdict.score for verdict in order.dropped] == [0.8]

    def test_a_risk_above_the_limit_is_dropped_with_both_numbers(self):
        order = decided(pool_of(), risk=[0.75, 0.4, 0.41], max_risk=0.4)
        assert kept(order) == [1]  # at the limit is not above it
        assert dropped(order) == [
            (0, "Filtered, since its risk of 0.75 is above 0.4."),
            (2, "Filtered, since its risk of 0.41 is above 0.4."),
        ]

    def test_a_limit_of_one_drops_nothing(self):
        order = decided(pool_of(), risk=[1, 1, 1])
        assert (kept(order), dropped(order)) == ([0, 1, 2], [])

    def test_a_limit_of_zero_keeps_what_cannot_break_anything(self):
        assert kept(decided(pool_of(), risk=[0, 0.01, 0], max_risk=0)) == [0, 2]

    def test_a_refusal_is_named_before_a_risk(self):
        order = decided(pool_of(), refused=[True, False, False], risk=[0.9, 0.9, 0], max_risk=0.4)
        assert dropped(order) == [
            (0, self.WORDS),
            (1, "Filtered, since its risk of 0.90 is above 0.4."),
        ]

    def test_what_is_dropped_goes_by_score_and_then_by_id(self):
        pool = pool_of(topical=[0.7, 0.9, 0.9])
        assert [i for i, _ in dropped(decided(pool, refused=[True] * 3))] == [1, 2, 0]

    def test_what_the_policy_dropped_stays_dropped_for_the_policys_reason(self):
        pool = Candidates(
            ["bar", "calm", "far"],
            [WHOLE] * 3,
            np.array([0.9, 0.8, 0.7]),
            np.array([0.1, 0.5, 0.6]),
        )
        order = decided(pool, policy=Sequential(), refused=[True, True, False])
        assert kept(order) == [2]
        (by_mode, by_policy) = order.dropped  # best first
        assert by_policy == Sequential().order(pool).dropped[0]
        assert (by_mode.position, by_mode.reason) == (1, self.WORDS)


ORDER = Order([Verdict(1, 0.8, "First."), Verdict(0, 0.7, "Second.")], [Verdict(2, 0.1, "Gone.")])


def assembled(
    pool: Candidates | None = None,
    order: Order = ORDER,
    *,
    k: int = 10,
    risk: Scores | None = None,
) -> Ranking:
    pool = pool or pool_of()
    return assemble("hotel", TopicalOnly(), pool, order, k=k, risk=risk, fetch=fetch)


class TestAssemble:
    def test_hits_follow_the_order_with_scores_and_document(self):
        ranking = assembled()
        assert [(hit.rank, hit.doc_id, hit.score, hit.reason) for hit in ranking] == [
            (1, "calm", 0.8, "First."),
            (2, "bar", 0.7, "Second."),
        ]
        bar = ranking[1]
        assert (bar.topical, bar.compatibility, bar.passage) == (0.9, 0.5, WHOLE)
        assert (bar.text, bar.title) == ("There is a bar below.", "Old Bar")
        assert bar.metadata == {"stars": 3}

    def test_what_was_dropped_is_listed_with_its_scores(self):
        ranking = assembled()
        (far,) = ranking.filtered
        assert (far.doc_id, far.score, far.reason) == ("far", 0.1, "Gone.")
        assert (far.topical, far.compatibility, far.passage) == (0.7, 0.5, WHOLE)

    def test_k_cuts_the_hits_and_not_what_was_filtered(self):
        ranking = assembled(k=1)
        assert ([hit.doc_id for hit in ranking], len(ranking.filtered)) == (["calm"], 1)

    def test_risks_go_to_the_documents_they_belong_to(self):
        risk = np.array([0.75, 0.25, 0.5])
        ranking = assembled(risk=risk)
        assert [hit.risk for hit in ranking] == [0.25, 0.75]
        assert [gone.risk for gone in ranking.filtered] == [0.5]

    def test_without_calibration_every_risk_is_unknown(self):
        ranking = assembled()
        assert {one.risk for one in (*ranking.hits, *ranking.filtered)} == {None}

    def test_a_document_is_listed_once_by_its_first_passage(self):
        pool = pool_of("bar", "bar", "calm")
        order = Order(
            [Verdict(1, 0.9, "Best."), Verdict(0, 0.8, "Again."), Verdict(2, 0.7, "Last.")]
        )
        ranking = assembled(pool, order, k=2)
        assert [(hit.rank, hit.doc_id, hit.reason) for hit in ranking] == [
            (1, "bar", "Best."),
            (2, "calm", "Last."),
        ]

    def test_a_document_with_a_kept_passage_is_not_listed_as_filtered(self):
        pool = pool_of("bar", "bar", "calm")
        order = Order(
            [Verdict(0, 0.9, "Kept.")], [Verdict(1, 0.8, "Gone."), Verdict(2, 0.7, "Gone.")]
        )
        ranking = assembled(pool, order)
        assert [gone.doc_id for gone in ranking.filtered] == ["calm"]

    def test_a_ranking_names_query_policy_and_constraint(self):
        ranking = assembled()
        assert (ranking.query, ranking.policy, ranking.constraint) == ("hotel", "topical", BARRED)

    def test_a_pool_nobody_read_a_constraint_for_has_an_empty_one(self):
        pool = pool_of(constraint=None)
        ranking = assembled(pool)
        assert ranking.constraint == Constraint(0.0)
