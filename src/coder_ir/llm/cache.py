"""Paid answers in one SQLite file, each committed as soon as it arrives."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coder_ir.errors import StoreError
from coder_ir.llm.question import Reply

VERSION = 1
_PATIENCE = 30  # seconds to wait for another process that writes
_TABLE = """
    CREATE TABLE answers (
        key TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        seconds REAL NOT NULL
    ) WITHOUT ROWID
"""


class AnswerCache:
    """Answers by the key of their question; threads and processes may share the file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it and its folder."""
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {path.parent} for a cache: {error.strerror}; name another"
            ) from error
        with self._refusals():
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def get(self, key: str) -> Reply | None:
        """The answer kept under a key."""
        query = "SELECT text, prompt_tokens, completion_tokens, seconds FROM answers WHERE key = ?"
        with self._lock, self._refusals():
            row = self._connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        text, prompt_tokens, completion_tokens, seconds = row
        return Reply(
            text,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            seconds=seconds,
        )

    def put(self, key: str, reply: Reply) -> None:
        """Keep an answer from now on, in place of an earlier one."""
        row = (key, reply.text, reply.prompt_tokens, reply.completion_tokens, reply.seconds)
        with self._lock, self._refusals():
            self._connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Release the file; what was kept stays."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        foreign = self._connection.execute("SELECT name FROM sqlite_master").fetchone()
        if version == 0 and not foreign:
            self._connection.execute(_TABLE)
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
            version = VERSION
        self._connection.execute("COMMIT")
        if version != VERSION or (foreign and foreign[0] != "answers"):
            raise StoreError(
                f"{self.path} holds something else than answers of this version "
                f"(version {version}, wanted {VERSION}); name another cache file"
            )
        self._set_wal()

    def _set_wal(self) -> None:
        """Switch to WAL; SQLite itself does not wait here for a process that does the same."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """SQLite's errors in this project's words."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "not a database" in text or "malformed" in text:
                todo = "it is no cache, or is damaged: move it away or name another cache file"
            elif "locked" in text:
                todo = "another process is writing it: try again when it is done"
            elif "closed" in text:
                todo = "it was closed: open the language model anew"
            else:
                todo = "check that its folder exists, may be written to and has space"
            raise StoreError(f"cannot use the cache {self.path} ({text}); {todo}") from error
