"""Real servers, in processes of their own, asked over loopback."""

import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from coder_ir import Client, Document, Retriever, SearchOptions
from coder_ir.errors import AccessDenied, CoderError, NotFound
from coder_ir.stores import SqliteStore
from tests.conftest import Command, FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.serve.conftest import LINES, jsonl
from tests.serve.fake_server import WORDS
from tests.serve.live import fake_server, running

QUERIES = ["hotel -club", "quiet sea", "garden", "noisy hotel -sea", "club"]
OPTIONS = [SearchOptions(k=3), SearchOptions(policy="union"), SearchOptions(exclude=("club",))]


def documents(count: int, prefix: str = "d") -> list[Document]:
    chance = random.Random(5)
    return [
        Document(f"{prefix}{number}", " ".join(chance.choices(WORDS, k=6)), "", {"n": number})
        for number in range(count)
    ]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as retriever:
        retriever.add(documents(200))
    return folder


def test_concurrent_searches_equal_the_retriever_s_own_answers(index: Path):
    asked = [(QUERIES[i % 5], OPTIONS[i % 3]) for i in range(120)]
    with Retriever(
        FakeEncoder(WORDS), SqliteStore(index, read_only=True), verifier=FakeVerifier()
    ) as own:
        expected = [own.search_many([query], options)[0] for query, options in asked]
    with fake_server(index, 0.005) as server, Client(server.url) as client:
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda one: client.search_many([one[0]], one[1])[0], asked))
    assert found == expected


def test_no_read_waits_for_a_batch_that_is_written(index: Path):
    fresh, done, batch = documents(256, "new"), threading.Event(), 1.0
    with fake_server(index, 0, batch) as server, Client(server.url) as client:

        def read() -> list[float]:
            times = []
            while not done.is_set():
                began = time.perf_counter()
                assert len(client.search(QUERIES[len(times) % 5])) == 10
                times.append(time.perf_counter() - began)
            return times

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read) for _ in range(4)]
            try:
                began = time.perf_counter()
                added = client.add(fresh)
                taken = time.perf_counter() - began
            finally:
                done.set()
            times = [reader.result(30) for reader in readers]
        assert (added.written, client.count(), client.get("new255")) == (256, 456, fresh[255])
    assert taken > 3 * batch  # several of them, each with readers beside it
    assert all(len(one) > 10 for one in times)
    assert max(map(max, times)) < batch


def test_a_stop_under_load_drops_no_accepted_request(index: Path):
    def slow_body() -> Iterator[bytes]:
        for document in documents(8, "late"):
            yield jsonl(document)
            time.sleep(0.3)

    with fake_server(index, 2.0) as server:
        url = server.url
        with ThreadPoolExecutor(21) as pool:
            searches = [
                pool.submit(httpx.post, f"{url}/v1/search", json={"query": "sea"}, timeout=60)
                for _ in range(20)
            ]
            body = slow_body()
            upload = pool.submit(
                httpx.put, f"{url}/v1/documents", content=body, headers=LINES, timeout=60
            )
            accepted, deadline = 0.0, time.monotonic() + 30
            while accepted < 22:  # all of them, and the question after them
                assert time.monotonic() < deadline
                accepted = figure(url, "coder_ir_requests_in_flight")
                accepted += figure(url, 'requests_total{method="P')
                time.sleep(0.05)
            code = server.stop(signal.SIGTERM)
            answers = [search.result(60).status_code for search in searches]
            added = upload.result(60)
    assert answers == [200] * 20
    assert (added.status_code, added.json()["written"]) == (200, 8)
    assert code == 0
    assert [row["message"] for row in server.log].count("request failed") == 0


