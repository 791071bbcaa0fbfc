"""The passages to search, kept in step with the SQLite file and the sidecar beside it."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coder_ir.stores.sqlite.building import fetched
from coder_ir.stores.sqlite.covered import Covered
from coder_ir.stores.sqlite.passages import PassageTable
from coder_ir.stores.sqlite.sidecar import SPACES, Manifest, Sidecar, manifest_state, open_sidecar
from coder_ir.types import Floats, VectorPair

_COMPARED = 64  # rows of a sidecar that are held against the database when it is opened


@dataclass(frozen=True, slots=True)
class Beside:
    """How the database stands to its sidecar."""

    passages: int  # in the database
    manifest: Manifest | None  # of a sidecar that fits
    tail: int  # passages that it does not cover
    deleted: int  # passages that it covers and the database has no longer


class Current:
    """The table of one open store."""

    def __init__(self, folder: Path, *, exact: bool) -> None:
        """Nothing is read yet. With `exact`, a sidecar's vectors are used and its codes not."""
        self._folder = folder
        self._exact = exact
        self._state: tuple[int, int] | None = None  # of the last manifest looked at
        self._sidecar: Sidecar | None = None
        self._used: Sidecar | None = None  # by the table
        self._table: PassageTable | None = None
        self.version: tuple[int, ...] = ()  # which commit the table is as of

    def table(
        self, connection: sqlite3.Connection, version: tuple[int, ...], query: VectorPair
    ) -> PassageTable:
        """The passages as of the last commit of any process; `version` says which that is."""
        dimensions = query.topical.shape[1], query.compatibility.shape[1]
        if self._table is None or manifest_state(self._folder) not in (None, self._state):
            with _view(connection):
                self._fitting(connection)
        if self._table is None or self._used is not self._sidecar:
            self._used, self.version = self._sidecar, ()
            usable = self._used and _dimensions(self._used) == dimensions
            covered = Covered(self._used, exact=self._exact) if self._used and usable else None
            self._table = PassageTable(*dimensions, covered=covered)
        if self.version != version:
            with _view(connection):
                _load(connection, self._table)
            self.version = version
        return self._table

    def beside(self, connection: sqlite3.Connection) -> Beside:
        """How large the tail has grown and how much the sidecar covers in vain."""
        with _view(connection):
            sidecar = self._fitting(connection)
            total = int(connection.execute("SELECT count(*) FROM passages").fetchone()[0])
            if sidecar is None or manifest_state(self._folder) is None:
                return Beside(total, None, total, 0)
            # Without the plus sign SQLite would read the vectors on its way.
            sql = "SELECT count(*) FROM passages WHERE +id > ?"
            tail = int(connection.execute(sql, (sidecar.manifest.last_row,)).fetchone()[0])
        return Beside(total, sidecar.manifest, tail, sidecar.manifest.rows - (total - tail))

    def _fitting(self, connection: sqlite3.Connection) -> Sidecar | None:
        """The sidecar of this database; one that is torn, stale or another's is passed over."""
        state = manifest_state(self._folder)
        if state is not None and state != self._state:
            self._state = state
            found = open_sidecar(self._folder)
            if found is not None and _fits(connection, found):
                self._sidecar = found
        return self._sidecar


class _view:
    """One view of the database for several reads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("COMMIT")


def _load(connection: sqlite3.Connection, table: PassageTable) -> None:
    """Add what is new, drop what is gone."""
    for rows in fetched(connection, table.last_row):
        vectors = VectorPair(_matrix([row[6] for row in rows]), _matrix([row[7] for row in rows]))
        table.add([row[:6] for row in rows], vectors)
    total = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
    if total != len(table):
        # As one text, for a million rows one by one take over a second.
        ids = connection.execute("SELECT group_concat(id) FROM passages").fetchone()[0]
        table.keep_only(np.fromstring(ids, dtype=np.int64, sep=",") if ids else numbers(()))


def _dimensions(sidecar: Sidecar) -> tuple[int, int]:
    codes = sidecar.manifest.codes
    return codes["topical"].dimensions, codes["compatibility"].dimensions


def _fits(connection: sqlite3.Connection, sidecar: Sidecar) -> bool:
    """Whether a sidecar was made from this database, as far as some rows tell.

    A database put back from a copy has the identity and may have other rows under the same ids.
    """
    manifest = sidecar.manifest
    if (manifest.identity, manifest.model) != (identity(connection), model_of(connection)):
        return False
    sql = "SELECT seq FROM sqlite_sequence WHERE name = 'passages'"
    highest = connection.execute(sql).fetchone() or (0,)
    if highest[0] < manifest.last_row:
        return False
    places = np.unique(np.linspace(0, manifest.rows - 1, _COMPARED).astype(np.int64))
    vectors = [sidecar.vectors[space][places] for space in SPACES]
    for row, *pair in zip(sidecar.columns.at(places), *vectors, strict=True):
        # One that is not there any more was deleted.
        for found in _fetched_one(connection, row.row_id):
            if found != (row.doc_id, *(vector.tobytes() for vector in pair)):
                return False
    return True


def _fetched_one(connection: sqlite3.Connection, row_id: int) -> list[tuple[str, bytes, bytes]]:
    """Document id and vectors of one passage, if it is there."""
    sql = (
        "SELECT d.doc_id, p.topical, p.compatibility FROM passages p "
        "JOIN documents d ON d.id = p.document WHERE p.id = ?"
    )
    return connection.execute(sql, (row_id,)).fetchall()


def identity(connection: sqlite3.Connection) -> str:
    """What tells this database from any other; empty before the first sidecar."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
    return str(row[0]) if row else ""


def model_of(connection: sqlite3.Connection) -> str:
    """The model as the database names it."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'model'").fetchone()
    return str(row[0]) if row else ""


def numbers(values: Iterable[int]) -> NDArray[np.int64]:
    """Row ids as an array."""
    return np.fromiter(values, dtype=np.int64)


def _matrix(blobs: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(blobs), dtype=np.float32).reshape(len(blobs), -1)
