"""From marks to a constraint: what is ruled out, what is asked for, and the topic that is left."""

from dataclasses import replace

import pytest

from coder_ir.query.constraint import constraint_of, merged, topic_of
from coder_ir.types import Constraint, Mark, Sentence, Span
from tests.query.stubs import marked


def stated(text: str, *, certain: bool = False, probability: float = 0.8) -> Constraint:
    query, marks = marked(text)
    sentence = Sentence(Span(0, len(query)), "constraint", probability)
    return constraint_of(query, marks, [sentence], certain=certain)


def left(text: str) -> str:
    return topic_of(*marked(text))


class TestConstraintOf:
    @pytest.mark.parametrize(
        ("text", "excluded"),
        [
            ("cake {c without} {x nuts}", ("nuts",)),
            ("cake {c without} {x nuts} or {x eggs} or {x milk}", ("nuts", "eggs", "milk")),
            ("{x eggs}{c -free} cake {c without} {x almonds}", ("eggs", "almonds")),
            ("cake {c without} {x nuts}, {c no} {x eggs}, {c no} {x nuts}", ("nuts", "eggs")),
            ("{i:gluten coeliac} guest", ("gluten",)),
            ("{i:meat+fish vegetarian} curry", ("meat", "fish")),
            ("{i:meat+fish vegetarian} curry {c no} {x peas}", ("meat", "fish", "peas")),
            ("curry {c no} {x peas}, {i:meat+fish vegetarian}", ("peas", "meat", "fish")),
            ("{c no} {x fish} in a {i:meat+fish vegetarian} curry", ("fish", "meat")),
            ("{i:gluten coeliac} and {i:meat+gluten other}", ("gluten", "meat")),
            ("walk with {r dogs}", ()),
            ("cake {c without}", ()),
            ("cake", ()),
        ],
    )
    def test_what_is_ruled_out_comes_once_and_in_the_querys_order(
        self, text: str, excluded: tuple[str, ...]
    ):
        assert stated(text).excluded == excluded

    @pytest.mark.parametrize(
        ("text", "required"),
        [
            ("{r bullet points} {c rather than} {x paragraphs}", ("bullet points",)),
            ("{r a lift} and {r parking} and {r a lift}", ("a lift", "parking")),
            ("cake {c without} {x nuts}", ()),
        ],
    )
    def test_what_is_asked_for_comes_once_and_in_order(self, text: str, required: tuple[str, ...]):
        assert stated(text).required == required

    def test_what_is_asked_for_is_not_ruled_out_too(self):
        found = stated("{r screws} {c instead of} {x nails}")
        assert (found.excluded, found.required) == (("nails",), ("screws",))

    @pytest.mark.parametrize(
        ("probabilities", "expected"),
        [((), 0.0), ((0.3,), 0.3), ((0.1, 0.9, 0.4), 0.9)],
        ids=["no sentence", "one", "three"],
    )
    def test_the_query_is_as_sure_as_its_surest_sentence(
        self, probabilities: tuple[float, ...], expected: float
    ):
        sentences = [Sentence(Span(0, 1), "plain", p) for p in probabilities]
        assert constraint_of("a", [], sentences, certain=False).probability == expected

    @pytest.mark.parametrize("probability", [0.0, 0.2, 1.0])
    def test_an_operator_is_certain_whatever_the_sentences_say(self, probability: float):
        assert stated("hotel {c -}{x pool}", certain=True, probability=probability).probability == 1

    def test_an_operator_is_certain_where_no_sentence_was_read(self):
        query, marks = marked("{c -}{x pool}")
        assert constraint_of(query, marks, (), certain=True).probability == 1

    def test_marks_and_sentences_are_kept_where_they_stand(self):
        query, marks = marked("a {i:gluten coeliac} asks: {r cake} {c without} {x nuts}")
        sentences = (Sentence(Span(0, len(query)), "constraint", 0.7),)
        found = constraint_of(query, marks, sentences, certain=False)
        assert (found.marks, found.sentences) == (tuple(marks), sentences)
        for mark in found.marks:
            assert query[mark.span.start : mark.span.end] == mark.text

    def test_nothing_marked_is_no_constraint(self):
        assert constraint_of("hotel", [], (), certain=False) == Constraint(0.0)

    def test_the_topic_is_that_of_the_marks(self):
        assert stated("cake {c without} {x nuts}").topic == "cake"


