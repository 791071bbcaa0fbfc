"""Clues that need no understanding."""

import pytest

from coder_ir.errors import InvalidValue
from coder_ir.training.surface import CLUES, clue_scores, negations
from coder_ir.types import Triplet


def triplet(query: str, satisfying: str, violating: str) -> Triplet:
    return Triplet(query, satisfying, violating, "g", "s", "l")


def test_negations_are_counted_as_words():
    assert negations("It isn't here, nor there. Nothing, noted.") == 3


def test_each_clue_is_right_wrong_or_undecided():
    rows = [
        triplet("no nuts at all", "Seeds, never walnuts here.", "Nuts all over."),
        triplet("a calm bay", "A calm bay.", "A bay without calm."),
    ]
    assert clue_scores(rows) == {
        "fewer negation words": 0.5,
        "negation in query and passage, or in neither": 1.0,
        "more words of the query": 0.25,
        "shorter passage": 0.5,
    }


def test_both_directions_of_a_pair_leave_a_clue_of_the_passage_at_one_half():
    rows = [triplet("loud", "Loud.", "Not loud."), triplet("calm", "Not loud.", "Loud.")]
    assert clue_scores(rows)["fewer negation words"] == 0.5
    assert clue_scores(rows)["shorter passage"] == 0.5


def test_no_triplets_are_refused():
    with pytest.raises(InvalidValue, match="at least one triplet"):
        clue_scores([])


def test_every_clue_has_a_score():
    assert clue_scores([triplet("a", "b", "c")]).keys() == CLUES.keys()
