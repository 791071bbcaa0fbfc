"""An index in PostgreSQL with the extension pgvector."""

from coder_ir.stores.pgvector.store import PgvectorStore

__all__ = ["PgvectorStore"]