def mark(start: int, end: int, role: str = "excluded", text: str = "parsed") -> Mark:
    return Mark(Span(start, end), role, text)


class TestMerged:
    def test_marks_that_do_not_meet_are_all_kept_in_order(self):
        parsed, operators = [mark(0, 3), mark(20, 25)], [mark(10, 11, "cue"), mark(11, 15)]
        assert merged(parsed, operators) == [parsed[0], *operators, parsed[1]]

    def test_marks_that_only_touch_are_both_kept(self):
        assert merged([mark(5, 9)], [mark(4, 5, "cue"), mark(9, 12)]) == [
            mark(4, 5, "cue"),
            mark(5, 9),
            mark(9, 12),
        ]

    @pytest.mark.parametrize(
        ("parsed", "operator", "kept"),
        [
            ((0, 4), (0, 8), "operator"),
            ((2, 6), (0, 8), "operator"),
            ((6, 10), (0, 8), "operator"),
            ((0, 8), (0, 8), "operator"),
            ((0, 9), (0, 8), "parsed"),
            ((0, 20), (4, 8), "parsed"),
            ((7, 20), (0, 8), "parsed"),
        ],
        ids=[
            "parsed at its start",
            "parsed inside",
            "parsed over its end",
            "the same place",
            "parsed goes further",
            "operator inside",
            "parsed over its end and longer",
        ],
    )
    def test_of_two_that_overlap_the_longer_one_stays(
        self, parsed: tuple[int, int], operator: tuple[int, int], kept: str
    ):
        both = {"parsed": mark(*parsed), "operator": mark(*operator, text="operator")}
        assert merged([both["parsed"]], [both["operator"]]) == [both[kept]]

    def test_a_mark_longer_than_each_of_several_takes_the_place_of_all(self):
        long = mark(0, 30)
        assert merged([long], [mark(0, 4), mark(10, 14), mark(40, 44)]) == [long, mark(40, 44)]

    def test_a_mark_shorter_than_one_of_several_goes(self):
        operators = [mark(0, 2), mark(3, 30)]
        assert merged([mark(0, 10)], operators) == operators

    def test_a_phrase_that_goes_on_is_ruled_out_as_a_whole_behind_the_operators_cue(self):
        _, operators = marked("laptop {c -}{x e-ink} display")
        _, parsed = marked("laptop -{x e-ink display}")
        assert [m.text for m in merged(parsed, operators)] == ["-", "e-ink display"]

    def test_what_it_is_given_stays_as_it_is(self):
        parsed, operators = [mark(0, 9)], [mark(0, 4), mark(20, 24)]
        merged(parsed, operators)
        assert (parsed, operators) == ([mark(0, 9)], [mark(0, 4), mark(20, 24)])

    @pytest.mark.parametrize("parsed", [[], [mark(0, 4)]], ids=["nothing", "one"])
    def test_without_operators_the_parsed_marks_stay(self, parsed: list[Mark]):
        assert merged(parsed, []) == parsed


