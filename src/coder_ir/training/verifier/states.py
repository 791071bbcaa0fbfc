"""The teacher's word states as targets: standardised once, told from the student's by a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder_ir.training.verifier.words import WordStates

if TYPE_CHECKING:
    import torch

_LEAST_SPREAD = 1e-3
_FURTHEST = 6.0  # standard deviations; what is further off counts as this


@dataclass(frozen=True, slots=True)
class StateScale:
    """Mean and spread of a layer's word states, a number a dimension."""

    mean: torch.Tensor
    spread: torch.Tensor

    @classmethod
    def from_states(cls, found: WordStates) -> StateScale:
        """That of the words that have tokens."""
        states = found.states[found.tokens > 0]
        return cls(states.mean(0), states.std(0) + _LEAST_SPREAD)

    def standardised(self, states: torch.Tensor) -> torch.Tensor:
        """States in standard deviations from the mean."""
        return ((states - self.mean) / self.spread).clamp(-_FURTHEST, _FURTHEST)


def save_scales(scales: Sequence[StateScale], path: Path) -> None:
    """Write beside the old file, then swap."""
    from safetensors.torch import save_file

    partial = path.with_suffix(".partial")
    save_file(
        {
            f"{number}.{name}": getattr(scale, name)
            for number, scale in enumerate(scales)
            for name in ("mean", "spread")
        },
        partial,
    )
    partial.replace(path)


def load_scales(path: Path) -> list[StateScale]:
    """What `save_scales` wrote."""
    from safetensors.torch import load_file

    saved = load_file(path)
    return [
        StateScale(saved[f"{number}.mean"], saved[f"{number}.spread"])
        for number in range(len(saved) // 2)
    ]


def state_loss(
    own: Sequence[WordStates],
    taught: Sequence[WordStates],
    scales: Sequence[StateScale],
    projections: Sequence[Any],
) -> torch.Tensor:
    """Mean square between projected and standardised states of words both have read, by layer."""
    import torch
    from torch.nn.functional import mse_loss

    parts = []
    for mine, other, scale, project in zip(own, taught, scales, projections, strict=True):
        both = (mine.tokens > 0) & (other.tokens > 0)
        target = scale.standardised(other.states[both])
        parts.append(mse_loss(project(mine.states[both]), target))
    return torch.stack(parts).mean()
