"""A one-space fake encoder, and a folder of vectors to attach to."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from coder_ir.types import Floats, Kind, Progress, Span
from tests.conftest import FakeEncoder

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]


class FakeSpace:
    """The compatibility side of the fake encoder: a word, or a word+, is an axis."""

    def __init__(self, words: Sequence[str] = WORDS, *, limit: int = 1000, name: str = "f") -> None:
        self._pair = FakeEncoder(words, limit=limit, name=name)
        self.fingerprint = self._pair.fingerprint
        self.max_length = limit
        self.encoded: list[str] = []

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        if kind == "document":
            self.encoded += texts
        return self._pair.encode(texts, kind=kind).compatibility

    def split(self, text: str) -> list[Span]:
        return self._pair.split(text)

    def rows(self, texts: Sequence[str]) -> Floats:
        return self._pair.encode(texts, kind="query").compatibility


def make_folder(folder: Path, texts: Mapping[str, str], vectors: Floats | None = None) -> Path:
    """A collection; without vectors, each item has an axis of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", np.eye(len(texts)) if vectors is None else vectors)
    (folder / "ids.json").write_text(json.dumps(list(texts)), encoding="utf-8")
    write_texts(folder / "texts.jsonl", texts)
    return folder


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    lines = [json.dumps({"_id": doc_id, "text": text}) + "\n" for doc_id, text in texts.items()]
    path.write_text("".join(reversed(lines)), encoding="utf-8")  # any order will do
    return path


def theirs(folder: Path) -> dict[str, tuple[str, int]]:
    """Checksum and time of change of every file that is not ours."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.iterdir()
        if not path.name.startswith("compatibility")
    }


SLOWLY = """
import sys, time
from coder_ir.attached import attach, open_source
from tests.attached.spaces import FakeSpace

class Slow(FakeSpace):
    def encode(self, texts, **options):
        rows = super().encode(texts, **options)
        time.sleep(float(sys.argv[2]))
        return rows

def told(done):
    print(done, flush=True)

print(attach(open_source(sys.argv[1]), Slow(), spec="fake", progress=told))
"""


def attaching(source: str, seconds: float) -> list[str]:
    """A process that attaches, and waits in every batch; it prints a line a batch."""
    return [sys.executable, "-c", SLOWLY, source, str(seconds)]
