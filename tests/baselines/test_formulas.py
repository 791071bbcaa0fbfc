"""Which words of a text a denial reaches, clause by clause; every case worked out by hand."""

import pytest

from coder_ir.baselines.formulas import marked_words


def denied(text: str) -> set[str]:
    return {word for clause in marked_words(text) for word, turned in clause if turned}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("There is no parking.", {"parking"}),
        ("The king was never crowned.", {"crowned"}),
        ("Smoking isn’t allowed.", {"allowed"}),
        ("Neither a fridge nor parking.", {"a", "fridge", "parking"}),
        ("No nuts, seeds or grains.", {"nuts", "seeds", "grains"}),
        ("Free of nuts.", {"nuts"}),
        ("It is free from nuts.", {"nuts"}),
        ("We never charge a fee for parking.", {"charge", "a", "fee", "for", "parking"}),
    ],
)
def test_a_denial_reaches_the_words_after_it(text: str, words: set[str]):
    assert denied(text) == words


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Free parking behind the house.", "parking"),
        ("We never charged anybody one cent for parking.", "parking"),
        ("No sugar, but plenty of nuts.", "nuts"),
        ("No bar, though the pool is open.", "pool"),
        ("No bar while the pool is open.", "pool"),
        ("There is no bar. The pool opens in May.", "pool"),
        ("No pets, free parking, pool.", "parking"),
    ],
    ids=[
        "free alone",
        "more than five words on",
        "after but",
        "after though",
        "after while",
        "next sentence",
        "next item of a list",
    ],
)
def test_a_denial_of_something_else_does_not_count(text: str, word: str):
    assert word not in denied(text)


def test_words_stand_in_their_clauses_without_what_denies_them():
    assert marked_words("No bar here, but a pool. Not now!") == [
        [("bar", True), ("here", True)],
        [("a", False), ("pool", False)],
        [("now", True)],
    ]


@pytest.mark.parametrize("text", ["", "?!", "No. Never!"], ids=["empty", "marks", "denials"])
def test_a_clause_without_other_words_is_left_out(text: str):
    assert marked_words(text) == []
