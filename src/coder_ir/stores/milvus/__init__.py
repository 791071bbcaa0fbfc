"""An index in Milvus, or in a file of Milvus Lite."""

from coder_ir.stores.milvus.store import MilvusStore

__all__ = ["MilvusStore"]
