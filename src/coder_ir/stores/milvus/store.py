"""The Milvus store: documents, passages and both vectors in two collections.

Milvus has no transactions; one request to one collection is the most that happens at once. So a
document is what its one row in COLLECTION_documents says, and that row names a *version*. Passages
and long texts carry the version they were written with, and count only while the row names it.

A write goes

1. passages and long texts, with a new version: nobody sees them yet;
2. one request that replaces the rows of all documents of the batch and the state of the index: now
   all of them are seen, and nothing of what they replace;
3. away with what the version replaced has left.

A process killed before 2 has written nothing that counts, one killed after 2 all of it; running it
again writes what `digests` does not name. Whichever of two writers of one document comes last in 2
has it whole: 3 removes the version that was there before, never one that may still be on its way.
A delete is a write that puts a mark into the rows. What killed or crossing writers leave behind is
only space; `compact` gives it back once it is an hour old.

A batch of more than 5,000 documents goes in several such requests, each with all of its part.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from coder_ir.errors import InvalidValue, NotFound, StoreError
from coder_ir.stores.milvus.address import Settings
from coder_ir.stores.milvus.connections import TIMEOUT, Connections, documents_of
from coder_ir.stores.milvus.rows import (
    HEAD,
    MODEL,
    REMOVED,
    SCHEMA,
    STATE,
    Head,
    Row,
    age,
    batch_of,
    document_of,
    key_of,
    meta_row,
    removed_row,
    state_row,
)
from coder_ir.stores.milvus.schema import (
    SCHEMA_VERSION,
    Dimensions,
    Passages,
    find_passages,
    make_passages,
    open_documents,
)
from coder_ir.stores.milvus.search import CHUNK, Asked, Search, heads, pages, query
from coder_ir.stores.milvus.where import any_of
from coder_ir.stores.pool import as_candidates
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    ModelStamp,
    Record,
    Space,
    VectorPair,
)

_SEND = 16_000_000  # bytes a request, of the 64 MB that Milvus takes
_COMMIT = 5_000  # documents a request
_GRACE = 3_600.0  # seconds after which what no document names is no longer on its way
_ATTEMPTS = 4


class MilvusStore:
    """Collections COLLECTION and COLLECTION_documents of a server, or of a Milvus Lite file.

    With an index FLAT, the default, searches rank exactly as the embedded store does. Others are
    faster and may miss a passage. Every process sees what others have written. One process at a
    time uses a Milvus Lite file, and one writes to a Milvus Lite server.
    """

    def __init__(self, address: str, *, read_only: bool = False, exact: bool = False) -> None:
        """Open `milvus://user:password@host:port/COLLECTION` or `milvus-lite:FILE?collection=NAME`.

        Collections are created if absent, unless read_only. `exact` refuses one whose index is
        approximate, for Milvus cannot pass it by.
        """
        self.settings = Settings.from_address(address)
        self.read_only = read_only
        self._connections = Connections(self.settings, read_only=read_only)
        self._documents = documents_of(self.settings.collection)
        self._passages: Passages | None = None
        try:
            with self._connections.writing():
                open_documents(self._connections, read_only=read_only)
                self._passages = find_passages(self._connections)
                self._check_version()
            if exact:
                self._check_exact()
        except BaseException:
            self._connections.close()
            raise

    def _check_exact(self) -> None:
        kind = self._passages.index if self._passages else self.settings.shape.kind
        if kind != "FLAT":
            raise InvalidValue(
                f"{self.settings.place} has an index of the kind {kind}, which is not exact; leave "
                "--exact out, or use a collection with index=FLAT"
            )

    def _check_version(self) -> None:
        version = self._meta(SCHEMA)
        if version is None and not self.read_only:
            self._upsert([meta_row(SCHEMA, str(SCHEMA_VERSION)), state_row()])
        elif version not in (None, str(SCHEMA_VERSION)):
            raise StoreError(
                f"{self.settings.place} has schema version {version}; this coder-ir reads "
                f"{SCHEMA_VERSION}"
            )

    def write(self, records: Sequence[Record]) -> None:
        """Insert or replace; a killed write leaves all of it or nothing."""
        self._refuse_read_only("write")
        if not records:
            return
        batch = batch_of(records)
        with self._connections.writing():
            self._settle(records)
            old = heads(self._connections, [row["pk"] for row in batch.heads], ["version", "parts"])
            self._insert(self.settings.collection, batch.passages)
            self._insert(self._documents, batch.parts)
            for start in range(0, len(batch.heads), _COMMIT):
                self._upsert([*batch.heads[start : start + _COMMIT], state_row()])
            self._sweep(old)

    def _settle(self, records: Sequence[Record]) -> None:
        first = records[0].vectors
        wanted = Dimensions(first.topical.shape[1], first.compatibility.shape[1])
        stored = self._passages.dimensions if self._passages else wanted
        for record in records:
            pair = record.vectors
            seen = Dimensions(pair.topical.shape[1], pair.compatibility.shape[1])
            if seen != stored:
                raise self._mismatch(stored, seen, f"document {record.document.doc_id!r} has")
        if self._passages is None:
            self._passages = make_passages(self._connections, wanted)
            self._settle(records)  # another process may have been first

    def _mismatch(self, stored: Dimensions, seen: Dimensions, what: str) -> StoreError:
        return StoreError(
            f"{self.settings.place} holds vectors of {stored.topical} and {stored.compatibility} "
            f"dimensions, {what} {seen.topical} and {seen.compatibility}; use the model the index "
            "was built with, or name a new collection"
        )

    def _insert(self, name: str, rows: Sequence[Row]) -> None:
        for part in _requests(rows):
            self._connections.call(partial(_insert, name, part))

    def _upsert(self, rows: list[Row]) -> None:
        self._connections.call(lambda client: client.upsert(self._documents, rows, timeout=TIMEOUT))

    def _sweep(self, old: Sequence[Head]) -> None:
        """Remove what belonged to documents as they were before."""
        for start in range(0, len(old), CHUNK):
            some = old[start : start + CHUNK]
            keys = [head.key for head in some]
            versions = any_of("version", sorted({head.version for head in some}))
            if self._passages is not None:
                condition = f"{any_of('document', keys)} and {versions}"
                self._delete(self.settings.collection, condition)
            if any(head.parts for head in some):
                condition = f"part > 0 and {any_of('doc_id', keys)} and {versions}"
                self._delete(self._documents, condition)

    def _delete(self, name: str, condition: str) -> None:
        self._connections.call(
            lambda client: client.delete(name, filter=condition, timeout=TIMEOUT)
        )

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove those present; returns how many were."""
        self._refuse_read_only("delete")
        keys = list(dict.fromkeys(key_of(doc_id) for doc_id in doc_ids))
        with self._connections.writing():
            old = heads(self._connections, keys, ["version", "parts"])
            for start in range(0, len(old), _COMMIT):
                self._upsert([*map(removed_row, old[start : start + _COMMIT]), state_row()])
            self._sweep(old)
        return len(old)

    def get(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; an unknown id is an error."""
        found = self._read(list(dict.fromkeys(key_of(doc_id) for doc_id in doc_ids)))
        if missing := [doc_id for doc_id in doc_ids if doc_id not in found]:
            raise NotFound(f"{self.settings.place} has no document {missing[0]!r}")
        return [found[doc_id] for doc_id in doc_ids]

    def _read(self, keys: Sequence[str]) -> dict[str, Document]:
        """Documents by id; one whose parts were replaced while they were read is read again."""
        found: dict[str, Document] = {}
        for _ in range(_ATTEMPTS):
            torn = []
            for head in heads(self._connections, keys, ["doc_id", "version", "parts"]):
                body = self._body(head) if head.parts else head.body
                if body is None:
                    torn.append(head.key)
                else:
                    found[head.doc_id] = document_of(head.doc_id, body)
            if not torn:
                break
            keys = torn
        return found

    def _body(self, head: Head) -> str | None:
        condition = f'part > 0 and version == "{head.version}" and doc_id == "{head.key}"'
        rows = query(self._connections, self._documents, condition, ["part", "body"])
        parts = {row["part"]: row["body"] for row in rows}
        if len(parts) < head.parts:
            return None
        return "".join(parts[number] for number in sorted(parts))

    def digests(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """Digest of each of these documents that is present."""
        keys = list(dict.fromkeys(key_of(doc_id) for doc_id in doc_ids))
        found = heads(self._connections, keys, ["doc_id", "digest"])
        return {head.doc_id: head.digest for head in found}

    def count(self) -> int:
        """Number of documents."""
        rows = query(self._connections, self._documents, f"part == {HEAD}", ["count(*)"])
        return int(rows[0]["count(*)"])

    def documents(self) -> Iterator[Document]:
        """All documents, in ascending order of id; what others change meanwhile may be in."""
        found = sorted(row["doc_id"] for row in self._all(f"part == {HEAD}", ["doc_id"]))
        for start in range(0, len(found), CHUNK):
            part = found[start : start + CHUNK]
            read = self._read([key_of(doc_id) for doc_id in part])
            yield from (read[doc_id] for doc_id in part if doc_id in read)

    def _all(self, condition: str, fields: Sequence[str], name: str | None = None) -> list[Row]:
        name = name or self._documents

        def read(client: Any) -> list[Row]:
            some = pages(client, self._connections, condition, fields, name=name)
            return [dict(row) for page in some for row in page]

        return self._connections.call(read)

    def state(self) -> str:
        """A name that every write and deletion replaces by one that never was."""
        return self._meta(STATE) or ""

    def stamp(self) -> ModelStamp | None:
        """The model the vectors come from."""
        found = self._meta(MODEL)
        return ModelStamp(**json.loads(found)) if found else None

    def set_stamp(self, stamp: ModelStamp) -> None:
        """Record the model; a stamp already there stays."""
        self._refuse_read_only("set_stamp")
        with self._connections.writing():
            if self._meta(MODEL) is None:
                value = json.dumps({"fingerprint": stamp.fingerprint, "spec": stamp.spec})
                self._upsert([meta_row(MODEL, value)])

    def _meta(self, key: str) -> str | None:
        rows = query(self._connections, self._documents, any_of("pk", [key]), ["body"])
        return str(rows[0]["body"]) if rows else None

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
        seen = Dimensions(query.topical.shape[1], query.compatibility.shape[1])
        if self._passages is None:
            self._passages = find_passages(self._connections)
        if self._passages is None:
            empty = VectorPair(query.topical[:0], query.compatibility[:0])
            return as_candidates([], empty, query)
        if seen != self._passages.dimensions:
            raise self._mismatch(self._passages.dimensions, seen, "the query has")
        return Search(
            self._connections, self._passages, Asked(query, n, spaces, where, also)
        ).pool()

    def compact(self) -> None:
        """Remove what no document names and is an hour old, and have Milvus tidy up."""
        self._refuse_read_only("compact")
        with self._connections.writing():
            rows = self._all(f"part == {HEAD}", ["version"])
            current = {(row["pk"], row["version"]) for row in rows}
            for left in ("part > 0", f"part == {REMOVED}"):
                self._remove(self._documents, "doc_id", left, current)
            self._tidy(self._documents)
            if self._passages is not None:
                self._remove(self.settings.collection, "document", "number >= 0", current)
                self._tidy(self.settings.collection)

    def _remove(self, name: str, owner: str, condition: str, current: set[tuple[str, str]]) -> None:
        """Remove rows that meet a condition and whose document, named by `owner`, has moved on."""
        rows = self._all(condition, [owner, "version"], name)
        gone = [r["pk"] for r in rows if (r[owner], r["version"]) not in current and _old(r)]
        for start in range(0, len(gone), CHUNK):
            # The condition once more: a document that was removed may have come back by now.
            keys = any_of("pk", gone[start : start + CHUNK])
            self._delete(name, f"{keys} and {condition}")

    def _tidy(self, name: str) -> None:
        def tidy(client: Any) -> None:
            client.flush(name, timeout=TIMEOUT)
            client.compact(name, timeout=TIMEOUT)

        self._connections.call(tidy)

    def close(self) -> None:
        """Let go of the server; what was written stays."""
        self._connections.close()

    def _refuse_read_only(self, call: str) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.settings.place} was opened read-only; open it without read_only to {call}"
            )


def _insert(name: str, rows: list[Row], client: Any) -> None:
    client.insert(name, rows, timeout=TIMEOUT)


def _old(row: Row) -> bool:
    return age(row["version"]) >= _GRACE


def _requests(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows in lists that Milvus takes in one request."""
    part: list[Row] = []
    size = 0
    for row in rows:
        size += _size(row)
        if part and size > _SEND:
            yield part
            part, size = [], _size(row)
        part.append(row)
    if part:
        yield part


def _size(row: Row) -> int:
    """Bytes of a row, about."""
    vectors: int = sum(row[space].nbytes for space in ("topical", "compatibility") if space in row)
    texts = len(row.get("body", "").encode()) + 4 * len(row["doc_id"])
    return (
        vectors + texts + 40 * len(row.get("labels", ())) + 80 * len(row.get("extremes", ())) + 200
    )
