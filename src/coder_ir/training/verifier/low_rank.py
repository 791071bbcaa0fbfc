"""Low-rank adapters: what a network learns is kept apart from what it knew, and is small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder_ir.errors import InvalidFile, NotFound

if TYPE_CHECKING:
    import torch

HEAD = "classifier"
Named = list[tuple[str, "torch.nn.Parameter"]]


def add_adapters(network: Any, rank: int) -> None:
    """Give every linear layer but the head an adapter and freeze its matrix.

    Embeddings are frozen too; biases, norms and the head are trained as they are.
    """
    from torch import nn
    from torch.nn.utils import parametrize

    for name, parameter in network.named_parameters():
        matrix = parameter.ndim == 2 and not name.startswith(HEAD)
        parameter.requires_grad_(not matrix)
    adapter = _adapter_class()
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.Linear) and not name.startswith(HEAD):
            parametrize.register_parametrization(module, "weight", adapter(module.weight, rank))


def merge_adapters(network: Any) -> None:
    """Put what the adapters add into the matrices, for a network that is only read."""
    from torch.nn.utils import parametrize

    for module in list(network.modules()):
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def trained(network: Any) -> tuple[Named, Named]:
    """Parameters of the adapters, and all others that are trained, with their names."""
    named = [(name, value) for name, value in network.named_parameters() if value.requires_grad]
    adapters = [(name, value) for name, value in named if ".parametrizations." in name]
    others = [(name, value) for name, value in named if ".parametrizations." not in name]
    return adapters, others


def save_adapters(network: Any, path: Path) -> None:
    """Write what was trained, and nothing of the base."""
    from safetensors.torch import save_file

    adapters, others = trained(network)
    partial = path.with_suffix(".partial")
    save_file({name: value.detach().clone() for name, value in [*adapters, *others]}, partial)
    partial.replace(path)


def load_adapters(network: Any, path: Path) -> None:
    """Restore what `save_adapters` wrote, into a network that has its adapters.

    Raises:
        InvalidFile: the file is of a network of another shape.
    """
    from safetensors.torch import load_file

    if not path.is_file():
        raise NotFound(f"no adapters {path}; train the teacher first")
    saved = load_file(path)
    adapters, others = trained(network)
    own = {name: value.shape for name, value in [*adapters, *others]}
    if own != {name: value.shape for name, value in saved.items()}:
        raise InvalidFile(f"{path} holds adapters of another network or another rank")
    network.load_state_dict(saved, strict=False)


def _adapter_class() -> Callable[[torch.Tensor, int], Any]:
    import torch
    from torch import nn

    class Adapter(nn.Module):
        """Adds a product of two thin matrices, zero at first."""

        def __init__(self, weight: torch.Tensor, rank: int) -> None:
            super().__init__()
            rows, columns = weight.shape
            self.down = nn.Parameter(torch.randn(rank, columns) / columns**0.5)
            self.up = nn.Parameter(torch.zeros(rows, rank))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight + self.up @ self.down

    return Adapter
