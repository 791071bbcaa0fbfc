"""Documents and passages as the rows of two Milvus collections, and back."""

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coder_ir.errors import InvalidValue, StoreError
from coder_ir.stores.milvus.schema import LONGEST
from coder_ir.stores.milvus.where import extremes, hashed, labels
from coder_ir.types import Document, Record

Row = dict[str, Any]
HEAD, META, REMOVED = 0, -1, -2
"""Values of `part`: a document, something of the whole index, a document that was removed."""
STATE, MODEL, SCHEMA = "state", "model", "schema"
"""Keys of the rows of the whole index."""
_INLINE = 4_096  # bytes of a document that stands in its own row
_PART = 60_000  # bytes in a row of its own
_TICK = 12  # digits of a version that tell the time


@dataclass(frozen=True, slots=True)
class Head:
    """What the row of a document says, as far as it was asked for."""

    key: str
    doc_id: str
    version: str  # of the passages and parts that belong to it
    digest: str
    parts: int  # rows that hold the document; 0: it stands in `body`
    body: str

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Head":
        """From what Milvus returns."""
        return cls(
            key=row["pk"],
            doc_id=row.get("doc_id", ""),
            version=row.get("version", ""),
            digest=row.get("digest", ""),
            parts=row.get("parts", 0),
            body=row.get("body", ""),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one write, in the order in which they are sent."""

    version: str
    passages: list[Row]
    parts: list[Row]
    heads: list[Row]


def key_of(doc_id: str) -> str:
    """The name of a document in keys and expressions, whatever characters its id has."""
    return hashed(doc_id)


def new_version() -> str:
    """Different from every other one, and sorted by time."""
    return f"{time.time_ns() // 1_000_000:0{_TICK}x}{secrets.token_hex(6)}"


def age(version: str) -> float:
    """Seconds since a version was made."""
    return time.time() - int(version[:_TICK], 16) / 1000


def batch_of(records: Sequence[Record]) -> Batch:
    """All rows of a write; what Milvus could not hold is refused here, before anything is sent."""
    made = Batch(new_version(), [], [], [])
    seen: set[str] = set()
    for record in records:
        doc_id = record.document.doc_id
        if not isinstance(doc_id, str):
            raise StoreError(f"a document id is text, got {doc_id!r}")
        if doc_id in seen:
            raise StoreError(f"document id {doc_id!r} comes twice in one write; ids are UNIQUE")
        seen.add(doc_id)
        _check_lengths(record)
        made.passages.extend(_passages(record, made.version, len(made.passages)))
        parts = list(_parts(record, made.version, len(made.parts)))
        made.heads.append(_head(record, made.version, parts))
        made.parts.extend(parts if len(parts) > 1 or _long(parts[0]["body"]) else ())
    return made


def _check_lengths(record: Record) -> None:
    document = record.document
    for name, text in (("id", document.doc_id), ("digest", record.digest)):
        if len(_octets(text, f"{name} of document {document.doc_id!r}")) > LONGEST:
            raise InvalidValue(
                f"Milvus holds at most {LONGEST} bytes in a field; the {name} of document "
                f"{document.doc_id[:40]!r}… has more: shorten it"
            )


def _octets(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"the {what} holds half a character; take it out") from error


def _passages(record: Record, version: str, first: int) -> Iterator[Row]:
    document, vectors = record.document, record.vectors
    same = {
        "document": key_of(document.doc_id),
        "version": version,
        "doc_id": document.doc_id,
        "labels": labels(document.metadata),
        "extremes": extremes(document.metadata),
    }
    parts = zip(record.spans, vectors.topical, vectors.compatibility, strict=True)
    for number, (span, topical, compatibility) in enumerate(parts):
        yield {
            "pk": f"{version}{first + number:06x}",
            "number": number,
            "start": span.start,
            "stop": span.end,
            "topical": topical,
            "compatibility": compatibility,
            **same,
        }


def _parts(record: Record, version: str, first: int) -> Iterator[Row]:
    """The document in pieces that fit a field, cut between characters."""
    document = record.document
    body = json.dumps([document.title, document.text, dict(document.metadata)], ensure_ascii=False)
    octets = _octets(body, f"text of document {document.doc_id!r}")
    start, number = 0, 0
    while start < len(octets):
        end = min(start + _PART, len(octets))
        while end < len(octets) and octets[end] & 0xC0 == 0x80:  # inside a character
            end -= 1
        number += 1
        row = _row(f"{version}{first + number - 1:06x}p", number)
        row |= {"doc_id": key_of(document.doc_id), "version": version}
        yield row | {"body": octets[start:end].decode()}
        start = end


def _head(record: Record, version: str, parts: Sequence[Row]) -> Row:
    doc_id = record.document.doc_id
    whole = parts[0]["body"] if len(parts) == 1 else ""
    inline = len(parts) == 1 and not _long(whole)
    return _row(key_of(doc_id), HEAD) | {
        "doc_id": doc_id,
        "version": version,
        "digest": record.digest,
        "parts": 0 if inline else len(parts),
        "body": whole if inline else "",
    }


def _long(body: str) -> bool:
    return len(body.encode()) > _INLINE


def state_row() -> Row:
    """A state that never was before; it goes with the documents in one request."""
    return meta_row(STATE, secrets.token_hex(12))


def meta_row(key: str, body: str) -> Row:
    """Something of the whole index."""
    return _row(key, META) | {"body": body}


def removed_row(head: Head) -> Row:
    """In place of a document that is to be removed."""
    return _row(head.key, REMOVED) | {"version": new_version()}


def _row(pk: str, part: int) -> Row:
    empty = {"doc_id": "", "version": "", "digest": "", "parts": 0, "body": ""}
    return {"pk": pk, "part": part, **empty, "unused": [1.0, 0.0]}


def document_of(doc_id: str, body: str) -> Document:
    """A document as it was written."""
    title, text, metadata = json.loads(body)
    return Document(doc_id, text, title, metadata)
