"""The PostgreSQL store: documents, passages and both vectors in tables, searched with pgvector."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coder_ir.errors import InvalidValue, NotFound, StoreError
from coder_ir.stores.pgvector.address import Settings
from coder_ir.stores.pgvector.connections import Connections
from coder_ir.stores.pgvector.schema import (
    Dimensions,
    make_indexes,
    open_tables,
    settle_dimensions,
)
from coder_ir.stores.pgvector.search import Asked, as_wire, search
from coder_ir.stores.pgvector.where import fields_json, storable
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    Json,
    ModelStamp,
    Record,
    Space,
    VectorPair,
)

if TYPE_CHECKING:
    from coder_ir.stores.pgvector.connections import Connection

INDEX_FROM = 50_000  # passages
_COUNT_EVERY = 5_000  # passages written between two looks at how many there are
_CHUNK = 500  # documents a statement
_COLUMNS = "doc_id, title, text, metadata"
_STAGING = (
    """CREATE TEMPORARY TABLE incoming (
        doc_id text COLLATE "C" NOT NULL, title text NOT NULL, text text NOT NULL,
        metadata text NOT NULL, fields text NOT NULL, digest text NOT NULL
    ) ON COMMIT DROP""",
    """CREATE TEMPORARY TABLE incoming_passages (
        doc_id text COLLATE "C" NOT NULL, number integer NOT NULL, start integer NOT NULL,
        stop integer NOT NULL, topical {vector} NOT NULL, compatibility {vector} NOT NULL
    ) ON COMMIT DROP""",
)
# Ids in ascending order and the count of writes last: every writer locks rows in one order.
_MERGE = (
    """INSERT INTO {documents} (doc_id, title, text, metadata, fields, digest)
    SELECT doc_id, title, text, metadata, fields::jsonb, digest FROM incoming ORDER BY doc_id
    ON CONFLICT (doc_id) DO UPDATE SET title = EXCLUDED.title, text = EXCLUDED.text,
        metadata = EXCLUDED.metadata, fields = EXCLUDED.fields, digest = EXCLUDED.digest""",
    """DELETE FROM {passages} p USING {documents} d, incoming i
    WHERE p.document = d.id AND d.doc_id = i.doc_id""",
    """INSERT INTO {passages} (document, number, start, stop, topical, compatibility)
    SELECT d.id, i.number, i.start, i.stop, i.topical, i.compatibility
    FROM incoming_passages i JOIN {documents} d ON d.doc_id = i.doc_id
    ORDER BY d.doc_id, i.number""",
)
_COUNT_WRITE = "UPDATE {meta} SET value = (value::bigint + 1)::text WHERE key = 'writes'"
_DELETE = """
WITH gone AS (SELECT id FROM {documents} WHERE doc_id = ANY(%s) ORDER BY doc_id FOR UPDATE)
DELETE FROM {documents} d USING gone WHERE d.id = gone.id
"""


class PgvectorStore:
    """Tables NAME, NAME_passages and NAME_meta of a database with the extension pgvector.

    Searches look at every passage, and rank exactly as the embedded store does, until there is an
    HNSW index. The write that takes the table past 50,000 passages makes one, and so does
    `compact`; with `exact=true` in the address neither makes one and none is used. Every process
    sees what others have committed. A pool of connections is shared by all threads.
    """

    def __init__(self, address: str, *, read_only: bool = False, exact: bool = False) -> None:
        """Open `postgresql://user:password@host:port/database?table=NAME`.

        Tables are created if absent, unless read_only. Further parameters: `exact`, `halfvec`
        (vectors in half precision, half the space) and those of libpq. `exact` here is as there.
        """
        settings = Settings.from_address(address)
        self.settings = replace(settings, exact=settings.exact or exact)
        self.read_only = read_only
        self._connections = Connections(self.settings, read_only=read_only)
        self._tables = self._connections.first(
            lambda connection: open_tables(connection, self.settings, read_only=read_only)
        )
        self._uncounted = INDEX_FROM  # passages written since they were counted; at first, all

    def write(self, records: Sequence[Record]) -> None:
        """Insert or replace, in one transaction."""
        self._refuse_read_only("write")
        if not records:
            return
        documents = [_document_row(record) for record in _distinct(records)]
        passages = [row for record in records for row in self._passage_rows(record)]
        first = records[0].vectors
        wanted = Dimensions(first.topical.shape[1], first.compatibility.shape[1])

        def put(connection: "Connection") -> None:
            self._check_dimensions(settle_dimensions(connection, self._tables, wanted), records)
            for statement in _STAGING:
                connection.execute(self._sql(statement))
            _copy(connection, "incoming", ["text"] * 6, documents)
            kinds = ["text", "int4", "int4", "int4", "bytea", "bytea"]  # vectors are bytes already
            _copy(connection, "incoming_passages", kinds, passages)
            for statement in (*_MERGE, _COUNT_WRITE):
                connection.execute(self._sql(statement))

        self._connections.write(put)
        self._index_if_large(len(passages))

    def _passage_rows(self, record: Record) -> Iterator[tuple[Any, ...]]:
        vectors = record.vectors
        parts = zip(record.spans, vectors.topical, vectors.compatibility, strict=True)
        for number, (span, topical, compatibility) in enumerate(parts):
            wires = (as_wire(vector, self._tables.vector) for vector in (topical, compatibility))
            yield record.document.doc_id, number, span.start, span.end, *wires

    def _check_dimensions(self, stored: Dimensions, records: Sequence[Record]) -> None:
        for record in records:
            pair = record.vectors
            seen = Dimensions(pair.topical.shape[1], pair.compatibility.shape[1])
            if seen != stored:
                raise StoreError(
                    f"{self.settings.place} holds vectors of {stored.topical} and "
                    f"{stored.compatibility} dimensions, document {record.document.doc_id!r} has "
                    f"{seen.topical} and {seen.compatibility}; write with the model the index was "
                    "built with, or name a new table"
                )

    def _index_if_large(self, written: int) -> None:
        self._uncounted += written
        if self.settings.exact or self._uncounted < _COUNT_EVERY:
            return
        self._uncounted = 0
        if self._number("SELECT count(*) FROM {passages}") >= INDEX_FROM:
            self._connections.read(lambda connection: make_indexes(connection, self._tables))

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove those present; returns how many were."""
        self._refuse_read_only("delete")
        counts = [0]

        def remove(connection: "Connection") -> None:
            found = connection.execute(
                self._sql(_DELETE), [list(filter(storable, doc_ids))]
            ).rowcount
            if found:
                connection.execute(self._sql(_COUNT_WRITE))
            counts.append(found)

        self._connections.write(remove)
        return max(counts)  # a second attempt finds none where the first one was committed

    def get(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; an unknown id is an error."""
        rows = self._by_id(_COLUMNS, doc_ids)
        if missing := [doc_id for doc_id in doc_ids if doc_id not in rows]:
            raise NotFound(f"{self.settings.place} has no document {missing[0]!r}")
        return [_document(rows[doc_id]) for doc_id in doc_ids]

    def digests(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """Digest of each of these documents that is present."""
        return {doc_id: row[1] for doc_id, row in self._by_id("doc_id, digest", doc_ids).items()}

    def _by_id(self, columns: str, doc_ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        # Only column names of this file enter the statement.
        sql = f"SELECT {columns} FROM {{documents}} WHERE doc_id = ANY(%s)"
        return {row[0]: row for row in self._rows(sql, [list(filter(storable, doc_ids))])}

    def count(self) -> int:
        """Number of documents."""
        return self._number("SELECT count(*) FROM {documents}")

    def documents(self) -> Iterator[Document]:
        """All documents, in ascending order of id; what others change meanwhile may be in."""
        sql = f"SELECT {_COLUMNS} FROM {{documents}} WHERE %s::text IS NULL OR doc_id > %s "
        sql += "ORDER BY doc_id LIMIT %s"
        last: str | None = None
        while rows := self._rows(sql, [last, last, _CHUNK]):
            yield from map(_document, rows)
            last = rows[-1][0]

    def state(self) -> str:
        """Which table it is, and the number of writes and deletions it has seen."""
        found = dict(self._rows("SELECT key, value FROM {meta}"))
        return f"{found.get('identity')}, {found.get('writes')}"

    def stamp(self) -> ModelStamp | None:
        """The model the vectors come from."""
        rows = self._rows("SELECT value FROM {meta} WHERE key = 'model'")
        return ModelStamp(**json.loads(rows[0][0])) if rows else None

    def set_stamp(self, stamp: ModelStamp) -> None:
        """Record the model; a stamp already there stays."""
        self._refuse_read_only("set_stamp")
        value = json.dumps({"fingerprint": stamp.fingerprint, "spec": stamp.spec})
        sql = self._sql("INSERT INTO {meta} VALUES ('model', %s) ON CONFLICT (key) DO NOTHING")

        def put(connection: "Connection") -> None:
            connection.execute(sql, [value])

        self._connections.write(put)

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
        asked = Asked(query, n, spaces, where, also)
        return self._connections.read(
            lambda connection: search(connection, self._tables, asked, exact=self.settings.exact)
        )

    def compact(self) -> None:
        """Free the space of deleted documents for new ones; make the index, unless exact."""
        self._refuse_read_only("compact")

        def tidy(connection: "Connection") -> None:
            connection.execute(self._sql("VACUUM (ANALYZE) {documents}, {passages}"))
            if not self.settings.exact:
                make_indexes(connection, self._tables)

        self._connections.read(tidy)

    def close(self) -> None:
        """Give the connections back; what was committed stays."""
        self._connections.close()

    def _sql(self, statement: str) -> Any:
        return self._tables.sql(statement)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connections.read(
            lambda connection: connection.execute(self._sql(statement), values).fetchall()
        )

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def _refuse_read_only(self, call: str) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.settings.place} was opened read-only; open it without read_only to {call}"
            )


def _copy(
    connection: "Connection", table: str, kinds: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    from psycopg import sql

    statement = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table))
    with connection.cursor().copy(statement) as copy:
        copy.set_types(kinds)
        for row in rows:
            copy.write_row(row)


def _distinct(records: Sequence[Record]) -> Sequence[Record]:
    seen: set[str] = set()
    for record in records:
        if record.document.doc_id in seen:
            raise StoreError(
                f"document id {record.document.doc_id!r} comes twice in one write; ids are UNIQUE"
            )
        seen.add(record.document.doc_id)
    return records


def _document_row(record: Record) -> tuple[Any, ...]:
    document = record.document
    metadata = json.dumps(dict(document.metadata), ensure_ascii=False)
    fields = fields_json(document.metadata)
    parts: dict[str, Json] = {"id": document.doc_id, "title": document.title}
    parts |= {"text": document.text, "metadata": dict(document.metadata)}
    for part, value in parts.items():
        if not storable(value):
            raise InvalidValue(
                "PostgreSQL stores no null characters and no half surrogate pairs, and the "
                f"{part} of document {document.doc_id!r} holds one; take it out"
            )
    return document.doc_id, document.title, document.text, metadata, fields, record.digest


def _document(row: tuple[Any, ...]) -> Document:
    doc_id, title, text, metadata = row
    return Document(doc_id, text, title, json.loads(metadata))
