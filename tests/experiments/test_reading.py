"""`bench reading`: what a verifier reads right, over hand-made items and a fake one."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import NotFound
from coder_ir.experiments.reading import measure_reading, worded
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from tests.conftest import FakeEncoder, FakeParser
from tests.experiments.conftest import said
from tests.fake_verifier import FakeVerifier

# The last passage of an item says nothing on the point; topic and id put the first of the hotels
# first, and the second of the seas.
TRIPLES = """# topic: rooms | domain: travel
@ triple
a: hotel. There is no noise.
b: hotel. There is noise at night.
c: hotel. Zebras graze.
q: hotel without noise => a+ b- c0
@ triple
a: sea. There is no crowd.
b: sea. A crowd meets there.
c: sea. Boats pass.
q: sea without crowd => a+ b- c0
"""
# The phrase is read as it is labelled, the query is not.
DEVELOPMENT = """# topic: rooms | domain: travel
@ pair
a: There is no bar.
b: There is a bar.
x: bar => a+ b-
q: hotel without bar => a- b+
"""
CONTRASTS = [
    {"id": "1", "source": "ours", "a": "No bar.", "b": "A bar.", "qa": "x without bar"},
    {"id": "2", "source": "Wiki", "a": "A bar.", "b": "No bar.", "qa": "x without bar"},
]
ANSWERED = "satisfies over violates"


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    made = Setup(tmp_path / "data", tmp_path / "out", "reference", "fake", tmp_path / "written")
    made.written.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in CONTRASTS)
    (made.written / "contrast.development.jsonl").write_text(text, encoding="utf-8")
    folder = tmp_path / "reading"
    folder.mkdir()
    for name, items in (("triples", TRIPLES), ("development", DEVELOPMENT)):
        (folder / f"{name}.txt.xz").write_bytes(lzma.compress(items.encode()))
    return made


@pytest.fixture
def table(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> Table:
    encoder = FakeEncoder(["hotel", "sea"])
    fitted = Calibration(Logistic((0.0, 0.0, 0.0), 0.0))
    opened: dict[str, Any] = {
        "load_encoder": lambda model, *, runtime: encoder,
        "load_calibration": lambda model: fitted,
        "load_parser": lambda encoder: FakeParser(),
        "load_verifier": lambda name, *, threads: FakeVerifier(),
    }
    for name, loader in opened.items():
        monkeypatch.setattr(f"coder_ir.retriever.{name}", loader)
    monkeypatch.setattr("coder_ir.experiments.reading.load_verifier", FakeVerifier)
    return measure_reading(setup, said)


def means(table: Table, data: str) -> dict[str, float]:
    return {name: estimate["mean"] for name, estimate in table.figures[data].items()}


ALL_RIGHT = {ANSWERED: 1, "satisfies over silent": 1, "silent over violates": 1, "order": 1}


def test_what_is_read_right_counts_by_pairs_and_by_whole_orders(table: Table):
    assert means(table, "300 triples") == ALL_RIGHT
    # Of a query with one kind of pair there is no order to get right as a whole.
    assert means(table, "reading items, development") == {ANSWERED: 0.5}


def test_contrast_items_are_split_by_who_wrote_them(table: Table):
    assert means(table, "contrast items, development") == {ANSWERED: 0.5}
    assert means(table, "of them ours") == {ANSWERED: 1}
    assert means(table, "of them edits") == {ANSWERED: 0}


def test_a_search_that_reads_puts_the_triples_in_order(table: Table):
    assert means(table, "the triples, searched by auto") == ALL_RIGHT
    assert means(table, "the same, lower risk") == ALL_RIGHT
    assert means(table, "the triples, searched by topical") == {
        ANSWERED: 0.5,
        "satisfies over silent": 0.5,
        "silent over violates": 0,
        "order": 0,
    }


def test_a_row_has_percentages_and_dashes_where_nothing_was_asked(table: Table):
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == list(table.figures)
    assert rows["reading items, development"][0] == "2"
    assert rows["reading items, development"][2:] == ("–", "–", "–")
    assert len(table.columns) == len(table.rows[0])


def test_items_that_are_not_there_are_named(setup: Setup, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("coder_ir.experiments.reading.load_verifier", FakeVerifier)
    (setup.written.parent / "reading" / "triples.txt.xz").unlink()
    with pytest.raises(NotFound, match=r"no reading items .*triples\.txt\.xz"):
        measure_reading(setup, said)


def test_a_phrase_to_keep_out_is_asked_about_with_without():
    assert worded("noise", is_phrase=True) == "without noise"
    assert worded("a hotel, no noise", is_phrase=False) == "a hotel, no noise"
