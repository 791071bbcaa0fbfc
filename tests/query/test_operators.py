"""Operators that people type: what each rules out, and what only looks like one."""

from itertools import pairwise
from time import perf_counter

import pytest

from coder_ir.query import OperatorParser
from coder_ir.query.operators import operator_marks
from coder_ir.types import Constraint


def ruled_out(query: str) -> list[str]:
    return [mark.text for mark in operator_marks(query) if mark.role == "excluded"]


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("-pool hotel", ["pool"]),
        ("hotel -pool -casino", ["pool", "casino"]),
        ('hotel -"swimming pool" spa', ["swimming pool"]),
        ("hotel -“swimming pool”", ["swimming pool"]),
        ("laptop -e-ink", ["e-ink"]),
        ("jaguar NOT car", ["car"]),
        ("jaguar NOT the car", ["car"]),
        ("jaguar AND NOT car", ["car"]),
        ('apple AND NOT "apple inc"', ["apple inc"]),
        ("jaguar NOT (car)", ["car"]),
        ('jaguar NOT (car OR "jaguar xj" OR club) speed', ["car", "jaguar xj", "club"]),
        ("laptop AND NOT (chromebook, tablet)", ["chromebook", "tablet"]),
        ("pasta w/o cheese", ["cheese"]),
        ("pasta W/O any cheese", ["cheese"]),
        ("NOT car", ["car"]),
        ("-Köln Dom", ["Köln"]),
    ],
)
def test_an_operator_rules_out_the_word_or_phrase_behind_it(query: str, excluded: list[str]):
    assert ruled_out(query) == excluded


@pytest.mark.parametrize(
    "query",
    [
        "",
        "-",
        "- pool",
        "well-known hotels",
        "temperature of -5 degrees",
        "a correlation of -0.39 with age",
        "hotel " * 50 + "-pool",
        "Berlin - Hamburg",
        "a -or- an",
        "-indexed- content",
        "why does it NOT start",
        "it DOES NOT WORK AT ALL",
        "whether OR NOT to go",
        "not a car",
        "jaguar not car",
        '-"',
        "--help",
        "grep -v returns nothing",
    ],
)
def test_what_looks_like_an_operator_rules_out_nothing(query: str):
    assert operator_marks(query) == []


@pytest.mark.parametrize("query", ["-pool hotel", 'a -"b c" NOT d w/o e AND NOT f'])
def test_marks_are_in_order_and_say_where_they_stand(query: str):
    marks = operator_marks(query)
    assert [mark.span.start for mark in marks] == sorted(mark.span.start for mark in marks)
    for mark in marks:
        assert query[mark.span.start : mark.span.end] == mark.text


@pytest.mark.parametrize("query", ["hotel -pool.", "jaguar NOT car.", 'a -"b." c', "a w/o b..."])
def test_a_mark_in_front_of_a_full_stop_says_where_it_stands(query: str):
    for mark in operator_marks(query):
        assert query[mark.span.start : mark.span.end] == mark.text


@pytest.mark.parametrize("query", ["pasta w/o NOT cheese", "jaguar NOT w/o cars"])
def test_marks_do_not_overlap(query: str):
    spans = [mark.span for mark in operator_marks(query)]
    assert all(before.end <= after.start for before, after in pairwise(spans))


@pytest.mark.parametrize("characters", [2_000, 100_000])
@pytest.mark.parametrize("part", ["-pool ", "a NOT b ", "w/o x ", "-“a ", "AND NOT ", "- ", "-a-"])
def test_a_long_query_is_read_in_little_time(part: str, characters: int):
    query = (part * characters)[:characters]
    begun = perf_counter()
    operator_marks(query)
    assert perf_counter() - begun < 1


@pytest.mark.parametrize(("words", "excluded"), [(40, ["pool"]), (50, [])])
def test_operators_in_a_long_text_are_prose(words: int, excluded: list[str]):
    assert ruled_out("x " * words + "-pool") == excluded


def test_a_long_list_of_operators_is_read():
    assert ruled_out("jobs" + " -night" * 100) == ["night"] * 100


class TestOperatorParser:
    def test_an_operator_is_a_certain_constraint(self):
        (found,) = OperatorParser().parse(["hotel -pool"])
        assert (found.probability, found.excluded, found.topic) == (1.0, ("pool",), "hotel")

    def test_a_query_without_operators_states_nothing(self):
        assert OperatorParser().parse(["hotel without pool"]) == [Constraint(0.0)]

    def test_a_query_of_operators_alone_leaves_no_topic(self):
        (found,) = OperatorParser().parse(["-pool -casino"])
        assert (found.excluded, found.topic) == (("pool", "casino"), "")
