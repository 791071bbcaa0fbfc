"""Topical vectors alone, where an encoder can spare the others."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from coder_ir.types import Encoder, Floats, Kind, Progress, Space


@runtime_checkable
class SparingEncoder(Protocol):
    """One that can compute one space without the other."""

    def encode_space(
        self, texts: Sequence[str], *, space: Space, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Unit rows of one space, as `encode` gives them."""


def topical_rows(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Topical vectors of texts that are read as queries."""
    if isinstance(encoder, SparingEncoder):
        return encoder.encode_space(texts, space="topical", kind="query")
    return encoder.encode(texts, kind="query").topical
