"""Reading items: the text format, and what the written ones hold."""

import lzma
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.reading_items import Reading, ReadingItem, read_items

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
                    Reading("thai noodles, allergic to peanuts", False, LABELS),
                    Reading("peanuts", True, LABELS),
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
