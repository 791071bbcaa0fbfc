"""Grids of seq and union over four documents, every cell by hand.

For each of the two queries one document is (1, 1) and its rival (1, .5): the first is right for
the one query, wrong for the other.
"""

from pathlib import Path

import pytest

from coder_ir.experiments.sensitivity import measure_sensitivity
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.systems import System, answered
from coder_ir.experiments.tables import Table
from coder_ir.metrics import measure_named, per_query
from tests.experiments.conftest import ABSENT, TRIP, said

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")

BOTH = (1.0, 1.5 / 11)  # both documents stay: the wrong one is first for one query, second else
ALONE = (0.5, 6 / 11)  # the rival is dropped: nothing wrong for one query, nothing right else
ALPHAS = (0, 0.2, 0.4, 0.6, 0.8, 1)


@pytest.fixture
def table(setup: Setup, sets: dict, loaded: list) -> Table:
    sets["excluir"] = TRIP
    return measure_sensitivity(setup, said)


def cells(table: Table, policy: str) -> dict[tuple[float, float], tuple[float, float]]:
    return {
        (cell["alpha"], cell["threshold"]): (cell["R@10"], cell["FVR@10 / 11"])
        for cell in table.figures["excluir"][policy]
    }


def test_the_grid_of_seq_turns_where_the_threshold_passes_the_rival(table: Table):
    # Whatever alpha is, a rival with half of the words is kept up to a threshold of one half.
    expected = {(a, t): BOTH for a in ALPHAS for t in (0, 0.3, 0.5)}
    expected |= {(a, t): ALONE for a in ALPHAS for t in (0.6, 0.7, 0.8)}
    found = cells(table, "seq")
    assert set(found) == set(expected)  # the default, alpha .2 and tau .3, is one of them
    for cell, figures in expected.items():
        assert found[cell] == pytest.approx(figures), cell


def test_the_grid_of_union_turns_where_the_quantile_leaves_one_of_four(table: Table):
    # Closeness is 1, 1/2, 1/3 and 1/4; its quantile of .5 is 5/12, that of .7 is .55.
    expected = {(a, p): BOTH for a in ALPHAS for p in (0, 0.1, 0.3, 0.5)}
    expected |= {(a, p): ALONE for a in ALPHAS for p in (0.7, 0.9)}
    expected[0.3, 0.1] = BOTH  # the default is no point of the grid
    found = cells(table, "union")
    assert set(found) == set(expected)
    for cell, figures in expected.items():
        assert found[cell] == pytest.approx(figures), cell


def test_rows_name_the_default_and_the_best_settings(table: Table):
    assert [row[1:] for row in table.rows if row[0] == "excluir"] == [
        ("seq", "default: α 0.2 τ 0.3", "1.000", "0.136"),
        ("seq", "best R@10: α 0 τ 0", "1.000", "0.136"),
        ("seq", "best FVR: α 0 τ 0.6", "0.500", "0.545"),
        ("union", "default: α 0.3 p 0.1", "1.000", "0.136"),
        ("union", "best R@10: α 0 p 0", "1.000", "0.136"),
        ("union", "best FVR: α 0 p 0.7", "0.500", "0.545"),
    ]


@pytest.mark.parametrize("policy", ["seq", "union"])
def test_the_default_is_what_a_search_finds(table: Table, setup: Setup, policy: str):
    run = answered(System(policy, policy=policy), "excluir", TRIP, setup, said)
    first = per_query(measure_named("FVR@10").function, run, TRIP.qrels)
    row = next(row for row in table.rows if row[1] == policy)
    assert row[-1] == f"{sum(first.values()) / 2 / 11:.3f}"


def test_sets_that_are_not_there_say_so(table: Table):
    absent = [row for row in table.rows if row[0] != "excluir"]
    assert absent == [
        (data, f"not measured: {ABSENT[data]}", *"–––") for data in ("negation", "nevir-open")
    ]
    assert list(table.figures) == ["excluir"]


def test_four_pictures_are_written_and_shown(table: Table, setup: Setup):
    files = [
        f"sensitivity-{name}-{kind}.png" for name in ("seq", "union") for kind in ("recall", "fvr")
    ]
    for file in files:
        assert (setup.out / file).read_bytes().startswith(b"\x89PNG")
        assert f"]({file})" in table.notes[1]
    assert sorted(path.name for path in Path(setup.out).glob("*.png")) == sorted(files)
