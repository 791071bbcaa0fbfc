"""Settings of a language model, and the key that neither they nor anything else shows."""

import logging
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidFile, InvalidValue, LanguageModelError, NotFound
from coder_ir.llm import Endpoint
from tests.language_server import Desk, Reply, refusal

KEY = "sk-very-secret-0123456789"
ECHOES = {
    **{str(status): refusal(status, f"{KEY} is bad") for status in (400, 401, 403, 404, 429, 500)},
    "401 with a page": Reply(status=401, body=f"<p>{KEY}</p>"),
    "500 with a list": Reply(status=500, body={"detail": [KEY, {KEY: KEY}]}),
    "page": Reply(body=f"<p>{KEY}</p>"),
    "half JSON": Reply(body=f'{{"a": {KEY}', headers={"Content-Type": "application/json"}),
    "cut off answer": Reply(f"{KEY} {KEY}", finish="length"),
    "dropped": Reply(drop=True),
}


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    pytest.importorskip("openai", reason="needs the extra llm")
    with Desk(KEY, monkeypatch) as opened:
        yield opened


class TestLoad:
    def load(self, tmp_path: Path, text: str) -> Endpoint:
        path = tmp_path / "model.toml"
        path.write_text(text, encoding="utf-8")
        return Endpoint.load(path)

    def test_a_model_alone_takes_the_defaults(self, tmp_path: Path):
        assert self.load(tmp_path, 'model = "small"') == Endpoint("small")

    def test_all_settings_are_read(self, tmp_path: Path):
        text = """
            model = "small"
            base_url = "http://127.0.0.1:8000/v1"
            key_variable = "MY_KEY"
            structured = "json_object"
            timeout = 5
            retries = 0
            corrections = 1
            concurrency = 2
            max_tokens = 64
            [price]
            prompt = 0.15
            completion = 0.6
        """
        assert self.load(tmp_path, text) == Endpoint(
            model="small",
            base_url="http://127.0.0.1:8000/v1",
            key_variable="MY_KEY",
            structured="json_object",
            timeout=5,
            retries=0,
            corrections=1,
            concurrency=2,
            max_tokens=64,
            prompt_price=0.15,
            completion_price=0.6,
        )

    @pytest.mark.parametrize("name", ["api_key", "key", "token", "temprature"])
    def test_a_key_or_an_unknown_name_is_refused_without_its_value(self, tmp_path: Path, name: str):
        says = f"'{name}' is none of the settings .*keys come from the environment only"
        with pytest.raises(InvalidFile, match=says) as refused:
            self.load(tmp_path, f'model = "small"\n{name} = "{KEY}"')
        assert KEY not in str(refused.value)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", 'names no model; add a line: model = "name"'),
            ("model = ", "is not TOML: Invalid value"),
            ('model = "m"\nretries = -1', "retries must be a whole number from 0 up, got -1"),
            ('model = "m"\nprice = 3', "price must be a table [price], got 3"),
            ('model = "m"\n[price]\nmonth = 3', "'month_price' is none of the settings"),
            ('model = "m"\nprompt_price = 1\n[price]\nprompt = 2', "keep one"),
        ],
        ids=["empty", "not TOML", "bad value", "price", "unknown price", "two prices"],
    )
    def test_a_file_that_cannot_work_is_named(self, tmp_path: Path, text: str, says: str):
        with pytest.raises(InvalidFile, match=rf"model\.toml.*{re.escape(says)}"):
            self.load(tmp_path, text)

    def test_a_file_that_is_not_there(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no language model settings .*model\.toml"):
            Endpoint.load(tmp_path / "model.toml")


class TestValues:
    @pytest.mark.parametrize(
        ("name", "value", "says"),
        [
            ("model", " ", "must name a model, got ' '"),
            ("base_url", "localhost:8000", "must look like http://127.0.0.1:8000/v1, got 'local"),
            ("base_url", "http://h:port/v1", "must look like http://127.0.0.1:8000/v1, got 'http"),
            ("structured", "xml", "must be one of json_schema, json_object, text, got 'xml'"),
            ("timeout", 0, "must be above 0, got 0"),
            ("timeout", float("inf"), "must be above 0, got inf"),
            ("retries", 1.5, "must be a whole number from 0 up, got 1.5"),
            ("corrections", -1, "must be a whole number from 0 up, got -1"),
            ("concurrency", 0, "must be a whole number from 1 up, got 0"),
            ("max_tokens", True, "must be a whole number from 1 up, got True"),
            ("prompt_price", -1, "must be 0 or more, got -1"),
            ("completion_price", "1", "must be 0 or more, got '1'"),
        ],
    )
    def test_one_that_cannot_work_is_shown(self, name: str, value: Any, says: str):
        with pytest.raises(InvalidValue, match=re.escape(f"{name} {says}")):
            Endpoint(**{"model": "small", name: value})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("key_variable", KEY),
            ("base_url", f"https://me:{KEY}@host/v1"),
            ("base_url", f"https://host/v1?key={KEY}"),
        ],
        ids=["key as variable", "password in address", "key in address"],
    )
    def test_a_key_among_them_is_refused_and_not_shown(self, name: str, value: str):
        with pytest.raises(InvalidValue, match=f"{name} must") as refused:
            Endpoint(**{"model": "small", name: value})
        assert KEY not in str(refused.value)


