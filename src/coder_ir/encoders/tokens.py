"""Token by token: what a method needs that looks inside a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from coder_ir.types import Floats


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
