"""Reading items: the text format, and what the written ones hold."""

import lzma
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.reading_items import Label, LabelledQuery, ReadingItem, read_items

RECIPES = Path(__file__).parents[2] / "recipes" / "reading"
ITEM = """\
# topic: pad thai | domain: recipes

@ replaced
a: Toasted seeds take the place of peanuts.
b: Finish with crushed peanuts.
c: Soak the noodles.
q: thai noodles, allergic to peanuts => a+ b- c0
x: peanuts => a+ b- c0
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "items.txt"
    path.write_text(text, encoding="utf-8")
    return path


LEAST_ITEMS = 6000
_NEGATION = re.compile(r"\b(?:no|not|never|none|nor|neither|without|nothing|\w+n['’]t)\b", re.I)


def negations(text: str) -> int:
    return len(_NEGATION.findall(text))


def length(text: str) -> int:
    return len(text)


def said(item: ReadingItem, reading: LabelledQuery, label: Label) -> list[str]:
    return [item.passages[letter] for letter, own in reading.labels.items() if own == label]


LABELS = {"a": "satisfies", "b": "violates", "c": "silent"}


class TestFormat:
    def test_an_item_has_passages_and_what_each_says_to_each_question(self, tmp_path: Path):
        assert read_items(write(tmp_path, ITEM)) == [
            ReadingItem(
                "replaced",
                "pad thai",
                "recipes",
                {
                    "a": "Toasted seeds take the place of peanuts.",
                    "b": "Finish with crushed peanuts.",
                    "c": "Soak the noodles.",
                },
                (
                    LabelledQuery("thai noodles, allergic to peanuts", False, LABELS),
                    LabelledQuery("peanuts", True, LABELS),
                ),
            )
        ]

    def test_items_go_by_the_heading_above_them(self, tmp_path: Path):
        second = ITEM.replace("pad thai", "laksa")
        found = read_items(write(tmp_path, ITEM + ITEM.partition("\n")[2] + second))
        assert [item.topic for item in found] == ["pad thai", "pad thai", "laksa"]

    def test_a_packed_file_reads_as_a_plain_one(self, tmp_path: Path):
        packed = tmp_path / "items.txt.xz"
        packed.write_bytes(lzma.compress(ITEM.encode()))
        assert read_items(packed) == read_items(write(tmp_path, ITEM))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("a+ b- c0\nx", "a+ b-\nx", "has passages a, b, c; .* labels a, b"),
            ("a+ b- c0\nx", "a+ b+ c0\nx", r"needs a passage with \+ and one with -"),
            ("q: thai", "query: thai", "items.txt:7: no heading, item, passage or question"),
            ("=> a+ b- c0", "a+ b- c0", "items.txt:7: no heading"),
            (
                "q: thai noodles, allergic to peanuts => a+ b- c0\nx: peanuts => a+ b- c0",
                "",
                "asks",
            ),
        ],
        ids=["label missing", "nothing violates", "unknown line", "no arrow", "no question"],
    )
    def test_what_cannot_be_meant_is_refused(
        self, tmp_path: Path, old: str, new: str, message: str
    ):
        assert old in ITEM
        with pytest.raises(InvalidFile, match=message):
            read_items(write(tmp_path, ITEM.replace(old, new)))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no reading items .*gone\.txt"):
            read_items(tmp_path / "gone.txt")


@pytest.fixture(scope="module")
def parts() -> dict[str, list[ReadingItem]]:
    names = ("train", "development", "triples")
    return {
        name: [item for path in sorted(RECIPES.glob(f"{name}.*xz")) for item in read_items(path)]
        for name in names
    }


class TestWritten:
    def test_there_are_enough_to_learn_from(self, parts: dict[str, list[ReadingItem]]):
        assert len(parts["train"]) + len(parts["development"]) >= LEAST_ITEMS
        assert len(parts["triples"]) == 300

    def test_no_topic_that_is_trained_on_is_measured(self, parts: dict[str, list[ReadingItem]]):
        topics = {name: {item.topic.lower() for item in items} for name, items in parts.items()}
        assert topics["train"].isdisjoint(topics["development"] | topics["triples"])

    def test_no_passage_stands_in_two_parts(self, parts: dict[str, list[ReadingItem]]):
        texts = {
            name: {text for item in items for text in item.passages.values()}
            for name, items in parts.items()
        }
        assert texts["train"].isdisjoint(texts["development"] | texts["triples"])
        assert texts["development"].isdisjoint(texts["triples"])

    def test_a_triple_denies_leaves_open_and_affirms(self, parts: dict[str, list[ReadingItem]]):
        for item in parts["triples"]:
            (reading,) = item.queries
            assert reading.labels == {"a": "satisfies", "b": "silent", "c": "violates"}

    def test_triples_cover_fifteen_domains_alike(self, parts: dict[str, list[ReadingItem]]):
        assert set(Counter(item.domain for item in parts["triples"]).values()) == {20}

    @pytest.mark.parametrize("name", ["train", "development", "triples"])
    @pytest.mark.parametrize("clue", [negations, length], ids=["negation words", "length"])
    def test_no_surface_clue_tells_the_sides_apart(
        self, parts: dict[str, list[ReadingItem]], name: str, clue: Callable[[str], int]
    ):
        told = [
            0.5 if clue(good) == clue(bad) else float(clue(good) > clue(bad))
            for item in parts[name]
            for reading in item.queries
            for good in said(item, reading, "satisfies")
            for bad in said(item, reading, "violates")
        ]
        assert 0.42 < sum(told) / len(told) < 0.58
