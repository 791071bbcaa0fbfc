"""A user's pgvector table as a source; vectors go into a table beside it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.attached.pgvector_table import Address, Table, find_table
from coder_ir.attached.source import BATCH, Held, Item, Row, other_model
from coder_ir.errors import InvalidValue, StoreError
from coder_ir.stores.pgvector.address import import_psycopg
from coder_ir.stores.pgvector.connections import Connections
from coder_ir.stores.pgvector.search import as_text, matrix
from coder_ir.stores.pool import Found, best_documents, passage_row, widths
from coder_ir.types import Floats, ModelStamp, Scores
from coder_ir.vectors import SCORE_DECIMALS, cosine, unit_rows

if TYPE_CHECKING:
    from coder_ir.stores.pgvector.connections import Connection

_LOCK = 0x636F646573  # advisory; one process at a time makes a table
_EF_MOST = 1000  # pgvector's own limit of hnsw.ef_search
_VERSION = 1  # of the table beside the user's
_CREATE = """
CREATE TABLE {side} (
    id {id_type} PRIMARY KEY, digest text NOT NULL, compatibility vector(DIMENSIONS) NOT NULL
)
"""
_KEY = "ALTER TABLE {side} ADD FOREIGN KEY (id) REFERENCES {items} ({id}) ON DELETE CASCADE"
_GONE = "DELETE FROM {side} c WHERE NOT EXISTS (SELECT 1 FROM {items} i WHERE i.{id} = c.id)"
# A text comes over only where it is not the one that was encoded.
_PAGE = """
SELECT i.{id}::text, CASE WHEN c.digest = encode(sha256(convert_to(i.body, 'UTF8')), 'hex')
    THEN NULL ELSE i.body END
