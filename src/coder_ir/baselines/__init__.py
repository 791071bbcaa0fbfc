"""Other ways to answer a query, to measure against; each is a Searcher, like the Retriever."""

from coder_ir.baselines.asked import Asked
from coder_ir.baselines.bm25 import BM25
from coder_ir.baselines.by_vector import Indexed, Nearest
from coder_ir.baselines.cross_encoders import TorchCrossEncoder, load_cross_encoder
from coder_ir.baselines.decompose import Decomposer, Intents, ParserDecomposer
from coder_ir.baselines.dense import Dense, load_dense_encoder
from coder_ir.baselines.deo import DEO, Descent
from coder_ir.baselines.hyde import HyDE
from coder_ir.baselines.ns_ir import NSIR
from coder_ir.baselines.recorded import Recorded
from coder_ir.baselines.rerank import CrossEncoder, Reranked

__all__ = [
    "BM25",
    "DEO",
    "NSIR",
    "Asked",
    "CrossEncoder",
    "Decomposer",
    "Dense",
    "Descent",
    "HyDE",
    "Indexed",
    "Intents",
    "Nearest",
    "ParserDecomposer",
    "Recorded",
    "Reranked",
    "TorchCrossEncoder",
    "load_cross_encoder",
    "load_dense_encoder",
]
