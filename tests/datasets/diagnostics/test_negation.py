"""The negation rule: claims turned by hand-checked grammar, both ways."""

import pytest

from coder_ir.datasets.diagnostics.negation import negation_candidates, turned
from tests.datasets.diagnostics.texts import FERN, KELP, passage

WAYS = [
    ("Kelp was linked to calm water", "Kelp was not linked to calm water"),
    ("Kelp was strongly linked to calm water", "Kelp was not strongly linked to calm water"),
    ("Kelp can reduce wave height", "Kelp cannot reduce wave height"),
    ("Kelp may reduce wave height", "Kelp may not reduce wave height"),
    ("Kelp has been linked to calm water", "Kelp has not been linked to calm water"),
    ("Kelp reduced wave height", "Kelp did not reduce wave height"),
    ("Kelp strongly reduced wave height", "Kelp did not strongly reduce wave height"),
    ("Kelp reduces wave height", "Kelp does not reduce wave height"),
    ("Kelp led to calm water", "Kelp did not lead to calm water"),
    ("Storms occurred near the kelp", "Storms did not occur near the kelp"),
    ("Kelp modified the sea bed", "Kelp did not modify the sea bed"),
]


@pytest.mark.parametrize(("said", "denied"), WAYS, ids=[said for said, _ in WAYS])
def test_a_claim_is_denied_with_the_right_helping_verb(said: str, denied: str):
    turn = turned(said)
    assert turn is not None
    assert (turn.text, turn.denies) == (denied, True)


BACK = [
    ("Kelp did not reduce wave height", "Kelp reduced wave height"),
    ("Kelp does not significantly affect waves", "Kelp significantly affects waves"),
    ("Storms do not affect kelp", "Storms affect kelp"),
    ("Kelp was not linked to calm water", "Kelp was linked to calm water"),
    ("Kelp failed to reduce wave height", "Kelp reduced wave height"),
    ("Kelp had no effect on waves", "Kelp had an effect on waves"),
    ("No significant difference was seen in waves", "A significant difference was seen in waves"),
    ("There was no evidence of kelp", "There was evidence of kelp"),
]


@pytest.mark.parametrize(("denied", "said"), BACK, ids=[denied for denied, _ in BACK])
def test_a_denied_claim_is_asserted(denied: str, said: str):
    turn = turned(denied)
    assert turn is not None
    assert (turn.text, turn.denies) == (said, False)


@pytest.mark.parametrize(
    "text",
    [
        "All kelp was linked to calm water",
        "Kelp was rarely linked to calm water",
        "Kelp was not linked to a lack of water",
        "Kelp was photographed by divers",
        "Kelp forests shaped by storms and reduced by urchins",
        "Kelp increases near the harbour mouth",
        "Kelp is also linked to calm water",
        "Kelp had a holdfast",
    ],
    ids=[
        *("quantifier", "hidden denial", "second denial", "no finding", "participle"),
        *("noun or verb", "also", "empty verb"),
    ],
)
def test_a_claim_that_is_not_plain_to_turn_is_left_alone(text: str):
    assert turned(text) is None


def test_side_a_asserts_whichever_way_the_source_says_it():
    denied = KELP[2].replace("were associated", "were not associated")
    for key, origin in ((KELP[2], "asserts"), (denied, "denies")):
        sentences = (*KELP[:2], key, *KELP[3:])
        (candidate,) = negation_candidates([passage(sentences)], 13)
        pair = candidate.pair
        assert pair.changed == f"associated: the source {origin} it"
        assert pair.query_b == pair.query_a.replace("were", "were not")
        assert pair.a1 == " ".join(KELP[:3])
        assert pair.b2 == " ".join((denied, *KELP[3:]))


def test_a_sentence_that_says_it_again_does_not_stand_beside_it():
    again = "Calmer water was associated by many sailors with the tall kelp of the harbour mouth."
    sentences = (*KELP[:3], again, KELP[4])
    assert list(negation_candidates([passage(sentences)], 13)) == []


def test_a_passage_without_a_finding_gives_nothing():
    assert list(negation_candidates([passage((*FERN[:2], *FERN[3:]))], 13)) == []
