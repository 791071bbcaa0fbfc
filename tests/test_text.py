"""Whether a text affirms a phrase, clause by clause; every case worked out by hand."""

import re

import pytest

from coder_ir.text import mention, split_sentences


@pytest.mark.parametrize(
    ("phrase", "text", "share"),
    [
        ("pool", "A pool and a bar.", 1),
        ("outdoor pool", "A pool and a bar.", 1 / 2),
        ("outdoor pool", "An outdoor bar. The pool is inside.", 1 / 2),
        ("a heated outdoor pool", "The pool is heated.", 2 / 3),
        ("pool", "A bar.", 0),
        ("pool", "", 0),
        ("POOL", "a pool", 1),
    ],
    ids=["whole", "half", "half in each clause", "two of three", "none", "no text", "capitals"],
)
def test_a_mention_is_the_share_of_content_words_in_one_clause(
    phrase: str, text: str, share: float
):
    assert mention(phrase, text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("cities", "One city."),
        ("walking", "He walks."),
        ("dog", "The dog's bed."),
        ("taxed", "tax"),
    ],
)
def test_forms_of_a_word_are_one(phrase: str, text: str):
    assert mention(phrase, text) == 1


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("parking", "There is no parking."),
        ("parking", "We never charge a fee for parking."),
        ("loud music", "No loud music at night."),
        ("parking", "Neither a fridge nor parking."),
        ("parking", "Parking is not allowed."),
        ("smoking", "Smoking isn’t allowed."),
        ("dogs", "Dogs are prohibited."),
        ("nuts", "Free of nuts."),
        ("nuts", "It is free from nuts."),
        ("nuts", "A nut-free bar."),
        ("sugar", "Sugar free sweets."),
    ],
)
def test_a_denied_word_is_not_mentioned(phrase: str, text: str):
    assert mention(phrase, text) == 0


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("parking", "Free parking."),
        ("free parking", "Free parking behind the house."),
        ("parking", "Parking free of charge."),
        ("parking", "Parking is free."),
        ("parking", "We never charged anybody one cent for parking."),
        ("dogs", "Dogs are, as of this very month, banned."),
        ("dogs", "Dogs are welcome; no cats."),
        ("nuts", "No sugar, but plenty of nuts."),
        ("pool", "No bar, though the pool is open."),
        ("pool", "No bar while the pool is open."),
        ("pool", "There is no pool. The pool opens in May."),
    ],
    ids=[
        "free before it",
        "a phrase with free in it",
        "free of charge",
        "is free",
        "denial too far before",
        "denial too far after",
        "denial in the next clause",
        "clause after but",
        "clause after though",
        "clause after while",
        "affirmed elsewhere",
    ],
)
def test_a_denial_of_something_else_does_not_count(phrase: str, text: str):
    assert mention(phrase, text) == 1


@pytest.mark.parametrize(
    ("phrase", "text", "share"),
    [
        ("smoking", "All rooms are non-smoking.", 0),
        ("parking", "No pets, free parking, pool.", 1),
    ],
    ids=["non-", "next item of a list"],
)
def test_a_denial_passes_a_hyphen_and_no_item_of_a_list(phrase: str, text: str, share: float):
    assert mention(phrase, text) == share


@pytest.mark.parametrize(
    ("phrase", "text", "share"),
    [("the", "The cat.", 1), ("of the", "A cat.", 0), ("", "A cat.", 0), ("?!", "A cat.", 0)],
)
def test_a_phrase_of_empty_words_is_looked_for_as_it_is(phrase: str, text: str, share: float):
    assert mention(phrase, text) == share


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("a heading\n\nA line\n", ["a heading", "A line"]),
        ("It is 3.5 km away.", ["It is 3.5 km away."]),
        ("Is J. B. Priestley read? No.", ["Is J. B. Priestley read?", "No."]),
        ("Ask Dr. Watson in St. Ives. Now.", ["Ask Dr. Watson in St. Ives.", "Now."]),
        ("Is Op. 28 hard? It is.", ["Is Op. 28 hard?", "It is."]),
        ("In the US. Why", ["In the US.", "Why"]),
        ("  one  ", ["one"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_at_marks_and_lines(text: str, sentences: list[str]):
    assert split_sentences(text) == sentences
    assert re.sub(r"\s", "", "".join(sentences)) == re.sub(r"\s", "", text)
