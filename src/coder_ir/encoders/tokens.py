"""Token by token: what a method needs that looks inside a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from coder_ir.types import Floats, VectorPair


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """A text as a model's last layer sees it."""

    tokens: tuple[str, ...]  # special ones included
    rows: Floats  # (tokens, dimensions), of any length
    pooled: Floats  # (dimensions,), unit length


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that also gives its topical side token by token."""

    @property
    def fingerprint(self) -> str:
        """Equal exactly when two encoders give the same vectors."""

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """One for each text, read as a document."""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A query as the layers that both roles share see it."""

    states: Floats  # (tokens, dimensions), without those of prefix and special tokens
    offsets: tuple[tuple[int, int], ...]  # characters of the query, one pair for each token


@runtime_checkable
class QueryEncoder(Protocol):
    """An encoder whose first layers can be read token by token while it encodes a query."""

    def encode_queries(self, texts: Sequence[str]) -> tuple[VectorPair, list[QueryTokens]]:
        """Both vectors of each query, and its tokens after the shared layers."""
