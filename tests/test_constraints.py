"""Cue words and what they rule out, the form of a query, and what is made of both."""

from math import log

import numpy as np
import pytest

from coder_ir.calibration import Logistic
from coder_ir.constraints import (
    FAMILIES,
    detect,
    find_cues,
    read,
    required_words,
    shape,
)
from coder_ir.errors import InvalidFile
from coder_ir.types import Constraint

NOWHERE = np.zeros(2, dtype=np.float32)

CUES = [
    ("exception", "hotels with the exception of hostels", "with the exception of", "hostels"),
    ("exception", "restaurants except seafood places", "except", "seafood places"),
    ("exception", "drinks other than beer", "other than", "beer"),
    ("exception", "tales unrelated to war", "unrelated to", "war"),
    ("omission", "jazz without mentioning Miles Davis", "without mentioning", "Miles Davis"),
    ("omission", "a summary that does not mention Troy", "does not mention", "Troy"),
    ("omission", "a burger, hold the mayo", "hold the", "mayo"),
    ("preference", "tea instead of coffee", "instead of", "coffee"),
    ("preference", "snacks for people allergic to peanuts", "allergic to", "peanuts"),
    ("preference", "I can't stand noise", "can't stand", "noise"),
    ("lack", "soap free of perfume", "free of", "perfume"),
    ("lack", "shoes lacking laces", "lacking", "laces"),
    ("lack", "a car with no sunroof", "no", "sunroof"),
    ("negation", "films but not horror", "but not", "horror"),
    ("negation", "dogs that don’t shed", "don’t", "shed"),
    ("aside", "leave the politics out of it", "leave the politics out", "the politics"),
    ("aside", "setting tax to one side, how rich", "setting tax to one side", "tax"),
    ("excepted", "rock bands, the Beatles excluded", "the Beatles excluded", "the Beatles"),
    ("excepted", "Nuts aside, what is safe", "Nuts aside", "Nuts"),
    ("else", "What else did Turing invent", "What else", ""),
    ("free", "gluten-free bread", "gluten-free", "gluten"),
    ("free", "sugar free sweets", "sugar free", "sugar"),
    ("non", "non-smoking rooms", "non-smoking", "smoking"),
    ("non", "nonalcoholic beer", "nonalcoholic", "alcoholic"),
    ("less", "sugarless gum", "sugarless", "sugar"),
    ("un", "unsweetened tea", "unsweetened", "sweetened"),
]


@pytest.mark.parametrize(
    ("family", "query", "words", "excluded"), CUES, ids=[f"{c[0]}: {c[2]}" for c in CUES]
)
def test_a_cue_is_found_with_what_it_rules_out(family: str, query: str, words: str, excluded: str):
    (cue,) = find_cues(query)
    assert (cue.family, cue.words, cue.excluded) == (family, words, excluded)
    assert cue.start == query.index(words)


def test_every_family_has_a_case_here():
    assert {case[0] for case in CUES} == set(FAMILIES)


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("fruit other than apples, please", "apples"),
        ("hotels without parking in Rome", "parking"),
        ("hotels without parking that take dogs", "parking"),
        ("without parking - with a pool", "parking"),
        ("nothing about any information on Paris", "Paris"),
        ('books except for "The Hobbit" and so on', "The Hobbit"),
        ("books excluding “The Hobbit”", "The Hobbit"),
        ("everything without", ""),
    ],
    ids=[
        "to the comma",
        "to a preposition",
        "to a clause",
        "to a dash",
        "after what leads up to it",
        "in quotation marks",
        "in curly ones",
        "nothing left",
    ],
)
def test_the_excluded_part_ends_where_the_phrase_does(query: str, excluded: str):
    assert find_cues(query)[0].excluded == excluded


