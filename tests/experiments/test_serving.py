"""The server under load, at a size that takes seconds."""

import asyncio
from pathlib import Path

from coder_ir.encoders.registry import BUILT_IN
from coder_ir.experiments.load import Heard, Pace, searching
from coder_ir.experiments.serving import Load, measure_serving
from coder_ir.experiments.setup import Setup
from tests.experiments.conftest import said
from tests.serve.live import ROOT, running


def test_a_percentile_is_an_answer_that_came():
    heard = Heard([0.004, 0.001, 0.003, 0.002])
    assert [heard.percentile(share) for share in (0, 0.5, 0.99)] == [1.0, 3.0, 4.0]


def test_a_real_server_is_measured_and_nothing_acknowledged_is_lost(tmp_path: Path):
    setup = Setup(tmp_path, tmp_path / "out", "none", BUILT_IN, written=ROOT / "recipes/written")
    load = Load(documents=80, alone=0.7, callers=4, seconds=0.8, writes=20)
    table = measure_serving(setup, said, load)
    figures = table.figures
    assert (figures["errors"], figures["lost"]) == ([], [])
    assert figures["acknowledged"] > 8
    assert all(rate > 1 for rate in figures["rates"])
    assert len(table.rows) == 3 and "Errors: 0." in table.notes[0]


def test_answers_that_are_errors_are_counted(tmp_path: Path):
    with running("coder_ir", "serve", tmp_path / "index", "--port", 0) as server:
        port = int(server.url.rpartition(":")[2])
        heard = asyncio.run(searching(port, [" "], Pace(callers=2, seconds=0.2)))
    assert heard.refused and set(heard.refused) == {422}
    assert heard.seconds == []


def test_paced_callers_ask_about_as_often_as_told(tmp_path: Path):
    with running("coder_ir", "serve", tmp_path / "index", "--port", 0) as server:
        port = int(server.url.rpartition(":")[2])
        heard = asyncio.run(searching(port, ["sea"], Pace(callers=3, seconds=2, a_second=20)))
    assert 15 <= len(heard.seconds) <= 65
