"""Indexing by many processes or machines, with Ray Data."""

from coder_ir.distributed.parts import Part, find_parts
from coder_ir.distributed.running import Cluster, Opening, Outcome, index_with_ray

__all__ = ["Cluster", "Opening", "Outcome", "Part", "find_parts", "index_with_ray"]
