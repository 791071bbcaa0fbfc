"""Writes an int8 classifier's graph as an exporter and a quantiser name things; it cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_NAMED = ("pooler.dense", "classifier")  # matrices that keep torch's name


def int8_graph(state: Mapping[str, torch.Tensor], *, prefix: str = "") -> bytes:
    """Matrices and embedding tables in 8 bits with one scale each, all else as it is."""
    from onnx import helper, numpy_helper

    tensors, nodes = [], []
    for number, (name, value) in enumerate(state.items()):
        array, own = value.numpy(), prefix + name
        stem = own.removesuffix(".weight")
        if any(part in name for part in _TABLES):
            tensors += _quantised(own, array)
        elif array.ndim == 2 and "rel_embeddings" not in name:
            steps = own if stem.endswith(_NAMED) else f"onnx::MatMul_{number}"
            tensors += _quantised(steps, array.T)
            node = f"/{stem.replace('.', '/').replace('layer/', 'layer.')}/MatMul_quant"
            inputs = ["x", f"{steps}_quantized", "x_zero_point", f"{steps}_zero_point"]
            nodes.append(helper.make_node("MatMulInteger", inputs, [f"y{number}"], name=node))
        else:
            tensors.append((own, array))
    constants = [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in tensors]
    graph = helper.make_graph(nodes, "classifier", [], [], constants)
    return helper.make_model(graph).SerializeToString()


def _quantised(name: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Steps from 0 to 255 around a zero point of 128."""
    scale = np.float32(np.abs(array).max() / 127)
    steps = (np.rint(array / scale) + 128).astype(np.uint8)
    return [
        (f"{name}_quantized", steps),
        (f"{name}_scale", np.array(scale, dtype=np.float32)),
        (f"{name}_zero_point", np.array(128, dtype=np.uint8)),
    ]
