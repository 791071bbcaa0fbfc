"""Source texts as whole sentences, and the runs of them that stand alone."""

import pytest

from coder_ir.datasets.diagnostics.passages import (
    fits,
    is_leaning,
    is_whole,
    joined,
    read_passages,
    whole_sentences,
    windows,
)
from tests.datasets.diagnostics.texts import FERN, KELP, corpus, passage


@pytest.mark.parametrize(
    "text",
    [
        "RESULTS: Kelp canopies were linked to calmer water in the harbour.",
        "METHODS AND RESULTS Kelp canopies were linked to calmer water in the harbour.",
        "Conclusions Kelp canopies were linked to calmer water in the harbour.",
        "CONCLUSION(S): kelp canopies were linked to calmer water in the harbour.",
        "Kelp canopies were linked to calmer water in the harbour (p < 0.05, n = 12).",
        "Kelp canopies were linked to calmer water in the harbour [3, 4].",
    ],
)
def test_headings_and_statistics_are_taken_out(text: str):
    assert list(whole_sentences(text)) == [
        "Kelp canopies were linked to calmer water in the harbour."
    ]


def test_a_word_that_only_looks_like_a_heading_stays():
    text = "Results of the survey were sent to every harbour on the coast."
    assert list(whole_sentences(text)) == [text]


def test_an_abbreviation_does_not_end_a_sentence():
    text = "Urchins (e.g. S. purpuratus) were counted by divers in marked squares each month."
    assert list(whole_sentences(text)) == [text]


@pytest.mark.parametrize(
    "sentence",
    [
        "the kelp was cut back in the spring of that year.",
        "The kelp was cut back in the spring of that year",
        "The kelp (and the wrack was cut back in the spring.",
        'The "kelp was cut back in the spring of that year.',
        "To measure the kelp in the spring of that year.",
        "A large survey of the kelp along the western coast.",
        "Kelp was cut.",
        "The kelp was 3.1, 4.5 and 6.2 metres high in the three years.",
        "Copyright © was held by the society for kelp and wrack.",
    ],
    ids=[
        *("small letter", "no stop", "bracket", "quotation", "infinitive", "no verb", "short"),
        *("figures", "imprint"),
    ],
)
def test_what_is_no_whole_sentence_is_left_out(sentence: str):
    assert not is_whole(sentence)
    assert list(whole_sentences(sentence)) == []


@pytest.mark.parametrize(
    ("sentence", "leans"),
    [
        ("These plots were fenced.", True),
        ("Thus the plots were fenced.", True),
        ("The latter plots were fenced.", True),
        ("This study was done on the moor.", False),
        ("Theodolites were used.", False),
    ],
)
def test_a_sentence_that_points_back_is_told(sentence: str, leans: bool):
    assert is_leaning(sentence) is leans


def test_a_text_does_not_open_with_a_connective():
    assert joined(["However, ferns grew.", "Moreover, they spread."]) == (
        "Ferns grew. Moreover, they spread."
    )


def test_a_run_of_sentences_has_two_to_four_and_forty_to_110_words():
    short, long = "a " * 19 + "a.", "a " * 54 + "a."
    assert fits([short, short])
    assert fits([long, long])
    assert not fits([long])
    assert not fits([short, "a."])
    assert not fits([long, long, "a."])
    assert not fits([short] * 5)


def test_windows_never_begin_with_a_sentence_that_points_back():
    sentences = [
        FERN[0],
        "These ferns were cut by hand each year before the sheep came.",
        *FERN[1:],
    ]
    assert {start for start, _ in windows(sentences)} == {0, 2, 3}


def test_only_long_passages_are_read_in_the_corpus_order(tmp_path):
    short = passage(KELP[:2], "short")
    folder = corpus(tmp_path, passage(KELP, "k"), short, passage(FERN, "f"))
    assert [found.doc_id for found in read_passages(folder)] == ["k", "f"]
    assert read_passages(folder)[1].sentences == FERN
