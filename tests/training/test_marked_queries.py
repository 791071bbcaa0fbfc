"""Marked queries: the text format, where marks stand, and spelling noise."""

import lzma
import random
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.marked_queries import (
    MarkedQuery,
    MarkedSentence,
    Segment,
    noisy,
    read_marked,
    read_marked_part,
    reworded,
    unmarked,
)
from coder_ir.types import Role, SentenceKind

HEADING = "# topic: Thai food | domain: recipes\n"
ONE = "K|pad thai {c without} {x fish sauce}"
SEVERAL = "K|K: I'm {c allergic to} {x nuts}. || N: It began at six. || P: What can I cook?"
EVERY_MARK = "K|{i:gluten+wheat coeliac} dinner {c but no} {x rice}, {r noodles only}"


def read(tmp_path: Path, *lines: str) -> list[MarkedQuery]:
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_marked(path)


def query(tmp_path: Path, line: str) -> MarkedQuery:
    (found,) = read(tmp_path, line)
    return found


def marks(of: MarkedQuery) -> list[tuple[str, Role | None]]:
    """What stands in the text where a role is said to be, and the role."""
    return [(of.text[span.start : span.end], segment.role) for span, segment in of.roles()]


def kinds(of: MarkedQuery) -> list[tuple[str, SentenceKind]]:
    return [(of.text[span.start : span.end], kind) for span, kind in of.kinds()]


