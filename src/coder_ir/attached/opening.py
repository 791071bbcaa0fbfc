"""From what a user gives as SOURCE to the class that reads it."""

from importlib import import_module
from pathlib import Path

from coder_ir.attached.folder import FolderSource
from coder_ir.attached.source import Source
from coder_ir.datasets.documents import Columns
from coder_ir.errors import InvalidValue
from coder_ir.stores.address import scheme_of

SOURCES = {
    "postgresql": "coder_ir.attached.pgvector:PgvectorSource",
    "postgres": "coder_ir.attached.pgvector:PgvectorSource",
    "milvus": "coder_ir.attached.milvus:MilvusSource",
    "milvus-lite": "coder_ir.attached.milvus:MilvusSource",
}
"""Scheme to module and class, loaded when an address asks for it; called as
`Class(address, read_only=…)`. A folder has a class of its own."""


def open_source(
    address: str | Path,
    *,
    texts: str | Path | None = None,
    columns: Columns | None = None,
    read_only: bool = False,
) -> Source:
    """A folder of vectors, or a table behind an address.

    `texts` and `columns` are for a folder: a jsonl file and its fields. None takes those of the
    last call, or `texts.jsonl`.
    """
    scheme = scheme_of(address)
    if isinstance(address, str) and (named := address.partition(":")[0].lower()) in SOURCES:
        scheme = named  # `milvus-lite:FILE` has no slashes
    if scheme is None:
        return FolderSource(Path(address), texts=texts, columns=columns, read_only=read_only)
    if texts is not None or columns is not None:
        raise InvalidValue(
            "texts come from the collection itself; a file of them goes with a folder"
        )
    if scheme not in SOURCES:
        known = ", ".join(f"{name}:" for name in SOURCES)
        raise InvalidValue(
            f"nothing can be attached to {scheme}:// addresses; a source is a folder with "
            f"vectors.npy, or an address that begins with one of {known}"
        )
    module, _, name = SOURCES[scheme].partition(":")
    opened: Source = getattr(import_module(module), name)(str(address), read_only=read_only)
    return opened