def figure(url: str, name: str) -> float:
    """The value of a figure, whose name may be followed by labels."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if name in line and line[0] != "#")


def test_every_acknowledged_document_survives_a_kill(index: Path):
    acknowledged: list[str] = []
    with fake_server(index) as server:
        url = server.url

        def write() -> None:
            with Client(url, retries=0) as client:
                for start in range(0, 100_000, 5):
                    part = documents(5, f"w{start}-")
                    try:
                        client.add(part)
                    except CoderError:
                        return
                    acknowledged.extend(document.doc_id for document in part)

        writer = threading.Thread(target=write)
        writer.start()
        while len(acknowledged) < 100:
            time.sleep(0.01)
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        writer.join(30)
    with fake_server(index) as server, Client(server.url) as client:
        assert all(client.get(doc_id).doc_id == doc_id for doc_id in acknowledged)
        assert client.count() >= 200 + len(acknowledged)
        assert client.add([Document("after", "sea")]).written == 1


def test_a_second_server_on_one_index_is_read_only_and_says_so(index: Path):
    with fake_server(index) as first, Client(first.url) as writer:
        with fake_server(index) as other, Client(other.url) as reader:
            warning = next(row for row in other.log if row["level"] == "warning")
            why = f"another server (process {first.process.pid}) writes this index"
            assert warning["message"] == f"read-only: {why}"
            with pytest.raises(AccessDenied, match="another server"):
                reader.add([Document("new", "sea")])
            with pytest.raises(AccessDenied, match="read-only"):
                reader.delete(["d1"])
            writer.add([Document("new", "sea")])
            assert (reader.get("new").text, reader.count()) == ("sea", 201)
            first.stop(signal.SIGKILL)
            with fake_server(index) as third, Client(third.url) as heir:
                assert heir.add([Document("newer", "sea")]).written == 1


def test_the_log_of_a_server_is_json_from_first_to_last(index: Path):
    with fake_server(index) as server:
        httpx.post(f"{server.url}/v1/search", json={"query": "secret sea"})
        assert server.stop() == 0
    assert all({"time", "level", "message"} <= set(row) for row in server.log)
    assert "secret" not in "".join(server.raw)


def test_odd_bytes_instead_of_http_do_no_harm(index: Path):
    with fake_server(index) as server:
        port = int(server.url.rpartition(":")[2])
        for raw in (b"\0" * 50, b"GET / HTTP/9\r\n\r\n", b"POST /v1/search HTTP/1.1\r\nhost: x"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(raw)
        with Client(server.url) as client:
            assert client.count() == 200
            with pytest.raises(NotFound):
                client.get("../../etc/passwd")


@pytest.mark.parametrize(("first", "status"), [(b"{\n", 422), (b"x" * 9_000_000, 413)])
def test_a_caller_learns_of_a_bad_line_though_it_still_sends(
    index: Path, first: bytes, status: int
):
    line = jsonl(Document("much", "x" * 1000))

    def body() -> Iterator[bytes]:
        yield first
        yield from (line for _ in range(20_000))

    with fake_server(index) as server:
        answer = httpx.put(f"{server.url}/v1/documents", content=body(), headers=LINES, timeout=30)
        assert (answer.status_code, answer.json()["error"]["details"]["line"]) == (status, 1)
        cut = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        with cut:  # a caller that goes away in the middle of a body
            cut.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: ")
            cut.sendall(b"application/json\r\nContent-Length: 99\r\n\r\n{")
        with Client(server.url) as client:
            assert client.count() == 200
        server.stop()
    requests = [row for row in server.log if row["message"] == "request"]
    assert {row["status"] for row in requests} == {status, 499, 200}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_another_address_without_a_token_is_refused(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
):
    monkeypatch.delenv("CODER_IR_READ_TOKEN", raising=False)
    monkeypatch.delenv("CODER_IR_WRITE_TOKEN", raising=False)
    done = cli("serve", tmp_path / "index", "--host", host)
    assert (done.code, done.out) == (2, "")
    assert "needs a token" in done.err
    assert not (tmp_path / "index").exists()


def test_an_index_that_is_not_there_is_not_made_by_a_read_only_server(cli: Command, tmp_path: Path):
    done = cli("serve", tmp_path / "index", "--read-only")
    assert (done.code, "no index in" in done.err) == (1, True)


def test_an_address_makes_no_folder(cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = cli("serve", "nothing://there/index")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])


def test_without_the_extra_its_name_is_said(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coder_ir.serve.find_spec", lambda name: None)
    done = cli("serve", tmp_path / "index")
    assert (done.code, "pip install 'coder-ir[serve]'" in done.err) == (1, True)


def test_a_folder_of_something_else_stays_as_it_is(cli: Command, tmp_path: Path):
    (tmp_path / "letter.txt").write_text("x")
    done = cli("serve", tmp_path)
    assert (done.code, "is not an index and not empty" in done.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_port_in_use_is_said(index: Path, cli: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "coder_ir.serve.locking.Retriever.open",
        lambda *args, **options: Retriever(
            FakeEncoder(WORDS), SqliteStore(index), verifier=FakeVerifier()
        ),
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cli("serve", index, "--port", port)
    assert (done.code, "choose another --port" in done.err) == (1, True)


def test_the_command_serves_with_the_built_in_model_and_tokens(tmp_path: Path):
    tokens = tmp_path / "tokens"
    tokens.write_text("read=reading-0123456789\nwrite=writing-0123456789\n")
    command = ("coder_ir", "serve", tmp_path / "index", "--port", "0", "--token-file", tokens)
    hotels = [Document("d1", "Back rooms are silent."), Document("d2", "Club downstairs until 4.")]
    with running(*command) as server:
        with Client(server.url, "writing-0123456789") as client:
            assert client.add(hotels).written == 2
        with Client(server.url, "reading-0123456789") as client:
            found = client.search("hotel without noise at night", explain=True)
            with pytest.raises(AccessDenied, match="reads only"):
                client.add(hotels)
        with Client(server.url, "guessing-0123456789") as client:
            with pytest.raises(AccessDenied, match="token"):
                client.count()
        assert server.stop() == 0
    with Retriever.open(tmp_path / "index", read_only=True) as own:
        expected = own.search("hotel without noise at night", explain=True)
        # A server says nothing of the query's sentences.
        constraint = replace(expected.constraint, sentences=())
        assert found == replace(expected, constraint=constraint)


def test_an_upgrade_is_answered_like_any_request_and_not_logged(index: Path):
    with fake_server(index) as server:
        headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        headers["sec-websocket-key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
        url = f"{server.url}/v1/documents/jane-doe?q=secret"
        answer = httpx.get(url, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
        server.stop()
    assert "jane-doe" not in "".join(server.raw) and "secret" not in "".join(server.raw)
