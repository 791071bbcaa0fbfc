"""Servers in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Server:
    """A process that serves; what it writes to stderr is read as JSON lines."""

    def __init__(self, *command: object) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CODER_IR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *map(str, command)],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self.raw: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        self.raw.extend(self.process.stderr)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.raw)]

    @property
    def url(self) -> str:
        """Waits until the server says where it is and answers there."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            ports = [json.loads(line).get("port") for line in list(self.raw) if '"port"' in line]
            if ports and any("startup complete" in line for line in list(self.raw)):
                return f"http://127.0.0.1:{ports[0]}"
            time.sleep(0.02)
        raise AssertionError("".join(self.raw))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(10)
        assert self.process.stderr
        self.process.stderr.close()


@contextmanager
def fake_server(
    index: Path, seconds: float = 0.0, writing: float = 0.0, idle: int = 75
) -> Iterator[Server]:
    with running("tests.serve.fake_server", index, seconds, writing, idle) as server:
        yield server


@contextmanager
def running(*command: object) -> Iterator[Server]:
    server = Server(*command)
    try:
        yield server
    finally:
        server.close()
