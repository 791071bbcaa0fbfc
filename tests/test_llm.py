"""Asking a language model: a real server on this machine, right answers and wrong ones."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidValue, LanguageModelError, MissingExtra
from coder_ir.llm import Endpoint, LanguageModel
from tests.language_server import Desk, Reply, answering, recorded, refusal

pydantic = pytest.importorskip("pydantic", reason="needs the extra llm")
pytest.importorskip("openai", reason="needs the extra llm")

KEY = "sk-very-secret-0123456789"
RECORDED = Path(__file__).parent / "data" / "smollm2_recorded.jsonl"


class Place(pydantic.BaseModel):
    title: str
    rooms: int = 1


INN = Reply('{"title": "Inn", "rooms": 3}')


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Desk(KEY, monkeypatch) as opened:
        yield opened


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
        fenced = Reply(f"```json\n{INN.text}\n```\n")
        model = desk.model(desk.server(fenced), structured="text")
        assert model.ask("Which?", Place).title == "Inn"
        assert model.ledger.calls == 1

    def test_whole_json_is_taken_even_if_the_server_stopped_there(self, desk: Desk):
        model = desk.model(desk.server(Reply(INN.text, finish="length")))
        assert model.ask("Which?", Place).title == "Inn"

    def test_a_recorded_answer_of_a_real_model_is_read(self, desk: Desk):
        model = desk.model(desk.server(script=recorded(RECORDED)))
        text = model.write("Name one quiet place. Answer with one word.")
        assert text.startswith("Alejon: Alejon is a small town")
        assert (model.ledger.prompt_tokens, model.ledger.completion_tokens) == (41, 30)

    def test_half_a_character_becomes_a_question_mark(self, desk: Desk, tmp_path: Path):
        model = desk.model(desk.server(Reply("\ud800x")), cache=tmp_path / "kept.sqlite")
        assert model.write("Quiet?") == "?x"

    def test_a_server_that_counts_no_tokens_is_no_problem(self, desk: Desk):
        body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]}
        model = desk.model(desk.server(Reply(body=body)))
        assert model.write("Quiet?") == "Yes."
        assert (model.ledger.calls, model.ledger.prompt_tokens) == (1, 0)

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
        ("bad", "shown", "told"),
        [
            (Reply('{"title": 1}'), '{"title": 1}', "title: Input should be a valid string"),
            (Reply('{"title": "In'), '{"title": "In', "Invalid JSON: EOF while parsing a string"),
            (Reply('{"ti', finish="length"), '{"ti', "the answer was cut off at 1024 tokens"),
            (Reply(""), "(nothing)", "the answer was empty"),
            (Reply(None, finish="content_filter"), "(nothing)", "empty .*'content_filter'"),
            (Reply(body={"choices": []}), "(nothing)", "the answer was empty"),
        ],
        ids=["wrong type", "half", "cut off", "empty", "no content", "no choices"],
    )
    def test_an_unfit_answer_is_shown_to_the_model_with_its_fault(
        self, desk: Desk, bad: Reply, shown: str, told: str
    ):
        server = desk.server(bad, INN)
        model = desk.model(server)
        assert model.ask("Which?", Place).title == "Inn"
        first, said, why = server.requests[1]["messages"]
        assert [first] == server.requests[0]["messages"]
        assert said == {"role": "assistant", "content": shown}
        assert why["role"] == "user"
        assert re.search(rf"^That cannot be used: .*{told}.* with JSON only", why["content"])
        assert (model.ledger.calls, model.ledger.retried_answers) == (2, 1)

    def test_corrections_end_with_the_last_problem_and_answer(self, desk: Desk):
        server = desk.server(Reply('{"rooms": 3}'))
        model = desk.model(server, corrections=1)
        says = "corrections = 1: title: Field required, got '{\"rooms\": 3}'; reword the prompt"
        with pytest.raises(LanguageModelError, match=re.escape(says)):
            model.ask("Which?", Place)
        assert len(server.requests) == model.ledger.calls == 2

    def test_answers_cut_off_to_the_end_say_to_raise_max_tokens(self, desk: Desk):
        model = desk.model(desk.server(Reply("It is", finish="length")), max_tokens=2)
        with pytest.raises(LanguageModelError, match=r"cut off at 2 .*raise max_tokens \(now 2\)"):
            model.write("Why?")


class TestOnTheWay:
    def test_a_full_server_is_asked_again_when_it_says(self, desk: Desk):
        server = desk.server(refusal(429, "slow down", Retry_After="0.3"), Reply())
        started = time.monotonic()
        assert desk.model(server, retries=1).write("Quiet?") == "Yes."
        assert time.monotonic() - started >= 0.3
        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        "bad",
        [refusal(500, "oh"), refusal(503, "busy"), Reply(drop=True)],
        ids=["500", "503", "dropped"],
    )
    def test_a_passing_fault_is_tried_again(self, desk: Desk, bad: Reply):
        model = desk.model(desk.server(bad, bad, Reply()), retries=2)
        assert model.write("Quiet?") == "Yes."
        assert (model.ledger.calls, model.ledger.retried_answers) == (1, 0)

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            (refusal(500, "oh"), r"failed \(500: oh\), with retries = 2; see the server's log"),
            (refusal(429, "no"), r"takes no more calls \(429: no\), with retries = 2; .*wait"),
            (Reply(drop=True), r"\(Server disconnected.*\), with retries = 2; is the server runn"),
        ],
        ids=["500", "429", "dropped"],
    )
    def test_a_lasting_fault_ends_after_all_retries(self, desk: Desk, bad: Reply, says: str):
        server = desk.server(bad)
        with pytest.raises(LanguageModelError, match=f"{server.url} {says}"):
            desk.model(server, retries=2).write("Quiet?")
        assert len(server.requests) == 3

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            (refusal(401, "bad"), r"refused the key in .* variable OPENAI_API_KEY \(401: bad\)"),
            (refusal(403, "you?"), r"refused the key .*\(403: you\?\); set it to one that may use"),
            (refusal(404, "what?"), r"has no model 'small' \(404: what\?\); .*/v1/models lists"),
            (refusal(400, "schema"), r"refused the request \(400: schema\); .*json_schema"),
            (Reply(status=422, body={"detail": "no"}), r"refused the request \(422: no\)"),
            (Reply(status=418, body=""), r"refused the request \(418: no reason given\)"),
            (Reply(body="<p>Hi</p>"), r"did not .* chat completion but with '<p>Hi</p>'; .*/v1"),
            (
                Reply(body="{half", headers={"Content-Type": "application/json"}),
                r"did not answer with a chat completion but with 'Expecting property",
            ),
        ],
        ids=["401", "403", "404", "400", "422", "418", "web page", "half JSON"],
    )
    def test_a_refusal_is_final_and_says_what_to_do(self, desk: Desk, bad: Reply, says: str):
        server = desk.server(bad)
        with pytest.raises(LanguageModelError, match=f"{server.url} {says}"):
            desk.model(server, retries=2).write("Quiet?")
        assert len(server.requests) == 1

    def test_a_missing_key_is_told_from_a_wrong_one(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv("OPENAI_API_KEY")
        with pytest.raises(LanguageModelError, match=r"wants a key .* variable OPENAI_API_KEY"):
            desk.model(desk.server(refusal(401, "who?"))).write("Quiet?")

    def test_a_server_that_is_gone_is_named(self, desk: Desk):
        with answering([Reply()]) as gone:
            pass
        says = rf"cannot reach {gone.url} \(.*refused\).*is the server running\?"
        with pytest.raises(LanguageModelError, match=says):
            desk.model(gone).write("Quiet?")

    def test_a_slow_answer_is_given_up_after_the_timeout(self, desk: Desk):
        server = desk.server(Reply(delay=1))
        started = time.monotonic()
        with pytest.raises(LanguageModelError, match=r"within 0\.3 s, .*; raise timeout"):
            desk.model(server, timeout=0.3).write("Quiet?")
        assert time.monotonic() - started < 1


class TestRefused:
    @pytest.mark.parametrize(
        ("prompt", "options", "says"),
        [
            (" ", {}, "a prompt must have words, got ' '"),
            ("Quiet?", {"temperature": 2.5}, "temperature must be between 0 and 2, got 2.5"),
            ("Quiet?", {"sample": -1}, "sample must be 0 or more, got -1"),
        ],
        ids=["prompt", "temperature", "sample"],
    )
    def test_a_question_that_cannot_be_asked(
        self, desk: Desk, prompt: str, options: dict[str, Any], says: str
    ):
        server = desk.server(Reply())
        with pytest.raises(InvalidValue, match=re.escape(says)):
            desk.model(server).write(prompt, **options)
        assert server.requests == []

    @pytest.mark.parametrize("library", ["openai", "pydantic"])
    def test_a_missing_library_says_how_to_install_it(
        self, monkeypatch: pytest.MonkeyPatch, library: str
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtra, match=r"Asking a language model .*coder-ir\[llm\]"):
            LanguageModel(Endpoint("small"))
