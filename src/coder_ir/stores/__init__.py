"""Documents with two vectors a passage; stores know no encoder."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from coder_ir.errors import InvalidValue
from coder_ir.stores.address import STORES, index_folder, scheme_of, shown
from coder_ir.stores.sqlite.settings import IndexInfo, Settling
from coder_ir.stores.sqlite.store import SqliteStore
from coder_ir.types import Store

__all__ = ["IndexInfo", "SqliteStore", "index_folder", "open_store", "settle", "shown"]


def open_store(index: str | Path, *, read_only: bool = False, exact: bool = False) -> Store:
    """The store behind an INDEX: a folder is the embedded one; created if absent.

    With `exact`, no approximate index is built or used.
    """
    scheme = scheme_of(index)
    if scheme is None:
        return SqliteStore(Path(index), read_only=read_only, exact=exact)
    if scheme not in STORES:
        known = ", ".join(f"{name}:" for name in STORES)
        raise InvalidValue(
            f"no store is known for {scheme}:// addresses; an index is a folder, or an address "
            f"that begins with one of {known}"
        )
    module, _, name = STORES[scheme].partition(":")
    opened: Store = getattr(import_module(module), name)(
        index, read_only=read_only, **({"exact": True} if exact else {})
    )
    return opened


def settle(store: Store, *, begin: Callable[[], None] | None = None) -> bool:
    """Have a large store build what it is searched with, where that is due; says whether it did.

    `begin` is called before something that may take minutes.
    """
    if not isinstance(store, Settling) or not store.due():
        return False
    if begin:
        begin()
    return store.settle()
