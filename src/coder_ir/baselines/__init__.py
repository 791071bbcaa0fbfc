"""Other ways to answer a query, to measure against; each is a Searcher, like the Retriever."""

from coder_ir.baselines.rerank import CrossEncoder, Reranked

__all__ = ["CrossEncoder", "Reranked"]
