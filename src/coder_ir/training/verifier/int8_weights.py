"""Float weights under torch's names, out of the int8 graph of a classifier.

The graph is one that was traced from torch and quantised by ONNX Runtime: matrices are anonymous
and named by the node that multiplies with them, all else has torch's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.errors import MissingExtra

if TYPE_CHECKING:
    import onnx

Weights = Mapping[str, NDArray[np.float32]]
_STEPS, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"


def float_weights(model: bytes, *, prefix: str = "") -> dict[str, NDArray[np.float32]]:
    """Every named weight, steps times scale; only names with the prefix, which they lose."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise MissingExtra("Training a verifier", extra="train") from error
    graph = onnx.load_model_from_string(model).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    matrices = {steps: name for name, steps in _matrices(graph)}
    found = {}
    for name, tensor in tensors.items():
        if name in matrices:
            found[matrices[name]] = _dequantised(tensors, name).T
        elif name.endswith(_STEPS) and not name.startswith("onnx::"):
            found[name.removesuffix(_STEPS)] = _dequantised(tensors, name)
        elif name.endswith((".weight", ".bias")):
            found[name] = tensor
    return {
        name.removeprefix(prefix): np.ascontiguousarray(weight, dtype=np.float32)
        for name, weight in found.items()
        if name.startswith(prefix)
    }


def layers_in(weights: Weights, stem: str) -> int:
    """How many layers there are under names `STEM.0.`, `STEM.1.` and so on."""
    parts = len(stem.split("."))
    return len({name.split(".")[parts] for name in weights if name.startswith(f"{stem}.")})


def _matrices(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    """Torch's name of each matrix, from the path of its node, and the name of its steps."""
    return [
        (node.name.rsplit("/", 1)[0].strip("/").replace("/", ".") + ".weight", node.input[1])
        for node in graph.node
        if node.op_type == "MatMulInteger"
    ]


def _dequantised(tensors: Mapping[str, NDArray[Any]], steps: str) -> NDArray[np.float32]:
    root = steps.removesuffix(_STEPS)
    shifted = tensors[steps].astype(np.float32) - tensors[root + _ZERO].astype(np.float32)
    product: NDArray[np.float32] = shifted * tensors[root + _SCALE]
    return product
