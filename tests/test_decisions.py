"""From a policy's order to a ranking: what is dropped, and what is told of hits; all by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from coder_ir.policies import Auto, Sequential, TopicalOnly
from coder_ir.searching import assemble, decide
from coder_ir.types import Candidates, Constraint, Order, Policy, Ranking, Scores, Span, Verdict
from tests.bar_pool import BARRED, WHOLE, fetch, pool_of
from tests.fake_verifier import satisfying, violating


def kept(order: Order) -> list[int]:
    return [verdict.position for verdict in order.kept]


def dropped(order: Order) -> list[tuple[int, str]]:
    return [(verdict.position, verdict.reason) for verdict in order.dropped]


def decided(
    pool: Candidates,
    *,
    policy: Policy | None = None,
    risk: Sequence[float] | None = None,
    max_risk: float = 1.0,
) -> Order:
    """By default in the topical order, with no risk known."""
    return decide(
        (policy or TopicalOnly()).order(pool),
        pool,
        risk=None if risk is None else np.array(risk),
        max_risk=max_risk,
    )


class TestDecide:
    def test_without_a_risk_the_policys_order_is_left_alone(self):
        pool = pool_of(breach=[1, 1, 1])
        order = decided(pool)
        assert (order.kept, dropped(order)) == (TopicalOnly().order(pool).kept, [])

    def test_what_stays_keeps_order_score_and_reason(self):
        pool = pool_of(topical=[0.7, 0.9, 0.8])
        order = decided(pool, risk=[0, 1, 0], max_risk=0.5)
        assert kept(order) == [2, 0]
        assert list(order.kept) == [v for v in TopicalOnly().order(pool).kept if v.position != 1]

    def test_what_goes_keeps_its_score(self):
        order = decided(pool_of(), risk=[0, 1, 0], max_risk=0.5)
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

    def test_what_is_dropped_goes_by_score_and_then_by_id(self):
        pool = pool_of(topical=[0.7, 0.9, 0.9])
        assert [i for i, _ in dropped(decided(pool, risk=[1, 1, 1], max_risk=0))] == [1, 2, 0]

    def test_what_the_policy_dropped_stays_dropped_for_the_policys_reason(self):
        pool = Candidates(
            ["bar", "calm", "far"],
            [WHOLE] * 3,
            np.array([0.9, 0.8, 0.7]),
            np.array([0.1, 0.5, 0.6]),
        )
        order = decided(pool, policy=Sequential(), risk=[1, 1, 0], max_risk=0.5)
        assert kept(order) == [2]
        (by_risk, by_policy) = order.dropped  # best first
        assert by_policy == Sequential().order(pool).dropped[0]
        assert (by_risk.position, by_risk.reason) == (
            1,
            "Filtered, since its risk of 1.00 is above 0.5.",
        )


ORDER = Order([Verdict(1, 0.8, "First."), Verdict(0, 0.7, "Second.")], [Verdict(2, 0.1, "Gone.")])


def assembled(
    pool: Candidates | None = None,
    order: Order = ORDER,
    *,
    k: int = 10,
    risk: Scores | None = None,
    policy: Policy | None = None,
) -> Ranking:
    pool, policy = pool or pool_of(), policy or TopicalOnly()
    return assemble("hotel", policy, pool, order, k=k, risk=risk, fetch=fetch)


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


BELOW = Span(8, 29)  # of bar's title and text: "There is a bar below."


class TestReadings:
    POOL = replace(pool_of(), readings=[violating(BELOW), satisfying(), None])

    def test_a_hit_has_what_was_read_of_its_passage(self):
        hits = {hit.doc_id: hit for hit in assembled(self.POOL)}
        assert (hits["bar"].reading, hits["calm"].reading) == (violating(BELOW), satisfying())

    def test_the_decisive_sentence_is_cut_from_the_passage(self):
        hits = {hit.doc_id: hit for hit in assembled(self.POOL)}
        assert (hits["bar"].decisive, hits["calm"].decisive) == ("There is a bar below.", "")

    def test_under_a_policy_that_uses_readings_the_reason_is_for_people(self):
        hits = {hit.doc_id: hit for hit in assembled(self.POOL, policy=Auto())}
        assert hits["bar"].reason == "Goes against “no bar”: “There is a bar below.”"
        assert hits["bar"].scoring == "Second."

    @pytest.mark.parametrize("policy", [TopicalOnly(), Auto(uses_readings=False)], ids=["t", "a"])
    def test_under_another_it_is_the_policys_own(self, policy: Policy):
        for hit, verdict in zip(assembled(policy=policy), ORDER.kept, strict=True):
            assert (hit.reason, hit.scoring) == (verdict.reason, verdict.reason)

    def test_a_pool_that_nobody_read_has_no_readings(self):
        assert {hit.reading for hit in assembled()} == {None}

    def test_where_words_had_a_part_the_scoring_says_so_and_the_hit_shows_the_cosine(self):
        pool = replace(pool_of(), cosine=np.array([0.4, 0.5, 0.6]))
        calm = assembled(pool)[0]
        assert calm.topical == 0.5
        assert calm.scoring == (
            "First. Topical: cosine 0.500, taken as 0.800 after words and vectors."
        )
