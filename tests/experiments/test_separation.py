"""Margins between satisfying and violating documents, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from coder_ir.experiments.separation import measure_separation
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.types import SATISFYING, VIOLATING, Document, Qrels, Query
from tests.experiments.conftest import ABSENT, STAY, TRIP, said

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")


@pytest.fixture
def table(setup: Setup, sets: dict, loaded: list) -> Table:
    sets |= {"antonym": TRIP, "exclusion": STAY}
    return measure_separation(setup, said)


def test_margins_are_those_worked_out_by_hand(table: Table):
    # Compatibility: b 1 over a .5 is right by a half, d .5 under f 1 wrong by a half. All four are
    # as topical as their query, so that the base encoder tells none apart.
    trained, base = (table.figures[f"antonym, {name}"] for name in ("trained", "base"))
    assert trained["margin"] == pytest.approx(0, abs=1e-6)
    assert (trained["right"]["mean"], trained["queries"]) == (0.5, 2)
    assert (base["margin"], base["right"]["mean"], base["queries"]) == (0, 0, 2)


def test_a_query_without_a_violating_document_has_no_margin(table: Table):
    assert table.figures["exclusion, trained"]["queries"] == 1
    assert table.figures["exclusion, trained"]["margin"] == pytest.approx(0.5, abs=1e-4)


def test_several_documents_of_a_kind_count_by_their_mean(setup: Setup, sets: dict, loaded: list):
    # Compatible with the query: 1 and 0 on the right side, 1/2 on the wrong one; topic 1, 0 and 1.
    sets["antonym"] = replace(
        STAY,
        queries=(Query("q", "hotel quiet+"),),
        documents=(*STAY.documents, Document("e", "club")),
        qrels=Qrels({"q": {"a": VIOLATING, "b": SATISFYING, "e": SATISFYING}}),
    )
    figures = measure_separation(setup, said).figures
    assert figures["antonym, trained"]["margin"] == pytest.approx(0, abs=1e-3)
    assert figures["antonym, base"]["margin"] == pytest.approx(-0.5, abs=1e-3)


def test_rows_show_margin_and_share(table: Table):
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["exclusion", "trained"] == ("+0.500", "100.0 (100.0–100.0)", "1")
    assert rows["exclusion", "base"] == ("+0.000", "0.0 (0.0–0.0)", "1")
    assert rows["antonym", "trained"][1].startswith("50.0 (")


def test_sets_that_are_not_there_say_so(table: Table):
    words = f"not measured: {ABSENT['nevir-open']}"
    assert ("nevir-open", words, *"–––") in table.rows


def test_two_pictures_are_written_and_shown(table: Table, setup: Setup):
    for file in ("scatter.png", "separation.png"):
        assert (setup.out / file).read_bytes().startswith(b"\x89PNG")
        assert f"]({file})" in table.notes[0]


@pytest.mark.usefixtures("loaded")
def test_the_scatter_shows_every_judged_document_by_its_label(
    setup: Setup, sets: dict, monkeypatch: pytest.MonkeyPatch
):
    sets["antonym"] = STAY
    panels: dict = {}
    monkeypatch.setattr(
        "coder_ir.experiments.separation.draw_scatter", lambda found, path: panels.update(found)
    )
    measure_separation(setup, said)
    assert list(panels) == ["antonym"]
    expected = {"satisfying": [[1, 1], [1, 1]], "violating": [[1, 0.5]], "neutral": [[0, 0]]}
    assert set(panels["antonym"]) == set(expected)
    for label, points in expected.items():
        assert np.allclose(panels["antonym"][label], points, atol=1e-3), label
