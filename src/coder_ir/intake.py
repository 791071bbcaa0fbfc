"""Documents on their way in: checked, and told apart from what is already there."""

import hashlib
import json

from coder_ir.errors import InvalidValue
from coder_ir.types import Document


def check_document(document: Document) -> None:
    """Refuse what a store could not give back as it was."""
    doc_id = document.doc_id
    if not isinstance(doc_id, str) or not doc_id or "\0" in doc_id:
        raise InvalidValue(f"a document id must be text without null bytes, got {doc_id!r}")
    for part, text in (("id", doc_id), ("title", document.title), ("text", document.text)):
        check_text(text, f"the {part} of document {doc_id!r}")
    try:
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"the metadata of document {doc_id!r} is not JSON: {error}") from error
    check_text(metadata, f"the metadata of document {doc_id!r}")


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
