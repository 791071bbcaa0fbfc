"""Survival curves of the diagnostic sets, by hand."""

import pytest

from coder_ir.experiments.comparison import comparing, load_comparison
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.survival import measure_survival
from coder_ir.experiments.tables import Table
from tests.experiments.conftest import ABSENT, STAY, Loaded, said

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")


@pytest.fixture
def table(setup: Setup, sets: dict, loaded: Loaded) -> Table:
    sets["negation"] = STAY
    return measure_survival(setup, said)


@pytest.mark.parametrize(
    ("system", "curve"),
    [
        ("topical", [0.5] * 10),  # q meets the violating a at once, r never
        ("seq", [1.0] + [0.5] * 9),  # q meets it second
    ],
)
def test_curves_are_those_worked_out_by_hand(table: Table, system: str, curve: list[float]):
    assert table.figures["negation"][system] == curve


def test_every_system_of_the_diagnostics_has_a_row_and_some_a_curve(table: Table):
    names = [system.name for system in load_comparison("diagnostics").systems]
    assert [row[1] for row in table.rows if row[0] == "negation"] == names
    assert list(table.figures["negation"]) == [
        *("topical", "bm25", "deo, recorded", "seq", "union", "auto"),
    ]


def test_rows_show_some_depths_in_percent(table: Table):
    assert table.columns[2:] == ("k = 1", "k = 2", "k = 3", "k = 5", "k = 10")
    row = next(row for row in table.rows if row[1] == "compatibility alone")
    cells = [cell.split(" (")[0] for cell in row]
    assert cells == ["negation", "compatibility alone", "100.0", *["50.0"] * 4]


def test_sets_that_are_not_there_say_so(table: Table):
    for data in ("antonym", "exclusion"):
        assert (data, f"not measured: {ABSENT[data]}", *"–––––") in table.rows


def test_a_picture_is_written_and_shown(table: Table, setup: Setup):
    assert (setup.out / "survival.png").read_bytes().startswith(b"\x89PNG")
    assert "](survival.png)" in " ".join(table.notes)


def test_what_the_diagnostics_table_searched_is_not_searched_again(
    setup: Setup, sets: dict, loaded: Loaded
):
    sets["negation"] = STAY
    comparing("diagnostics")(setup, said)
    opened = len(loaded)
    measure_survival(setup, said)
    assert len(loaded) == opened
