"""Queries and the phrases of their constraints in one call, without vectors nobody asks for."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from coder_ir.types import Encoder, Floats, VectorPair


@runtime_checkable
class SparingEncoder(Protocol):
    """One that can leave out the compatibility vectors of some texts."""

    def encode_queries(
        self, texts: Sequence[str], *, topical_only: Sequence[str]
    ) -> tuple[VectorPair, Floats]:
        """Both vectors of queries, and the topical ones of others, as `encode` gives them."""


def encode_queries(
    encoder: Encoder, texts: Sequence[str], *, topical_only: Sequence[str]
) -> tuple[VectorPair, Floats]:
    """Both vectors of queries, and the topical ones of others, in one call of any encoder."""
    if isinstance(encoder, SparingEncoder):
        return encoder.encode_queries(texts, topical_only=topical_only)
    return first(encoder.encode([*texts, *topical_only], kind="query"), len(texts))


def first(vectors: VectorPair, count: int) -> tuple[VectorPair, Floats]:
    """Both vectors of the first texts, and the topical ones of those after them."""
    pair = VectorPair(vectors.topical[:count], vectors.compatibility[:count])
    return pair, vectors.topical[count:]
