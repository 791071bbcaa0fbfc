"""A language model's HTTP server on this machine, which says what a test tells it to say."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self

import pytest

from coder_ir.llm import Endpoint, LanguageModel

Request = dict[str, Any]  # the body of a chat completion request


@dataclass(frozen=True)
class Reply:
    """One answer of the server; `body` stands for all that a completion would hold."""

    text: str | None = "Yes."
    finish: str = "stop"
    prompt_tokens: int = 10
    completion_tokens: int = 5
    body: Any = None  # JSON, or text that is sent as it is
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before it is sent
    drop: bool = False  # close the connection without a word

    def encoded(self) -> bytes:
        if isinstance(self.body, str):
            return self.body.encode()
        return json.dumps(self._completion() if self.body is None else self.body).encode()

    def _completion(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": {
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
                "total_tokens": self.prompt_tokens + self.completion_tokens,
            },
        }


Script = Sequence[Reply] | Callable[[Request], Reply]


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI words one; a header's name has _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body={"error": {"message": message}}, headers=named)


def recorded(path: Path) -> Callable[[Request], Reply]:
    """Plays back a file of JSON lines with `messages` and the `response` they once got.

    Lines with the same messages are played in their order, then the last one again and again.
    """
    kept: dict[str, list[Any]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kept[json.dumps(row["messages"])].append(row["response"])

    def play(request: Request) -> Reply:
        responses = kept.get(json.dumps(request["messages"]))
        if not responses:
            return refusal(400, "these messages were never recorded")
        return Reply(body=responses.pop(0) if len(responses) > 1 else responses[0])

    return play


class LanguageServer:
    """Replies by a script and remembers what it was asked; the last reply of a list repeats."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.url = ""
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []  # of the requests, names in lower case
        self.most_at_once = 0
        self._at_once = 0
        self._lock = Lock()

    @property
    def prompts(self) -> list[str]:
        """What the first message of each request says."""
        return [request["messages"][0]["content"] for request in self.requests]

    def answer(self, request: Request, headers: Mapping[str, str]) -> Reply:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.requests.append(request)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            if callable(self.script):
                reply = self.script(request)
            else:
                reply = self.script[min(len(self.requests), len(self.script)) - 1]
        time.sleep(reply.delay)
        with self._lock:
            self._at_once -= 1
        return reply


@contextmanager
def answering(script: Script) -> Iterator[LanguageServer]:
    """A server on a free port, until the end of the block."""
    home = LanguageServer(script)

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # head and body leave together

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            reply = home.answer(json.loads(content), self.headers)
            if reply.drop:
                return
            sent = reply.encoded()
            self.send_response(reply.status)
            kind = "text/html" if isinstance(reply.body, str) else "application/json"
            for name, value in {"Content-Type": kind, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def handle(self) -> None:
            with suppress(ConnectionError):  # of a client that stopped waiting
                super().handle()
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False  # so that leaving the block waits for slow replies
        home.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield home
        finally:
            server.shutdown()
            thread.join()


class Desk:
    """Opens servers and models that know a key, and closes them all at the end of a block."""

    def __init__(self, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._stack = ExitStack()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)  # seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def server(self, *replies: Reply, script: Script | None = None) -> LanguageServer:
        return self._stack.enter_context(answering(replies if script is None else script))

    def model(
        self, server: LanguageServer, *, cache: Path | None = None, **settings: Any
    ) -> LanguageModel:
        """A model called small that tries each call once, unless told otherwise."""
        usual = {"base_url": server.url, "retries": 0, "key_variable": "OPENAI_API_KEY"}
        endpoint = Endpoint("small", **{**usual, **settings})
        return self._stack.enter_context(LanguageModel(endpoint, cache=cache))
