"""Documents with two vectors a passage; stores know no encoder."""

from pathlib import Path

from coder_ir.errors import InvalidValue
from coder_ir.stores.sqlite import SqliteStore
from coder_ir.types import Store

__all__ = ["SqliteStore", "open_store"]


def open_store(index: str | Path, *, read_only: bool = False) -> Store:
    """The store behind an INDEX: a folder is the embedded one, created if absent."""
    if "://" in str(index):
        scheme = str(index).split("://")[0]
        raise InvalidValue(f"an index is a folder; no store is known for {scheme}:// addresses")
    return SqliteStore(Path(index), read_only=read_only)
