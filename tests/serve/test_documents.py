"""PUT, GET and DELETE of /v1/documents."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from coder_ir import Document, Retriever
from coder_ir.errors import StoreError, TooLarge, UploadStopped
from coder_ir.intake import Added
from coder_ir.serve import Limits, ServeSettings
from coder_ir.serve.writing import Writer, line_batches
from tests.serve.conftest import LINES, Open, jsonl

ODD_IDS = [
    *("a/b", "/a", "a/", "//", "..", "../../etc/passwd", ".", "a?b=c", "a#b", "a b"),
    *("ä/日本", "a\nb", "\n", "a\r\n", "'; DROP TABLE documents; --", "<script>", "{doc_id}", "\\"),
    *("batch", "v1/documents", "x" * 2000, "🙂", "a+b", "&amp;", '"', "a\x7fb"),
]


def place(doc_id: str) -> str:
    return "/v1/documents/" + quote(doc_id, safe="").replace(".", "%2E")


def test_documents_are_written_and_counted(api: TestClient, hotels: Retriever):
    body = jsonl(Document("new", "quiet garden"), Document("club-one", "changed"))
    assert api.put("/v1/documents", content=body, headers=LINES).json() == {
        "written": 2,
        "unchanged": 0,
    }
    assert api.put("/v1/documents", content=body, headers=LINES).json() == {
        "written": 0,
        "unchanged": 2,
    }
    assert (len(hotels), hotels.get("club-one").text) == (4, "changed")


def test_what_was_written_is_found_at_once(api: TestClient):
    api.put("/v1/documents", content=jsonl(Document("new", "club club club")), headers=LINES)
    hits = api.post("/v1/search", json={"query": "club", "policy": "topical"}).json()["hits"]
    assert hits[0]["doc_id"] == "new"


def test_a_document_comes_back_as_it_was(api: TestClient):
    metadata = {"tags": ["a", 1, None], "deep": {"x": [True]}, "π": 3.5}
    document = Document("d", "text\nwith lines <b>", "title", metadata)
    api.put("/v1/documents", content=jsonl(document), headers=LINES)
    assert api.get("/v1/documents/d").json() == {
        "doc_id": "d",
        "text": "text\nwith lines <b>",
        "title": "title",
        "metadata": metadata,
    }


@pytest.mark.parametrize("doc_id", ODD_IDS, ids=lambda doc_id: repr(doc_id[:20]))
def test_any_id_can_be_written_read_and_removed(api: TestClient, hotels: Retriever, doc_id: str):
    body = jsonl(Document(doc_id, "odd"))
    assert api.put("/v1/documents", content=body, headers=LINES).status_code == 200
    assert api.get(place(doc_id)).json()["doc_id"] == doc_id
    assert api.delete(place(doc_id)).json() == {"deleted": 1}
    assert api.get(place(doc_id)).status_code == 404
    assert len(hotels) == 3


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "path", ["nobody", "", "%00", "%FF", "..%2f..%2fetc%2fpasswd", "a'%20OR%201=1", "a%5C"]
)
def test_an_unknown_id_is_404(api: TestClient, hotels: Retriever, method: str, path: str):
    answer = api.request(method, f"/v1/documents/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert "sqlite" not in answer.text
    assert len(hotels) == 3


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "should hold a JSON object"),
        (b"5", "should hold a JSON object"),
        (b'{"_id": "x"}', "has no field 'text'"),
        (b'{"text": "x"}', "has no field '_id'"),
        (b'{"_id": "", "text": "x"}', "an id is text or a whole number"),
        (b'{"_id": true, "text": "x"}', "an id is text or a whole number"),
        (b'{"_id": "x\\u0000", "text": "x"}', "without null bytes"),
        (b'{"_id": "x", "text": 5}', "must be text"),
        (b'{"_id": "x", "text": "\\ud800"}', "surrogate"),
        (b'{"_id": "x", "text": "x", "metadata": [1]}', "metadata should be an object"),
        (b'{"_id": "x", "text": "x", "metadata": {"a": NaN}}', "not a JSON number"),
        (b'{"_id": "x", "text": "\xff"}', "is not UTF-8"),
        (b'{"_id": "d1", "text": "again"}', "comes twice"),
        (b'{"_id": "x", "text": ' + b"[" * 20_000, "nested"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_line_is_named_and_those_before_it_are_kept(
    api: TestClient, hotels: Retriever, bad: bytes, says: str
):
    good = [Document(f"d{number}", "garden") for number in range(100)]
    body = jsonl(*good[:70]) + b"\n" + bad + b"\n" + jsonl(*good[70:])
    answer = api.put("/v1/documents", content=body, headers=LINES)
    error = answer.json()["error"]
    assert answer.status_code == 422
    assert says in error["message"]
    assert error["details"] == {"line": 72, "written": 70, "unchanged": 0}
    assert len(hotels) == 3 + 70


def test_a_body_comes_in_pieces_that_cut_lines_anywhere(api: TestClient, hotels: Retriever):
    body = jsonl(*[Document(f"d{number}", "é" * number) for number in range(150)]).rstrip(b"\n")

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    answer = api.put("/v1/documents", content=pieces(), headers=LINES)
    assert (answer.json(), len(hotels)) == ({"written": 150, "unchanged": 0}, 153)


@pytest.mark.parametrize("body", [b"", b"\n\n", b"\xef\xbb\xbf"], ids=["empty", "blank", "mark"])
def test_a_body_without_documents_writes_nothing(api: TestClient, body: bytes):
    answer = api.put("/v1/documents", content=body, headers=LINES)
    assert answer.json() == {"written": 0, "unchanged": 0}


def test_windows_line_ends_and_a_byte_order_mark_are_read(api: TestClient):
    body = b"\xef\xbb\xbf" + jsonl(Document("a", "x"), Document("b", "y")).replace(b"\n", b"\r\n")
    assert api.put("/v1/documents", content=body, headers=LINES).json()["written"] == 2


@pytest.mark.parametrize("kind", ["application/json", "text/csv", ""])
def test_another_kind_of_body_is_415(api: TestClient, hotels: Retriever, kind: str):
    headers = {"content-type": kind}
    answer = api.put("/v1/documents", content=jsonl(Document("a", "x")), headers=headers)
    assert (answer.status_code, len(hotels)) == (415, 3)


def test_long_texts_are_truncated_where_split_is_off(api: TestClient, hotels: Retriever):
    hotels.encoder.limit = 2  # type: ignore[attr-defined]
    body = jsonl(Document("long", "a b c d e club"))
    api.put("/v1/documents?split=false", content=body, headers=LINES)
    hits = api.post("/v1/search", json={"query": "club", "k": 10}).json()["hits"]
    passage = next(hit["passage"] for hit in hits if hit["doc_id"] == "long")
    assert passage == {"number": 0, "start": 0, "end": len("a b c d e club")}


def test_a_line_past_the_limit_is_413_and_those_before_it_are_kept(served: Open, hotels: Retriever):
    api = served(ServeSettings(limits=Limits(line_bytes=500)))
    long = json.dumps({"_id": "long", "text": "x" * 100_000}).encode()
    body = jsonl(Document("a", "x"), Document("b", "y")) + long
    answer = api.put("/v1/documents", content=body, headers=LINES)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert answer.json()["error"]["details"] == {"line": 3, "written": 2, "unchanged": 0}
    assert len(hotels) == 5


def test_an_upload_past_the_limit_is_413(served: Open, hotels: Retriever):
    api = served(ServeSettings(limits=Limits(upload_bytes=1000)))
    body = jsonl(*[Document(f"d{number}", "x" * 50) for number in range(30)])
    whole = api.put("/v1/documents", content=body, headers=LINES)
    assert (whole.status_code, len(hotels)) == (413, 3)
    streamed = api.put("/v1/documents", content=iter([body[:900], body[900:]]), headers=LINES)
    assert streamed.status_code == 413
    assert len(hotels) == 3 + streamed.json()["error"]["details"]["written"]


def test_a_store_that_refuses_is_503_and_says_what_is_kept(
    api: TestClient, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    write, calls = hotels.store.write, []

    def full(records):
        calls.append(records)
        if len(calls) > 1:
            raise StoreError("the disk is full: /secret/index.sqlite could not grow")
        write(records)

    monkeypatch.setattr(hotels.store, "write", full)
    body = jsonl(*[Document(f"d{number}", "x") for number in range(100)])
    answer = api.put("/v1/documents", content=body, headers=LINES)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_refused")
    assert answer.json()["error"]["details"]["written"] == 64
    assert "/secret" not in answer.text


async def _chunks(*parts: bytes, pause: float = 0) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(pause)
        yield part


def test_lines_are_gathered_without_holding_the_body():
    async def sizes() -> list[tuple[int, int]]:
        parts = [b"x" * 99 + b"\n"] * 1000
        return [(b.first, len(b.raw)) async for b in line_batches(_chunks(*parts), Limits())]

    found = asyncio.run(sizes())
    assert [first for first, _ in found] == [1 + 64 * number for number in range(16)]
    assert max(size for _, size in found) == 64


def test_an_upload_that_stalls_ends_with_what_it_brought(retriever: Retriever):
    writer = Writer(retriever, Limits(timeout=0.05))
    body = jsonl(*[Document(f"d{number}", "x") for number in range(64)])

    async def upload() -> Added:
        async def stalled() -> AsyncIterator[bytes]:
            yield body
            await asyncio.sleep(5)

        return await writer.upload(stalled(), split=True)

    with pytest.raises(UploadStopped, match="nothing more of the body came") as stopped:
        asyncio.run(upload())
    writer.close()
    assert (stopped.value.written, len(retriever)) == (64, 64)


def test_a_line_that_never_ends_is_refused_early():
    async def read() -> None:
        async for _ in line_batches(_chunks(*[b"x" * 100] * 50), Limits(line_bytes=1000)):
            pass

    with pytest.raises(TooLarge, match="1000 bytes"):
        asyncio.run(read())
