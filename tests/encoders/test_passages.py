import random
import re
from itertools import pairwise

import pytest

from coder_ir.encoders.passages import split_at_sentences
from coder_ir.types import Span


def words(text: str) -> list[tuple[int, int]]:
    """Whitespace tokens."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def letters(text: str) -> list[tuple[int, int]]:
    """A token each character, as a model without whole words would have."""
    return [(i, i + 1) for i in range(len(text)) if not text[i].isspace()]


def parts(text: str, limit: int) -> list[str]:
    return [text[s.start : s.end] for s in split_at_sentences(text, words(text), limit)]


def sentence(n_words: int, name: str) -> str:
    return " ".join([name] * n_words) + "."


class Watched(list[tuple[int, int]]):
    """Tokens that refuse to be read forever, so that a loop without end fails."""

    reads = 0

    def __getitem__(self, index):
        self.reads += 1
        assert self.reads < 10_000, "the split does not end"
        return super().__getitem__(index)


@pytest.mark.parametrize("text", ["One two. Three four five.", "   ", ""], ids=repr)
def test_a_text_within_the_limit_is_one_span(text: str):
    assert split_at_sentences(text, words(text), 5) == [Span(0, len(text))]


def test_a_text_one_token_past_the_limit_is_split():
    assert len(parts("One two. Three four five.", 4)) == 2


def test_a_passage_takes_as_many_sentences_as_fit():
    text = "A b c. D e f. G h i. J k l."
    assert parts(text, 6) == ["A b c. D e f. ", "G h i. J k l."]


def test_a_sentence_that_does_not_fit_whole_goes_to_the_next_passage():
    text = "A b c d. E f g h. I j k l."
    assert parts(text, 7) == ["A b c d. ", "E f g h. ", "I j k l."]


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("A b c! D e f.", "D e f."),
        ("A b c? D e f.", "D e f."),
        ("A b c… D e f.", "D e f."),
        ('"A b c." D e f.', "D e f."),
        ("(A b c.) D e f.", "D e f."),
        ("A b c\n\nD e f", "D e f"),
        ("A b c\n- D e", "- D e"),
        ("A b c\n# D e", "# D e"),
        ("A b c\n2 D e", "2 D e"),
        ("彼は来た。 D e f g", "D e f g"),
    ],
    ids=["!", "?", "ellipsis", "quote", "bracket", "paragraph", "list", "heading", "number", "CJK"],
)
def test_a_passage_starts_where_a_sentence_or_line_item_starts(text: str, second: str):
    assert parts(text, 4)[1] == second


def test_chinese_sentences_end_at_their_mark_without_a_space():
    text = "他来了又走了。她没有来这里。"
    spans = split_at_sentences(text, letters(text), 10)
    assert [text[s.start : s.end] for s in spans] == ["他来了又走了。", "她没有来这里。"]


@pytest.mark.parametrize("text", ["A 3.5 b c d e", "A v1.2.b b c d e"], ids=["number", "version"])
def test_a_full_stop_inside_a_word_ends_no_sentence(text: str):
    assert parts(text, 4) == [text[: text.index("d")], "d e"]


class TestOverlap:
    def test_the_last_whole_sentences_begin_the_next_passage_too(self):
        long = sentence(9, "long")
        text = " ".join([long, long, "Tail.", long, long])
        assert parts(text, 20) == [f"{long} {long} Tail. ", f"Tail. {long} {long}"]

    def test_it_is_at_most_a_tenth_of_the_limit(self):
        long = sentence(8, "long")
        text = " ".join([long, long, sentence(3, "tail"), long, long])
        assert parts(text, 20)[1] == f"{long} {long}"

    def test_several_sentences_overlap_where_they_fit_in_a_tenth(self):
        long = sentence(9, "long")
        text = " ".join([long, long, "One.", "Two.", long, long])
        assert parts(text, 20)[1].startswith("One. Two. long")

    def test_it_never_crowds_out_the_sentence_that_follows(self):
        full = sentence(20, "full")
        text = " ".join([sentence(18, "long"), "Tail.", full, full])
        assert parts(text, 20) == [f"{sentence(18, 'long')} Tail. ", f"{full} ", full]


class TestMonsterSentence:
    def test_a_sentence_past_the_limit_is_cut_at_the_limit(self):
        text = " ".join(f"w{i}" for i in range(25))
        assert [len(part.split()) for part in parts(text, 10)] == [10, 10, 5]

    def test_it_is_cut_between_words_and_not_between_the_tokens_of_one(self):
        text = " ".join(["abcdefg"] * 10)
        cut = split_at_sentences(text, letters(text), 20)
        assert all(text[s.start : s.end].split() == ["abcdefg"] * 2 for s in cut)

    def test_the_sentence_after_it_is_whole(self):
        text = f"{sentence(25, 'long')} Short one here."
        assert parts(text, 10)[-1].endswith("Short one here.")

    def test_a_text_without_any_whitespace_is_cut_all_the_same(self):
        text = "x" * 55
        spans = split_at_sentences(text, letters(text), 10)
        assert "".join(text[s.start : s.end] for s in spans) == text
        assert all(0 < s.end - s.start <= 10 for s in spans)

    def test_a_limit_of_one_token_ends(self):
        text = "xxx"
        spans = split_at_sentences(text, Watched(letters(text)), 1)
        assert spans == [Span(0, 1), Span(1, 2), Span(2, 3)]


def random_text(rng: random.Random) -> str:
    pieces = ["a", "bb", "ccc", "end.", "what?", "(so.)", "no!", "3.5", "- item", "\n\n", "…", "é"]
    separators = [" ", "  ", "\n", " ", "\t"]
    count = rng.randint(0, 120)
    return "".join(rng.choice(pieces) + rng.choice(separators) for _ in range(count))


RANDOM = random.Random(17)
CASES = [(random_text(RANDOM), RANDOM.randint(2, 30)) for _ in range(400)]


@pytest.mark.parametrize("tokenise", [words, letters], ids=["words", "letters"])
class TestOfManyRandomTexts:
    def test_spans_cover_every_character(self, tokenise):
        for text, limit in CASES:
            spans = split_at_sentences(text, tokenise(text), limit)
            assert spans[0].start == 0
            assert spans[-1].end == len(text)
            assert all(later.start <= earlier.end for earlier, later in pairwise(spans))

    def test_no_span_is_past_the_limit(self, tokenise):
        for text, limit in CASES:
            tokens = tokenise(text)
            for span in split_at_sentences(text, tokens, limit):
                assert sum(span.start <= start < span.end for start, _ in tokens) <= limit

    def test_no_token_is_cut_in_two(self, tokenise):
        for text, limit in CASES:
            tokens = tokenise(text)
            for span in split_at_sentences(text, tokens, limit):
                assert not any(a < span.start < b or a < span.end < b for a, b in tokens)

    def test_every_span_moves_on(self, tokenise):
        for text, limit in CASES:
            for one, two in pairwise(split_at_sentences(text, tokenise(text), limit)):
                assert one.start < two.start
                assert one.end < two.end

    def test_overlap_is_at_most_a_tenth_of_the_limit(self, tokenise):
        for text, limit in CASES:
            tokens = tokenise(text)
            for one, two in pairwise(split_at_sentences(text, tokens, limit)):
                shared = sum(two.start <= start < one.end for start, _ in tokens)
                assert shared <= limit / 10
