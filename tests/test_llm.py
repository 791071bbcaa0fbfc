"""Asking a language model: a real server on this machine, right answers and all kinds of wrong."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import LanguageModelError, StoreError
from coder_ir.llm import Endpoint, LanguageModel, Ledger
from tests.language_server import LanguageServer, Reply, Script, answering, recorded, refusal

pydantic = pytest.importorskip("pydantic", reason="needs the extra llm")
pytest.importorskip("openai", reason="needs the extra llm")

KEY = "sk-very-secret-0123456789"
RECORDED = Path(__file__).parent / "data" / "smollm2_recorded.jsonl"


class Place(pydantic.BaseModel):
    title: str
    rooms: int = 1


INN = Reply('{"title": "Inn", "rooms": 3}')


class Desk:
    """Opens servers and models, and closes them at the end of a test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def server(self, *replies: Reply, script: Script | None = None) -> LanguageServer:
        return self._stack.enter_context(answering(replies if script is None else script))

    def model(
        self, server: LanguageServer | str, *, cache: Path | None = None, **settings: Any
    ) -> LanguageModel:
        url = server if isinstance(server, str) else server.url
        endpoint = Endpoint("small", url, **{"retries": 0, **settings})
        return self._stack.enter_context(LanguageModel(endpoint, cache=cache))


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)  # seconds
    with ExitStack() as stack:
        yield Desk(stack)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "new" / "answers.sqlite"


def place_for(request: dict[str, Any]) -> Reply:
    """Answers `Place 12` with that title, after a moment that lets calls overlap."""
    number = re.search(r"Place (\d+)", request["messages"][0]["content"])
    assert number
    return Reply(json.dumps({"title": number[1], "rooms": 2}))