FROM (
    SELECT {id}, coalesce({text}::text, '') AS body FROM {items} WHERE FROM_HERE
    ORDER BY {id} LIMIT %(most)s
) AS i LEFT JOIN {side} c ON c.id = i.{id} ORDER BY i.{id}
"""
_WRITE = """
INSERT INTO {side} AS c (id, digest, compatibility)
SELECT i.{id}, n.digest, n.vector::vector
FROM unnest(%s::text[], %s::text[], %s::text[]) AS n (id, digest, vector)
JOIN {items} i ON i.{id} = n.id::{id_type} ORDER BY i.{id}
ON CONFLICT (id) DO UPDATE SET digest = EXCLUDED.digest, compatibility = EXCLUDED.compatibility
"""
_NEAREST = """
SELECT {id}::text, {send}({vector}), {vector} {operator} %(query)s::{vector_type} AS distance
FROM {items} ORDER BY {vector} {operator} %(query)s::{vector_type} LIMIT %(wanted)s
"""
_FETCH = """
SELECT i.{id}::text, coalesce(i.{text}::text, ''), c.digest, vector_send(c.compatibility)
FROM {items} i LEFT JOIN {side} c ON c.id = i.{id}
WHERE i.{id} = ANY(%s::text[]::{id_type}[])
"""


class PgvectorSource:
    """A table with ids, texts and vectors; ours is named like it, with `_coder` at the end.

    Candidates are found by the operator that the user's index on the vectors is for, with that
    index; without one, every row is looked at, by cosine.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        """Connect and check the columns; nothing is written yet."""
        self._address = Address.read(address)
        self.read_only = read_only
        self._connections = Connections(self._address.server, read_only=read_only)
        self._table = self._connections.first(
            lambda connection: find_table(connection, self._address)
        )

    @property
    def place(self) -> str:
        """The address without user and password."""
        return self._address.server.place

    def count(self) -> int:
        """Number of rows."""
        return int(self._rows("SELECT count(*) FROM {items}")[0][0])

    def stamp(self) -> ModelStamp | None:
        """As the comment on our table says."""
        return self._connections.read(lambda connection: _stamp(connection, self._table))

    def prepare(self, stamp: ModelStamp, dimensions: int) -> None:
        """Make our table, if it is not there."""

        def make(connection: "Connection") -> None:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            kept = _stamp(connection, self._table)
            if kept is None:
                _create(connection, self._table, stamp, dimensions)
            elif kept.fingerprint != stamp.fingerprint:
                undo = f"drop the table {self._table.side}"
                raise other_model(self.place, kept, stamp, undo=undo)
            if self._address.foreign_key and not _has_key(connection, self._table):
                connection.execute(self._table.sql(_GONE), [])
                connection.execute(self._table.sql(_KEY), [])

        self._connections.write(make)

    def items(self) -> Iterator[list[Item]]:
        """In ascending order of id, a page at a time; what others change meanwhile may be in."""
        last: str | None = None
        while True:
            here = "true" if last is None else "{id} > %(last)s::text::{id_type}"
            page = _PAGE.replace("FROM_HERE", here)
            rows = self._rows(page, {"most": BATCH, "last": last})
            if not rows:
                return
            yield [Item(doc_id, text) for doc_id, text in rows]
            last = rows[-1][0]

    def write(self, rows: Sequence[Row]) -> None:
        """One transaction; an item that was deleted meanwhile gets no row."""
        columns = [
            [row.doc_id for row in rows],
            [row.digest for row in rows],
            [as_text(row.vector) for row in rows],
        ]

        def put(connection: "Connection") -> None:
            connection.execute(self._table.sql(_WRITE), columns)

        self._connections.write(put)

    def remove_gone(self) -> int:
        """One statement over both tables."""
        counts = [0]

        def remove(connection: "Connection") -> None:
            counts.append(connection.execute(self._table.sql(_GONE), []).rowcount)

        self._connections.write(remove)
        return max(counts)  # a second attempt finds none where the first one was committed

    def nearest(self, vector: Floats, n: int) -> dict[str, float]:
        """The n best by the user's own measure; ties go by ascending id."""
        expected = self._table.dimensions
        if expected is not None and expected != len(vector):
            raise InvalidValue(
                f"column {self._address.vector!r} of {self.place} has {expected} dimensions, the "
                f"query's vector has {len(vector)}"
            )
        return self._connections.read(lambda connection: self._nearest(connection, vector, n))

    def _nearest(self, connection: "Connection", vector: Floats, n: int) -> dict[str, float]:
        with connection.transaction():
            for wanted in widths(n):
                bound = {"query": as_text(vector), "wanted": wanted}
                rows = self._by_index(connection, bound) or self._by_scan(connection, bound)
                whole = len(rows) < wanted
                rows = [row for row in rows if row[2] is not None and np.isfinite(row[2])]
                kind, width = self._table.vector_type, len(vector)
                vectors = matrix([row[1] for row in rows], kind, dimensions=width)
                scores = _closeness(vectors, vector, self._table.metric)
                floor = -np.inf if whole or not rows else float(scores.min())
                found = [passage_row(i, row[0], i, (0, 0, 0)) for i, row in enumerate(rows)]
                best = best_documents(Found(found, scores, floor), n)
                if best is not None:
                    similar = cosine(unit_rows(vectors), unit_rows(vector[None])[0])
                    return {rows[i][0]: float(similar[i]) for i in best}
        raise AssertionError("unreachable: the widest search sees every row")

    def _by_index(self, connection: "Connection", bound: dict[str, Any]) -> list[Any]:
        """Nothing where the user's index, if there is one, brings fewer rows than wanted."""
        wanted = bound["wanted"]
        if wanted > _EF_MOST:
            return []
        settings = {"enable_indexscan": "on", "hnsw.ef_search": str(min(_EF_MOST, 2 * wanted))}
        if self._table.iterative:
            settings |= {
                f"{index}.iterative_scan": "relaxed_order" for index in ("hnsw", "ivfflat")
            }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, true)", [name, value])
        rows = self._asked(connection, bound)
        return rows if len(rows) >= wanted else []

    def _by_scan(self, connection: "Connection", bound: dict[str, Any]) -> list[Any]:
        connection.execute("SELECT set_config('enable_indexscan', 'off', true)")
        return self._asked(connection, bound)

    def _asked(self, connection: "Connection", bound: dict[str, Any]) -> list[Any]:
        # Never prepared: a plan for any LIMIT would not use the index.
        statement = self._table.sql(_NEAREST)
        return connection.execute(statement, bound, prepare=False, binary=True).fetchall()

    def fetch(self, doc_ids: Sequence[str]) -> list[Held]:
        """Rows of both tables."""
        psycopg = import_psycopg()
        wanted = [doc_id for doc_id in doc_ids if "\0" not in doc_id]

        def ask(connection: "Connection") -> list[Any]:
            try:
                return connection.execute(self._table.sql(_FETCH), [wanted], binary=True).fetchall()
            except psycopg.DataError as error:
                said = " ".join((error.diag.message_primary or str(error)).split())
                raise InvalidValue(f"{self.place} has no such ids: {said}") from error

        return [
            Held(doc_id, text, digest or "", None if sent is None else matrix([sent], "vector")[0])
            for doc_id, text, digest, sent in self._connections.read(ask)
        ]

    def close(self) -> None:
        """Give the connections back."""
        self._connections.close()

    def _rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        return self._connections.read(
            lambda connection: connection.execute(
                self._table.sql(statement), values or {}
            ).fetchall()
        )