SHAPES = {
    "cue last": ("hotel {c without} {x pool}", "hotel"),
    "cue first": (
        "{c Besides} {x the Louvre}, which museums open late?",
        "which museums open late?",
    ),
    "cue in the middle": (
        "what did Fleming find {c other than} {x penicillin} in 1928?",
        "what did Fleming find in 1928?",
    ),
    "cue behind what it rules out": (
        "flat in Ghent, {x furniture} {c not wanted}",
        "flat in Ghent",
    ),
    "cue around what it rules out": (
        "draft the obituary but {c leave} {x the divorce} {c out}, please",
        "draft the obituary but, please",
    ),
    "between commas": (
        "which drugs, {c other than} {x aspirin}, thin the blood?",
        "which drugs, thin the blood?",
    ),
    "in round brackets": (
        "top scorers ({c excluding} {x penalties}) of 2020",
        "top scorers of 2020",
    ),
    "in square brackets": ("top scorers [{c no} {x penalties}] of 2020", "top scorers of 2020"),
    "part of brackets": (
        "scorers (England, {c excluding} {x penalties}) 2020",
        "scorers (England) 2020",
    ),
    "in quotes": ('hotel {c -}"{x swimming pool}" spa', "hotel spa"),
    "in curly quotes": ("hotel {c -}“{x swimming pool}” spa", "hotel spa"),
    "joined before": ("{c non-}{x leather} boots size 46", "boots size 46"),
    "joined behind": ("{x pvc}{c -free} shower curtain", "shower curtain"),
    "an article between": ("hotel {c without} a {x pool}", "hotel"),
    "articles and a pronoun between": ("hotel {c without} any of the {x noise}", "hotel"),
    "a list": (
        "{c no} {x balloons}, {x blindfolds} or {x running} at a party for six",
        "at a party for six",
    ),
    "a list with nor": ("shrubs, {c neither} {x ivy} nor {x box}?", "shrubs?"),
    "topic between two operators": ("{c -}{x pool} hotel {c -}{x casino}", "hotel"),
    "topic of two words between": (
        "{c no} {x meat} lentil soup {c without} {x cream}",
        "lentil soup",
    ),
    "topic on both sides": (
        "cake {c without} {x nuts} for two {c without} {x eggs} today",
        "cake for two today",
    ),
    "what is asked for stays": (
        "shelf on {r brackets} {c instead of} {x rails}",
        "shelf on brackets",
    ),
    "what implies stays": ("{i:gluten coeliac} guest {c no} {x eggs}", "coeliac guest"),
    "full stop left over": ("Show me cakes. {c Nothing with} {x nuts}.", "Show me cakes"),
    "comma left over": ("Show me cakes, {c no} {x nuts}", "Show me cakes"),
    "dash left over": ("cakes – {c no} {x nuts}", "cakes"),
    "question mark kept": ("which cakes are {c without} {x nuts}?", "which cakes are?"),
    "white space": ("  cake\t {c without}  {x nuts} \n for two ", "cake for two"),
    "other scripts": ("Kuchen {c ohne} {x Nüsse} für zwei", "Kuchen für zwei"),
}
NOTHING_LEFT = {
    "only the constraint": "{c without} {x nuts}",
    "only what is ruled out": "{x nuts}",
    "only operators": "{c -}{x pool} {c -}{x casino}",
    "punctuation": "{c no} {x pool}!?",
    "brackets and quotes": '({c no} "{x pool}")',
    "words that say nothing": "the {c without} {x pool} of it all",
    "another word between": "{c no} {x pool} and {c no} {x bar}",
}
NOTHING_RULED_OUT = {
    "no marks": "hotel with a pool",
    "a cue alone": "hotel {c without}",
    "asked for": "hotel with {r a pool}",
    "implied": "{i:gluten coeliac} guest",
    "empty": "",
}


class TestTopicOf:
    @pytest.mark.parametrize(("text", "topic"), SHAPES.values(), ids=SHAPES)
    def test_the_topic_is_the_query_less_what_it_rules_out(self, text: str, topic: str):
        assert left(text) == topic

    @pytest.mark.parametrize("text", NOTHING_LEFT.values(), ids=NOTHING_LEFT)
    def test_a_query_that_only_rules_out_leaves_no_topic(self, text: str):
        assert left(text) == ""

    @pytest.mark.parametrize("text", NOTHING_RULED_OUT.values(), ids=NOTHING_RULED_OUT)
    def test_a_query_that_rules_nothing_out_by_name_has_no_other_topic(self, text: str):
        assert left(text) == ""

    def test_a_comma_behind_an_opening_bracket_goes(self):
        assert left("scorers ({c no} {x penalties}, England) 2020") == "scorers (England) 2020"

    def test_brackets_around_what_is_ruled_out_go_together(self):
        assert left("jaguar {c NOT} ({x car}) speed") == "jaguar speed"

    def test_names_and_probabilities_do_not_matter(self):
        query, marks = marked("cake {c without} {x nuts}")
        other = [replace(m, probability=0.1, names=("a",)) for m in marks]
        assert topic_of(query, other) == topic_of(query, marks)
