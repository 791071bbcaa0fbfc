"""The embedded store: one SQLite file in a folder; sidecar.py and its kin are for large ones."""

from coder_ir.stores.sqlite.store import FILE, SqliteStore

__all__ = ["FILE", "SqliteStore"]
