"""Vectors that took long to make, in one SQLite file."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from coder_ir.errors import StoreError
from coder_ir.types import Floats

Pair = tuple[Floats, Floats]
_CHUNK = 500  # keys of one statement


class KeptVectors:
    """Pairs of vectors by key; each batch is committed as it comes."""

    def __init__(self, path: Path | None) -> None:
        """Open or create the file; None keeps them in memory."""
        self._path = path
        with self._refusals():
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path or ":memory:", timeout=30)
            try:
                self._file.execute("PRAGMA journal_mode = WAL")
                self._file.execute(
                    "CREATE TABLE IF NOT EXISTS pairs (key TEXT PRIMARY KEY, one BLOB, other BLOB)"
                )
            except BaseException:
                self._file.close()
                raise

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """The disk's and SQLite's errors in this project's words."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            busy = "locked" in str(error) or "busy" in str(error)
            advice = "wait for the other run" if busy else "if it is damaged, delete it"
            raise StoreError(f"{self._path} cannot be used ({error}); {advice}") from error

    @staticmethod
    def key(*parts: str) -> str:
        """Digest of what a pair was made from."""
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def get(self, keys: Sequence[str]) -> dict[str, Pair]:
        """Those that are there."""
        found: dict[str, Pair] = {}
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            marks = ", ".join("?" * len(part))
            with self._refusals():
                rows = self._file.execute(f"SELECT * FROM pairs WHERE key IN ({marks})", part)
                found.update((key, (_row(one), _row(other))) for key, one, other in rows)
        return found

    def put(self, pairs: Mapping[str, Pair]) -> None:
        """Keep these too."""
        rows = [(key, one.tobytes(), other.tobytes()) for key, (one, other) in pairs.items()]
        with self._refusals(), self._file:
            self._file.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def _row(blob: bytes) -> Floats:
    return np.frombuffer(blob, dtype=np.float32)