def test_cues_come_in_the_order_of_the_query():
    query = "dogs that never bark, sugar-free, with no fee, except poodles"
    cues = find_cues(query)
    assert [cue.words for cue in cues] == ["never", "sugar-free", "no", "except"]
    assert [cue.start for cue in cues] == [10, 22, 39, 47]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("tours that do not include Paris", "do not include"),
        ("films with no mention of war", "no mention of"),
        ("a shop that no longer sells fur", "no longer"),
        ("I do not want sugar", "do not want"),
        ("any fruit other than apples", "other than"),
    ],
)
def test_of_two_cues_on_one_word_the_longer_wins(query: str, words: str):
    assert [cue.words for cue in find_cues(query)] == [words]


@pytest.mark.parametrize(
    "query",
    [
        "work of Doctors Without Borders",
        "No Man's Sky review",
        "No Country for Old Men cast",
        "Everything But the Girl",
        "the film Rebel Without a Cause",
    ],
)
def test_a_cue_word_in_a_title_is_none(query: str):
    assert find_cues(query) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Excluding Paris, name three cities", "Excluding"),
        ("No Gluten, please", "No"),
        ("NO PARKING SIGN", "NO"),
        ("No sugar drinks", "No"),
    ],
    ids=["a name follows", "a comma follows", "all capitals", "a plain word follows"],
)
def test_a_cue_word_that_opens_a_request_is_one(query: str, words: str):
    assert [cue.words for cue in find_cues(query)] == [words]


@pytest.mark.parametrize(
    "query", ["why does bread not rise", "Why is there no sound", "how come bread does not rise"]
)
def test_asking_why_not_rules_nothing_out(query: str):
    assert find_cues(query) == []


def test_asking_why_leaves_a_plain_exclusion_standing():
    assert [cue.excluded for cue in find_cues("why sleep without earplugs")] == ["earplugs"]


@pytest.mark.parametrize(
    "query",
    [
        "404 page not found",
        "x is not defined",
        "TypeError: x is not a function",
        "dict is not callable",
        "bash: no such file or directory",
        "printer not working",
    ],
)
def test_an_error_message_has_no_cue(query: str):
    assert find_cues(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "non-profit jobs",
        "nonsense poems",
        "no-fault insurance",
        "not-for-profit hospitals",
        "wireless mouse",
        "the United Kingdom",
        "whether or not to buy",
        "No. 5 perfume",
        "needless to say",
        "no one there",
        "feel free to ask",
        "unless it rains",
        "not only cats",
    ],
)
def test_a_fixed_term_has_no_cue(query: str):
    assert find_cues(query) == []


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("bar near the station", []),
        ("save money on flights", []),
        ("'NoneType' object is not subscriptable", []),
        ("undefined is not a function", []),
        ("hotels with none of the noise", ["the noise"]),
        ("cars regardless of price", ["price"]),
        ("music without drums and films except comedies", ["drums and films", "comedies"]),
    ],
    ids=["bar", "save", "NoneType", "undefined", "none of", "regardless of", "two cues"],
)
def test_a_word_is_a_cue_only_where_it_rules_something_out(query: str, excluded: list[str]):
    assert [cue.excluded for cue in find_cues(query)] == excluded


@pytest.mark.parametrize("query", ["", "   ", "quiet hotels near the sea", "notes on knots"])
def test_a_query_without_a_cue_has_none(query: str):
    assert find_cues(query) == []


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("tabs instead of spaces", "tabs"),
        ("the slow train rather than the plane", "train"),
        ("Trains as opposed to planes", "Trains"),
        ("a hotel without parking", ""),
        ("instead of spaces", ""),
        ("", ""),
    ],
)
def test_the_word_before_instead_is_what_is_required(query: str, word: str):
    assert required_words(query) == word


@pytest.mark.parametrize("query", ["", "hotel", "hotels without parking", "?" * 50])
def test_a_shape_has_one_length_for_every_query(query: str):
    form = shape(query)
    assert form.shape == (len(FAMILIES) + 14,)
    assert form.dtype == np.float32
    assert set(form.tolist()) <= {0.0, 1.0}


def test_a_shape_opens_with_the_families_found():
    found = shape("sugar-free gum without mint")[: len(FAMILIES)]
    expected = [name in ("omission", "free") for name in FAMILIES]
    assert found.tolist() == expected


