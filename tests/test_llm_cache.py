"""Paid answers are kept, counted and never paid for twice."""

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import LanguageModelError, StoreError
from coder_ir.llm import Ledger
from tests.language_server import Desk, LanguageServer, Reply, answering, refusal

pydantic = pytest.importorskip("pydantic", reason="needs the extra llm")
pytest.importorskip("openai", reason="needs the extra llm")

LEAST = {"rooms": 0}  # that a place must have


class Place(pydantic.BaseModel):
    title: str
    rooms: int = 1

    @pydantic.field_validator("rooms")
    @classmethod
    def enough(cls, rooms: int) -> int:
        if rooms < LEAST["rooms"]:
            raise ValueError("too few")
        return rooms


INN = Reply('{"title": "Inn", "rooms": 3}')
HALL = Reply('{"title": "Hall", "rooms": 9}')
PROMPTS = [f"Place {number}?" for number in range(200)]
RUN = """
import sys
from pathlib import Path
from coder_ir.llm import Endpoint, LanguageModel
model = LanguageModel(Endpoint("small", sys.argv[1]), cache=Path(sys.argv[2]))
model.write_many([f"Place {n}?" for n in range(200)], progress=lambda _: print("one", flush=True))
"""


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Desk("sk-very-secret-0123456789", monkeypatch) as opened:
        yield opened


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "new" / "answers.sqlite"


def number_of(request: dict[str, Any]) -> str:
    found = re.match(r"Place (\d+)", request["messages"][0]["content"])
    assert found
    return found[1]


def place(request: dict[str, Any]) -> Reply:
    """The place that has the number asked for as its title."""
    return Reply(json.dumps({"title": number_of(request), "rooms": 2}))


class TestKept:
    def test_a_kept_answer_asks_nobody_and_costs_nothing(self, desk: Desk, cache: Path):
        server = desk.server(INN)
        first = desk.model(server, cache=cache).ask("Which?", Place)
        again = desk.model(server, cache=cache, prompt_price=1.0)
        assert again.ask("Which?", Place) == first
        assert again.ledger == Ledger(cached=1)
        assert len(server.requests) == 1

    def test_an_answer_outlives_server_address_and_mode(self, desk: Desk, cache: Path):
        with answering([INN]) as gone:
            desk.model(gone, cache=cache).ask("Which?", Place)
        later = desk.model(gone, cache=cache, base_url="http://127.0.0.1:1/v1", structured="text")
        assert later.ask("Which?", Place).title == "Inn"

    @pytest.mark.parametrize(
        ("prompt", "options", "settings"),
        [
            ("Other?", {}, {}),
            ("Quiet?", {"temperature": 0.1}, {}),
            ("Quiet?", {"sample": 1}, {}),
            ("Quiet?", {}, {"max_tokens": 5}),
        ],
        ids=["prompt", "temperature", "sample", "max_tokens"],
    )
    def test_another_question_is_asked(
        self,
        desk: Desk,
        cache: Path,
        prompt: str,
        options: dict[str, Any],
        settings: dict[str, Any],
    ):
        server = desk.server(Reply("one"), Reply("two"))
        desk.model(server, cache=cache).write("Quiet?")
        assert desk.model(server, cache=cache, **settings).write(prompt, **options) == "two"

    def test_an_answer_that_fits_no_more_is_asked_for_anew_and_replaced(
        self, desk: Desk, cache: Path, monkeypatch: pytest.MonkeyPatch
    ):
        model = desk.model(desk.server(INN, HALL), cache=cache)
        model.ask("Which?", Place)
        monkeypatch.setitem(LEAST, "rooms", 5)
        assert model.ask("Which?", Place).title == "Hall"
        assert model.ask("Which?", Place).title == "Hall"
        assert (model.ledger.calls, model.ledger.cached) == (2, 1)

    def test_only_the_good_end_of_a_dialogue_is_kept_with_all_its_tokens(
        self, desk: Desk, cache: Path
    ):
        server = desk.server(Reply("no"), INN)
        with desk.model(server, cache=cache) as model:
            model.ask("Which?", Place)
        connection = sqlite3.connect(cache)
        rows = connection.execute("SELECT text, prompt_tokens, completion_tokens FROM answers")
        assert rows.fetchall() == [(INN.text, 20, 10)]
        connection.close()
        assert desk.model(server, cache=cache).ask("Which?", Place).title == "Inn"
        assert len(server.requests) == 2

    def test_a_dialogue_without_a_good_end_is_not_kept(self, desk: Desk, cache: Path):
        model = desk.model(desk.server(Reply("no"), INN), cache=cache, corrections=0)
        with pytest.raises(LanguageModelError):
            model.ask("Which?", Place)
        assert model.ask("Which?", Place).title == "Inn"

    def test_two_objects_share_a_file(self, desk: Desk, cache: Path):
        server = desk.server(Reply("one"), Reply("two"))
        left, right = desk.model(server, cache=cache), desk.model(server, cache=cache)
        assert (left.write("a"), right.write("b")) == ("one", "two")
        assert (left.write("b"), right.write("a")) == ("two", "one")


