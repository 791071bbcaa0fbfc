"""What a verifier is worth: a fake one that is always right over vectors that tell nothing apart.

Passages of a pair tie in both spaces, so that without a verifier the smaller id stands first.
"""

import json
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coder_ir.datasets.nevir import load_nevir
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.experiments.verifier import measure_verifier
from coder_ir.types import Scores
from tests.conftest import FakeEncoder

ITEMS = [
    {
        "id": "t-1",
        "source": "ours",
        "a": "hotel hotel. A bar is below.",
        "b": "hotel hotel. All is still.",
        "qa": "hotel with noise",
        "qb": "hotel without noise",
    },
    {
        "id": "e-1",
        "source": "Wiki",
        "a": "sea sea. All is still.",
        "b": "sea sea. All is bar.",
        "qa": "",
        "qb": "sea with noise",
    },
]
PAIR = {
    "id": "1",
    "q1": "club without noise",
    "q2": "club with noise",
    "doc1": "club. All is still.",
    "doc2": "club. All is bar.",
}


class Reader:
    """A verifier that knows that a bar is noise."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, query: str, passages: Sequence[str]) -> Scores:
        self.asked.append(query)
        right = [("bar" in text) == ("with noise" in query) for text in passages]
        return np.where(right, log(9), -log(9))


def said(message: str) -> None:
    assert message


def lines(path: Path, rows: Iterable[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    encoder = FakeEncoder(["hotel", "sea", "club"])
    monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda spec, runtime: encoder)
    monkeypatch.setattr("coder_ir.retriever.load_calibration", lambda spec: None)
    lines(tmp_path / "written" / "contrast.development.jsonl", ITEMS)
    nevir = tmp_path / "data" / "nevir" / "test_open.jsonl"
    lines(nevir, [PAIR])
    # One pair is not the published set, which is all that would be loaded otherwise.
    monkeypatch.setattr(
        "coder_ir.experiments.systems.load_benchmark", lambda name, root: load_nevir(nevir)
    )
    return Setup(tmp_path / "data", tmp_path / "out", "none", "fake", tmp_path / "written")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda encoder: made)
    return made


@pytest.fixture
def table(setup: Setup, reader: Reader) -> Table:
    return measure_verifier(setup, said)


def means(figures: dict[str, Any]) -> dict[str, float]:
    return {name: figure["mean"] for name, figure in figures.items() if name != "milliseconds"}


def test_each_set_is_searched_with_and_without_the_verifier(table: Table):
    expected = [
        ("development", "auto"),
        ("development", "auto, verify 20"),
        ("NevIR", "auto"),
        ("NevIR", "auto, verify 20"),
    ]
    assert [row[:2] for row in table.rows] == expected
    assert list(table.figures) == [", ".join(pair) for pair in expected]


def test_without_it_a_pair_is_right_where_ids_happen_to_be(table: Table):
    assert means(table.figures["development, auto"]) == pytest.approx(
        {
            "ours": 1 / 2,  # a is first for both queries
            "edits": 0,
            "V@1": 2 / 3,
            "FVR@10": (2 + 1 + 1) / 3,
            "R@5": 1,
        }
    )
    assert means(table.figures["NevIR, auto"]) == pytest.approx(
        {"V@1": 1 / 2, "V@2": 1, "V@10": 1, "FVR@10": (2 + 1) / 2, "R@5": 1}
    )


def test_with_it_every_pair_is_right(table: Table):
    verified = means(table.figures["development, auto, verify 20"])
    assert {name: verified[name] for name in ("ours", "edits", "V@1")} == {
        "ours": 1,
        "edits": 1,
        "V@1": 0,
    }
    assert means(table.figures["NevIR, auto, verify 20"])["V@1"] == 0


@pytest.mark.usefixtures("table")
def test_every_query_is_read_once(reader: Reader):
    rows = [*ITEMS, PAIR]
    queries = [row[name] for row in rows for name in ("qa", "qb", "q1", "q2") if row.get(name)]
    assert reader.asked == queries


def test_measures_that_nevir_has_not_are_a_dash(table: Table):
    row = next(row for row in table.rows if row[:2] == ("NevIR", "auto"))
    assert len(row) == len(table.columns)
    assert [cell.split()[0] for cell in row[2:-1]] == ["–", "–", "50.0", "1.50", "100.0"]


def test_every_way_to_search_has_its_time(table: Table):
    times = [figures["milliseconds"] for figures in table.figures.values()]
    assert all(time > 0 for time in times)
    assert [row[-1] for row in table.rows] == [f"{time:.0f}" for time in times]


def test_the_note_says_how_much_was_searched(table: Table):
    sizes = "development: 3 queries over 4 passages; NevIR: 2 queries over 2 passages."
    assert table.notes[0].startswith(sizes)


def test_a_model_without_a_verifier_is_refused(setup: Setup):
    with pytest.raises(InvalidValue, match="verify needs a model with a verifier, which 'fake'"):
        measure_verifier(setup, said)


@pytest.mark.parametrize(
    ("name", "said_of_it"),
    [
        ("written/contrast.development.jsonl", r"contrast\.development"),
        ("data/nevir/test_open.jsonl", "NevIR, open half of the test set is not at hand"),
    ],
)
def test_missing_data_is_named(setup: Setup, tmp_path: Path, name: str, said_of_it: str):
    (tmp_path / name).unlink()
    with pytest.raises(NotFound, match=said_of_it):
        measure_verifier(setup, said)