def test_a_statement_a_request_and_a_question_differ():
    said, asked, wanted = (
        shape(text)[len(FAMILIES) :].tolist()
        for text in (
            "The room has no lights.",
            "Is it a room with no lights?",
            "Find a room with no lights.",
        )
    )
    # cue, strong cue, asks, requests, states, then cue with states, the same if weak, with asks,
    # with requests; claims, cue with claims, the same if strong; at most 4 words, at least 12
    assert said == [1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    assert asked == [1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert wanted == [1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("query", "claims"),
    [
        ("towns without a railway are cheaper to live in", True),
        ("Sourdough rises without yeast because the starter has its own.", True),
        ("unlike tea, coffee can keep people awake", True),
        ("the treaty was signed by all but Spain", True),
        ("Bridges don't rust if they are painted", True),
        ("towns without a railway", False),
        ("towns that are not on the railway", False),
        ("towns where houses cannot be bought, other than Bath", False),
        ("what towns are not on the railway", False),
        ("towns not on the railway, are there any?", False),
        ("I can eat anything but nuts", False),
        ("Find towns without a railway that is still in use", False),
        ("things to do in Bath besides the baths", False),
        ("painting: is it hard without lessons", False),
        ("is", False),
        ("", False),
    ],
)
def test_a_claim_has_a_verb_of_its_own(query: str, claims: bool):
    assert bool(shape(query)[-5]) is claims


def test_a_shape_tells_short_and_long_queries():
    assert shape("one two three four")[-2:].tolist() == [1, 0]
    assert shape("word " * 12)[-2:].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("query", "probability"),
    [
        ("hotels without parking", 1.0),
        ("Which drug does not cause drowsiness?", 1.0),
        ("The drug was not effective in mice.", 0.2),
        ("hotels with parking", 0.0),
        ("The drug was effective in mice.", 0.0),
    ],
    ids=["request", "question", "statement", "no cue", "statement without a cue"],
)
def test_without_a_trained_part_a_cue_outside_a_statement_decides(query: str, probability: float):
    assert detect(query, NOWHERE, None).probability == probability


def test_without_a_trained_part_a_full_stop_makes_no_statement_of_a_request():
    assert detect("Tell me about Rome without the popes.", NOWHERE, None).probability == 1.0


def test_what_is_detected_holds_cues_excluded_and_required_words():
    assert detect("indent with tabs instead of spaces", NOWHERE, None) == Constraint(
        1.0, ("instead of",), ("spaces",), ("tabs",), topic="indent with tabs"
    )


def test_a_cue_that_rules_out_nothing_by_name_adds_no_phrase():
    found = detect("What else did Turing invent", NOWHERE, None)
    assert (found.cues, found.excluded) == (("What else",), ())


@pytest.mark.parametrize(
    ("query", "excluded", "topic"),
    [
        (
            "How did the Renaissance change travel (excluding advances in navigation)? And art?",
            ("navigation",),
            "How did the Renaissance change travel? And art?",
        ),
        (
            "the career of Marie Curie (without her years in Warsaw), in brief",
            ("her years in Warsaw",),
            "the career of Marie Curie, in brief",
        ),
        (
            "poems of the sea (excluding sonnets, odes and ballads) for children",
            ("sonnets", "odes", "ballads"),
            "poems of the sea for children",
        ),
        ('plays by Ibsen (except "Ghosts") and Chekhov', ("Ghosts",), "plays by Ibsen and Chekhov"),
        ("laptop (not Apple, under 900)", ("Apple",), "laptop (under 900)"),
    ],
)
def test_an_aside_in_brackets_is_ruled_out_as_a_whole(
    query: str, excluded: tuple[str, ...], topic: str
):
    found = read(query)
    assert (found.excluded, found.topic) == (excluded, topic)


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("effects of the Reformation, excluding its impact on art", "art"),
        ("Vancouver's housing crisis, leaving out the role of tourism", "tourism"),
        ("Farragut's career except for his part in the siege of Charleston", "the siege"),
        ("essay on Nietzsche without referencing Zarathustra", "Zarathustra"),
        ("steel towers without the use of concrete", "concrete"),
    ],
)
def test_words_that_only_say_in_what_way_a_thing_matters_are_left_out(query: str, excluded: str):
    assert find_cues(query)[0].excluded.startswith(excluded)


