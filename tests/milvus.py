"""A Milvus Lite server for the tests: a process of its own that speaks gRPC on a port."""

import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest


@dataclass
class Milvus:
    """One server; collections come with a test and go with the folder."""

    folder: Path
    port: int
    process: subprocess.Popen | None = field(default=None, repr=False)

    def address(self, collection: str, *, account: str = "", **more: str) -> str:
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in more.items())
        mark = "?" if more else ""
        return f"milvus://{account}127.0.0.1:{self.port}/{collection}{mark}{query}"

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        where = ["--data-dir", str(self.folder / "data"), "--host", "127.0.0.1"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "milvus_lite", "server", *where, "--port", str(self.port)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        log.close()
        deadline = time.monotonic() + 60
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.05)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """End the server with SIGKILL."""
        self.process.kill()
        self.process.wait(timeout=10)

    def client(self):
        """A connection beside the store's, to look at what is there."""
        from pymilvus import MilvusClient

        return MilvusClient(f"http://127.0.0.1:{self.port}", dedicated=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running() -> Iterator[Milvus]:
    """A server in a folder of its own, gone at the end."""
    for package in ("pymilvus", "milvus_lite"):
        pytest.importorskip(package, reason="needs the extra milvus")
    with tempfile.TemporaryDirectory(prefix="coder-ir-milvus-") as folder:
        server = Milvus(Path(folder), free_port())
        server.start()
        try:
            yield server
        finally:
            server.kill()


def fresh(prefix: str = "c") -> str:
    """A collection name no other test has."""
    return f"{prefix}_{secrets.token_hex(6)}"
