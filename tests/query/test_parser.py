"""The trained parser over a network by hand, so that what it makes of logits can be worked out."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from coder_ir.errors import InvalidValue
from coder_ir.query import TrainedParser
from coder_ir.query.parser import KINDS, TAGS, Layout
from coder_ir.types import Constraint, SentenceKind
from tests.query.conftest import ParserOf
from tests.query.stubs import HandMadeEncoder, Said, asks, kind_logits, parsing

WITHOUT = {"without": asks("cue"), "nuts": asks("excluded"), "cake": asks()}
STATES = {**WITHOUT, "eggs": Said("excluded"), "I": Said(kinds=kind_logits("narration"))}


def kinds(found: Constraint) -> list[str]:
    return [sentence.kind for sentence in found.sentences]


def marked_texts(found: Constraint) -> list[tuple[str, str]]:
    return [(mark.role, mark.text) for mark in found.marks]


class TestLayout:
    def test_columns_are_tags_kinds_weight_and_names(self):
        layout = Layout(("a", "b", "c"))
        assert layout.width == 5 + 4 + 1 + 3
        tags, kinds, weight, names = layout.split(np.arange(26).reshape(2, 13))
        assert tags.tolist() == [[0, 1, 2, 3, 4], [13, 14, 15, 16, 17]]
        assert kinds.tolist() == [[5, 6, 7, 8], [18, 19, 20, 21]]
        assert weight.tolist() == [9, 22]
        assert names.tolist() == [[10, 11, 12], [23, 24, 25]]

    def test_no_role_comes_first_among_tags_and_the_constraint_among_kinds(self):
        assert TAGS == (None, "cue", "excluded", "required", "implied")
        assert KINDS == ("constraint", "plain", "claim", "narration")


class TestOneSentence:
    def test_a_constraint_has_its_marks_phrases_and_topic(self, parser_of: ParserOf):
        (found,) = parser_of(WITHOUT).parse(["cake without nuts"])
        assert marked_texts(found) == [("cue", "without"), ("excluded", "nuts")]
        assert (found.excluded, found.required, found.topic) == (("nuts",), (), "cake")
        assert kinds(found) == ["constraint"]
        assert found.probability == pytest.approx(1, abs=1e-6)

    def test_what_is_asked_for_makes_a_constraint_too(self, parser_of: ParserOf):
        (found,) = parser_of({"screws": asks("required")}).parse(["screws"])
        assert (found.excluded, found.required, found.topic) == ((), ("screws",), "")
        assert found.stated

    def test_an_implied_word_rules_out_its_names(self, parser_of: ParserOf):
        said = {"vegan": asks("implied", names=("meat", "fish")), "curry": asks()}
        (found,) = parser_of(said).parse(["vegan curry"])
        assert (found.excluded, found.topic, found.stated) == (("meat", "fish"), "", True)

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "constraint"])
    def test_a_sentence_of_another_kind_has_no_marks(self, parser_of: ParserOf, kind: SentenceKind):
        said = {word: replace(what, kinds=kind_logits(kind)) for word, what in WITHOUT.items()}
        (found,) = parser_of(said).parse(["cake without nuts"])
        assert kinds(found) == [kind]
        assert (found.marks, found.excluded, found.topic) == ((), (), "")
        assert found.probability == pytest.approx(0, abs=1e-6)

    @pytest.mark.parametrize("word", ["cake", "without"], ids=["no marks", "a cue alone"])
    def test_a_constraint_that_names_nothing_is_a_plain_sentence(
        self, parser_of: ParserOf, word: str
    ):
        (found,) = parser_of(WITHOUT).parse([word])
        (sentence,) = found.sentences
        assert (sentence.kind, sentence.probability) == ("plain", 0.0)
        assert (found.probability, found.marks) == (0.0, ())

    def test_a_constraint_that_rules_out_a_sign_alone_is_a_plain_sentence(
        self, parser_of: ParserOf
    ):
        (found,) = parser_of({**WITHOUT, "?": asks("excluded")}).parse(["cake without ?"])
        assert (kinds(found), found.probability, found.marks) == (["plain"], 0.0, ())

    def test_what_the_network_says_of_other_rows_does_not_count(self, parser_of: ParserOf):
        (found,) = parser_of({}).parse(["cake"])
        assert (kinds(found), found.excluded) == (["plain"], ())
        assert found.probability < 0.01

    def test_it_says_where_sentence_and_marks_stand(self, parser_of: ParserOf):
        query = "  cake without nuts "
        (found,) = parser_of(WITHOUT).parse([query])
        (sentence,) = found.sentences
        assert query[sentence.span.start : sentence.span.end] == "cake without nuts"
        for mark in found.marks:
            assert query[mark.span.start : mark.span.end] == mark.text


class TestProbability:
    @pytest.mark.parametrize(
        ("logits", "scale", "shift", "expected"),
        [
            ((0, 0, 0, 0), 1.0, 0.0, 1 / 4),
            ((log(3), 0, 0, 0), 1.0, 0.0, 1 / 2),
            ((log(9), 0, 0, 0), 2.0, 0.0, 9 / 10),
            ((log(9), 0, 0, 0), 1.0, log(3), 9 / 10),
            ((log(9), 0, 0, 0), 1.0, -log(9), 1 / 4),
            ((log(9), 0, 0, 0), 2.0, -log(27), 1 / 4),
            ((log(8), 0, log(2), log(5)), 1.0, 0.0, 1 / 2),
            ((log(9), 0, 0, 0), 0.0, 0.0, 1 / 2),
        ],
        ids=[
            "all kinds alike",
            "as likely as the others together",
            "scaled",
            "shifted up",
            "shifted down",
            "scaled and shifted",
            "the others add up",
            "a scale of nothing",
        ],
    )
    def test_it_is_that_of_the_margin_over_all_other_kinds_once_calibrated(
        self,
        parser_of: ParserOf,
        logits: tuple[float, ...],
        scale: float,
        shift: float,
        expected: float,
    ):
        said = {"nuts": Said("excluded", logits)}
        (found,) = parser_of(said, scale=scale, shift=shift).parse(["nuts"])
        (sentence,) = found.sentences
        assert sentence.probability == pytest.approx(expected, rel=1e-5)
        assert found.probability == sentence.probability

    @pytest.mark.parametrize(
        ("shift", "kind", "excluded"), [(0.01, "constraint", ("nuts",)), (-0.01, "claim", ())]
    )
    def test_a_sentence_is_under_a_constraint_from_one_half_on(
        self, parser_of: ParserOf, shift: float, kind: str, excluded: tuple[str, ...]
    ):
        logits = (log(exp(2) + 2), 0, 2, 0)
        (found,) = parser_of({"nuts": Said("excluded", logits)}, shift=shift).parse(["nuts"])
        assert (kinds(found), found.excluded) == ([kind], excluded)

    def test_a_likeliest_constraint_that_is_doubted_is_the_next_likely_kind(
        self, parser_of: ParserOf
    ):
        said = {"nuts": Said("excluded", (3, 0, 1, 2))}
        (found,) = parser_of(said, shift=-9).parse(["nuts"])
        assert kinds(found) == ["narration"]

    def test_tokens_vote_by_their_weight(self, parser_of: ParserOf):
        said = {
            "nuts": Said("excluded", (4 * log(9), 0, 0, 0), weight=0.0),
            "please": Said(None, (0, 0, 0, 0), weight=log(3)),
        }
        (found,) = parser_of(said).parse(["nuts please"])
        assert found.probability == pytest.approx(9 / (9 + 3), rel=1e-5)

    @pytest.mark.parametrize(("weight", "kind"), [(1e6, "claim"), (-1e6, "constraint")])
    def test_a_weight_past_all_bounds_decides_alone(
        self, parser_of: ParserOf, weight: float, kind: str
    ):
        said = {"nuts": asks("excluded"), "true": Said(None, kind_logits("claim"), weight)}
        (found,) = parser_of(said).parse(["nuts true"])
        assert kinds(found) == [kind]

    @pytest.mark.parametrize(("logit", "expected"), [(1e5, 1.0), (-1e5, 0.0)])
    def test_a_logit_past_all_bounds_gives_a_probability(
        self, parser_of: ParserOf, logit: float, expected: float
    ):
        said = {"nuts": Said("excluded", (logit, 0, 0, 0))}
        (found,) = parser_of(said, scale=3.0).parse(["nuts"])
        assert found.probability == pytest.approx(expected, abs=1e-6)


class TestSentences:
    def test_only_the_sentence_under_a_constraint_has_marks(self, parser_of: ParserOf):
        query = "I ate eggs. A cake without nuts? I sang"
        (found,) = parser_of(STATES).parse([query])
        assert kinds(found) == ["plain", "constraint", "plain"]
        spans = [query[s.span.start : s.span.end] for s in found.sentences]
        assert spans == ["I ate eggs.", "A cake without nuts?", "I sang"]
        assert (found.excluded, found.stated) == (("nuts",), True)

    def test_a_sentences_kind_is_decided_by_its_own_tokens(self, parser_of: ParserOf):
        said = {
            "one": Said(None, kind_logits("claim")),
            "two": Said(None, kind_logits("narration")),
        }
        (found,) = parser_of(said).parse(["one\ntwo\nthree"])
        assert kinds(found) == ["claim", "narration", "plain"]

    def test_two_sentences_under_a_constraint_both_count(self, parser_of: ParserOf):
        said = {**WITHOUT, "eggs": asks("excluded"), "no": asks("cue")}
        (found,) = parser_of(said).parse(["cake without nuts\nno eggs"])
        assert (kinds(found), found.excluded) == (["constraint"] * 2, ("nuts", "eggs"))
        assert marked_texts(found) == [
            ("cue", "without"),
            ("excluded", "nuts"),
            ("cue", "no"),
            ("excluded", "eggs"),
        ]

    def test_the_query_is_as_probable_as_its_surest_sentence(self, parser_of: ParserOf):
        said = {"nuts": Said("excluded", (log(9), 0, 0, 0)), "eggs": Said(None, (0, 0, 0, 0))}
        (found,) = parser_of(said).parse(["eggs\nnuts\neggs"])
        assert [s.probability for s in found.sentences] == pytest.approx([1 / 4, 3 / 4, 1 / 4])
        assert found.probability == pytest.approx(3 / 4)

    def test_a_mark_does_not_go_on_into_the_next_sentence(self, parser_of: ParserOf):
        said = {"nuts": asks("excluded"), "eggs": asks("excluded")}
        (found,) = parser_of(said).parse(["nuts\neggs"])
        assert marked_texts(found) == [("excluded", "nuts"), ("excluded", "eggs")]

    def test_a_sentence_that_names_nothing_leaves_the_others_alone(self, parser_of: ParserOf):
        (found,) = parser_of(WITHOUT).parse(["cake\ncake without nuts"])
        assert [(s.kind, round(s.probability)) for s in found.sentences] == [
            ("plain", 0),
            ("constraint", 1),
        ]


class TestOperators:
    def test_an_operator_is_certain_where_the_network_sees_nothing(self, parser_of: ParserOf):
        (found,) = parser_of({}).parse(["hotel -pool"])
        assert (found.probability, found.excluded, found.topic) == (1.0, ("pool",), "hotel")
        assert kinds(found) == ["plain"]
        assert marked_texts(found) == [("cue", "-"), ("excluded", "pool")]

    def test_it_joins_what_the_network_found(self, parser_of: ParserOf):
        (found,) = parser_of(WITHOUT).parse(["cake -eggs without nuts"])
        assert (found.probability, found.excluded, found.topic) == (1.0, ("eggs", "nuts"), "cake")

    def test_it_does_not_count_twice_where_the_network_sees_it_too(self, parser_of: ParserOf):
        said = {"-": asks("cue"), "nuts": asks("excluded"), "cake": asks()}
        (found,) = parser_of(said).parse(["cake -nuts"])
        assert marked_texts(found) == [("cue", "-"), ("excluded", "nuts")]
        assert {mark.probability for mark in found.marks} == {1.0}

    def test_a_phrase_that_the_network_sees_further_is_taken_whole(self, parser_of: ParserOf):
        said = {word: asks("excluded") for word in ("pool", "bar")}
        (found,) = parser_of({**said, "NOT": asks("cue")}).parse(["hotel NOT pool bar"])
        assert (found.excluded, found.probability) == (("pool bar",), 1.0)

    def test_it_counts_in_a_sentence_of_another_kind(self, parser_of: ParserOf):
        (found,) = parser_of(STATES).parse(["I ate eggs -milk"])
        assert (found.excluded, found.probability) == (("milk",), 1.0)


class TestWhatIsRead:
    @pytest.mark.parametrize("query", ["", " ", "\n\t"], ids=["empty", "blank", "lines"])
    def test_a_query_without_tokens_states_nothing_and_runs_no_network(
        self, parser_of: ParserOf, query: str
    ):
        parser = parser_of(WITHOUT)
        assert parser.parse([query]) == [Constraint(0.0)]
        assert parser._session.runs == 0

    def test_an_operator_of_which_no_token_was_read_is_certain(self, parser_of: ParserOf):
        (found,) = parser_of(WITHOUT, limit=0).parse(["cake without nuts -eggs"])
        assert (found.probability, found.excluded, found.sentences) == (1.0, ("eggs",), ())

    def test_words_past_the_models_limit_have_no_role(self, parser_of: ParserOf):
        query = "cake without nuts nuts nuts"
        (found,) = parser_of(WITHOUT, limit=4).parse([query])
        assert found.excluded == ("nuts nuts",)
        (sentence,) = found.sentences
        assert (sentence.span.start, sentence.span.end) == (0, len("cake without nuts nuts"))

    def test_a_sentence_past_the_models_limit_is_left_out(self, parser_of: ParserOf):
        (found,) = parser_of(STATES, limit=4).parse(["cake without nuts\ncake\nno eggs"])
        assert kinds(found) == ["constraint", "plain"]

    def test_a_constraint_past_the_models_limit_is_not_seen(self, parser_of: ParserOf):
        (found,) = parser_of(WITHOUT, limit=3).parse(["one two three cake without nuts"])
        assert (found.stated, found.excluded) == (False, ())

    def test_a_long_query_is_read_up_to_the_limit(self, parser_of: ParserOf):
        query = "cake without nuts " + "cake and nuts " * 5000
        (found,) = parser_of({**WITHOUT, "and": asks()}, limit=500).parse([query])
        assert found.excluded == ("nuts",)
        assert len([mark for mark in found.marks if mark.role == "excluded"]) == 1 + 165

    def test_queries_keep_their_order(self, parser_of: ParserOf):
        found = parser_of(STATES).parse(["cake", "cake without nuts", "", "nuts"])
        assert [one.excluded for one in found] == [(), ("nuts",), (), ("nuts",)]

    def test_no_queries_give_no_constraints(self, parser_of: ParserOf):
        assert parser_of(WITHOUT).parse([]) == []

    def test_tokens_that_were_read_elsewhere_give_the_same(self, parser_of: ParserOf):
        parser = parser_of(WITHOUT)
        query = "cake without nuts"
        (tokens,) = parser.encoder.query_tokens([query])
        assert [parser.constraint(query, tokens)] == parser.parse([query])


def test_a_model_folder_without_a_parser_is_refused():
    with pytest.raises(InvalidValue, match="'by hand' has no query parser; train one with"):
        TrainedParser(HandMadeEncoder())


def test_the_names_come_from_the_model_folder(parser_of: ParserOf):
    assert parser_of({}).parsing == parsing()
