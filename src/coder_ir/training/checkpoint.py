"""The state of a run in one file, from which it goes on after an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class Checkpoint:
    """Weights, optimiser and random state of a run in one safetensors file, replaced whole."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or written yet."""
        self.path = path

    def save(
        self,
        parameters: Sequence[tuple[str, torch.nn.Parameter]],
        optimiser: torch.optim.Optimizer,
        step: int,
    ) -> None:
        """Write beside the old file, then swap."""
        import torch
        from safetensors.torch import save_file

        tensors = {"random": torch.get_rng_state()}
        for name, parameter in parameters:
            tensors[f"weight:{name}"] = parameter.detach().clone()
            for key, value in optimiser.state[parameter].items():
                tensors[f"{key}:{name}"] = value.clone()
        partial = self.path.with_suffix(".partial")
        save_file(tensors, partial, metadata={"step": str(step)})
        partial.replace(self.path)

    def load(
        self,
        parameters: Sequence[tuple[str, torch.nn.Parameter]],
        optimiser: torch.optim.Optimizer,
    ) -> int:
        """Restore everything and return the step to go on from; 0 without a checkpoint."""
        import torch
        from safetensors import safe_open

        if not self.path.is_file():
            return 0
        with safe_open(self.path, framework="pt") as file:
            for name, parameter in parameters:
                parameter.data.copy_(file.get_tensor(f"weight:{name}"))
                optimiser.state[parameter] = {
                    key: file.get_tensor(f"{key}:{name}")
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
            torch.set_rng_state(file.get_tensor("random"))
            return int(file.metadata()["step"])
