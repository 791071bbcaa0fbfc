"""What systems cost, by a clock that goes on by six minutes whenever it is looked at."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from coder_ir.baselines import DEO
from coder_ir.experiments.efficiency import measure_efficiency
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.types import Qrels, Query, Scores, Searcher
from tests.experiments.conftest import ABSENT, STAY, said
from tests.language_server import Desk, Reply, Request
from tests.token_encoder import FakeTokenEncoder

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")
pytest.importorskip("bm25s", reason="needs the extra hybrid")
pytest.importorskip("ot", reason="needs the extra baselines")

STEP = 360  # seconds
FREE = {"calls": 0, "tokens": 0, "dollars": 0}
SYSTEMS = [
    *("topical", "bm25", "hyde, parser", "ns-ir, parser", "deo, parser", "compatibility alone"),
    *("seq", "union", "auto", "auto, hybrid"),
]
BLANK = ("–",) * 6
Measured = Callable[..., Table]


@pytest.fixture
def measured(setup: Setup, sets: dict, loaded: list, monkeypatch: pytest.MonkeyPatch) -> Measured:
    ticks = count(0, STEP)
    monkeypatch.setattr("coder_ir.experiments.efficiency.perf_counter", lambda: next(ticks))
    monkeypatch.setattr("coder_ir.experiments.local_model.find_spec", lambda name: None)
    sets["antonym"] = STAY
    return lambda **other: measure_efficiency(replace(setup, **other), said)


class TestTimes:
    def test_they_are_those_of_the_clock(self, measured: Measured):
        # One step to index and one to open a system; BM25 needs no index.
        figures = measured().figures["antonym"]
        usual = {"offline": 2 * STEP, "milliseconds": 1000 * STEP, **FREE}
        expected = dict.fromkeys(SYSTEMS, usual) | {"bm25": {**usual, "offline": STEP}}
        assert figures == expected

    def test_a_row_gives_offline_and_online_time_and_what_a_model_costs(self, measured: Measured):
        table = measured()
        assert table.columns == (
            *("data", "system", "offline, s", "a query, ms", "queries/s", "calls", "tokens", "$"),
        )
        assert table.rows[0] == (
            *("antonym", "topical", "720.0", "360000.0", "0.00278", "0", "0", "0.00"),
        )

    def test_the_median_of_at_most_six_queries_spread_over_the_set_is_taken(
        self, measured: Measured, sets: dict, monkeypatch: pytest.MonkeyPatch
    ):
        queries = tuple(Query(f"{n:02}", f"sea {n}") for n in range(100))
        sets["antonym"] = replace(STAY, queries=queries, qrels=Qrels({}))
        asked: list[str] = []

        def milliseconds(opened: Searcher, text: str) -> float:
            asked.append(text)
            return float(text.split()[1])

        monkeypatch.setattr("coder_ir.experiments.efficiency._milliseconds", milliseconds)
        figures = measured().figures["antonym"]
        assert asked == [f"sea {n}" for n in range(0, 100, 17)] * len(SYSTEMS)
        assert figures["topical"]["milliseconds"] == 42.5

    def test_ns_ir_reads_all_documents_before_the_first_query(
        self,
        measured: Measured,
        sets: dict,
        encoder: FakeTokenEncoder,
        monkeypatch: pytest.MonkeyPatch,
    ):
        sets["antonym"] = replace(STAY, queries=(Query("q", "sea"),))
        online: list[str] = []

        def milliseconds(opened: Searcher, text: str) -> float:
            before = len(encoder.read)
            opened.search(text)
            online.extend(encoder.read[before:])
            return 1.0

        monkeypatch.setattr("coder_ir.experiments.efficiency._milliseconds", milliseconds)
        measured()
        assert {document.text for document in STAY.documents} < set(encoder.read)
        assert online == ["sea", " ∃ x (Sea(x))"]  # the query and its formula

    def test_words_are_counted_and_searched_for_hybrid_alone(
        self, measured: Measured, monkeypatch: pytest.MonkeyPatch
    ):
        matched: list[str] = []

        def best(self: object, query: str, n: int) -> list[str]:
            matched.append(query)
            return []

        monkeypatch.setattr("coder_ir.lexical.StoredLexical.best", best)
        measured()
        # The first query once more, before the clock runs.
        assert len(matched) == len(STAY.queries) + 1


class TestAbsent:
    def test_sets_that_are_not_there_say_so(self, measured: Measured):
        row = ("nevir-open", f"not measured: {ABSENT['nevir-open']}", *BLANK)
        assert row in measured().rows

    def test_without_a_language_model_its_rows_say_what_to_do(self, measured: Measured):
        says = "not measured, no language model; name one with --llm, or: pip install"
        rows = [row for row in measured().rows if says in row[1]]
        assert [row[1].partition(":")[0] for row in rows] == [
            *("hyde, model", "deo, model", "ns-ir, model"),
        ]
        assert {row[2:] for row in rows} == {BLANK}


def answer(request: Request) -> Reply:
    """Ten tokens in and five out, whatever is asked."""
    if "positive" in request["messages"][0]["content"]:
        return Reply(json.dumps({"positive": ["hotel"], "negative": ["noisy"]}))
    return Reply("∃x (Hotel(x))")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    pytest.importorskip("openai", reason="needs the extra llm")
    with Desk("sk-efficiency-0123456789", monkeypatch) as opened:
        yield opened


@pytest.fixture
def llm(desk: Desk, tmp_path: Path) -> Path:
    path = tmp_path / "model.toml"
    server = desk.server(script=answer)
    prices = "[price]\nprompt = 100\ncompletion = 200\n"
    path.write_text(f'model = "small"\nbase_url = "{server.url}"\nretries = 0\n{prices}')
    return path


class TestWithModel:
    def test_calls_tokens_and_money_are_those_of_a_query(self, measured: Measured, llm: Path):
        figures = measured(llm=llm).figures["antonym"]
        once = {"calls": 1, "tokens": 15, "dollars": pytest.approx(0.002)}
        for name in ("deo, small", "ns-ir, small"):
            assert {key: figures[name][key] for key in FREE} == once
        assert figures["hyde, small"]["calls"] == 4  # passages
        assert figures["hyde, small"]["tokens"] == 60

    def test_a_row_gives_money_for_a_thousand_queries(self, measured: Measured, llm: Path):
        row = next(row for row in measured(llm=llm).rows if row[1] == "deo, small")
        assert row[5:] == ("1", "15", "2.00")

    def test_it_is_asked_on_one_set_alone(self, measured: Measured, sets: dict, llm: Path):
        sets["nevir-open"] = STAY
        figures = measured(llm=llm).figures
        assert "deo, small" in figures["antonym"]
        assert list(figures["nevir-open"]) == SYSTEMS

    def test_the_note_says_how_much_faster_the_default_is(
        self, measured: Measured, llm: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def milliseconds(opened: Searcher, text: str) -> float:
            opened.search(text)
            return 400.0 if isinstance(opened, DEO) else 5.0

        monkeypatch.setattr("coder_ir.experiments.efficiency._milliseconds", milliseconds)
        says = "On antonym, auto answers 80 times as fast as deo, small."
        assert measured(llm=llm).notes[0].endswith(says)
        assert "times as fast" not in measured().notes[0]


class TestPicture:
    def test_it_needs_nevir(self, measured: Measured, setup: Setup):
        assert "tradeoff.png" not in measured().notes[0]
        assert not (setup.out / "tradeoff.png").exists()

    def test_it_is_written_and_shown(self, measured: Measured, sets: dict, setup: Setup):
        sets["nevir-open"] = STAY
        assert measured().notes[0].endswith("![Quality against time](tradeoff.png)")
        assert (setup.out / "tradeoff.png").read_bytes().startswith(b"\x89PNG")

    def test_it_shows_milliseconds_and_first_violations(
        self, measured: Measured, sets: dict, monkeypatch: pytest.MonkeyPatch
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
        assert set(shown) == {
            *("topical", "bm25", "deo, parser", "seq", "union", "auto"),
            *("auto, hybrid", "label"),
        }

    def test_recorded_decompositions_have_the_time_of_the_model_that_was_asked(
        self, measured: Measured, sets: dict, llm: Path, monkeypatch: pytest.MonkeyPatch
    ):
        sets["nevir-open"] = STAY
        shown: dict = {}
        monkeypatch.setattr(
            "coder_ir.experiments.efficiency.draw_tradeoff",
            lambda points, path, *, y_label: shown.update(points),
        )

        def milliseconds(opened: Searcher, text: str) -> float:
            opened.search(text)
            return 400.0 if isinstance(opened, DEO) else 5.0

        monkeypatch.setattr("coder_ir.experiments.efficiency._milliseconds", milliseconds)
        measured(llm=llm)
        assert shown["deo, recorded"][0] == 400.0
        assert shown["auto"][0] == 5.0


class Even:
    """A cross-encoder to which all passages are alike."""

    def __init__(self, folder: Path) -> None:
        assert folder.name == "reranker"

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        return np.zeros(len(passages))


def test_a_reranker_is_timed_where_there_is_one(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("coder_ir.experiments.systems.CrossEncoder", Even)
    folder = tmp_path / "reranker"
    assert list(measured(reranker=folder).figures["antonym"]) == SYSTEMS
    folder.mkdir()
    names = list(measured(reranker=folder).figures["antonym"])
    assert names[len(SYSTEMS) :] == ["topical + reranker", "auto + reranker"]
