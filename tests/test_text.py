"""Words and sentences of a text; every case worked out by hand."""

import re

import pytest

from coder_ir.text import EMPTY_WORDS, sentence_spans, split_sentences, stem_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A Quiet Room", ["a", "quiet", "room"]),
        ("nut-free, 3.5 km_away!", ["nut", "free", "3", "5", "km", "away"]),
        ("The dog's isn’t", ["the", "dog's", "isn't"]),
        ("Café Ölberg 東京", ["café", "ölberg", "東京"]),
        ("a room, a ROOM", ["a", "room", "a", "room"]),
        ("?! -- ''", []),
        ("", []),
    ],
    ids=[
        "lower case",
        "marks part",
        "apostrophes are one",
        "any script",
        "repeats",
        "marks",
        "none",
    ],
)
def test_words_are_in_order_and_in_lower_case(text: str, words: list[str]):
    assert words_of(text) == words


@pytest.mark.parametrize(
    "forms",
    [
        ("walk", "walks", "walked", "walking"),
        ("city", "cities"),
        ("cry", "crying"),
        ("box", "boxes"),
        ("quote", "quotes", "quoted", "quoting"),
        ("dog", "dogs", "dog's"),
    ],
    ids=lambda forms: forms[0],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]):
    assert len({stem_of(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["gas", "bed", "use", "sky", "king", ""])
def test_a_short_word_keeps_its_ending(word: str):
    assert stem_of(word) == word


def test_empty_words_are_words_in_lower_case():
    assert all(words_of(word) == [word] for word in EMPTY_WORDS)
    assert {"the", "of", "any"} <= EMPTY_WORDS
    assert not {"no", "not", "without"} & EMPTY_WORDS


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


@pytest.mark.parametrize("text", ["  One. Two!\n\nA line \n", "One", "", " \n"])
def test_a_sentence_is_where_its_span_says(text: str):
    spans = sentence_spans(text)
    assert [text[span.start : span.end] for span in spans] == split_sentences(text)
    ends = [position for span in spans for position in (span.start, span.end)]
    assert ends == sorted(ends)
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] for span in spans)
