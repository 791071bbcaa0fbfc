import pytest

from coder_ir.baselines.decompose import Intents, ParserDecomposer
from coder_ir.baselines.formulas import query_formula, text_formula


@pytest.mark.parametrize(
    ("query", "positive", "negative"),
    [
        ("a quiet hotel, nothing near nightlife", "a quiet hotel", ("nightlife",)),
        ("Aaron's profile, but don't mention Moses.", "Aaron's profile", ("Moses",)),
        ("cake without nuts or eggs", "cake", ("nuts", "eggs")),
    ],
    ids=["nothing near", "do not mention", "two things"],
)
def test_an_exclusion_is_split_into_what_is_wanted_and_what_is_not(query, positive, negative):
    assert ParserDecomposer().intents(query) == Intents((positive,), negative)


@pytest.mark.parametrize(
    "query", ["Which king was never crowned?", "Which king was crowned?"], ids=["negated", "plain"]
)
def test_a_question_rules_nothing_out(query):
    assert ParserDecomposer().intents(query) == Intents((query,), ())


def test_the_parser_imagines_one_passage_without_what_is_ruled_out():
    assert ParserDecomposer().passages("cake without nuts", 4) == ["cake"]


def test_what_a_query_rules_out_is_negated_in_its_formula():
    assert (
        ParserDecomposer().formula("a quiet hotel, nothing near nightlife")
        == "∃x (Quiet(x) ∧ Hotel(x) ∧ ¬Nightlife(x))"
    )


@pytest.mark.parametrize("query", ["Which king was never crowned?", "Which king wasn't crowned?"])
def test_a_denial_turns_what_follows_and_not_its_subject(query):
    assert ParserDecomposer().formula(query) == "∃x (Which(x) ∧ King(x) ∧ ¬Crowned(x))"


def test_a_phrase_is_one_predicate():
    assert query_formula("plays", ["Tom Robinson"]) == "∃x (Plays(x) ∧ ¬Tom_robinson(x))"


def test_a_document_is_a_conjunction_of_its_clauses_and_denied_words_are_negated():
    assert (
        text_formula("Back rooms are silent. There is no parking, but breakfast comes.")
        == "∃x (Back(x) ∧ Rooms(x) ∧ Silent(x)) ∧ ∃x (There(x) ∧ ¬Parking(x)) ∧ "
        "∃x (Breakfast(x) ∧ Comes(x))"
    )


def test_a_long_document_is_cut_to_forty_predicates():
    assert text_formula("word " * 500).count("(x)") == 40


def test_a_text_of_empty_words_still_has_a_formula():
    assert text_formula("It is the one") == "∃x (It(x) ∧ Is(x) ∧ The(x) ∧ One(x))"
