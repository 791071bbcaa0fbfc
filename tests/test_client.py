"""The client: the retriever's calls and types, over HTTP."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coder_ir import (
    AsyncClient,
    Auto,
    Client,
    Condition,
    Document,
    Retriever,
    SearchOptions,
    Sequential,
    TopicalOnly,
    Union,
)
from coder_ir.errors import (
    AccessDenied,
    Busy,
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    MissingExtra,
    NotFound,
    ServiceError,
    StoreError,
    TimedOut,
    TooLarge,
)
from coder_ir.stores import SqliteStore
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.serve.fake_server import WORDS
from tests.serve.live import Server, fake_server

HOTELS = [
    Document("quiet", "quiet+ hotel with a garden. No club.", "Rose", {"stars": 4, "deep": [1]}),
    Document("club/é?", "noisy hotel above a club", "", {"stars": 3}),
    Document("sea", "hotel by the sea", "", {"stars": 5}),
]
ODD_IDS = ["a%2Fb", "%00", "..", ".", "a/../b", "a\nb", "a b", "ä", "a?b#c", "//", "a%", "\\", "🙂"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("served") / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as own:
        own.add(HOTELS)
    with fake_server(folder) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as opened:
        yield opened


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Retriever]:
    with Retriever(
        FakeEncoder(WORDS), SqliteStore(tmp_path / "own"), verifier=FakeVerifier()
    ) as retriever:
        retriever.add(HOTELS)
        yield retriever


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 1},
        {"policy": "topical"},
        {"policy": TopicalOnly()},
        {"policy": Auto()},
        {"policy": Sequential(alpha=0.7, tau=0.5)},
        {"policy": Union(alpha=0.1, p=0.5)},
        {"where": ["stars>3", Condition("stars", "in", (4, 5))]},
        {"exclude": ["club"], "require": ["garden"], "mode": "hard"},
        {"explain": True, "n": 2},
        {"exclude": ["garden"]},
        {"exclude": ["garden"], "verify": 1},
        {"exclude": ["garden"], "verify": 0},
    ],
    ids=repr,
)
def test_a_search_returns_what_the_retriever_returns(client: Client, own: Retriever, options):
    query = "hotel -club"  # an operator, for without a parser nothing else states a constraint
    assert client.search(query, **options) == own.search(query, **options)


def test_many_searches_go_over_in_groups(client: Client, own: Retriever):
    queries = [f"{word} hotel {number}" for number in range(12) for word in WORDS]
    done: list[int] = []
    options = SearchOptions(k=2)
    found = client.search_many(queries, options, progress=done.append)
    assert (found, done) == (own.search_many(queries, options), [32, 32, 8])
    assert client.search_many([]) == []


def test_documents_are_added_read_and_removed(client: Client):
    fresh = [Document(doc_id, "text\n<b>", "title", {"a": [1, None]}) for doc_id in ODD_IDS]
    done: list[int] = []
    before = client.count()
    added = client.add(iter(fresh), progress=done.append)
    assert (added.written, added.unchanged, done) == (len(fresh), 0, [len(fresh)])
    assert client.add(fresh).unchanged == len(fresh)
    assert [client.get(doc_id) for doc_id in ODD_IDS] == fresh
    assert client.delete([*ODD_IDS, "nobody"]) == len(fresh)
    assert len(client) == client.count() == before


def test_an_unknown_document_is_not_found(client: Client):
    for doc_id in ("nobody", "", "../quiet"):
        with pytest.raises(NotFound):
            client.get(doc_id)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda client: client.search(" "), InvalidValue),
        (lambda client: client.search("sea", k=0), InvalidValue),
        (lambda client: client.search("sea", k=1000), InvalidValue),
        (lambda client: client.search("sea", policy="best"), InvalidValue),
        (lambda client: client.search("sea", where=["stars"]), InvalidValue),
        (lambda client: client.search("sea", max_risk=0.5), InvalidValue),
        (lambda client: client.search("\ud800"), InvalidValue),
        (lambda client: client.search("sea", policy=Auto(strength=0.1)), InvalidValue),
        (lambda client: client.search_many("sea"), InvalidValue),
        (lambda client: client.delete("sea"), InvalidValue),
        (lambda client: client.add([HOTELS[0], HOTELS[0]]), DuplicateId),
        (lambda client: client.add([Document("", "x")]), InvalidValue),
    ],
)
def test_errors_are_those_of_the_retriever(client: Client, call: Callable[[Client], Any], kind):
    with pytest.raises(kind):
        call(client)


def test_the_async_client_does_the_same(server: Server, own: Retriever):
    async def use() -> list[Any]:
        async with AsyncClient(server.url) as client:
            rankings = await asyncio.gather(*(client.search("quiet sea") for _ in range(20)))
            many = await client.search_many(["club", "garden"], SearchOptions(k=1))
            added = await client.add([Document("async", "sea")])
            document = await client.get("async")
            gone = await client.delete(["async", "nobody"])
            return [rankings, many, added.written, document, gone, await client.count()]

    rankings, many, written, document, gone, count = asyncio.run(use())
    assert rankings == [own.search("quiet sea")] * 20
    assert many == own.search_many(["club", "garden"], SearchOptions(k=1))
    assert (written, document, gone, count) == (1, Document("async", "sea"), 1, 3)


def told(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"code": code, "message": "what", "advice": "do", "request_id": "r1"}
    return httpx.Response(status, json={"error": body}, headers=headers)


def answering(answers: list[httpx.Response], **options: Any) -> Client:
    client = Client("http://127.0.0.1:1", **options)
    client._http.close()
    transport = httpx.MockTransport(lambda request: answers.pop(0))
    client._http = httpx.Client(transport=transport, base_url="http://127.0.0.1:1")
    return client


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seen: list[float] = []
    monkeypatch.setattr("coder_ir.client.time.sleep", seen.append)
    return seen


def test_a_busy_server_is_asked_again_after_the_time_it_names(pauses: list[float]):
    busy = [told(503, "busy", **{"retry-after": "2"}), told(503, "busy", **{"retry-after": "2"})]
    with answering([*busy, httpx.Response(200, json={"documents": 7})]) as client:
        assert client.count() == 7
    assert pauses == [2.0, 3.0]


def test_a_server_that_stays_busy_is_given_up(pauses: list[float]):
    with answering([told(503, "busy")] * 3, retries=2) as client:
        with pytest.raises(Busy, match=r"what \(do\) \[request r1\]"):
            client.count()
    assert len(pauses) == 2


def test_the_async_client_asks_again_too():
    answers = [told(503, "busy"), httpx.Response(200, json={"documents": 7})]

    async def use() -> int:
        async with AsyncClient("http://127.0.0.1:1") as client:
            await client._http.aclose()
            transport = httpx.MockTransport(lambda request: answers.pop(0))
            client._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1")
            return await client.count()

    assert asyncio.run(use()) == 7


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthorised", AccessDenied),
        (403, "forbidden", AccessDenied),
        (404, "not_found", NotFound),
        (405, "method_not_allowed", ServiceError),
        (413, "too_large", TooLarge),
        (415, "unsupported_media_type", InvalidValue),
        (422, "invalid_input", InvalidValue),
        (422, "invalid_line", InvalidFile),
        (500, "internal", ServiceError),
        (503, "store_refused", StoreError),
        (504, "timed_out", TimedOut),
    ],
)
def test_each_code_is_an_error_of_the_package(status: int, code: str, kind: type[CoderError]):
    with answering([told(status, code)], retries=0) as client, pytest.raises(kind, match="what"):
        client.count()


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"error": 1}', b""])
def test_an_answer_of_another_program_is_said(answer: bytes):
    with answering([httpx.Response(502, content=answer)]) as client:
        with pytest.raises(ServiceError, match="is no coder-ir server"):
            client.count()


def test_a_server_that_is_not_there_is_said():
    with Client("http://127.0.0.1:9", timeout=2) as client:
        with pytest.raises(ServiceError, match="check that the server runs there"):
            client.count()


def test_an_address_needs_a_scheme():
    with pytest.raises(InvalidValue, match="http://"):
        Client("127.0.0.1:8000")


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"coder-ir\[client\]"):
        Client("http://127.0.0.1:8000")


def test_a_page_instead_of_an_answer_is_said():
    with answering([httpx.Response(200, content=b"<html>")]) as client:
        with pytest.raises(ServiceError, match="is no coder-ir server"):
            client.count()


def test_an_address_that_cannot_be_is_refused():
    with pytest.raises(InvalidValue, match="is no address of a server"):
        Client("http://[::1")


def test_a_token_that_fits_no_header_is_refused_and_not_quoted():
    with pytest.raises(InvalidValue, match="ASCII without spaces") as refused:
        Client("http://127.0.0.1:8000", "schlüssel-0123456789")
    assert "schl" not in str(refused.value)


def test_long_documents_go_over_in_small_parts_with_time_to_encode_them():
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"written": request.content.count(b"\n"), "unchanged": 0})

    client = Client("http://127.0.0.1:8000", timeout=1)
    client._http = httpx.Client(
        transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:8000", timeout=1
    )
    with client:
        added = client.add([Document(f"d{i}", "word " * 10_000) for i in range(10)])
    assert added.written == 10
    assert [request.content.count(b"\n") for request in seen] == [4, 4, 2]
    assert {request.extensions["timeout"]["read"] for request in seen} == {330.0}
