"""What a pool is judged by: options, constraint, breach, risk; all worked out by hand."""

from collections.abc import Sequence
from math import log

import numpy as np
import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Sequential
from coder_ir.searching import (
    SearchOptions,
    affirmed,
    breaches,
    passage_texts,
    refused,
    risks,
    stated,
)
from coder_ir.types import (
    STATED,
    Candidates,
    Condition,
    Constraint,
    Document,
    Passage,
    Scores,
    Span,
)
from tests.bar_pool import BARRED, fetch, pool_of

# Only the breach has a weight: a risk of 1/4 without one, 1/2 with half of one, 3/4 with all.
BY_BREACH = Logistic((0.0, 0.0, 2 * log(3)), -log(3))
CALIBRATION = Calibration(BY_BREACH)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"k": 0}, "k must be at least 1, got 0"),
            ({"n": 0}, "the pool must hold at least 1 document, got 0"),
            ({"where": "stars>4"}, "where takes a list, got the text 'stars>4'"),
            ({"exclude": "bar"}, "exclude takes a list, got the text 'bar'"),
            ({"require": "bar"}, "require takes a list, got the text 'bar'"),
            ({"exclude": [""]}, "exclude and require take phrases, got ''"),
            ({"require": ["bar", " \n"]}, r"exclude and require take phrases, got ' \\n'"),
            ({"exclude": [7]}, "exclude and require take phrases, got 7"),
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
    def test_without_explicit_phrases_the_query_says_it_all(self):
        assert stated(BARRED, SearchOptions()) == BARRED

    @pytest.mark.parametrize("probability", [0.0, 0.7])
    def test_an_explicit_phrase_is_certain(self, probability: float):
        found = stated(Constraint(probability), SearchOptions(exclude=["bar"]))
        assert found == Constraint(1.0, ("bar",))

    def test_explicit_phrases_come_after_what_the_query_excludes(self):
        options = SearchOptions(exclude=["stairs"], require=["parking"])
        found = stated(Constraint(0.9, ("bar",), ("a lift",), "hotel"), options)
        assert found == Constraint(1.0, ("bar", "stairs"), ("a lift", "parking"), "hotel")


TEXTS = ("There is a bar below.", "No bar is near.", "The bus takes an hour.")


class TestAffirmed:
    def test_a_row_is_a_text_and_a_column_a_phrase(self):
        found = affirmed(["wine bar", "bus"], TEXTS)
        assert found.tolist() == [[0.5, 0], [0, 0], [0, 1]]

    def test_without_phrases_or_texts_there_is_nothing_in_it(self):
        assert affirmed([], TEXTS).shape == (3, 0)
        assert affirmed(["bar"], []).shape == (0, 1)


def likeness(*rows: Sequence[float]) -> Scores:
    """Cosines, one row for each of the texts."""
    return np.array(rows, dtype=np.float64)


UNLIKE = likeness([0.5], [0.5], [0.5])  # what two unrelated texts score


class TestBreaches:
    def test_half_of_it_is_what_a_text_says_in_words(self):
        assert breaches(["bar"], [], TEXTS, UNLIKE).tolist() == [0.5, 0, 0]

    def test_half_of_it_is_likeness_from_unrelated_to_the_same(self):
        found = breaches(
            ["bar"], [], ["The pub.", "An inn.", "A bus."], likeness([1], [0.75], [0.5])
        )
        assert found.tolist() == [0.5, 0.25, 0]

    def test_a_text_that_says_it_and_is_all_about_it_breaches_wholly(self):
        assert breaches(["bar"], [], TEXTS, likeness([1], [0.8], [0.6])) == pytest.approx(
            [1, 0.3, 0.1]
        )

    def test_less_likeness_than_unrelated_texts_have_is_none(self):
        assert breaches(["bar"], [], TEXTS, likeness([-1], [0], [0.4])).tolist() == [0.5, 0, 0]

    def test_a_text_that_lacks_what_is_required_breaches(self):
        assert breaches([], ["bar"], TEXTS, UNLIKE).tolist() == [0.5, 1, 1]
        assert breaches([], ["bar"], TEXTS, likeness([1], [1], [0.75])).tolist() == [0, 0.5, 0.75]

    def test_part_of_an_excluded_phrase_is_no_breach(self):
        assert breaches(["wine bar"], [], TEXTS, UNLIKE).tolist() == [0, 0, 0]

    def test_part_of_a_required_phrase_is_part_of_what_is_asked(self):
        assert breaches([], ["wine bar"], TEXTS, UNLIKE).tolist() == [0.75, 1, 1]

    def test_the_worst_phrase_counts(self):
        alike = likeness([0.5, 0.5], [0.9, 0.6], [0.6, 0.5])
        assert breaches(["bar", "bus"], [], TEXTS, alike) == pytest.approx([0.5, 0.4, 0.5])

    def test_an_excluded_phrase_counts_as_much_as_it_is_trusted(self):
        alike = likeness([0.5, 0.5], [0.9, 0.6], [0.6, 0.5])
        found = breaches(["bar", "bus"], [], TEXTS, alike, trust=(0.5, 1.0))
        assert found == pytest.approx([0.25, 0.2, 0.5])

    def test_a_required_phrase_counts_wholly(self):
        found = breaches(["garden"], ["bar"], TEXTS, likeness(*[[1, 0.5]] * 3), trust=(0.1,))
        assert found == pytest.approx([0.5, 1, 1])

    def test_columns_are_excluded_and_then_required_phrases(self):
        assert breaches(["garden"], ["bar"], TEXTS[:1], likeness([0.5, 1])).tolist() == [0]
        assert breaches(["garden"], ["bar"], TEXTS[:1], likeness([1, 0.5])).tolist() == [0.5]

    def test_a_constraint_that_names_nothing_cannot_be_breached(self):
        assert breaches([], [], TEXTS, np.zeros((3, 0))).tolist() == [0, 0, 0]

    def test_no_texts_have_no_breaches(self):
        assert breaches(["bar"], [], [], np.zeros((0, 1))).tolist() == []


