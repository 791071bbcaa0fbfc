"""The tables of the embedded store, and how its file is opened."""

import sqlite3
import time
from pathlib import Path

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    doc_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    topical BLOB NOT NULL,
    compatibility BLOB NOT NULL
);
CREATE INDEX passages_by_document ON passages (document);
"""
PATIENCE = 10  # seconds to wait for another writer


def set_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite itself does not wait here for another process that does the same."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def refusal(path: Path, error: sqlite3.Error) -> str:
    """What SQLite says, in this project's words."""
    text = str(error)
    if "full" in text:
        return (
            f"the disk is full: {path} could not grow. Earlier batches are kept, this one is not; "
            "free some space and run the same command again"
        )
    if "locked" in text or "busy" in text:
        return f"{path} is being written by another process; try again when it is done"
    if "readonly" in text or "unable to open" in text:
        return f"{path} cannot be written: the folder or file is read-only, or the disk is gone"
    if "not a database" in text or "malformed" in text:
        return f"{path} is not an index, or is damaged ({text}); build it anew from the documents"
    return f"{path}: {text}"
