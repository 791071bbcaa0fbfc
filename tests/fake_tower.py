"""An encoder under training whose vectors are known, so that losses can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch

ANGLES = {"q": 0.0, "r": 0.4, "good": 0.3, "bad": 0.9, "fine": 0.5, "worse": 1.4}


class FakeTower:
    """Texts to stored plane vectors; needs torch."""

    def __init__(
        self, angles: Mapping[str, float], first: Mapping[str, float] | None = None
    ) -> None:
        self.angles = angles
        self.first = first or {}  # where training moved a text away from
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], *, train: bool) -> torch.Tensor:
        self.embedded += texts
        return _rows(texts, self.angles).requires_grad_(train)

    def at_first(self, texts: Sequence[str]) -> torch.Tensor:
        return _rows(texts, {**self.angles, **self.first})


def _rows(texts: Sequence[str], angles: Mapping[str, float]) -> torch.Tensor:
    import torch

    rows = [[math.cos(angles[text]), math.sin(angles[text])] for text in texts]
    return torch.tensor(rows, dtype=torch.float64)


def triplet(query: str, satisfying: str, violating: str, group: str = "g") -> Triplet:
    return Triplet(query, satisfying, violating, group, "toy", "none")
