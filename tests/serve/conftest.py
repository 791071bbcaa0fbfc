"""A small index behind an application, asked in this process."""

import json
from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from coder_ir import Document, Retriever
from coder_ir.serve import ServeSettings, create_app

URL = "http://127.0.0.1:8000"
LINES = {"content-type": "application/x-ndjson"}
HOTELS = (
    Document("quiet-one", "quiet+ hotel with a garden", "Rose", {"stars": 4, "year": 2020}),
    Document("club-one", "noisy hotel above a club", "", {"stars": 3, "year": 2018}),
    Document("sea/one", "hotel by the sea", "Sea", {"stars": 5, "tags": ["sea", "sun"]}),
)

Open = Callable[..., TestClient]


@pytest.fixture
def hotels(retriever: Retriever) -> Retriever:
    retriever.add(HOTELS)
    return retriever


@pytest.fixture
def served(hotels: Retriever) -> Iterator[Open]:
    """Opens an application over the hotels; started and stopped like a server."""
    opened: list[TestClient] = []

    def serve(settings: ServeSettings | None = None, **options: object) -> TestClient:
        app = create_app(hotels, settings)
        client = TestClient(app, base_url=URL, raise_server_exceptions=False, **options)
        client.__enter__()
        opened.append(client)
        return client

    yield serve
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def api(served: Open) -> TestClient:
    return served()


def jsonl(*documents: Document) -> bytes:
    rows = [
        {"_id": d.doc_id, "title": d.title, "text": d.text, "metadata": dict(d.metadata)}
        for d in documents
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