class TestReading:
    def test_a_query_of_one_sentence_is_read_in_segments(self, tmp_path: Path):
        assert read(tmp_path, HEADING.strip(), ONE) == [
            MarkedQuery(
                (
                    MarkedSentence(
                        "constraint",
                        (
                            Segment("pad thai "),
                            Segment("without", "cue"),
                            Segment(" "),
                            Segment("fish sauce", "excluded"),
                        ),
                    ),
                ),
                topic="Thai food",
                domain="recipes",
            )
        ]

    def test_each_of_several_sentences_has_a_kind_of_its_own(self, tmp_path: Path):
        found = query(tmp_path, SEVERAL)
        assert [(s.kind, s.text) for s in found.sentences] == [
            ("constraint", "I'm allergic to nuts."),
            ("narration", "It began at six."),
            ("plain", "What can I cook?"),
        ]
        assert found.text == "I'm allergic to nuts. It began at six. What can I cook?"

    @pytest.mark.parametrize(
        ("letter", "kind"),
        [("K", "constraint"), ("P", "plain"), ("C", "claim"), ("N", "narration")],
    )
    def test_a_letter_stands_for_a_kind(self, tmp_path: Path, letter: str, kind: str):
        alone = query(tmp_path, f"{letter}|some words")
        beside = query(tmp_path, f"P|P: other words. || {letter}: some words")
        assert [s.kind for s in alone.sentences] == [kind]
        assert [s.kind for s in beside.sentences] == ["plain", kind]

    @pytest.mark.parametrize(
        ("mark", "role", "text", "names"),
        [
            ("{c far from}", "cue", "far from", ()),
            ("{x the old town}", "excluded", "the old town", ()),
            ("{r tabs}", "required", "tabs", ()),
            ("{i:gluten coeliac}", "implied", "coeliac", ("gluten",)),
            ("{i:gluten+wheat coeliac}", "implied", "coeliac", ("gluten", "wheat")),
            ("{i:animal-products vegan}", "implied", "vegan", ("animal products",)),
        ],
        ids=["cue", "excluded", "required", "implied", "two names", "a name of two words"],
    )
    def test_a_mark_says_what_its_words_do(
        self, tmp_path: Path, mark: str, role: Role, text: str, names: tuple[str, ...]
    ):
        found = query(tmp_path, f"K|some {mark} words")
        assert [segment for _, segment in found.roles()] == [Segment(text, role, names)]
        assert found.text == f"some {text} words"

    @pytest.mark.parametrize(
        ("line", "text"),
        [
            ("K|{c no} {x nuts} please", "no nuts please"),
            ("K|please {c no} {x nuts}", "please no nuts"),
            ("K|{x nut}{c -free} cake", "nut-free cake"),
            ("P|cake", "cake"),
        ],
        ids=["in front", "at the end", "without a space between", "nowhere"],
    )
    def test_marks_may_stand_anywhere(self, tmp_path: Path, line: str, text: str):
        assert query(tmp_path, line).text == text

    def test_a_heading_holds_for_all_queries_up_to_the_next(self, tmp_path: Path):
        other = "# topic: Oslo | domain: city guides"
        found = read(tmp_path, HEADING.strip(), "P|a", "P|b", "", other, "P|c")
        assert [(q.text, q.topic, q.domain) for q in found] == [
            ("a", "Thai food", "recipes"),
            ("b", "Thai food", "recipes"),
            ("c", "Oslo", "city guides"),
        ]

    @pytest.mark.parametrize("blank", ["", "   "], ids=["empty", "of spaces"])
    def test_a_line_that_holds_nothing_is_passed_over(self, tmp_path: Path, blank: str):
        assert [q.text for q in read(tmp_path, "P|a", blank, "P|b")] == ["a", "b"]

    @pytest.mark.parametrize(
        ("line", "constrained"),
        [(ONE, True), (SEVERAL, True), ("P|tea", False), ("C|C: No tea. || N: I left.", False)],
        ids=["one sentence", "one of several", "plain", "negative words alone"],
    )
    def test_a_query_is_constrained_if_a_sentence_of_it_is(
        self, tmp_path: Path, line: str, constrained: bool
    ):
        assert query(tmp_path, line).constrained is constrained

    def test_an_ordinary_query_is_one_plain_sentence_without_marks(self):
        found = unmarked("tea {c without} milk. Or not")
        assert found.text == "tea {c without} milk. Or not"
        assert [sentence.kind for sentence in found.sentences] == ["plain"]
        assert (found.constrained, found.roles()) == (False, [])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("X|tea", "a line is KIND|query"),
        ("k|tea", "a line is KIND|query"),
        ("tea without milk", "a line is KIND|query"),
        ("K|", "a line is KIND|query"),
        ("# topic: tea", "a line is KIND|query or # topic: NAME | domain: NAME"),
        ("K|K: no tea. || X: Why?", "each of several sentences starts with its kind"),
        ("K|no tea. || P: Why?", "each of several sentences starts with its kind"),
        ("K|tea {c without {x milk}", "a mark is not closed"),
        ("K|tea {c without} {x milk", "a mark is not closed"),
        ("K|tea {c without} x milk}", "a mark is not closed"),
        ("K|tea {c with{x out}} milk", "stands in another"),
        ("K|tea {c without} {x {r oat} milk}", "stands in another"),
        ("K|tea {z without} milk", "a mark"),
        ("K|tea {x} milk", "a mark"),
        ("K|{i: vegan} tea", "a mark"),
        ("K|{i vegan} tea", "a mark"),
    ],
    ids=[
        "unknown kind",
        "small letter",
        "no kind",
        "no query",
        "no domain",
        "unknown kind of a second sentence",
        "no kind of a first sentence",
        "unclosed before another",
        "unclosed at the end",
        "unopened",
        "nested inside a word",
        "nested before words",
        "unknown mark",
        "a mark of nothing",
        "implied without a name",
        "implied without a colon",
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str, told: str):
    with pytest.raises(InvalidFile) as raised:
        read(tmp_path, HEADING.strip(), "", ONE, line)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'train.txt'}:4: ")
    assert told in message
    assert line in message


