"""Other ways to answer a query, to measure against; each is a Searcher, like the Retriever."""

from coder_ir.baselines.bm25 import BM25
from coder_ir.baselines.cross_encoders import TorchCrossEncoder, load_cross_encoder
from coder_ir.baselines.dense import Dense
from coder_ir.baselines.deo import DEO
from coder_ir.baselines.hyde import HyDE
from coder_ir.baselines.ns_ir import NSIR
from coder_ir.baselines.rerank import CrossEncoder, Reranked

__all__ = [
    "BM25",
    "DEO",
    "NSIR",
    "CrossEncoder",
    "Dense",
    "HyDE",
    "Reranked",
    "TorchCrossEncoder",
    "load_cross_encoder",
]
