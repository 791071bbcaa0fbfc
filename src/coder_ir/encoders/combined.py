"""Two one-space encoders as a pair."""

import hashlib
from collections.abc import Sequence
from typing import Protocol

from coder_ir.types import Floats, Kind, Progress, Span, VectorPair


class SpaceEncoder(Protocol):
    """Texts to unit vectors of one space."""

    @property
    def fingerprint(self) -> str:
        """Equal exactly when vectors may share an index."""

    @property
    def max_length(self) -> int:
        """Tokens, special ones included."""

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Unit rows in the order of `texts`."""

    def split(self, text: str) -> list[Span]:
        """Spans that cover the text and fit the limit."""


class CombinedEncoder:
    """A topical and a compatibility encoder that know nothing of each other."""

    def __init__(self, topical: SpaceEncoder, compatibility: SpaceEncoder, *, spec: str) -> None:
        """Passages follow the encoder with the lower limit."""
        self.topical = topical
        self.compatibility = compatibility
        self.spec = spec
        joint = f"{topical.fingerprint}+{compatibility.fingerprint}"
        self.fingerprint = hashlib.sha256(joint.encode()).hexdigest()

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        """Both encoders over the same texts."""
        topical = self.topical.encode(texts, kind=kind)
        return VectorPair(topical, self.compatibility.encode(texts, kind=kind, progress=progress))

    def split(self, text: str) -> list[Span]:
        """Spans that fit the shorter of the two limits."""
        shorter = min((self.topical, self.compatibility), key=lambda encoder: encoder.max_length)
        return shorter.split(text)
