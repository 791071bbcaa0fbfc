"""What a server listens on, and how its process is set up."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from coder_ir import Retriever
from coder_ir.errors import InvalidValue, ServiceError
from coder_ir.serve.limits import Limits, limits_from
from coder_ir.serve.running import listen, one_blas_thread
from coder_ir.stores import SqliteStore
from tests.conftest import Command, FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.serve.conftest import HOTELS
from tests.serve.fake_server import WORDS
from tests.serve.live import Server, fake_server


def test_connections_send_small_answers_at_once():
    with listen("127.0.0.1", 0) as listening:
        with socket.create_connection(listening.getsockname()[:2]):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_kept_connection_is_answered_without_the_delay_of_an_acknowledgement(tmp_path: Path):
    folder = tmp_path / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as retriever:
        retriever.add(HOTELS)
    with fake_server(folder) as server, httpx.Client(base_url=server.url) as client:
        times = []
        for _ in range(30):
            began = time.perf_counter()
            assert client.get("/healthz").status_code == 200
            times.append(time.perf_counter() - began)
    assert min(times) < 0.02  # with the delay every answer but the first takes 0.04 and more


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_refused(port: int):
    with pytest.raises(InvalidValue, match="a port is a number"):
        listen("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ServiceError, match=r"cannot listen on 192\.0\.2\.1"):
        listen("192.0.2.1", 0)


def test_small_products_wake_no_other_thread_inside():
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="needs the extra serve")
    np.ones((2, 2)) @ np.ones((2, 2))

    def threads() -> list[int]:
        found = threadpoolctl.threadpool_info()
        return [one["num_threads"] for one in found if one["user_api"] == "blas"]

    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before


def test_any_limit_can_be_said_by_name():
    found = limits_from(["k=500", "timeout=0.5", "workers=3"])
    assert found == replace(Limits(), k=500, timeout=0.5, workers=3)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("hits=5", "there is no limit 'hits'; there are body_bytes, upload_bytes"),
        ("k", "a limit is said as k=NUMBER, got 'k'"),
        ("k=1.5", "a limit is said as k=NUMBER, got 'k=1.5'"),
        ("k=0", "the limit k must be above 0, got 0"),
        ("timeout=nan", "the limit timeout must be above 0, got nan"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, cli: Command, said: str, why: str):
    done = cli("serve", tmp_path / "index", "--limit", said)
    assert done.code == 2
    assert why in done.err
    assert not (tmp_path / "index").exists()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Answers in two seconds, and waits one for a request."""
    folder = tmp_path_factory.mktemp("served") / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as retriever:
        retriever.add(HOTELS)
    with fake_server(folder, seconds=2.0, idle=1) as server:
        yield server


HEAD = b"GET /healthz HTTP/1.1\r\nhost: here\r\n"


@pytest.mark.parametrize("first", [b"", HEAD + b"\r\n"], ids=["a new one", "one that was used"])
@pytest.mark.parametrize("part", [b"", HEAD], ids=["nothing", "a part of a head"])
def test_a_connection_over_which_no_request_comes_is_closed(impatient, first, part):
    host, port = impatient.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        if first:
            connection.sendall(first)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        for byte in part:  # each a sign of life
            connection.sendall(bytes([byte]))
            time.sleep(0.01)
        assert connection.recv(4096) == b""
        assert 0.5 < time.monotonic() - began < 3


def test_a_request_that_takes_longer_is_answered_and_so_is_the_next(impatient):
    with httpx.Client(base_url=impatient.url, timeout=10) as client:
        for _ in range(2):
            assert client.post("/v1/search", json={"query": "sea"}).status_code == 200


def test_a_body_may_take_longer_than_a_head(impatient):
    def slowly() -> Iterator[bytes]:
        for byte in b'{"query": "sea"}':
            yield bytes([byte])
            time.sleep(0.1)

    headers = {"content-type": "application/json"}
    url = f"{impatient.url}/v1/search"
    assert httpx.post(url, content=slowly(), headers=headers, timeout=10).status_code == 200
