"""`bench ann`: what it draws, and a run over a small index."""

from pathlib import Path

import numpy as np
import pytest

from coder_ir.experiments import ann
from coder_ir.experiments.ann import Case, Mixture, measure_ann
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table


def drawn(rows: int = 2000, seed: int = 3):
    return Mixture.of(Case(2000), 1).draw(rows, np.random.default_rng(seed))


def test_vectors_are_of_length_one():
    np.testing.assert_allclose(np.linalg.norm(drawn(), axis=1), 1, atol=1e-5)


def test_the_same_seed_draws_the_same_vectors():
    assert np.array_equal(drawn(), drawn())
    assert not np.array_equal(drawn(), drawn(seed=4))


def test_vectors_gather_in_clusters():
    rows = drawn()
    scores = np.sort(rows @ rows.T, axis=1)
    assert scores[:, -20:-1].mean() > 0.4 + scores.mean()


def test_queries_are_none_of_the_documents():
    queries = np.vstack([query.topical for query in ann._queries(Case(2000))])
    assert (queries @ drawn().T).max() < 0.999


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Table:
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ann, "_ADDED", 50)
        return measure_ann(Setup(out, out, "", "built-in"), lambda _: None, cases=(Case(300),))


def test_a_row_tells_of_one_size(table):
    [row] = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert (cells["documents"], cells["a cluster"]) == ("300", "500")
    assert (cells["search"], cells["rebuilt"]) == ("exact", "no")
    assert cells["recall@100"] == "1.000, 1.000"


def test_figures_hold_what_the_cells_were_made_from(table):
    [figures] = table.figures["cases"]
    assert figures["vector bytes"] == 300 * 384 * 4 * 2
    for mode in ("exact", "approximate"):
        times = figures[mode]["milliseconds"]["topical"]
        assert 0 < times["p50"] <= times["p95"]
        assert figures[mode]["bytes"] > figures["vector bytes"]
    assert [each["recall"] for each in figures["filters"]] == [1.0] * len(figures["filters"])


def test_every_goal_is_said_to_be_met_or_not(table):
    said = table.notes[-1]
    assert said.startswith("**300 documents in clusters of 500.** Held to: opens in under 10 s: ")
    assert said.count(": yes (") + said.count(": no (") == 5


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ann, "_measured", lambda folder, *_: (folder / "big").write_text("x") and 1)
    monkeypatch.setattr(ann, "_table", list)
    measure_ann(Setup(tmp_path, tmp_path, "", "built-in"), lambda _: None, cases=(Case(1),))
    assert list((tmp_path / "cache").iterdir()) == []
