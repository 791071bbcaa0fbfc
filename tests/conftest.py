"""Fixtures shared by all tests; unit tests use the fake encoder, no model and no network."""

import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coder_ir.cli import main
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Constraint, Floats, Kind, Mark, Progress, Span, VectorPair
from coder_ir.vectors import unit_rows
from tests import milvus as milvus_server
from tests.fake_verifier import FakeVerifier
from tests.milvus import Milvus
from tests.postgres import Postgres, running

# Haystack sends usage figures unless it is told not to before it is imported.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
# Test processes share the cores, and threads of FAISS that wait for each other keep them busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def shared() -> Path:
    """The benchmark data that exists on the project's machines only."""
    if not SHARED.is_dir():
        pytest.skip("needs the benchmark data, which is not on this machine")
    return SHARED


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL server for all tests that ask for it."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def milvus() -> Iterator[Milvus]:
    """One Milvus Lite server for all tests that ask for it."""
    with milvus_server.running() as server:
        yield server


class FakeEncoder:
    """A word is an axis, so that scores can be worked out by hand.

    `word` counts in the topical space, `word+` in the compatibility space and a word without a
    mark in both. Texts are split every `limit` words.
    """

    def __init__(self, words: Sequence[str], *, limit: int = 1000, name: str = "fake") -> None:
        self.words = list(words)
        self.limit = limit
        self.spec = name
        self.fingerprint = hashlib.sha256(f"{name}{self.words}{limit}".encode()).hexdigest()
        self.encoded: list[str] = []

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        if kind == "document":
            self.encoded += texts
        pair = VectorPair(self._rows(texts, "-"), self._rows(texts, "+"))
        if progress:
            progress(len(texts))
        return pair

    def _rows(self, texts: Sequence[str], mark: str) -> Floats:
        # The last axis is small and constant, so that no text has a zero vector.
        rows = np.zeros((len(texts), len(self.words) + 1), dtype=np.float32)
        rows[:, -1] = 0.01
        for row, text in zip(rows, texts, strict=True):
            for token in text.lower().split()[: self.limit]:
                word = token.strip(".,+-")
                if word in self.words and (token[-1] == mark or token[-1] not in "+-"):
                    row[self.words.index(word)] += 1
        return unit_rows(rows)

    def split(self, text: str) -> list[Span]:
        spans, start, position = [], 0, 0
        for number, word in enumerate(text.split(" ")):
            if number and number % self.limit == 0:
                spans.append(Span(start, position))
                start = position
            position += len(word) + 1
        return [*spans, Span(start, len(text))]


class FakeParser:
    """Rules out what follows `without`, as surely as it is told to."""

    def __init__(self, probability: float = 1.0) -> None:
        self.probability = probability

    def parse(self, queries: Sequence[str]) -> list[Constraint]:
        return [self._parsed(query) for query in queries]

    def _parsed(self, query: str) -> Constraint:
        topic, cue, ruled_out = query.partition(" without ")
        if not cue:
            return Constraint(0.0)
        start = len(topic) + 1
        span = Span(start + len("without "), len(query))
        return Constraint(
            self.probability,
            (ruled_out,),
            topic=topic,
            marks=(
                Mark(Span(start, span.start - 1), "cue", "without"),
                Mark(span, "excluded", ruled_out),
            ),
        )


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder(["quiet", "noisy", "hotel", "garden", "club", "sea"])


@pytest.fixture
def retriever(tmp_path: Path, encoder: FakeEncoder) -> Iterator[Retriever]:
    with Retriever(encoder, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as opened:
        yield opened


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines; anything else there is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def words(self) -> str:
        """Standard output on one line, whatever the terminal's width."""
        return " ".join(self.out.split())


Command = Callable[..., Done]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process, through the same door as `coder-ir`."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*args: object, stdin: bytes | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["coder-ir", *map(str, args)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exited:
            main()
        code = exited.value.code
        return Done(code if isinstance(code, int) else int(code is not None), *capsys.readouterr())

    return run