class TestPlaces:
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (ONE, [("without", "cue"), ("fish sauce", "excluded")]),
            (SEVERAL, [("allergic to", "cue"), ("nuts", "excluded")]),
            (
                EVERY_MARK,
                [
                    ("coeliac", "implied"),
                    ("but no", "cue"),
                    ("rice", "excluded"),
                    ("noodles only", "required"),
                ],
            ),
            ("K|P: Dinner? || K: {c No} {x fish}.", [("No", "cue"), ("fish", "excluded")]),
            ("K|Zoë’s 🍵 {c sans} {x crème}", [("sans", "cue"), ("crème", "excluded")]),
            ("P|tea", []),
        ],
        ids=["one", "several", "every mark", "a later sentence", "not ASCII", "none"],
    )
    def test_a_role_says_where_its_words_stand_in_the_text(
        self, tmp_path: Path, line: str, expected: list[tuple[str, Role]]
    ):
        assert marks(query(tmp_path, line)) == expected

    @pytest.mark.parametrize(
        ("role", "phrases"),
        [
            ("cue", ["but no"]),
            ("excluded", ["rice"]),
            ("required", ["noodles only"]),
            ("implied", ["gluten", "wheat"]),
        ],
    )
    def test_phrases_are_those_of_one_role_and_names_what_is_implied(
        self, tmp_path: Path, role: Role, phrases: list[str]
    ):
        assert query(tmp_path, EVERY_MARK).phrases(role) == phrases

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (ONE, [("pad thai without fish sauce", "constraint")]),
            (
                SEVERAL,
                [
                    ("I'm allergic to nuts.", "constraint"),
                    ("It began at six.", "narration"),
                    ("What can I cook?", "plain"),
                ],
            ),
            (
                "K|K: {c no} {x nuts} || P: what can I cook for the two of us tonight",
                [("no nuts what can I cook for the two of us tonight", "constraint")],
            ),
            (
                "N|N: we moved here in the autumn and never met them || P: why",
                [("we moved here in the autumn and never met them why", "narration")],
            ),
            (
                "K|Hotels in Lisbon. Ideally {c without} {x stairs}",
                [("Hotels in Lisbon.", "plain"), ("Ideally without stairs", "constraint")],
            ),
            (
                "C|He came at 5 p.m. sharp.",
                [("He came at 5 p.m.", "claim"), ("sharp.", "claim")],
            ),
        ],
        ids=[
            "one",
            "several",
            "a constraint runs into a longer question",
            "a question runs into a longer story",
            "a constraint cut in two asks where it is marked",
            "both parts of another kind are of it",
        ],
    )
    def test_kinds_are_those_of_sentences_as_they_are_found_in_the_text(
        self, tmp_path: Path, line: str, expected: list[tuple[str, SentenceKind]]
    ):
        assert kinds(query(tmp_path, line)) == expected


LONG = (
    "K|K: Hotels in O'Hara's Village, Ireland — {c not} the {x Grand Hotel's annexe}! || "
    "N: We've never liked CONCRETE. || K: {i:dairy+eggs Vegan} food {c without} {x nuts}, {r hot}?"
)
SEEDS = range(200)


class TestNoise:
    @pytest.fixture(
        params=[ONE, SEVERAL, EVERY_MARK, LONG], ids=["one", "several", "marks", "long"]
    )
    def clean(self, request: pytest.FixtureRequest, tmp_path: Path) -> MarkedQuery:
        return query(tmp_path, request.param)

    def test_roles_stay_in_their_order_and_are_where_they_are_said_to_be(self, clean: MarkedQuery):
        for seed in SEEDS:
            rough = noisy(clean, random.Random(seed))
            assert [(s.role, s.names) for _, s in rough.roles()] == [
                (s.role, s.names) for _, s in clean.roles()
            ]
            assert marks(rough) == [(s.text, s.role) for _, s in rough.roles()]
            assert all(text for text, _ in marks(rough))

    def test_sentences_keep_their_kinds_and_the_query_its_topic(self, clean: MarkedQuery):
        for seed in SEEDS:
            rough = noisy(clean, random.Random(seed))
            assert [s.kind for s in rough.sentences] == [s.kind for s in clean.sentences]
            assert (rough.topic, rough.domain) == (clean.topic, clean.domain)

    def test_it_follows_the_seed_alone(self, clean: MarkedQuery):
        one, again = ([noisy(clean, random.Random(seed)) for seed in SEEDS] for _ in range(2))
        assert one == again
        assert len({rough.text for rough in one}) > 10

    def test_it_leaves_the_query_alone(self, clean: MarkedQuery, tmp_path: Path):
        before = (clean.text, clean.roles(), clean.kinds())
        for seed in SEEDS:
            noisy(clean, random.Random(seed))
        assert (clean.text, clean.roles(), clean.kinds()) == before

    def test_a_word_keeps_its_first_letter_and_all_others_but_one(self, clean: MarkedQuery):
        def words(text: str) -> list[str]:
            letters = (c for c in text.lower() if c.isalpha() or c == " ")
            return "".join(letters).split()

        for seed in SEEDS:
            rough = words(noisy(clean, random.Random(seed)).text)
            for word, typed in zip(words(clean.text), rough, strict=True):
                assert typed[0] == word[0]
                assert len(set(word) - set(typed)) <= 1
                assert set(typed) <= set(word)
                assert abs(len(typed) - len(word)) <= 1

    @pytest.mark.parametrize(
        "text",
        [
            "Ann's cake without nuts?",
            "ann's cake without nuts?",
            "Anns cake without nuts",
            "Ann's cake without nuts",
            "Ann's cake witout nuts?",
            "Ann's cake withoout nuts?",
            "Ann's cake wihtout nuts?",
        ],
        ids=[
            "as it is",
            "small letters",
            "no signs",
            "no question mark",
            "a letter lost",
            "a letter doubled",
            "two letters swapped",
        ],
    )
    def test_it_types_as_a_hurried_person_does(self, tmp_path: Path, text: str):
        clean = query(tmp_path, "K|Ann's cake {c without} {x nuts}?")
        assert text in {noisy(clean, random.Random(seed)).text for seed in range(3000)}

    def test_signs_between_sentences_stay_where_they_part_them(self, tmp_path: Path):
        clean = query(tmp_path, SEVERAL)
        for seed in SEEDS:
            assert len(noisy(clean, random.Random(seed)).kinds()) == len(clean.kinds())