def test_things_joined_by_and_or_are_excluded_one_by_one():
    found = detect("drinks other than beer or wine", NOWHERE, None)
    assert found.excluded == ("beer", "wine")


@pytest.mark.parametrize(
    ("query", "topic"),
    [
        ("hotels in Rome without parking", "hotels in Rome"),
        ("gluten-free bread recipes", "bread recipes"),
        ("Which old cities other than Paris?", "Which old cities?"),
        ("red wine, not port, under ten euros, no cork", "red wine, under ten euros"),
        ("tea instead of coffee", "tea"),
        ("anything but beige", ""),
        ("quiet hotels in Rome", ""),
        ("What else did Turing invent", ""),
    ],
    ids=[
        "at the end",
        "at the start",
        "before a mark",
        "two",
        "one word",
        "nothing left",
        "no cue",
        "none",
    ],
)
def test_the_topic_is_the_query_less_what_it_rules_out(query: str, topic: str):
    assert detect(query, NOWHERE, None).topic == topic


def test_a_cue_within_what_another_excludes_leaves_the_rest_of_the_topic():
    query = "cakes without sugar-free icing with whipped cream"
    assert detect(query, NOWHERE, None).topic == "cakes with whipped cream"


def test_cues_one_after_another_are_all_cut_out_of_the_topic():
    found = detect("a hotel in Rome without parking, no pool, near the river", NOWHERE, None)
    assert (found.excluded, found.topic) == (("parking", "pool"), "a hotel in Rome, near the river")


def test_what_a_cue_excludes_ends_at_the_next_cue():
    assert [cue.excluded for cue in find_cues("wine without cork no sugar")] == ["cork", "sugar"]


def test_a_cue_in_capitals_is_a_cue_and_not_a_name():
    assert [cue.excluded for cue in find_cues("hotels WITHOUT Parking")] == ["Parking"]
    assert find_cues("Doctors Without Borders") == []


def test_past_a_thousand_characters_nothing_is_read():
    within, past = ("x" * length + " without parking" for length in (984, 1000))
    assert [cue.excluded for cue in find_cues(within)] == ["parking"]
    assert find_cues(past) == []


def test_a_trained_part_reads_the_shape_and_then_the_vector():
    # log 3 for any cue, -2 log 3 for the vector's second number
    weights = [0.0] * (len(FAMILIES) + 14 + 2)
    weights[len(FAMILIES)], weights[-1] = log(3), -2 * log(3)
    detector = Logistic(tuple(weights), 0.0)
    towards = np.array([0.0, 1.0], dtype=np.float32)
    for query, vector, expected in (
        ("hotels without parking", NOWHERE, 3 / 4),
        ("hotels without parking", towards, 1 / 4),
        ("hotels", NOWHERE, 1 / 2),
        ("hotels", towards, 1 / 10),
    ):
        assert detect(query, vector, detector).probability == pytest.approx(expected, abs=1e-6)


def test_a_trained_part_of_another_version_is_refused_with_what_to_do():
    with pytest.raises(InvalidFile, match=r"reads 3 numbers.* gives \d+.*train calibrate"):
        detect("hotels", NOWHERE, Logistic((0.0,) * 3, 0.0))


def test_a_trained_part_changes_the_probability_alone():
    certain = Logistic((0.0,) * (len(FAMILIES) + 14 + 2), log(3))
    found = detect("tabs instead of spaces", NOWHERE, certain)
    assert found.probability == pytest.approx(3 / 4)
    assert (found.cues, found.excluded) == (("instead of",), ("spaces",))
