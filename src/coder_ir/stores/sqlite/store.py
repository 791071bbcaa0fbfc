"""The embedded store: one SQLite file in a folder, with a sidecar to search once it is large."""

import json
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coder_ir.errors import NotFound, StoreError
from coder_ir.stores.sqlite.building import build_sidecar
from coder_ir.stores.sqlite.current import Current, identity, model_of, numbers
from coder_ir.stores.sqlite.filters import Filters
from coder_ir.stores.sqlite.passages import PassageTable
from coder_ir.stores.sqlite.schema import PATIENCE, SCHEMA, SCHEMA_VERSION, refusal, set_wal
from coder_ir.stores.sqlite.settings import IndexInfo, Scale
from coder_ir.stores.sqlite.sidecar import bytes_of, only_builder, remove_sidecar
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    ModelStamp,
    Record,
    Space,
    VectorPair,
)

FILE = "index.sqlite"
LOGGER = logging.getLogger(__name__)
_CHUNK = 500  # ids a statement


class SqliteStore:
    """Every write is one durable transaction; the vectors are loaded at the first search.

    Another process may read while one writes. A reader notices foreign commits before each search.
    A large index is searched approximately once `settle` has built a sidecar for it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        read_only: bool = False,
        exact: bool = False,
        scale: Scale | None = None,
    ) -> None:
        """Open the folder's index, or create it unless read_only.

        With `exact`, every passage is looked at, however many there are, and nothing is built.
        """
        self.path = folder / FILE
        self.read_only = read_only
        self.exact = exact
        self._scale = scale or Scale()
        self._lock = threading.RLock()
        self._current = Current(folder, exact=exact)
        self._filters = Filters()
        self._reopened = 0  # a connection counts the commits of others from when it was opened
        self._writes = 0
        self._snapshot: tuple[int, int, bool] | None = None  # of a file SQLite cannot watch
        with self._refusals():
            self._connection = self._open_to_read() if read_only else self._open_to_write()
            try:
                self._check_schema()
            except BaseException:
                self._connection.close()
                raise

    def _open_to_read(self) -> sqlite3.Connection:
        folder = self.path.parent
        if not self.path.is_file():
            raise NotFound(f"no index in {folder}; build one with: coder-ir index {folder} DOCS")
        # SQLite cannot make its side files in a folder that may not be written to, and then
        # reads the file as one that never changes; `_reopen_if_changed` looks after it.
        effective = os.access in os.supports_effective_ids
        state = self._file_state()
        plain = os.access(folder, os.W_OK, effective_ids=effective) or state[2]
        self._snapshot = None if plain else state
        uri = f"{self.path.resolve().as_uri()}?{'mode=ro' if plain else 'immutable=1'}"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE}")
        return connection

    def _open_to_write(self) -> sqlite3.Connection:
        self._make_folder(self.path.parent)
        connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        try:
            connection.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE}")
            set_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _file_state(self) -> tuple[int, int, bool]:
        stat = self.path.stat()
        return stat.st_mtime_ns, stat.st_size, self.path.with_name(FILE + "-wal").exists()

    def _reopen_if_changed(self) -> None:
        """Take in what was committed to a file that SQLite was told never changes."""
        if self._snapshot is not None and self._file_state() != self._snapshot:
            self._connection.close()
            self._connection = self._open_to_read()
            self._reopened += 1

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            others = [entry.name for entry in folder.iterdir()]
        except OSError as error:
            raise StoreError(f"cannot use {folder} as an index folder: {error.strerror}") from error
        if others and not any(name.startswith(FILE) for name in others):
            raise StoreError(
                f"{folder} is not an index and not empty (it holds {sorted(others)[0]!r}); "
                "name a new folder"
            )

    def _check_schema(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self.read_only:
            with self._transaction():
                # Another process may have created it while this one waited for the lock.
                version = self._connection.execute("PRAGMA user_version").fetchone()[0]
                foreign = self._connection.execute("SELECT name FROM sqlite_master").fetchone()
                if version == 0 and foreign:
                    raise StoreError(
                        f"{self.path} is not an index but another program's; name a new folder"
                    )
                if version == 0:
                    for statement in SCHEMA.split(";"):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                    version = SCHEMA_VERSION
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}; this coder-ir reads {SCHEMA_VERSION}"
            )

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """SQLite's errors in this project's words."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(refusal(self.path, error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _write(self) -> Iterator[None]:
        if self.read_only:
            raise StoreError(
                f"{self.path} was opened read-only; open it without read_only to write"
            )
        with self._lock, self._refusals():
            with self._transaction():
                yield
            self._writes += 1

    def write(self, records: Sequence[Record]) -> None:
        """Insert or replace, in one transaction."""
        with self._write():
            self._delete([record.document.doc_id for record in records])
            for record in records:
                self._insert(record)

    def _insert(self, record: Record) -> None:
        document = record.document
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False)
        row = (document.doc_id, document.title, document.text, metadata, record.digest)
        cursor = self._connection.execute(
            "INSERT INTO documents (doc_id, title, text, metadata, digest) VALUES (?, ?, ?, ?, ?)",
            row,
        )
        self._connection.executemany(
            "INSERT INTO passages (document, number, start, stop, topical, compatibility) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    cursor.lastrowid,
                    number,
                    span.start,
                    span.end,
                    topical.tobytes(),
                    compatibility.tobytes(),
                )
                for number, (span, topical, compatibility) in enumerate(
                    zip(
                        record.spans,
                        record.vectors.topical,
                        record.vectors.compatibility,
                        strict=True,
                    )
                )
            ],
        )

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove those present; returns how many were."""
        with self._write():
            return self._delete(doc_ids)

    def _delete(self, doc_ids: Sequence[str]) -> int:
        cursor = self._connection.executemany(
            "DELETE FROM documents WHERE doc_id = ?", [(doc_id,) for doc_id in doc_ids]
        )
        return max(cursor.rowcount, 0)

    def get(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; an unknown id is an error."""
        rows = self._by_id("doc_id, title, text, metadata", doc_ids)
        if missing := [doc_id for doc_id in doc_ids if doc_id not in rows]:
            raise NotFound(f"{self.path} has no document {missing[0]!r}")
        return [_document(rows[doc_id]) for doc_id in doc_ids]

    def digests(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """Digest of each of these documents that is present."""
        return {doc_id: row[1] for doc_id, row in self._by_id("doc_id, digest", doc_ids).items()}

    def _by_id(self, columns: str, doc_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        with self._lock, self._refusals():
            for start in range(0, len(doc_ids), _CHUNK):
                part = doc_ids[start : start + _CHUNK]
                marks = ", ".join("?" * len(part))
                # Only column names of this file and question marks enter the statement.
                sql = f"SELECT {columns} FROM documents WHERE doc_id IN ({marks})"
                found.update((row[0], row) for row in self._connection.execute(sql, part))
        return found

    def count(self) -> int:
        """Number of documents."""
        with self._lock, self._refusals():
            return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def documents(self) -> Iterator[Document]:
        """All documents, in ascending order of id, as they were at the first."""
        with self._lock, self._refusals():
            sql = "SELECT doc_id FROM documents ORDER BY doc_id"
            ids = self._connection.execute(sql).fetchall()
        for start in range(0, len(ids), _CHUNK):
            part = [row[0] for row in ids[start : start + _CHUNK]]
            rows = self._by_id("doc_id, title, text, metadata", part)
            yield from (_document(rows[doc_id]) for doc_id in part if doc_id in rows)

    def state(self) -> str:
        """Number of documents and of those ever written, and the digest of the last one."""
        with self._lock, self._refusals():
            self._reopen_if_changed()
            sql = "SELECT seq FROM sqlite_sequence WHERE name = 'documents'"
            written = self._connection.execute(sql).fetchone() or (0,)
            sql = "SELECT digest FROM documents ORDER BY id DESC LIMIT 1"
            last = self._connection.execute(sql).fetchone() or ("",)
            return f"{self.count()} of {written[0]}, {last[0]}"

    def stamp(self) -> ModelStamp | None:
        """The model the vectors come from."""
        with self._lock, self._refusals():
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'model'").fetchone()
        return ModelStamp(**json.loads(row[0])) if row else None

    def set_stamp(self, stamp: ModelStamp) -> None:
        """Record the model; a stamp already there stays."""
        value = json.dumps({"fingerprint": stamp.fingerprint, "spec": stamp.spec})
        with self._write():
            self._connection.execute("INSERT OR IGNORE INTO meta VALUES ('model', ?)", (value,))

    def candidates(
        self,
        query: VectorPair,
        *,
        n: int,
        spaces: Sequence[Space],
        where: Sequence[Condition] = (),
        also: Sequence[str] = (),
    ) -> Candidates:
        """The best passages of the n best documents of each space and of `also`, scored in both."""
        with self._lock, self._refusals():
            table = self._current_table(query)
            rows = {doc_id: int(row[1]) for doc_id, row in self._by_id("doc_id, id", also).items()}
            named, allowed = [rows[doc_id] for doc_id in also if doc_id in rows], None
            if where:
                met = self._filters.met(self._connection, table, self._current.version, where)
                named, allowed = met.among(named), met.passages
            return table.candidates(
                query, n=n, spaces=spaces, allowed=allowed, also=numbers(named[:n])
            )

    def _current_table(self, query: VectorPair) -> PassageTable:
        """The passages, brought up to the last commit of any process."""
        self._reopen_if_changed()
        foreign = self._connection.execute("PRAGMA data_version").fetchone()[0]
        version = (self._reopened, foreign, self._writes)
        return self._current.table(self._connection, version, query)

    def settle(self) -> bool:
        """Build the sidecar where one is due; returns whether it did.

        Due is it for a large index that has none, or one that is damaged or has fallen far behind.
        Searches and writes go on meanwhile. Where it cannot be built, a warning is logged and the
        index is searched as before.
        """
        return self._settle(force=False)

    def _settle(self, *, force: bool) -> bool:
        try:
            if not self.due(force=force):
                return False
            with only_builder(self.path.parent) as alone:
                # Another process may be at it, or have just done it.
                return alone and self.due(force=force) and self._build()
        except (OSError, RuntimeError, sqlite3.Error, StoreError) as error:  # FAISS: the second
            LOGGER.warning("%s: no sidecar was built, %s", self.path.parent, error)
            return False

    def _build(self) -> bool:
        with self._lock, self._refusals():
            small = self._current.beside(self._connection).passages < self._scale.least
            model = model_of(self._connection)
        if small:
            remove_sidecar(self.path.parent)
        else:
            build_sidecar(self.path, identity=self._own_identity(), model=model)
        return True

    def due(self, *, force: bool = False) -> bool:
        """Whether `settle` has something to build; with `force`, also for a single deletion."""
        if self.read_only or self.exact:
            return False
        with self._lock, self._refusals():
            beside = self._current.beside(self._connection)
            return self._scale.due(beside) or (force and beside.deleted > 0)

    def _own_identity(self) -> str:
        """What tells this database from any other, made up when it is first asked for."""
        with self._write():
            new = ("identity", secrets.token_hex(16))
            self._connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", new)
            return identity(self._connection)

    def info(self) -> IndexInfo:
        """What the index holds and how it is searched."""
        stamp = self.stamp()
        with self._lock, self._refusals():
            self._reopen_if_changed()
            beside = self._current.beside(self._connection)
        codes = beside.manifest.codes if beside.manifest and not self.exact else None
        return IndexInfo(
            documents=self.count(),
            passages=beside.passages,
            model=stamp.spec if stamp else None,
            fingerprint=stamp.fingerprint if stamp else None,
            bytes=bytes_of(self.path.parent),
            search="approximate" if codes else "exact",
            kind=codes["topical"].kind if codes else None,
            recall={space: each.recall for space, each in codes.items()} if codes else None,
            width={space: each.width for space, each in codes.items()} if codes else None,
            tail=beside.tail if codes else 0,
            deleted=beside.deleted if codes else 0,
        )

    def compact(self) -> None:
        """Give back the space that deleted and replaced documents took."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened read-only; it cannot be compacted")
        with self._lock, self._refusals():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._settle(force=True)

    def close(self) -> None:
        """Release the file; what was committed stays."""
        with self._lock:
            self._connection.close()


def _document(row: tuple[str, ...]) -> Document:
    doc_id, title, text, metadata = row
    return Document(doc_id, text, title, json.loads(metadata))