class TestOtherWordsForWithout:
    def all_of(self, clean: MarkedQuery) -> set[str]:
        return {reworded(clean, random.Random(seed)).text for seed in SEEDS}

    def test_a_request_says_it_in_another_word(self, tmp_path: Path):
        clean = query(tmp_path, "K|cake {c without} {x nuts}")
        assert self.all_of(clean) == {
            f"cake {w} nuts" for w in ("without", "with no", "no", "sans")
        }

    def test_a_title_does_so_too(self, tmp_path: Path):
        clean = query(tmp_path, "P|Learning Without Labels")
        assert "Learning with no Labels" in self.all_of(clean)

    @pytest.mark.parametrize(
        "line", ["K|cake {c other than} {x lemon}", "P|no country for old men", "P|do without"]
    )
    def test_other_words_stay(self, tmp_path: Path, line: str):
        clean = query(tmp_path, line)
        assert self.all_of(clean) == {clean.text}

    def test_marks_and_kinds_stay(self, tmp_path: Path):
        clean = query(tmp_path, SEVERAL + " || K: {c no} {x figs} without {x dates}")
        for seed in SEEDS:
            said = reworded(clean, random.Random(seed))
            assert [s.role for _, s in said.roles()] == [s.role for _, s in clean.roles()]
            assert [s.kind for s in said.sentences] == [s.kind for s in clean.sentences]


class TestAPartOfAFolder:
    def test_it_is_read_as_plain_text(self, tmp_path: Path):
        (tmp_path / "train.txt").write_text(f"{HEADING}{ONE}\n", encoding="utf-8")
        (found,) = read_marked_part(tmp_path, "train")
        assert (found.text, found.topic) == ("pad thai without fish sauce", "Thai food")

    def test_it_is_read_compressed(self, tmp_path: Path):
        (tmp_path / "plain.txt").write_text(f"{HEADING}{ONE}\nP|thé vert\n", encoding="utf-8")
        with lzma.open(tmp_path / "packed.txt.xz", "wt", encoding="utf-8") as file:
            file.write(f"{HEADING}{ONE}\nP|thé vert\n")
        packed = read_marked_part(tmp_path, "packed")
        assert packed == read_marked_part(tmp_path, "plain")
        assert packed[1].text == "thé vert"

    def test_other_parts_are_left_alone(self, tmp_path: Path):
        (tmp_path / "train.txt").write_text("P|a\n")
        (tmp_path / "development.txt").write_text("not marked at all\n")
        assert [q.text for q in read_marked_part(tmp_path, "train")] == ["a"]

    def test_a_broken_line_of_a_compressed_file_is_named(self, tmp_path: Path):
        with lzma.open(tmp_path / "train.txt.xz", "wt") as file:
            file.write("P|a\nb\n")
        with pytest.raises(InvalidFile, match=r"train\.txt\.xz:2: a line is KIND\|query"):
            read_marked_part(tmp_path, "train")

    def test_one_that_is_missing_is_named_with_its_folder(self, tmp_path: Path):
        with pytest.raises(NotFound) as raised:
            read_marked_part(tmp_path, "heldout")
        assert str(raised.value) == f"no heldout.txt or heldout.txt.xz in {tmp_path}"

    def test_a_file_that_is_missing_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no marked queries .*train\.txt"):
            read_marked(tmp_path / "train.txt")
