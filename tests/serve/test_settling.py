"""What a large index is searched with is built beside the uploads, not in them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from coder_ir import Retriever
from coder_ir.serve.limits import Limits
from coder_ir.serve.writing import Writer
from coder_ir.stores import SqliteStore
from coder_ir.stores.sqlite.settings import Scale
from coder_ir.stores.sqlite.sidecar import Manifest
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]


async def body(count: int) -> AsyncIterator[bytes]:
    draw = np.random.default_rng(0)
    for i in range(count):
        text = " ".join(draw.choice(WORDS, size=5))
        yield json.dumps({"_id": f"{i:03}", "text": text}).encode() + b"\n"


def upload(writer: Writer, count: int) -> int:
    return asyncio.run(writer.upload(body(count), split=True)).written


def test_after_an_upload_the_sidecar_is_built_in_the_background(tmp_path: Path):
    store = SqliteStore(tmp_path / "index", scale=Scale(least=200))
    with Retriever(FakeEncoder(WORDS), store, verifier=FakeVerifier()) as retriever:
        writer = Writer(retriever, Limits())
        assert upload(writer, 300) == 300
        deadline = time.monotonic() + 30
        while Manifest.load(tmp_path / "index") is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert Manifest.load(tmp_path / "index").rows == 300
        writer.close()


def test_no_batch_of_an_upload_waits_for_a_sidecar(tmp_path: Path, monkeypatch):
    store = SqliteStore(tmp_path / "index", scale=Scale(least=100))
    finished: list[bool] = []

    def slow() -> bool:
        time.sleep(1)
        finished.append(True)
        return True

    with Retriever(FakeEncoder(WORDS), store, verifier=FakeVerifier()) as retriever:
        monkeypatch.setattr(store, "settle", slow)
        monkeypatch.setattr(store, "due", lambda: True)
        writer = Writer(retriever, Limits())
        assert upload(writer, 300) == 300
        assert finished == []
        writer.close()
