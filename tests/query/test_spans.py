"""From what a network says of tokens to marks on words, by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from coder_ir.query.spans import Tagged, marks_of, words
from coder_ir.types import Mark, Role, Span
from tests.query.stubs import NAMES, tag_logits


@dataclass
class Token:
    """The next piece of a text and what the network says of it."""

    text: str
    role: Role | None = None
    logits: Sequence[float] = ()  # of the tags; else those of the role
    names: Sequence[float] = field(default=(-1.0, -1.0, -1.0))


def marks(text: str, *tokens: Token) -> list[Mark]:
    offsets, at = [], 0
    for token in tokens:
        start = text.index(token.text, at)
        at = start + len(token.text)
        offsets.append((start, at))
    tags = np.array([token.logits or tag_logits(token.role) for token in tokens], dtype=np.float32)
    names = np.array([token.names for token in tokens], dtype=np.float32)
    return marks_of(text, Tagged(offsets, tags, names, NAMES), words(text, Span(0, len(text))))


def of_words(text: str, *roles: Role | None) -> list[Mark]:
    """The marks where each word is one token with one of the roles."""
    spans = words(text, Span(0, len(text)))
    pieces = [text[span.start : span.end] for span in spans]
    return marks(text, *(Token(piece, role) for piece, role in zip(pieces, roles, strict=True)))


def shares(none: float, cue: float, excluded: float) -> list[float]:
    """Logits that give a token these shares of no role, cue and excluded."""
    return [*np.log([none, cue, excluded]), -30.0, -30.0]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a quiet room", ["a", "quiet", "room"]),
            ("nut-free cake", ["nut", "-", "free", "cake"]),
            ("don't, mustn’t", ["don't", ",", "mustn’t"]),
            ("'quoted'", ["'", "quoted", "'"]),
            ("rock 'n' roll's", ["rock", "'", "n", "'", "roll's"]),
            ("snake_case", ["snake", "_", "case"]),
            ("180x200 3.5", ["180x200", "3", ".", "5"]),
            ("what?! (no)", ["what", "?", "!", "(", "no", ")"]),
            ("Köln, Łódź", ["Köln", ",", "Łódź"]),
            ("安静的房间", ["安静的房间"]),
            ("a 🙂 b", ["a", "🙂", "b"]),
            ("", []),
            (" \n\t ", []),
        ],
    )
    def test_a_text_is_cut_into_words_and_signs(self, text: str, expected: list[str]):
        found = words(text, Span(0, len(text)))
        assert [text[span.start : span.end] for span in found] == expected

    def test_a_part_of_a_text_keeps_the_texts_positions(self):
        assert words("One. Two three.", Span(5, 14)) == [Span(5, 8), Span(9, 14)]

    def test_a_word_that_goes_on_behind_the_part_is_cut(self):
        assert words("three", Span(0, 3)) == [Span(0, 3)]


class TestVotes:
    @pytest.mark.parametrize(
        ("first", "second", "role"),
        [
            ((0.6, 0.0001, 0.4), (0.1, 0.0001, 0.9), "excluded"),
            ((0.9, 0.0001, 0.1), (0.4, 0.0001, 0.6), None),
            ((0.0001, 0.6, 0.4), (0.0001, 0.6, 0.4), "cue"),
            ((0.0001, 0.55, 0.45), (0.0001, 0.3, 0.7), "excluded"),
        ],
        ids=["a sure piece wins", "a sure piece refuses", "agreed", "narrowly"],
    )
    def test_a_word_has_the_role_of_the_mean_over_its_tokens(
        self, first: Sequence[float], second: Sequence[float], role: Role | None
    ):
        found = marks(
            "peanuts", Token("pea", logits=shares(*first)), Token("nuts", logits=shares(*second))
        )
        assert [m.role for m in found] == ([role] if role else [])
        assert all(m.text == "peanuts" for m in found)

    def test_shares_are_averaged_and_not_logits(self):
        found = marks(
            "peanut", Token("pea", logits=[0, 0, 60, 0, 0]), Token("nut", logits=[90, 0, 0, 0, 0])
        )
        assert found == []  # half and half; the first of two equals is no role

    def test_tokens_over_the_same_characters_vote_together(self):
        text = "안 b"
        tags = np.array([tag_logits(role) for role in ("cue", "excluded", "excluded", None)])
        tagged = Tagged([(0, 1), (0, 1), (0, 1), (2, 3)], tags, np.zeros((4, 3)), NAMES)
        (found,) = marks_of(text, tagged, words(text, Span(0, 3)))
        assert (found.role, found.text) == ("excluded", "안")

    def test_a_token_over_two_words_votes_in_both(self):
        found = marks("e.g x", Token("e.g", "excluded"), Token("x"))
        assert [m.text for m in found] == ["e.g"]


class TestRuns:
    def test_neighbours_with_one_role_are_one_mark(self):
        found = of_words("hotel without indoor pool", None, "cue", "excluded", "excluded")
        assert [(m.role, m.text) for m in found] == [
            ("cue", "without"),
            ("excluded", "indoor pool"),
        ]

    def test_a_word_without_a_role_parts_two_marks(self):
        found = of_words("no ivy or box", "cue", "excluded", None, "excluded")
        assert [m.text for m in found] == ["no", "ivy", "box"]

    def test_a_sign_without_a_role_parts_two_marks(self):
        found = of_words("no ivy, box", "cue", "excluded", None, "excluded")
        assert [m.text for m in found] == ["no", "ivy", "box"]

    def test_a_sign_with_the_role_joins_what_is_around_it(self):
        found = of_words("no salt & vinegar", "cue", "excluded", "excluded", "excluded")
        assert [m.text for m in found] == ["no", "salt & vinegar"]

    def test_a_hyphen_parts_a_name_from_its_cue(self):
        found = of_words("nut-free cake", "excluded", "cue", "cue", None)
        assert [(m.role, m.text) for m in found] == [("excluded", "nut"), ("cue", "-free")]

    def test_a_hyphen_in_a_name_is_part_of_it(self):
        assert [m.text for m in of_words("e-ink", *["excluded"] * 3)] == ["e-ink"]

    def test_white_space_in_a_mark_stays_as_typed(self):
        assert [m.text for m in of_words("indoor \n pool", "excluded", "excluded")] == [
            "indoor \n pool"
        ]

    @pytest.mark.parametrize("role", ["excluded", "required", "implied"])
    @pytest.mark.parametrize("sign", [",", "-", "🙂", "_"])
    def test_a_mark_of_signs_alone_is_dropped(self, role: Role, sign: str):
        assert of_words(f"a {sign} b", None, role, None) == []

    @pytest.mark.parametrize("sign", ["-", "!", "≠"])
    def test_a_cue_may_be_a_sign(self, sign: str):
        assert [m.text for m in of_words(f"a {sign} b", None, "cue", None)] == [sign]

    def test_a_number_is_no_sign(self):
        assert [m.text for m in of_words("not 13", "cue", "excluded")] == ["not", "13"]

    def test_marks_say_where_they_stand(self):
        text = "  A cake, without NUTS or soft-boiled eggs!"
        found = of_words(text, None, None, None, "cue", "excluded", None, *["excluded"] * 4, None)
        assert [m.text for m in found] == ["without", "NUTS", "soft-boiled eggs"]
        for mark in found:
            assert text[mark.span.start : mark.span.end] == mark.text

    def test_only_words_of_the_given_places_are_marked(self):
        text = "no nuts. no eggs."
        offsets = [(0, 2), (3, 7), (7, 8), (9, 11), (12, 16), (16, 17)]
        tags = np.array([tag_logits("excluded")] * 6, dtype=np.float32)
        tagged = Tagged(offsets, tags, np.zeros((6, 3), dtype=np.float32), NAMES)
        (found,) = marks_of(text, tagged, words(text, Span(9, 16)))
        assert found.text == "no eggs"

    def test_words_that_no_token_covers_have_no_role(self):
        found = marks("no nuts and no eggs", Token("no", "cue"), Token("nuts", "excluded"))
        assert [m.text for m in found] == ["no", "nuts"]

    @pytest.mark.parametrize("places", [[], [Span(5, 9)]], ids=["no words", "words not read"])
    def test_nothing_read_gives_no_marks(self, places: list[Span]):
        tagged = Tagged([], np.zeros((0, 5)), np.zeros((0, 3)), NAMES)
        assert marks_of("cake nuts", tagged, places) == []


class TestProbability:
    def test_a_mark_is_as_probable_as_its_tokens_on_average(self):
        (found,) = marks(
            "indoor pool",
            Token("indoor", logits=shares(0.3, 0.1, 0.6)),
            Token("pool", logits=shares(0.1, 0.1, 0.8)),
        )
        assert found.probability == pytest.approx(0.7, abs=1e-4)

    def test_pieces_of_a_word_count_one_each(self):
        (found,) = marks(
            "no peanuts",
            Token("no", logits=shares(0.1, 0.1, 0.8)),
            Token("pea", logits=shares(0.1, 0.1, 0.8)),
            Token("nuts", logits=shares(0.4, 0.1, 0.5)),
        )
        assert found.probability == pytest.approx(0.7, abs=1e-4)

    def test_one_that_is_more_likely_wrong_is_dropped(self):
        # The role has more of the token than any other, and less than all others together.
        doubtful = Token("pool", logits=[*np.log([0.35, 0.2, 0.45]), -30.0, -30.0])
        assert marks("no pool", Token("no", "cue"), doubtful) == [Mark(Span(0, 2), "cue", "no")]

    def test_a_large_logit_is_certain(self):
        (found,) = marks("nuts", Token("nuts", logits=[0, 0, 1e4, 0, 0]))
        assert found.probability == 1


class TestImplied:
    @pytest.mark.parametrize(
        ("logits", "names"),
        [
            ((2.0, -1.0, -1.0), ("gluten",)),
            ((-1.0, 1.0, 3.0), ("meat", "fish")),
            ((0.0, 1.0, -1.0), ("gluten", "meat")),
            ((-1.0, -3.0, -0.5), ("fish",)),
            ((-2.0, -2.0, -2.0), NAMES),
        ],
        ids=["one", "two", "one at the threshold", "the likeliest", "equals"],
    )
    def test_it_rules_out_the_names_that_are_likely_or_else_the_likeliest(
        self, logits: tuple[float, ...], names: tuple[str, ...]
    ):
        (found,) = marks("vegan", Token("vegan", "implied", names=logits))
        assert (found.role, found.text, found.names) == ("implied", "vegan", names)

    def test_its_tokens_agree_on_the_names(self):
        (found,) = marks(
            "coeliac",
            Token("coel", "implied", names=(3.0, -3.0, 1.0)),
            Token("iac", "implied", names=(-1.0, 1.0, -2.0)),
        )
        assert found.names == ("gluten",)

    def test_other_words_have_no_say_in_it(self):
        found = marks(
            "no vegan meat",
            Token("no", "cue", names=(9.0, 9.0, 9.0)),
            Token("vegan", "implied", names=(-1.0, 2.0, -1.0)),
            Token("meat", "excluded", names=(9.0, 9.0, 9.0)),
        )
        assert [m.names for m in found] == [(), ("meat",), ()]

    def test_two_in_a_row_that_a_word_parts_are_told_apart(self):
        found = marks(
            "vegan or coeliac",
            Token("vegan", "implied", names=(-1.0, 2.0, 2.0)),
            Token("or"),
            Token("coeliac", "implied", names=(2.0, -1.0, -1.0)),
        )
        assert [m.names for m in found] == [("meat", "fish"), ("gluten",)]
