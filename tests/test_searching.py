"""From a pool to a ranking: options, constraint, risk, decision, hits; all worked out by hand."""

from collections.abc import Sequence
from math import log

import numpy as np
import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.constraints import shape
from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Sequential, TopicalOnly
from coder_ir.searching import (
    SearchOptions,
    assemble,
    breaches,
    decide,
    judged_texts,
    risks,
    stated,
)
from coder_ir.types import (
    Candidates,
    Condition,
    Constraint,
    Document,
    Order,
    Passage,
    Ranking,
    Scores,
    Span,
    Verdict,
)

DOCUMENTS = {
    "bar": Document("bar", "There is a bar below.", "Old Bar", {"stars": 3}),
    "calm": Document("calm", "No bar is near."),
    "far": Document("far", "The bus takes an hour."),
}
WHOLE = Passage(0, Span(0, 1000))
BARRED = Constraint(1.0, ("without",), ("bar",))
VECTOR = np.zeros(2, dtype=np.float32)
# Only the breach has a weight: a risk of 1/4 without one, 1/2 with half of one, 3/4 with all.
BY_BREACH = Logistic((0.0, 0.0, 2 * log(3)), -log(3))
EVEN = Logistic((0.0,) * (shape("bar").size + VECTOR.size), 0.0)  # 1/2 for every query
CALIBRATION = Calibration(EVEN, BY_BREACH)


def fetch(doc_ids: Sequence[str]) -> list[Document]:
    return [DOCUMENTS[doc_id] for doc_id in doc_ids]


def pool_of(
    *doc_ids: str,
    topical: Sequence[float] = (0.9, 0.8, 0.7),
    breach: Sequence[float] | None = None,
    constraint: Constraint | None = BARRED,
) -> Candidates:
    """By default bar, calm and far, in this topical order, all of compatibility 0.5."""
    ids = doc_ids or ("bar", "calm", "far")
    return Candidates(
        ids,
        [WHOLE] * len(ids),
        np.array(topical),
        np.full(len(ids), 0.5),
        constraint,
        None if breach is None else np.array(breach),
    )


def kept(order: Order) -> list[int]:
    return [verdict.position for verdict in order.kept]


def dropped(order: Order) -> list[tuple[int, str]]:
    return [(verdict.position, verdict.reason) for verdict in order.dropped]


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"k": 0}, "k must be at least 1, got 0"),
            ({"n": 0}, "the pool must hold at least 1 document, got 0"),
            ({"where": "stars>4"}, "where takes a list, got the text 'stars>4'"),
            ({"exclude": "bar"}, "exclude takes a list, got the text 'bar'"),
            ({"require": "bar"}, "require takes a list, got the text 'bar'"),
            ({"exclude": [""]}, "exclude and require take phrases, got an empty one"),
            ({"require": ["bar", " \n"]}, "exclude and require take phrases, got an empty one"),
            ({"mode": "strict"}, "mode must be soft or hard, got 'strict'"),
            ({"mode": "hard"}, "mode hard needs something to exclude or require"),
            ({"max_risk": -0.1}, "max_risk is a probability from 0 to 1, got -0.1"),
            ({"max_risk": 1.1}, "max_risk is a probability from 0 to 1, got 1.1"),
            ({"max_risk": float("nan")}, "max_risk is a probability from 0 to 1, got nan"),
        ],
        ids=lambda value: str(value) if isinstance(value, dict) else "",
    )
    def test_what_cannot_be_searched_for_is_refused(self, options: dict[str, object], said: str):
        with pytest.raises(InvalidValue, match=said):
            SearchOptions(**options)  # type: ignore[arg-type]

    @pytest.mark.parametrize("max_risk", [0, 0.5, 1])
    def test_any_probability_is_a_limit_of_risk(self, max_risk: float):
        assert SearchOptions(max_risk=max_risk).max_risk == max_risk

    @pytest.mark.parametrize("phrases", [{"exclude": ["bar"]}, {"require": ["bar"]}], ids=str)
    def test_hard_mode_needs_one_phrase_of_either_kind(self, phrases: dict[str, list[str]]):
        assert SearchOptions(mode="hard", **phrases).mode == "hard"  # type: ignore[arg-type]

    def test_the_defaults_filter_nothing(self):
        options = SearchOptions()
        assert (options.policy, options.mode, options.max_risk) == ("auto", "soft", 1.0)
        assert (options.exclude, options.require, options.explain) == ((), (), False)

    def test_a_policy_is_looked_up_by_name_or_taken_as_it_is(self):
        mine = Sequential(tau=0.9)
        assert SearchOptions(policy="union").chosen_policy is POLICIES["union"]
        assert SearchOptions(policy=mine).chosen_policy is mine

    def test_conditions_are_parsed_or_taken_as_they_are(self):
        four = Condition("stars", "=", (4,))
        assert SearchOptions(where=["stars=4", four]).conditions == [four, four]