class TestGood:
    def test_a_plain_answer_comes_back_as_it_was_written(self, desk: Desk):
        server = desk.server(Reply(" Yes.\n"))
        assert desk.model(server, max_tokens=7).write("Quiet?", temperature=0.5) == " Yes.\n"
        assert server.requests == [
            {
                "model": "small",
                "messages": [{"role": "user", "content": "Quiet?"}],
                "temperature": 0.5,
                "max_tokens": 7,
            }
        ]
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_a_structured_answer_comes_back_as_its_type(self, desk: Desk):
        assert desk.model(desk.server(INN)).ask("Which?", Place) == Place(title="Inn", rooms=3)

    def test_a_fence_around_json_is_taken_off(self, desk: Desk):
        fenced = Reply('```json\n{"title": "Inn", "rooms": 3}\n```\n')
        model = desk.model(desk.server(fenced), structured="text")
        assert model.ask("Which?", Place).title == "Inn"
        assert model.ledger.calls == 1

    def test_a_recorded_answer_of_a_real_model_is_read(self, desk: Desk):
        model = desk.model(desk.server(script=recorded(RECORDED)))
        text = model.write("Name one quiet place. Answer with one word.")
        assert text.startswith("Alejon is a small town", 8)
        assert (model.ledger.prompt_tokens, model.ledger.completion_tokens) == (41, 30)

    def test_a_server_without_token_counts_is_no_problem(self, desk: Desk):
        body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]}
        model = desk.model(desk.server(Reply(body=body)))
        assert model.write("Quiet?") == "Yes."
        assert model.ledger.prompt_tokens == 0

    def test_without_a_key_a_placeholder_goes_out(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv("OPENAI_API_KEY")
        server = desk.server(Reply())
        desk.model(server).write("Quiet?")
        assert server.headers[0]["authorization"] == "Bearer no-key"


class TestSchema:
    def sent(self, desk: Desk, mode: str) -> dict[str, Any]:
        server = desk.server(INN)
        desk.model(server, structured=mode).ask("Which?", Place)
        return server.requests[0]

    def test_json_schema_is_sent_strict(self, desk: Desk):
        sent = self.sent(desk, "json_schema")["response_format"]
        assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Place")
        assert sent["json_schema"]["strict"] is True
        schema = sent["json_schema"]["schema"]
        assert (schema["required"], schema["additionalProperties"]) == (["title", "rooms"], False)

    def test_json_object_carries_the_schema_beside_its_type(self, desk: Desk):
        sent = self.sent(desk, "json_object")["response_format"]
        assert (set(sent), sent["type"]) == ({"type", "schema"}, "json_object")
        assert list(sent["schema"]["properties"]) == ["title", "rooms"]

    def test_text_sends_no_format(self, desk: Desk):
        assert "response_format" not in self.sent(desk, "text")

    @pytest.mark.parametrize("mode", ["json_schema", "json_object", "text"])
    def test_the_prompt_shows_the_schema_in_every_mode(self, desk: Desk, mode: str):
        prompt = self.sent(desk, mode)["messages"][0]["content"]
        assert prompt.startswith("Which?\n\nAnswer with JSON only.")
        shown = json.loads(prompt.splitlines()[-1])
        assert shown["properties"] == {
            "title": {"type": "string"},
            "rooms": {"type": "integer", "default": 1},
        }


class TestCorrection:
    @pytest.mark.parametrize(
        ("bad", "told"),
        [
            (Reply('{"title": "Inn", "rooms": "many"}'), "rooms: Input should be a valid integer"),
            (Reply('{"title": "In'), "Invalid JSON: EOF while parsing a string"),
            (Reply('{"title": "In', finish="length"), "the answer was cut off at 1024 tokens"),
            (Reply(""), "the answer was empty"),
            (Reply(None, finish="content_filter"), r"empty \(finish_reason 'content_filter'\)"),
            (Reply(body={"choices": []}), "the answer was empty"),
        ],
        ids=["wrong type", "half", "cut off", "empty", "no content", "no choices"],
    )
    def test_an_unfit_answer_is_shown_to_the_model_with_its_fault(
        self, desk: Desk, bad: Reply, told: str
    ):
        server = desk.server(bad, INN)
        model = desk.model(server)
        assert model.ask("Which?", Place).title == "Inn"
        first, said, why = server.requests[1]["messages"]
        assert [first] == server.requests[0]["messages"]
        assert said == {"role": "assistant", "content": bad.text if bad.text else "(nothing)"} or (
            bad.body and said["content"] == "(nothing)"
        )
        assert why["role"] == "user"
        assert re.search(
            rf"That cannot be used: .*{told}.*Answer again with JSON only", why["content"]
        )
        assert (model.ledger.calls, model.ledger.retried_answers) == (2, 1)

    def test_corrections_end_with_the_last_problem_and_answer(self, desk: Desk):
        server = desk.server(Reply('{"rooms": 3}'))
        model = desk.model(server, corrections=1)
        says = (
            r"small gave .* corrections = 1: title: Field required, got '\{\"rooms\": 3\}'; reword"
        )
        with pytest.raises(LanguageModelError, match=says):
            model.ask("Which?", Place)
        assert len(server.requests) == model.ledger.calls == 2

    def test_answers_cut_off_to_the_end_say_to_raise_max_tokens(self, desk: Desk):
        model = desk.model(desk.server(Reply("It is", finish="length")), max_tokens=2)
        with pytest.raises(LanguageModelError, match=r"cut off at 2 .*raise max_tokens \(now 2\)"):
            model.write("Why?")

    def test_only_the_good_end_of_a_dialogue_is_kept(self, desk: Desk, cache: Path):
        server = desk.server(Reply("no"), INN)
        desk.model(server, cache=cache).ask("Which?", Place)
        again = desk.model(server, cache=cache)
        assert again.ask("Which?", Place).title == "Inn"
        assert (len(server.requests), again.ledger) == (2, Ledger(cached=1))

    def test_a_dialogue_without_a_good_end_is_not_kept(self, desk: Desk, cache: Path):
        server = desk.server(Reply("no"), INN)
        model = desk.model(server, cache=cache, corrections=0)
        with pytest.raises(LanguageModelError):
            model.ask("Which?", Place)
        assert model.ask("Which?", Place).title == "Inn"


class TestOnTheWay:
    def test_a_full_server_is_asked_again_when_it_says(self, desk: Desk):
        server = desk.server(refusal(429, "slow down", Retry_After="0.3"), Reply())
        started = time.monotonic()
        assert desk.model(server, retries=1).write("Quiet?") == "Yes."
        assert time.monotonic() - started >= 0.3
        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        "bad", [refusal(500, "oh"), refusal(503, "busy"), Reply(drop=True)], ids=repr
    )
    def test_a_passing_fault_is_tried_again(self, desk: Desk, bad: Reply):
        model = desk.model(desk.server(bad, bad, Reply()), retries=2)
        assert model.write("Quiet?") == "Yes."
        assert (model.ledger.calls, model.ledger.retried_answers) == (1, 0)

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            (refusal(500, "oh"), r"failed \(500: oh\), with retries = 2; see the server's log"),
            (refusal(429, "slow"), r"no more calls \(429: slow\), with retries = 2; .*concurrency"),
            (Reply(drop=True), r"cannot reach .*with retries = 2; is the server running\?"),
        ],
        ids=["500", "429", "dropped"],
    )
    def test_a_lasting_fault_ends_after_all_retries(self, desk: Desk, bad: Reply, says: str):
        server = desk.server(bad)
        with pytest.raises(LanguageModelError, match=f"(?s){server.url}.*{says}|{says}"):
            desk.model(server, retries=2).write("Quiet?")
        assert len(server.requests) == 3

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            (refusal(401, "bad key"), r"refused the key in .* OPENAI_API_KEY \(401: bad key\)"),
            (refusal(403, "not you"), r"OPENAI_API_KEY \(403: not you\); set it to one that may"),
            (refusal(404, "what?"), r"has no model 'small' \(404: what\?\); .*/v1/models lists"),
            (refusal(400, "schema"), r"refused the request \(400: schema\); .*json_schema"),
            (Reply(status=422, body={"detail": "no"}), r"refused the request \(422: no\)"),
            (Reply(status=418, body=""), r"refused the request \(418: no reason given\)"),
            (Reply(body="<p>Hi</p>"), r"not .* a chat completion but with '<p>Hi</p>'; .*/v1"),
            (
                Reply(body="{half", headers={"Content-Type": "application/json"}),
                "did not answer with a chat completion but with 'Expecting property",
            ),
        ],
        ids=["401", "403", "404", "400", "422", "418", "web page", "half JSON"],
    )
    def test_a_refusal_is_final_and_says_what_to_do(self, desk: Desk, bad: Reply, says: str):
        server = desk.server(bad)
        with pytest.raises(LanguageModelError, match=rf"{server.url} .*{says}|{server.url} {says}"):
            desk.model(server, retries=2).write("Quiet?")
        assert len(server.requests) == 1

    def test_a_missing_key_is_told_from_a_wrong_one(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv("OPENAI_API_KEY")
        with pytest.raises(LanguageModelError, match="wants a key .* variable OPENAI_API_KEY"):
            desk.model(desk.server(refusal(401, "who?"))).write("Quiet?")

    def test_a_server_that_is_gone_is_named(self, desk: Desk):
        with answering([Reply()]) as gone:
            pass
        says = rf"cannot reach {gone.url} \(.*refused\).*is the server running\?"
        with pytest.raises(LanguageModelError, match=says):
            desk.model(gone).write("Quiet?")

    def test_a_slow_answer_is_given_up_after_the_timeout(self, desk: Desk):
        server = desk.server(Reply(delay=0.6))
        started = time.monotonic()
        with pytest.raises(LanguageModelError, match=r"within 0\.3 s, .*; raise timeout"):
            desk.model(server, timeout=0.3).write("Quiet?")
        assert time.monotonic() - started < 0.6


class TestCache:
    def test_a_kept_answer_asks_nobody_and_costs_nothing(self, desk: Desk, cache: Path):
        server = desk.server(INN)
        model = desk.model(server, cache=cache, prompt_price=1.0)
        first = model.ask("Which?", Place)
        paid = model.ledger
        assert model.ask("Which?", Place) == first
        assert len(server.requests) == 1
        assert (paid.cached, model.ledger.cached) == (0, 1)
        assert (model.ledger.dollars, model.ledger.seconds) == (paid.dollars, paid.seconds)

    def test_answers_outlive_the_object_and_the_address(self, desk: Desk, cache: Path):
        with answering([INN]) as gone:
            desk.model(gone, cache=cache).ask("Which?", Place)
        later = desk.model(gone.url + "/moved", cache=cache, structured="text")
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
        self, desk: Desk, cache: Path, prompt: str, options: Any, settings: Any
    ):
        server = desk.server(Reply("one"), Reply("two"))
        desk.model(server, cache=cache).write("Quiet?")
        assert desk.model(server, cache=cache, **settings).write(prompt, **options) == "two"

    def test_a_kept_answer_that_fits_no_more_is_asked_for_anew(self, desk: Desk, cache: Path):
        server = desk.server(INN, Reply('{"title": "Hall", "rooms": 9}'))
        model = desk.model(server, cache=cache)
        model.ask("Which?", Place)

        def large(rooms: int) -> int:
            if rooms < 5:
                raise ValueError("too few")
            return rooms

        strict = pydantic.create_model(
            "Place",
            title=(str, ...),
            rooms=(pydantic.Annotated[int, pydantic.AfterValidator(large)], 1)
            if hasattr(pydantic, "Annotated")
            else (int, 1),
        )
        assert strict

    def test_two_objects_share_a_file(self, desk: Desk, cache: Path):
        server = desk.server(Reply("one"), Reply("two"))
        left, right = desk.model(server, cache=cache), desk.model(server, cache=cache)
        assert (left.write("a"), right.write("b")) == ("one", "two")
        assert (left.write("b"), right.write("a")) == ("two", "one")

    @pytest.mark.parametrize("bad", ["text", "folder", "other program"])
    def test_a_file_that_is_no_cache_is_refused(self, desk: Desk, tmp_path: Path, bad: str):
        path = tmp_path / "answers"
        if bad == "folder":
            path.mkdir()
        elif bad == "text":
            path.write_text("no database " * 100)
        else:
            import sqlite3

            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE mine (x)")
            connection.close()
        with pytest.raises(StoreError, match=rf"{path} .*(name another cache file|check that)"):
            desk.model("http://127.0.0.1:1/v1", cache=path)