class TestNoCache:
    def refused(self, desk: Desk, path: Path) -> str:
        with pytest.raises(StoreError, match=re.escape(str(path.parent))) as refused:
            desk.model(LanguageServer([]), cache=path, base_url="http://127.0.0.1:1/v1")
        return str(refused.value)

    def test_a_text_file(self, desk: Desk, tmp_path: Path):
        (tmp_path / "notes").write_text("Dear diary. " * 100)
        assert "move it away or name another cache file" in self.refused(desk, tmp_path / "notes")
        assert (tmp_path / "notes").read_text() == "Dear diary. " * 100

    def test_a_folder(self, desk: Desk, tmp_path: Path):
        (tmp_path / "folder").mkdir()
        assert "check that its folder" in self.refused(desk, tmp_path / "folder")

    def test_a_path_through_a_file(self, desk: Desk, tmp_path: Path):
        (tmp_path / "notes").write_text("Dear diary.")
        assert "cannot make the folder" in self.refused(desk, tmp_path / "notes" / "answers")

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_the_file_of_another_program(self, desk: Desk, tmp_path: Path, version: int):
        connection = sqlite3.connect(tmp_path / "other")
        connection.execute("CREATE TABLE mine (x)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        before = (tmp_path / "other").read_bytes()
        assert "name another cache file" in self.refused(desk, tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == before


class TestMany:
    def test_answers_come_in_the_order_of_the_prompts(self, desk: Desk):
        def late_first(request: dict[str, Any]) -> Reply:
            number = number_of(request)
            return Reply(number, delay=0.2 if number == "0" else 0)

        steps: list[int] = []
        model = desk.model(desk.server(script=late_first))
        assert model.write_many(PROMPTS[:5], progress=steps.append) == ["0", "1", "2", "3", "4"]
        assert steps == [1] * 5

    def test_equal_prompts_are_asked_once(self, desk: Desk):
        steps: list[int] = []
        server = desk.server(script=place)
        asked = [PROMPTS[1], PROMPTS[0], PROMPTS[1]]
        got = desk.model(server).ask_many(asked, Place, progress=steps.append)
        assert [each.title for each in got] == ["1", "0", "1"]
        assert (len(server.requests), sum(steps)) == (2, 3)

    def test_no_prompts_are_no_calls(self, desk: Desk):
        server = desk.server(Reply())
        assert desk.model(server).write_many([]) == []
        assert server.requests == []

    @pytest.mark.parametrize("limit", [1, 3])
    def test_calls_at_once_stay_within_the_limit(self, desk: Desk, limit: int):
        server = desk.server(Reply(delay=0.1))
        desk.model(server, concurrency=limit).write_many(PROMPTS[:6])
        assert server.most_at_once == limit

    @pytest.mark.parametrize(
        "bad", [refusal(401, "key withdrawn"), Reply(drop=True)], ids=["401", "dropped"]
    )
    def test_a_run_that_breaks_half_way_goes_on_and_pays_nothing_twice(
        self, desk: Desk, cache: Path, bad: Reply
    ):
        paid: Counter[str] = Counter()

        def hundred(request: dict[str, Any]) -> Reply:
            if paid.total() == 100:
                return bad
            paid[number_of(request)] += 1
            return place(request)

        server = desk.server(script=hundred)
        broken = desk.model(server, cache=cache)
        with pytest.raises(LanguageModelError):
            broken.ask_many(PROMPTS, Place)
        assert broken.ledger.calls == 100
        assert len(server.requests) < 200

        healthy = desk.server(script=place)
        resumed = desk.model(healthy, cache=cache)
        got = resumed.ask_many(PROMPTS, Place)
        assert [each.title for each in got] == [str(number) for number in range(200)]
        assert (resumed.ledger.calls, resumed.ledger.cached) == (100, 100)
        paid.update(map(number_of, healthy.requests))
        assert (len(paid), set(paid.values())) == (200, {1})

    def test_ctrl_c_keeps_what_arrived_and_sends_no_more(self, desk: Desk, cache: Path):
        def stop(_: int) -> None:
            raise KeyboardInterrupt

        server = desk.server(Reply(delay=0.05))
        with pytest.raises(KeyboardInterrupt):
            desk.model(server, cache=cache, concurrency=2).write_many(PROMPTS, progress=stop)
        sent = len(server.requests)
        assert sent < 20
        again = desk.model(server, cache=cache)
        again.write_many(server.prompts)
        assert again.ledger == Ledger(cached=sent)

    def test_a_killed_process_loses_only_the_calls_under_way(self, desk: Desk, cache: Path):
        server = desk.server(Reply(delay=0.02))
        command = [sys.executable, "-c", RUN, server.url, str(cache)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            told = [process.stdout.readline() for _ in range(30)]
            process.kill()
        assert told == [b"one\n"] * 30
        again = desk.model(server, cache=cache)
        again.write_many(server.prompts)
        assert again.ledger.calls <= 4
        assert again.ledger.cached >= 30


def test_the_ledger_sums_tokens_dollars_and_seconds(desk: Desk):
    server = desk.server(
        Reply("no", prompt_tokens=100, completion_tokens=10, delay=0.05),
        Reply(INN.text, prompt_tokens=200, completion_tokens=20, delay=0.05),
        Reply("Yes.", prompt_tokens=300, completion_tokens=30, delay=0.05),
    )
    model = desk.model(server, prompt_price=2.0, completion_price=10.0)
    model.ask("Which?", Place)
    before = model.ledger
    model.write("Quiet?")
    now = model.ledger
    assert (before.calls, now.calls, now.cached, now.retried_answers) == (2, 3, 0, 1)
    assert (now.prompt_tokens, now.completion_tokens) == (600, 60)
    assert now.dollars == pytest.approx((600 * 2 + 60 * 10) / 1e6)
    assert now.seconds >= 0.15
