"""What a pool is judged by: options, constraint, breach, risk; all worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Sequential
from coder_ir.searching import (
    SearchOptions,
    breaches,
    check_query,
    hard_checked,
    passage_texts,
    risks,
    stated,
)
from coder_ir.types import (
    STATED,
    Candidates,
    Condition,
    Constraint,
    Order,
    Passage,
    Reading,
    Scores,
    Span,
    Verdict,
)
from tests.bar_pool import BARRED, DOCUMENTS, fetch, pool_of
from tests.fake_verifier import FakeVerifier, satisfying, violating

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
            (
                {"mode": "hard", "exclude": ["bar"], "verify": 0},
                "mode hard has passages read, which verify=0 switches off",
            ),
            ({"verify": -1}, "verify must not be negative, got -1"),
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

    @pytest.mark.parametrize(
        ("options", "depth", "pool"),
        [
            ({}, 20, 100),
            ({"n": 5}, 20, 10),
            ({"n": 5, "k": 2}, 20, 5),
            ({"n": 5, "k": 8}, 20, 8),
            ({"n": 5, "k": 2, "verify": 30}, 30, 30),
            ({"n": 5, "k": 2, "verify": 0}, 0, 5),
        ],
        ids=str,
    )
    def test_the_pool_holds_what_is_shown_and_what_is_asked_to_be_read(
        self, options: dict[str, int], depth: int, pool: int
    ):
        found = SearchOptions(**options)  # type: ignore[arg-type]
        assert (found.depth, found.pool_size) == (depth, pool)

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


def likeness(*rows: Sequence[float]) -> Scores:
    """Cosines, one row for each text, one column for each phrase."""
    return np.array(rows, dtype=np.float64)


class TestBreaches:
    def test_it_goes_from_what_unrelated_texts_score_to_the_same(self):
        assert breaches(["bar"], likeness([1], [0.75], [0.5])).tolist() == [1, 0.5, 0]

    def test_less_likeness_than_unrelated_texts_have_is_none(self):
        assert breaches(["bar"], likeness([-1], [0], [0.4])).tolist() == [0, 0, 0]

    def test_a_text_that_is_unlike_what_is_required_breaches(self):
        assert breaches([], likeness([1], [0.75], [0.5])).tolist() == [0, 0.5, 1]

    def test_the_worst_phrase_counts(self):
        alike = likeness([0.5, 0.5], [0.9, 0.6], [0.6, 0.75])
        assert breaches(["bar", "bus"], alike) == pytest.approx([0, 0.8, 0.5])

    def test_an_excluded_phrase_counts_as_much_as_it_is_trusted(self):
        alike = likeness([1, 0.5], [0.9, 0.6], [0.6, 0.75])
        found = breaches(["bar", "bus"], alike, trust=(0.5, 1.0))
        assert found == pytest.approx([0.5, 0.4, 0.5])

    def test_a_required_phrase_counts_wholly(self):
        found = breaches(["garden"], likeness([1, 0.5], [1, 1]), trust=(0.1,))
        assert found == pytest.approx([1, 0.1])

    def test_columns_are_excluded_and_then_required_phrases(self):
        assert breaches(["garden"], likeness([0.5, 1])).tolist() == [0]
        assert breaches(["garden"], likeness([1, 1])).tolist() == [1]
        assert breaches(["garden"], likeness([0.5, 0.5])).tolist() == [1]

    def test_a_constraint_that_names_nothing_cannot_be_breached(self):
        assert breaches([], np.zeros((3, 0))).tolist() == [0, 0, 0]

    def test_no_texts_have_no_breaches(self):
        assert breaches(["bar"], np.zeros((0, 1))).tolist() == []

    def test_the_likeness_stays_as_it_was(self):
        alike = likeness([0.9, 0.6])
        breaches(["bar"], alike, trust=(0.5,))
        assert alike.tolist() == [[0.9, 0.6]]


# The first sees the title of bar alone, the second a word of far.
PARTS = Candidates(
    ["bar", "far"],
    [Passage(0, Span(0, 3)), Passage(1, Span(4, 7))],
    np.array([0.9, 0.8]),
    np.array([0.5, 0.5]),
)


def test_the_text_of_a_passage_is_cut_from_title_and_text_together():
    assert passage_texts(PARTS, fetch) == ["Old", "bus"]


def whole(doc_id: str) -> list[str]:
    return [DOCUMENTS[doc_id].content]


class TestHardMode:
    """Over bar, calm and far, in this order."""

    ORDER = Order([Verdict(0, 0.9, "First."), Verdict(1, 0.8, "Then."), Verdict(2, 0.7, "Last.")])
    WORDS = "Filtered, since it affirms an excluded phrase or lacks a required one."

    def checked(
        self,
        *,
        pool: Candidates | None = None,
        order: Order = ORDER,
        k: int = 10,
        **phrases: object,
    ) -> tuple[list[int], list[int], FakeVerifier]:
        """Positions kept and dropped, and the verifier that read."""
        verifier = FakeVerifier()
        options = SearchOptions(k, mode="hard", **phrases)  # type: ignore[arg-type]
        found = hard_checked(order, pool or pool_of(), options, verifier, whole)
        kept, dropped = ([one.position for one in side] for side in (found.kept, found.dropped))
        return kept, dropped, verifier

    def test_what_affirms_an_excluded_phrase_is_dropped(self):
        assert self.checked(exclude=["bar"])[:2] == ([1, 2], [0])

    def test_what_lacks_a_required_phrase_or_denies_it_is_dropped(self):
        assert self.checked(require=["bar"])[:2] == ([0], [1, 2])

    def test_each_phrase_counts(self):
        assert self.checked(exclude=["bus", "bar"])[:2] == ([1], [0, 2])
        assert self.checked(exclude=["bus"], require=["bar"])[:2] == ([0], [1, 2])
        assert self.checked(require=["bus", "bar"])[:2] == ([], [0, 1, 2])

    def test_each_phrase_is_asked_about_by_itself(self):
        _, _, verifier = self.checked(exclude=["tram", "noise"], require=["bar"], k=1)
        texts = [DOCUMENTS["bar"].content]
        expected = [("without tram", texts), ("without noise", texts), ("with bar", texts)]
        assert verifier.asked == expected

    def test_what_the_query_itself_excludes_is_not_looked_for(self):
        assert self.checked(pool=pool_of(constraint=BARRED), exclude=["tram"])[1] == []

    def test_a_verdict_that_stays_is_as_it_was_and_one_that_goes_has_a_reason(self):
        options = SearchOptions(mode="hard", exclude=["bar"])
        found = hard_checked(self.ORDER, pool_of(), options, FakeVerifier(), whole)
        assert list(found.kept) == list(self.ORDER.kept[1:])
        assert list(found.dropped) == [Verdict(0, 0.9, self.WORDS)]

    def test_reading_stops_after_k_documents_that_pass(self):
        kept, dropped, verifier = self.checked(exclude=["bar"], k=1)
        assert (kept, dropped) == ([1], [0])
        assert verifier.read_texts == [DOCUMENTS["bar"].content, DOCUMENTS["calm"].content]

    def test_a_document_is_read_once_whatever_its_passages(self):
        order = Order([Verdict(0, 0.9, ""), Verdict(1, 0.8, ""), Verdict(2, 0.7, "")])
        pool = pool_of("bar", "bar", "calm")
        kept, dropped, verifier = self.checked(pool=pool, order=order, exclude=["bar"])
        assert (kept, dropped) == ([2], [0, 1])
        assert verifier.read_texts == [DOCUMENTS["bar"].content, DOCUMENTS["calm"].content]

    @pytest.mark.parametrize(
        ("phrases", "kept"), [({"exclude": ["bar"]}, []), ({"require": ["bus"]}, [0])], ids=str
    )
    def test_every_part_of_a_document_is_read_and_one_is_enough(
        self, phrases: dict[str, list[str]], kept: list[int]
    ):
        parts = ["A room.", "There is a bar.", "The bus leaves at ten."]
        options = SearchOptions(mode="hard", **phrases)  # type: ignore[arg-type]
        order = Order(self.ORDER.kept[:1])
        found = hard_checked(order, pool_of(), options, FakeVerifier(), lambda _: parts)
        assert [one.position for one in found.kept] == kept

    def test_what_was_dropped_before_stays_and_all_goes_by_score_and_id(self):
        order = Order([Verdict(0, 0.7, ""), Verdict(2, 0.6, "")], [Verdict(1, 0.65, "Before.")])
        kept, dropped, _ = self.checked(order=order, exclude=["bar", "bus"])
        assert (kept, dropped) == ([], [0, 1, 2])

    @pytest.mark.parametrize(("said", "passes"), [(0.5, False), (0.49, True)])
    def test_half_a_chance_of_breaking_it_is_enough(self, said: float, passes: bool):
        class Sure:
            def read(self, query: str, passages: Sequence[str]) -> list[Reading]:
                return [Reading(0.0, said, 1 - said, said) for _ in passages]

        options = SearchOptions(mode="hard", exclude=["bar"])
        found = hard_checked(self.ORDER, pool_of(), options, Sure(), whole)
        assert bool(found.kept) == passes


class TestCheckQuery:
    def test_a_policy_that_takes_no_readings_cannot_be_asked_for_any(self):
        with pytest.raises(InvalidValue, match="policy seq takes no account of a verifier's word"):
            check_query("hotel", SearchOptions(policy="seq", verify=5), "the query")

    @pytest.mark.parametrize("verify", [None, 0])
    def test_any_policy_goes_without_a_named_depth(self, verify: int | None):
        check_query("hotel", SearchOptions(policy="seq", verify=verify), "the query")


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

    def test_a_passage_that_was_read_has_the_risk_that_was_read(self):
        pool = replace(pool_of(breach=[1, 1, 1]), readings=[None, violating(), satisfying()])
        assert risks(pool, CALIBRATION) == pytest.approx([0.75, 0.95, 0.05])

    def test_a_doubtful_constraint_lowers_that_risk_too(self):
        pool = pool_of(constraint=Constraint(STATED / 5))
        pool = replace(pool, readings=[None, violating(), None])
        assert risks(pool, CALIBRATION) == pytest.approx([0.05, 0.19, 0.05])

    def test_without_calibration_a_reading_gives_no_risk(self):
        assert risks(replace(pool_of(), readings=[violating()] * 3), None) is None
