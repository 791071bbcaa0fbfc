"""What systems cost, by a clock that goes on by six minutes whenever it is looked at."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from coder_ir.experiments.efficiency import measure_efficiency
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.types import Query, Scores
from tests.experiments.conftest import ABSENT, STAY, said

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")

STEP = 360  # seconds
SYSTEMS = ["topical", "compatibility alone", "seq", "union", "auto", "auto, verify 20"]


@pytest.fixture
def measured(
    setup: Setup, sets: dict, loaded: list, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Table]:
    ticks = count(0, STEP)
    monkeypatch.setattr("coder_ir.experiments.efficiency.perf_counter", lambda: next(ticks))
    sets["antonym"] = STAY
    return lambda **other: measure_efficiency(replace(setup, **other), said)


def test_times_are_those_of_the_clock(measured: Callable[..., Table]):
    figures = measured().figures["antonym"]
    times = dict.fromkeys(SYSTEMS, 1000 * STEP)
    assert figures == {"indexing": STEP, "documents": 3, "queries": 2, **times}


def test_a_row_gives_documents_seconds_and_milliseconds(measured: Callable[..., Table]):
    table = measured()
    assert table.columns == (
        *("data", "documents", "seconds to index"),
        *(f"{name}, ms" for name in SYSTEMS),
    )
    assert table.rows[0] == ("antonym", "3", "360.0", *["360000.0"] * len(SYSTEMS))


def test_the_note_gives_the_time_of_all_queries_of_all_sets(
    measured: Callable[..., Table], sets: dict
):
    # Six minutes to index and six a query: 2 queries and 4 queries, so 18 + 30 minutes.
    sets["excluir"] = replace(STAY, queries=(*STAY.queries, Query("s", "sea"), Query("t", "club")))
    note = measured().notes[0]
    assert f"take {', '.join(f'{name} 0.80 h' for name in SYSTEMS)}. " in note


def test_at_most_twenty_queries_are_timed_and_all_are_counted(
    measured: Callable[..., Table], sets: dict, monkeypatch: pytest.MonkeyPatch
):
    sets["antonym"] = replace(STAY, queries=tuple(Query(str(n), "sea") for n in range(100)))
    looks = count()
    monkeypatch.setattr("coder_ir.experiments.efficiency.perf_counter", lambda: next(looks))
    assert measured().figures["antonym"]["queries"] == 100
    # Two looks for the index; every fifth query is timed, 20 of them, with two looks each.
    assert next(looks) == 2 + 2 * 20 * len(SYSTEMS)


def test_sets_that_are_not_there_say_so(measured: Callable[..., Table]):
    row = ("negation", f"not measured: {ABSENT['negation']}", "–", *["–"] * len(SYSTEMS))
    assert row in measured().rows


def test_the_picture_needs_nevir(measured: Callable[..., Table], setup: Setup):
    assert "tradeoff.png" not in measured().notes[0]
    assert not (setup.out / "tradeoff.png").exists()


def test_the_picture_is_written_and_shown(measured: Callable[..., Table], sets: dict, setup: Setup):
    sets["nevir-open"] = STAY
    assert measured().notes[0].endswith("![Quality against latency](tradeoff.png)")
    assert (setup.out / "tradeoff.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_milliseconds_and_first_violations(
    measured: Callable[..., Table], sets: dict, monkeypatch: pytest.MonkeyPatch
):
    sets["nevir-open"] = STAY
    shown: dict = {}
    monkeypatch.setattr(
        "coder_ir.experiments.efficiency.draw_tradeoff",
        lambda points, path, *, y_label: shown.update(points, label=y_label),
    )
    measured()
    assert shown["topical"] == (1000 * STEP, (1 + 11) / 2)  # q meets a at once, r never
    assert shown["label"] == "FVR@10 on nevir-open"
    assert set(shown) == {*SYSTEMS, "label"}


class Even:
    """A cross-encoder to which all passages are alike."""

    def __init__(self, folder: Path) -> None:
        assert folder.name == "reranker"

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        return np.zeros(len(passages))


def test_a_reranker_is_timed_where_there_is_one(
    measured: Callable[..., Table], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("coder_ir.experiments.systems.CrossEncoder", Even)
    folder = tmp_path / "reranker"
    assert not any("+ reranker" in name for name in measured(reranker=folder).columns)
    folder.mkdir()
    columns = measured(reranker=folder).columns
    assert [name for name in columns if "+ reranker" in name] == [
        f"{policy} + reranker, ms" for policy in ("topical", "auto")
    ]
