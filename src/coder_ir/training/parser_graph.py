"""The parser's network as an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.types import Floats

if TYPE_CHECKING:
    import onnx

_OPSET = 17


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained network: bidirectional LSTM layers and one linear layer, by torch's names."""

    layers: int
    width: int  # units in each direction
    state: Mapping[str, Floats]


def parser_graph(weights: Weights) -> onnx.ModelProto:
    """Token states `hidden` (1, tokens, dimensions) to `logits` (1, tokens, outputs)."""
    from onnx import TensorProto, checker, helper, numpy_helper

    def kept(name: str, value: Any) -> str:
        initialisers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    initialisers: list[Any] = []
    nodes = [helper.make_node("Transpose", ["hidden"], ["tokens_first"], perm=[1, 0, 2])]
    said = "tokens_first"  # (tokens, 1, inputs)
    for layer in range(weights.layers):
        inputs = [said, *(kept(f"{part}{layer}", v) for part, v in _layer(weights, layer))]
        nodes += [
            helper.make_node(
                "LSTM",
                inputs,
                [f"both{layer}"],
                hidden_size=weights.width,
                direction="bidirectional",
            ),  # (tokens, directions, 1, width)
            helper.make_node("Transpose", [f"both{layer}"], [f"side{layer}"], perm=[0, 2, 1, 3]),
            helper.make_node(
                "Reshape",
                [f"side{layer}", kept(f"shape{layer}", np.array([0, 0, -1], dtype=np.int64))],
                [f"said{layer}"],
            ),
        ]
        said = f"said{layer}"
    out = kept("out", weights.state["out.weight"].T)
    nodes += [
        helper.make_node("Transpose", [said], ["batch_first"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["batch_first", out], ["product"]),
        helper.make_node("Add", ["product", kept("bias", weights.state["out.bias"])], ["logits"]),
    ]
    dimensions = weights.state["lstm.weight_ih_l0"].shape[1]
    outputs = len(weights.state["out.bias"])
    graph = helper.make_graph(
        nodes,
        "query-parser",
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1, "tokens", dimensions])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "tokens", outputs])],
        initialisers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = 9
    checker.check_model(model)
    return model


def _layer(weights: Weights, layer: int) -> list[tuple[str, Floats]]:
    """W, R and B of one layer, both directions, with ONNX's order of gates."""
    sides = ("", "_reverse")

    def both(name: str) -> list[Floats]:
        return [_gates(weights.state[f"lstm.{name}_l{layer}{side}"]) for side in sides]

    inputs, recurrent = np.stack(both("weight_ih")), np.stack(both("weight_hh"))
    biases = [np.concatenate(pair) for pair in zip(both("bias_ih"), both("bias_hh"), strict=True)]
    return [("W", inputs), ("R", recurrent), ("B", np.stack(biases))]


def _gates(value: Floats) -> Floats:
    """From torch's input, forget, cell, output to ONNX's input, output, forget, cell."""
    enter, forget, cell, leave = np.split(value, 4)
    return np.concatenate([enter, leave, forget, cell])