# The first sees the title of bar alone, which affirms nothing; the second a word of far.
PARTS = Candidates(
    ["bar", "far"],
    [Passage(0, Span(0, 3)), Passage(1, Span(4, 7))],
    np.array([0.9, 0.8]),
    np.array([0.5, 0.5]),
)


def test_the_text_of_a_passage_is_cut_from_title_and_text_together():
    assert passage_texts(PARTS, fetch) == ["Old", "bus"]


class TestRefused:
    def refused(self, pool: Candidates, **options: Sequence[str]) -> list[bool]:
        hard = SearchOptions(mode="hard", **options)  # type: ignore[arg-type]
        return refused(pool, hard, fetch).tolist()

    def test_soft_mode_refuses_nothing_and_reads_nothing(self):
        def unread(doc_ids: Sequence[str]) -> list[Document]:
            raise AssertionError(doc_ids)

        soft = SearchOptions(exclude=["bar"])
        assert refused(pool_of(), soft, unread).tolist() == [False] * 3

    def test_what_affirms_an_excluded_phrase_is_refused(self):
        assert self.refused(pool_of(), exclude=["bar"]) == [True, False, False]

    def test_what_lacks_a_required_phrase_is_refused(self):
        assert self.refused(pool_of(), require=["bar"]) == [False, True, True]

    def test_each_phrase_counts(self):
        assert self.refused(pool_of(), exclude=["bus", "bar"]) == [True, False, True]
        assert self.refused(pool_of(), exclude=["bus"], require=["bar"]) == [False, True, True]
        assert self.refused(pool_of(), require=["bus", "bar"]) == [True, True, True]

    def test_half_of_a_phrase_holds_it_and_a_third_does_not(self):
        assert self.refused(pool_of(), exclude=["wine bar"])[0]
        assert not self.refused(pool_of(), require=["wine bar"])[0]
        assert not self.refused(pool_of(), exclude=["red wine bar"])[0]
        assert self.refused(pool_of(), require=["red wine bar"])[0]

    def test_the_whole_document_is_read_whatever_the_passage(self):
        assert self.refused(PARTS, exclude=["bar"]) == [True, False]

    def test_what_the_query_itself_excludes_is_not_looked_for(self):
        assert self.refused(pool_of(constraint=BARRED), exclude=["tram"]) == [False] * 3


class TestRisks:
    def test_a_model_without_calibration_has_none(self):
        assert risks(pool_of(breach=[1, 0.5, 0]), None) is None

    def test_the_risk_is_the_fitted_probability_of_a_breach(self):
        found = risks(pool_of(breach=[1, 0.5, 0]), CALIBRATION)
        assert found == pytest.approx([3 / 4, 1 / 2, 1 / 4])

    def test_both_scores_count(self):
        # bar's logit: log 3 x (8 - 10 x .9 + 2 x .5) = 0; calm's is log 3, far's log 9.
        fitted = Calibration(Logistic((-10 * log(3), 2 * log(3), 0.0), 8 * log(3)))
        found = risks(pool_of(breach=[0, 0, 0]), fitted)
        assert found == pytest.approx([1 / 2, 3 / 4, 9 / 10])

    def test_a_doubtful_constraint_lowers_the_risk_in_proportion(self):
        doubtful = pool_of(breach=[1, 0.5, 0], constraint=Constraint(STATED / 5))
        assert risks(doubtful, CALIBRATION) == pytest.approx([0.15, 0.1, 0.05])

    @pytest.mark.parametrize("constraint", [None, Constraint(0.0)], ids=["unread", "none"])
    def test_a_query_that_states_nothing_cannot_be_broken(self, constraint: Constraint | None):
        pool = pool_of(breach=[1, 1, 1], constraint=constraint)
        assert risks(pool, CALIBRATION) == pytest.approx([0, 0, 0])

    def test_a_pool_whose_words_nobody_read_has_no_breach(self):
        assert risks(pool_of(), CALIBRATION) == pytest.approx([1 / 4] * 3)