def _side_oid(connection: "Connection", table: Table) -> int | None:
    statement = "SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    schema, _, name = table.side.partition(".")
    row = connection.execute(
        f"{statement} WHERE n.nspname = %s AND c.relname = %s", [schema, name]
    ).fetchone()
    return int(row[0]) if row else None


def _stamp(connection: "Connection", table: Table) -> ModelStamp | None:
    """None where our table is not there; another program's is refused."""
    oid = _side_oid(connection, table)
    if oid is None:
        return None
    row = connection.execute(
        "SELECT obj_description(%s::bigint::oid, 'pg_class')", [oid]
    ).fetchone()
    try:
        found = json.loads(row[0] if row and row[0] else "")
        if found["coder-ir"] == _VERSION:
            return ModelStamp(**found["model"])
        said = f"version {found['coder-ir']} of it"
    except (ValueError, TypeError, KeyError):
        said = "another program's"
    raise StoreError(f"there is a table {table.side} already, and it is {said}; rename or drop it")


def _create(connection: "Connection", table: Table, stamp: ModelStamp, dimensions: int) -> None:
    from psycopg import sql

    connection.execute(table.sql(_CREATE.replace("DIMENSIONS", f"{dimensions:d}")), [])
    model = {"fingerprint": stamp.fingerprint, "spec": stamp.spec}
    words = json.dumps({"coder-ir": _VERSION, "model": model})
    statement = table.sql("COMMENT ON TABLE {side} IS ") + sql.Literal(words.replace("%", "%%"))
    connection.execute(statement, [])


def _has_key(connection: "Connection", table: Table) -> bool:
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f' "
        "AND conrelid = %s::bigint::oid AND confrelid = %s::bigint::oid)",
        [_side_oid(connection, table), table.oid],
    ).fetchone()
    return bool(row and row[0])


def _closeness(rows: Floats, vector: Floats, metric: str) -> Scores:
    """How near each row is in the user's measure, higher is nearer, rounded against noise."""
    if metric == "cosine":
        return cosine(unit_rows(rows), unit_rows(vector[None])[0])
    if metric == "ip":
        return cosine(rows, vector)
    apart = rows.astype(np.float64) - vector.astype(np.float64)
    return np.asarray(np.round(-np.linalg.norm(apart, axis=1), SCORE_DECIMALS))
