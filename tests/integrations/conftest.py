"""Three hotels behind every adapter."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Kind, Progress, VectorPair
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.serve.fake_server import WORDS
from tests.serve.live import Server, fake_server

HOTELS = [
    Document("rose", "quiet+ hotel with a garden.", "Rose", {"stars": 4, "coder_rank": "own"}),
    Document("club", "noisy hotel above a club", "", {"stars": 3}),
    Document("sea", "hotel by the sea", "", {"stars": 5}),
]


class GatedEncoder(FakeEncoder):
    """Answers a query only after somebody opened the gate, so a blocked loop never gets there."""

    def __init__(self) -> None:
        super().__init__(WORDS)
        self.asked = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        if kind == "query":
            self.asked.set()
            if not self.gate.wait(5):
                raise TimeoutError("the loop stood still while the search ran")
        return super().encode(texts, kind=kind, progress=progress)


@pytest.fixture
def gated() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
def hotels(tmp_path: Path, gated: GatedEncoder) -> Iterator[Retriever]:
    """An index of the hotels in `tmp_path / "index"`."""
    with Retriever(gated, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as opened:
        opened.add(HOTELS)
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The hotels behind HTTP."""
    folder = tmp_path_factory.mktemp("served") / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as own:
        own.add(HOTELS)
    with fake_server(folder) as running:
        yield running
