"""Claims: which clause is one, how it is asked for, and what may stand around it."""

import pytest

from coder_ir.datasets.diagnostics.claims import Claim, claims, queries, surroundings
from tests.datasets.diagnostics.texts import FERN, passage


def key() -> Claim:
    """The claim of the third sentence: bracken litter increased ammonia release."""
    return next(claim for claim in claims(passage(FERN)) if claim.place == 2)


def texts(*sentences: str) -> list[str]:
    return [claim.text for claim in claims(passage(sentences))]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        (FERN[2], FERN[2][:-1]),
        (f"We found that {FERN[2][0].lower()}{FERN[2][1:]}", f"b{FERN[2][1:-1]}"),
        (
            "In wet years, bracken litter raised the acid load of peat.",
            "bracken litter raised the acid load of peat",
        ),
        (
            "Moreover, bracken litter raised the acid load of peat.",
            "bracken litter raised the acid load of peat",
        ),
        (
            "Bracken litter raised the acid load of peat by trapping rain.",
            "Bracken litter raised the acid load of peat",
        ),
    ],
    ids=["whole sentence", "after that", "after an opening phrase", "connective", "before by"],
)
def test_the_main_clause_is_the_claim(sentence: str, text: str):
    assert texts(sentence) == [text]


@pytest.mark.parametrize(
    "sentence",
    [
        "Bracken litter raised acid load by 12% in the peat of the moor.",
        "Bracken litter raised acid load but heather did not raise it at all.",
        "This litter raised the acid load of peat on the moor.",
        "Bracken litter raised the acid load of its peat on the moor.",
        "Bracken raised acid load.",
        "We tested whether bracken litter raised the acid load of peat.",
        "Bracken litter raised the acid load of peat, which killed the moss.",
    ],
    ids=["figure", "contrast", "points back", "pronoun", "short", "question", "goes on"],
)
def test_a_clause_that_cannot_be_turned_alone_is_none(sentence: str):
    assert texts(sentence) == []


def test_both_queries_have_one_frame_and_the_case_of_running_text():
    claim = key()
    asked = {queries(claim, claim.text.replace("increased", "reduced"), seed) for seed in range(30)}
    starts = {one.partition("racken litter")[0] for one, _ in asked}
    assert {"B", "Evidence that b", "Studies in which b"} <= starts
    assert all(one.replace("increased", "reduced") == two != one for one, two in asked)


def test_the_same_seed_gives_the_same_queries():
    claim = key()
    assert queries(claim, "x y", 7) == queries(claim, "x y", 7)


def test_one_document_ends_with_the_key_sentence_and_the_other_begins_with_it():
    claim = key()
    found = surroundings(claim, lambda _: True)
    assert found is not None
    first, second = found.documents(FERN[2])
    assert first == " ".join(FERN[:3])
    assert second == " ".join(FERN[2:5])


@pytest.mark.parametrize(
    "sentence",
    [
        "These gains were larger on the plots that had been burnt two years before the survey.",
        "Thus the moorland could be burnt each year before the rain without any further loss.",
        "Ammonia release from peat after rain was higher again on plots with more bracken litter.",
    ],
    ids=["points back", "conclusion", "says it again"],
)
def test_a_sentence_that_gives_the_claim_away_does_not_stand_beside_it(sentence: str):
    short = passage((*FERN[:3], sentence))
    claim = next(claim for claim in claims(short) if claim.place == 2)
    assert surroundings(claim, lambda _: True) is None


def test_a_sentence_that_the_rule_refuses_does_not_stand_beside_it():
    claim = key()
    assert surroundings(claim, lambda sentence: "moor" not in sentence) is None
