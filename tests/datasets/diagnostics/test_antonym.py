"""The antonym rule on sentences of our own: what is swapped, and what is left alone."""

import pytest

from coder_ir.datasets.diagnostics.antonym import antonym_candidates, opposite_words
from coder_ir.datasets.diagnostics.candidate import Candidate
from tests.datasets.diagnostics.texts import FERN, passage

OPPOSITES = opposite_words()


def found_in(key: str, seed: int = 13) -> list[Candidate]:
    """Candidates that turn on a word of the key sentence, which stands between the fern texts."""
    sentences = (*FERN[:2], key, *FERN[3:])
    return list(antonym_candidates([passage(sentences)], seed))


def test_the_word_is_swapped_in_queries_and_documents_and_nothing_else_is():
    (candidate,) = found_in(FERN[2])
    pair = candidate.pair
    assert (pair.source, pair.changed) == ("p1", "increased -> decreased")
    assert pair.query_b == pair.query_a.replace("increased", "decreased") != pair.query_a
    assert pair.a1 == " ".join(FERN[:3])
    assert pair.a2 == " ".join(FERN[2:])
    assert pair.b1 == pair.a1.replace("increased", "decreased")
    assert pair.b2 == pair.a2.replace("increased", "decreased")


def test_neutral_documents_may_have_neither_word_in_any_form():
    (candidate,) = found_in(FERN[2])
    assert candidate.refused.search("It will decrease soon.")
    assert candidate.refused.search("Increasing rain fell.")
    assert not candidate.refused.search("It rained.")


@pytest.mark.parametrize(
    ("key", "turned"),
    [
        ("Bracken litter led to an increase of ammonia in moorland peat.", "to a decrease of"),
        ("Higher bracken cover was linked to ammonia in moorland peat.", "Lower bracken cover"),
        (
            "Bracken litter inhibits growth of peat moss in shaded hollows.",
            "litter promotes growth",
        ),
        (
            "Bracken litter was effective in wet years against peat moss.",
            "was ineffective in",
        ),
        ("Bracken acts on peat moss by a light-dependent route in hollows.", "light-independent"),
    ],
    ids=["article", "capital", "present tense", "predicate", "after a hyphen"],
)
def test_the_opposite_keeps_form_case_and_article(key: str, turned: str):
    assert any(turned in candidate.pair.b1 for candidate in found_in(key))


@pytest.mark.parametrize(
    "key",
    [
        "High-density planting of bracken was tried on moorland peat once.",
        "Bracken growth on peat is dependent on the light in shaded hollows.",
        "Higher bracken cover and higher rainfall were seen on moorland peat.",
        "Bracken litter did not lead to increased ammonia in moorland peat.",
        "Bracken cutters were trained to reduce ammonia in moorland peat.",
        "Peat moss was mapped throughout the Late Holocene in shaded hollows.",
        "Effective cutting of bracken was done on moorland peat by hand.",
    ],
    ids=["compound", "preposition", "twice", "denied", "purpose", "name", "attribute"],
)
def test_a_word_whose_swap_would_be_nonsense_is_left_alone(key: str):
    assert found_in(key) == []


def test_a_sentence_with_the_word_does_not_stand_beside_the_key_sentence():
    sentences = (*FERN[:3], FERN[3].replace("received", "had increased use of"), FERN[4])
    assert list(antonym_candidates([passage(sentences)], 13)) == []


@pytest.mark.parametrize(
    ("word", "opposite"),
    [
        ("increased", "decreased"),
        ("low", "high"),
        ("presence", "absence"),
        ("activates", "inhibits"),
        ("reducing", "increasing"),
        ("shorter", "longer"),
    ],
)
def test_a_form_of_a_word_has_the_same_form_of_its_opposite(word: str, opposite: str):
    assert OPPOSITES[word] == opposite


def test_no_word_is_its_own_opposite():
    assert all(word != opposite for word, opposite in OPPOSITES.items())
