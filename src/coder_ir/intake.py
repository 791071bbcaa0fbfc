"""Documents on their way in: checked, told apart from what is already there, batched."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from coder_ir.errors import CoderError, DuplicateId, InvalidValue
from coder_ir.types import Document

_BATCH_DOCUMENTS = 128
_BATCH_CHARACTERS = 1_000_000
_DEEPEST = 64  # levels of metadata; what writes JSON elsewhere gives up at some 250


@dataclass(frozen=True, slots=True)
class Added:
    """What a call to `add` did."""

    written: int = 0  # new or changed documents, encoded and committed
    unchanged: int = 0  # already there with the same content

    def __add__(self, other: Self) -> "Added":
        """Both counts summed."""
        return Added(self.written + other.written, self.unchanged + other.unchanged)


def check_document(document: Document) -> None:
    """Refuse what a store could not give back as it was."""
    doc_id = document.doc_id
    if not isinstance(doc_id, str) or not doc_id or "\0" in doc_id:
        raise InvalidValue(f"a document id must be text without null bytes, got {doc_id!r}")
    for part, text in (("id", doc_id), ("title", document.title), ("text", document.text)):
        check_text(text, f"the {part} of document {doc_id!r}")
    try:
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"the metadata of document {doc_id!r} is not JSON: {error}") from error
    check_text(metadata, f"the metadata of document {doc_id!r}")
    if _depth(dict(document.metadata)) > _DEEPEST:
        raise InvalidValue(
            f"the metadata of document {doc_id!r} is nested more than {_DEEPEST} deep; flatten it"
        )


def _depth(value: object) -> int:
    """Levels of lists and objects within each other; 0 for anything else."""
    level, depth = [value], 0
    while level := [
        inner
        for outer in level
        if isinstance(outer, dict | list)
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
    return depth


def check_text(text: str, what: str) -> None:
    """Refuse what cannot be written as UTF-8; `what` names it in the message."""
    if not isinstance(text, str):
        raise InvalidValue(f"{what} must be text, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{what} holds half a surrogate pair at character {error.start}, which is not text"
        ) from error


def digest(document: Document, *, split: bool) -> str:
    """Changes when the document, or the way it is cut into passages, changes."""
    parts = [document.title, document.text, dict(document.metadata), split]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def distinct(documents: Iterable[Document], *, seen: set[str] | None = None) -> Iterator[Document]:
    """Pass documents on; a bad or repeated id stops the call before it is stored.

    `seen` holds the ids of earlier parts of the same call and takes in those of this one.
    """
    seen = set() if seen is None else seen
    for document in documents:
        check_document(document)
        if document.doc_id in seen:
            raise DuplicateId(
                f"document id {document.doc_id!r} comes twice; ids must be distinct within one "
                "call (documents before the second one are kept)"
            )
        seen.add(document.doc_id)
        yield document


def batches(
    documents: Iterable[Document], *, characters: int | None = None
) -> Iterator[list[Document]]:
    """Groups bounded in number and size; an error in the source comes after what preceded it."""
    most = characters or _BATCH_CHARACTERS
    batch: list[Document] = []
    size = 0
    source = iter(documents)
    failure: CoderError | None = None
    while True:
        try:
            document = next(source)
        except StopIteration:
            break
        except CoderError as error:  # raised again once the documents before it are stored
            failure = error
            break
        batch.append(document)
        size += len(document.text)
        if len(batch) >= _BATCH_DOCUMENTS or size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    if failure:
        raise failure