class TestKey:
    @pytest.mark.parametrize("reply", ECHOES.values(), ids=ECHOES)
    def test_it_is_in_no_message_traceback_or_log(
        self, desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture, reply: Reply
    ):
        caplog.set_level(logging.DEBUG)
        server = desk.server(reply)
        model = desk.model(server, cache=tmp_path / "answers", retries=1, corrections=1)
        with pytest.raises(LanguageModelError) as failed:
            model.write("Quiet?")
        error = failed.value
        assert (error.__cause__, error.__context__) == (None, None)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        assert KEY not in "".join(traceback.format_exception(error))
        assert caplog.text and KEY not in caplog.text
        assert KEY not in repr([error, model, model.endpoint, model.ledger])

    def test_it_is_in_no_byte_of_the_cache_even_if_the_answer_holds_it(
        self, desk: Desk, tmp_path: Path
    ):
        model = desk.model(desk.server(Reply(f"It is {KEY}.")), cache=tmp_path / "answers")
        assert model.write("What is my key?") == "It is ***."
        files = list(tmp_path.iterdir())
        assert len(files) == 3  # SQLite's own two beside it
        assert all(KEY.encode() not in path.read_bytes() for path in files)

    def test_a_word_as_key_stays_in_answers_but_not_in_errors(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("OPENAI_API_KEY", "ollama")
        model = desk.model(desk.server(Reply("An ollama."), refusal(401, "ollama?")))
        assert model.write("Which animal?") == "An ollama."
        with pytest.raises(LanguageModelError, match=r"401: \*\*\*\?"):
            model.write("Which animal again?")

    def test_openais_own_goes_to_openai_alone_unless_named(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        server = desk.server(Reply())
        desk.model(server, key_variable="").write("Quiet?")
        assert server.headers[0]["authorization"] == "Bearer no-key"
        assert Endpoint("small").key() == KEY

    def test_it_never_leaves_in_plain_text(self, desk: Desk):
        named = Endpoint("m", base_url="http://example.org/v1", key_variable="OPENAI_API_KEY")
        with pytest.raises(InvalidValue, match="in plain text over the network; use https") as said:
            named.key()
        assert KEY not in str(said.value)

    def test_space_around_it_is_dropped(self, desk: Desk, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        server = desk.server(Reply())
        desk.model(server).write("Quiet?")
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_one_that_cannot_be_sent_is_refused_and_not_shown(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\nclé")
        with pytest.raises(InvalidValue, match="the key in OPENAI_API_KEY has a space") as refused:
            desk.model(desk.server(Reply()))
        assert KEY not in str(refused.value)

    def test_a_model_shows_its_name_and_address_only(self, desk: Desk):
        server = desk.server(Reply())
        assert repr(desk.model(server)) == f"LanguageModel('small' at {server.url})"