class TestWorded:
    def test_a_query_with_nothing_to_add_stays_as_it_is(self):
        assert SearchOptions().worded("a hotel") == "a hotel"

    def test_what_is_excluded_follows_without_and_what_is_required_follows_with(self):
        options = SearchOptions(exclude=["a bar", "traffic"], require=["parking"])
        words = "a hotel, without a bar, without traffic, with parking"
        assert options.worded("a hotel") == words

    def test_space_around_a_phrase_does_not_count(self):
        assert SearchOptions(exclude=[" a bar\n"]).worded("a hotel") == "a hotel, without a bar"


class TestStated:
    def test_a_query_is_read_by_its_words_where_the_model_has_no_calibration(self):
        assert stated("hotel without bar", VECTOR, None, SearchOptions()) == BARRED

    def test_a_query_without_a_cue_states_nothing(self):
        assert stated("hotel with bar", VECTOR, None, SearchOptions()) == Constraint(0.0)

    def test_the_fitted_detector_decides_where_there_is_one(self):
        found = stated("hotel without bar", VECTOR, CALIBRATION, SearchOptions())
        assert found == Constraint(0.5, ("without",), ("bar",))

    def test_the_detector_reads_the_topical_vector(self):
        weights = (*(0.0,) * shape("bar").size, log(3), 0.0)
        fitted = Calibration(Logistic(weights, 0.0), BY_BREACH)
        found = stated("hotel", np.array([1, 0]), fitted, SearchOptions())
        assert found.probability == pytest.approx(3 / 4)

    @pytest.mark.parametrize("calibration", [None, CALIBRATION], ids=["words", "fitted"])
    def test_an_explicit_phrase_is_certain(self, calibration: Calibration | None):
        options = SearchOptions(exclude=["bar"])
        assert stated("hotel", VECTOR, calibration, options) == Constraint(1.0, (), ("bar",))

    def test_explicit_phrases_come_after_what_the_query_excludes(self):
        options = SearchOptions(exclude=["stairs"], require=["parking"])
        assert stated("hotel without bar", VECTOR, None, options) == Constraint(
            1.0, ("without",), ("bar", "stairs"), ("parking",)
        )

    def test_what_the_words_of_a_query_require_is_left_to_the_encoder(self):
        found = stated("tabs instead of spaces", VECTOR, None, SearchOptions())
        assert (found.excluded, found.required) == (("spaces",), ())


class TestBreaches:
    TEXTS = ("There is a bar below.", "No bar is near.", "The bus takes an hour.")

    def test_a_text_that_affirms_what_is_excluded_breaches_and_one_that_denies_it_does_not(self):
        assert breaches(Constraint(1.0, (), ("bar",)), self.TEXTS).tolist() == [1, 0, 0]

    def test_a_text_that_lacks_what_is_required_breaches(self):
        assert breaches(Constraint(1.0, (), (), ("bar",)), self.TEXTS).tolist() == [0, 1, 1]

    def test_part_of_a_phrase_is_part_of_a_breach(self):
        assert breaches(Constraint(1.0, (), ("wine bar",)), self.TEXTS).tolist() == [0.5, 0, 0]
        assert breaches(Constraint(1.0, (), (), ("wine bar",)), self.TEXTS).tolist() == [0.5, 1, 1]

    def test_the_worst_phrase_counts(self):
        both = Constraint(1.0, (), ("wine bar", "bus"), ())
        assert breaches(both, self.TEXTS).tolist() == [0.5, 0, 1]

    def test_no_texts_have_no_breaches(self):
        assert breaches(BARRED, []).tolist() == []


def test_the_text_of_a_passage_is_cut_from_title_and_text_together():
    pool = Candidates(
        ["bar", "far"],
        [Passage(0, Span(0, 7)), Passage(1, Span(4, 7))],
        np.array([0.9, 0.8]),
        np.array([0.5, 0.5]),
    )
    assert judged_texts(pool, fetch, "soft") == ["Old Bar", "bus"]


