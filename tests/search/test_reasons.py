"""Reasons for people, and the sentence that decided."""

import pytest

from coder_ir.search.reasons import decisive_sentence, reason_of
from coder_ir.types import Constraint, Reading, Span
from tests.fake_verifier import satisfying, silent, violating

NO_NUTS = Constraint(1.0, ("nuts",))
CONTENT = "Old Bar. There is\n a  bar below. The bus stops here."


def test_the_decisive_sentence_is_a_part_of_the_passage_on_one_line():
    passage = Span(9, len(CONTENT))
    assert decisive_sentence(violating(Span(0, 23)), CONTENT, passage) == "There is a bar below."


@pytest.mark.parametrize("reading", [None, satisfying()], ids=["not read", "no sentence"])
def test_without_a_span_there_is_no_decisive_sentence(reading: Reading | None):
    assert decisive_sentence(reading, CONTENT, Span(0, len(CONTENT))) == ""


@pytest.mark.parametrize("reading", [None, violating()], ids=["not read", "read"])
@pytest.mark.parametrize(
    "constraint", [None, Constraint(0.0), Constraint(0.49, ("nuts",))], ids=["-", "0", "0.49"]
)
def test_a_query_that_states_nothing_rules_nothing_out(
    constraint: Constraint | None, reading: Reading | None
):
    assert reason_of(reading, constraint, "") == "On the topic; the query rules nothing out."


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (None, "On the topic; not read for “no nuts”."),
        (silent(), "Says nothing about “nuts”."),
        (satisfying(), "Fits “no nuts”: “Free of nuts.”"),
        (violating(), "Goes against “no nuts”: “Free of nuts.”"),
        (Reading(0.45, 0.1, 0.45, 0.1), "Says nothing about “nuts”."),
        (Reading(0.45, 0.45, 0.1, 0.1), "Goes against “no nuts”: “Free of nuts.”"),
    ],
    ids=["not read", "silent", "satisfies", "violates", "as silent as it fits", "as much as not"],
)
def test_what_was_read_is_said_with_the_sentence_that_decided(reading: Reading | None, reason: str):
    assert reason_of(reading, NO_NUTS, "Free of nuts.") == reason


@pytest.mark.parametrize(
    ("constraint", "point"),
    [
        (Constraint(1.0, ("nuts", "milk")), "“no nuts, no milk”"),
        (Constraint(1.0, ("nuts",), ("soy",)), "“no nuts”"),
        (Constraint(1.0, (), ("soy", "oats")), "“with soy, with oats”"),
        (Constraint(1.0), "what the query asks"),
    ],
    ids=["two excluded", "excluded and required", "required", "named nothing"],
)
def test_the_constraint_is_named_by_its_phrases(constraint: Constraint, point: str):
    assert reason_of(satisfying(), constraint, "") == f"Fits {point}."


def test_a_long_quotation_is_cut():
    said = reason_of(satisfying(), NO_NUTS, "word " * 40)
    quoted = said.removeprefix("Fits “no nuts”: “").removesuffix("”")
    assert quoted.endswith("word…") and len(quoted) <= 160
    assert reason_of(satisfying(), NO_NUTS, "x" * 160) == f"Fits “no nuts”: “{'x' * 160}”"