class TestRisks:
    def test_a_model_without_calibration_has_none(self):
        assert risks(pool_of(breach=[1, 0.5, 0]), None) is None

    def test_the_risk_is_the_fitted_probability_of_a_breach(self):
        found = risks(pool_of(breach=[1, 0.5, 0]), CALIBRATION)
        assert found == pytest.approx([3 / 4, 1 / 2, 1 / 4])

    def test_both_scores_count(self):
        # bar's logit: log 3 x (8 - 10 x .9 + 2 x .5) = 0; calm's is log 3, far's log 9.
        fitted = Calibration(EVEN, Logistic((-10 * log(3), 2 * log(3), 0.0), 8 * log(3)))
        found = risks(pool_of(breach=[0, 0, 0]), fitted)
        assert found == pytest.approx([1 / 2, 3 / 4, 9 / 10])

    def test_a_doubtful_constraint_lowers_the_risk_in_proportion(self):
        doubtful = pool_of(breach=[1, 0.5, 0], constraint=Constraint(0.2))
        assert risks(doubtful, CALIBRATION) == pytest.approx([0.15, 0.1, 0.05])

    @pytest.mark.parametrize("constraint", [None, Constraint(0.0)], ids=["unread", "none"])
    def test_a_query_that_states_nothing_cannot_be_broken(self, constraint: Constraint | None):
        pool = pool_of(breach=[1, 1, 1], constraint=constraint)
        assert risks(pool, CALIBRATION) == pytest.approx([0, 0, 0])

    def test_a_pool_whose_words_nobody_read_has_no_breach(self):
        assert risks(pool_of(), CALIBRATION) == pytest.approx([1 / 4] * 3)


class TestDecide:
    HARD = SearchOptions(exclude=["bar"], mode="hard")
    WORDS = "Filtered, since it affirms an excluded phrase or lacks a required one."

    def test_soft_mode_leaves_the_policys_order_alone(self):
        pool = pool_of(breach=[1, 1, 1])
        order = decide(TopicalOnly(), pool, SearchOptions(exclude=["bar"]), None)
        assert (order.kept, dropped(order)) == (TopicalOnly().order(pool).kept, [])

    def test_hard_mode_drops_what_breaches_and_says_why(self):
        order = decide(TopicalOnly(), pool_of(breach=[0, 1, 0]), self.HARD, None)
        assert dropped(order) == [(1, self.WORDS)]
        assert kept(order) == [0, 2]

    def test_half_a_phrase_is_enough_for_hard_mode_and_less_is_not(self):
        order = decide(TopicalOnly(), pool_of(breach=[0.49, 0.5, 0.51]), self.HARD, None)
        assert kept(order) == [0]

    def test_what_stays_keeps_order_score_and_reason(self):
        pool = pool_of(topical=[0.7, 0.9, 0.8], breach=[0, 1, 0])
        order = decide(TopicalOnly(), pool, self.HARD, None)
        assert kept(order) == [2, 0]
        assert list(order.kept) == [v for v in TopicalOnly().order(pool).kept if v.position != 1]

    def test_what_goes_keeps_its_score(self):
        order = decide(TopicalOnly(), pool_of(breach=[0, 1, 0]), self.HARD, None)
        assert [verdict.score for verdict in order.dropped] == [0.8]

    def test_a_risk_above_the_limit_is_dropped_with_both_numbers(self):
        options = SearchOptions(max_risk=0.4)
        order = decide(TopicalOnly(), pool_of(), options, np.array([0.75, 0.4, 0.41]))
        assert kept(order) == [1]  # at the limit is not above it
        assert dropped(order) == [
            (0, "Filtered, since its risk of 0.75 is above 0.4."),
            (2, "Filtered, since its risk of 0.41 is above 0.4."),
        ]

    def test_a_limit_of_one_drops_nothing(self):
        order = decide(TopicalOnly(), pool_of(), SearchOptions(), np.ones(3))
        assert (kept(order), dropped(order)) == ([0, 1, 2], [])

    def test_a_limit_of_zero_keeps_what_cannot_break_anything(self):
        options = SearchOptions(max_risk=0)
        assert kept(decide(TopicalOnly(), pool_of(), options, np.array([0, 0.01, 0]))) == [0, 2]

    def test_a_breach_is_named_before_a_risk(self):
        options = SearchOptions(exclude=["bar"], mode="hard", max_risk=0.4)
        order = decide(TopicalOnly(), pool_of(breach=[1, 0, 0]), options, np.array([0.9, 0.9, 0]))
        assert dropped(order) == [
            (0, self.WORDS),
            (1, "Filtered, since its risk of 0.90 is above 0.4."),
        ]

    def test_what_the_policy_dropped_stays_dropped_for_the_policys_reason(self):
        pool = Candidates(
            ["bar", "calm", "far"],
            [WHOLE] * 3,
            np.array([0.9, 0.8, 0.7]),
            np.array([0.1, 0.5, 0.6]),
            BARRED,
            np.array([1, 1, 0]),
        )
        order = decide(Sequential(), pool, self.HARD, None)
        assert kept(order) == [2]
        (by_policy, by_mode) = order.dropped
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
