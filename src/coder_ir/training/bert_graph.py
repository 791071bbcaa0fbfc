"""A BERT encoder as an ONNX graph of fused operators, written from its weights.

An encoder may be cut between two layers into graphs that run one after the other, so that two
encoders with the same lower layers run those once. The fused operators
(attention, bias + gelu) are ONNX Runtime's own, so nothing depends on what an exporter traces or an
optimiser recognises. Skip and layer norm stay apart: fused, they run several times slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.errors import InvalidValue

if TYPE_CHECKING:
    import onnx

Weights = Mapping[str, NDArray[np.float32]]
HEAD = "head_score"  # the node that a quantiser should leave alone


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a BERT config the graph depends on."""

    layers: int
    heads: int
    epsilon: float

    @classmethod
    def from_config(cls, config: Any) -> Shape:
        """Refuse architectures this graph does not describe."""
        plain = getattr(config, "position_embedding_type", "absolute") == "absolute"
        activation = getattr(config, "hidden_act", None)
        if config.model_type != "bert" or activation != "gelu" or not plain:
            raise InvalidValue(
                f"export writes BERT encoders with gelu, got {config.model_type!r} with "
                f"{activation!r}; use the trained folder directly through model="
            )
        return cls(config.num_hidden_layers, config.num_attention_heads, config.layer_norm_eps)


def shared_layers(one: Weights, two: Weights, layers: int) -> int:
    """How many layers from the bottom are equal in both; 0 if the embeddings differ."""

    def equal(prefix: str) -> bool:
        return all(np.array_equal(one[name], two[name]) for name in one if name.startswith(prefix))

    if not equal("embeddings."):
        return 0
    return next((i for i in range(layers) if not equal(f"encoder.layer.{i}.")), layers)


def build(
    weights: Weights, shape: Shape, layers: range, *, output: str, head: Weights | None = None
) -> onnx.ModelProto:
    """Some layers of an encoder, attention_mask (batch, tokens) in, a token matrix out.

    From layer 0 on it reads input_ids through the embeddings; a later start reads `hidden`, the
    output of a graph that ends there. With a head (`weight`, `bias`) the first token's vector goes
    through it, and scores (batch, 1) come out.
    """
    from onnx import TensorProto, checker, helper

    graph = _Graph(shape)
    start = graph.embeddings(weights) if layers.start == 0 else "hidden"
    graph.node("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32)
    last = graph.layers(weights, start, layers)
    graph.node("Identity", [graph.head(head, last) if head else last], [output])
    tokens = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"])
    hidden = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["b", "t", "d"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["b", "t"])
    made = helper.make_tensor_value_info(
        output, TensorProto.FLOAT, ["b", "one"] if head else ["b", "t", "d"]
    )
    inputs = [tokens if layers.start == 0 else hidden, mask]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "encoder", inputs, [made], graph.constants),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    checker.check_model(model)
    return model


@dataclass(slots=True)
class _Graph:
    shape: Shape
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def node(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> str:
        from onnx import helper

        domain = "com.microsoft" if kind in _FUSED else ""
        self.nodes.append(
            helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes)
        )
        return outputs[0]

    def constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def embeddings(self, weights: Weights) -> str:
        """Word (int8 rows, a scale each) + position + type 0, normalised."""
        words = weights["embeddings.word_embeddings.weight"]
        scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), 1e-8) / 127
        table = np.rint(words / scales).astype(np.int8)
        places = weights["embeddings.position_embeddings.weight"]
        places = places + weights["embeddings.token_type_embeddings.weight"][0]
        self.node("Gather", [self.constant("words", table), "input_ids"], ["word_steps"])
        scale = self.constant("word_scales", scales.astype(np.float32))
        self.node("Gather", [scale, "input_ids"], ["word_scale"])
        self.node("Cast", ["word_steps"], ["word_float"], to=1)
        self.node("Mul", ["word_float", "word_scale"], ["word"])
        self.node("Shape", ["input_ids"], ["length"], start=1, end=2)
        zero = self.constant("zero", np.array([0]))
        table_of_places = self.constant("places", places)
        self.node("Slice", [table_of_places, zero, "length", zero], ["place"])
        self.node("Add", ["word", "place"], ["embedded"])
        return self._normalised(weights, "embeddings.LayerNorm", "embedded", "embedding")

    def layers(self, weights: Weights, hidden: str, numbers: range) -> str:
        for number in numbers:
            hidden = self._layer(weights, hidden, number, f"layer.{number}")
        return hidden

    def head(self, head: Weights, hidden: str) -> str:
        """A linear score of the first token."""
        first = self.constant("first", np.array(0))
        self.node("Gather", [hidden, first], ["first_token"], axis=1)
        matrix = self.constant("head.matrix", head["weight"].T)
        self.node("MatMul", ["first_token", matrix], [HEAD])
        return self.node("Add", [HEAD, self.constant("head.bias", head["bias"])], ["biased_score"])

    def _layer(self, weights: Weights, hidden: str, number: int, name: str) -> str:
        root = f"encoder.layer.{number}."
        parts = [root + f"attention.self.{part}" for part in ("query", "key", "value")]
        joint = np.concatenate([weights[part + ".weight"].T for part in parts], axis=1)
        bias = np.concatenate([weights[part + ".bias"] for part in parts])
        inputs = [hidden, self.constant(f"{name}.qkv", joint)]
        inputs += [self.constant(f"{name}.qkv_bias", bias), "mask"]
        mixed = self.node("Attention", inputs, [f"{name}.mixed"], num_heads=self.shape.heads)
        attended = self._project(
            weights, root + "attention.output", mixed, hidden, name + ".attended"
        )
        up = self.constant(f"{name}.up", weights[root + "intermediate.dense.weight"].T)
        up_bias = self.constant(f"{name}.up_bias", weights[root + "intermediate.dense.bias"])
        wide = self.node("MatMul", [attended, up], [f"{name}.wide"])
        active = self.node("BiasGelu", [wide, up_bias], [f"{name}.active"])
        return self._project(weights, root + "output", active, attended, name + ".out")

    def _project(self, weights: Weights, root: str, inner: str, skip: str, name: str) -> str:
        matrix = self.constant(f"{name}.matrix", weights[root + ".dense.weight"].T)
        bias = self.constant(f"{name}.bias", weights[root + ".dense.bias"])
        projected = self.node("MatMul", [inner, matrix], [f"{name}.projected"])
        biased = self.node("Add", [projected, bias], [f"{name}.biased"])
        joined = self.node("Add", [biased, skip], [f"{name}.joined"])
        return self._normalised(weights, root + ".LayerNorm", joined, name)

    def _normalised(self, weights: Weights, root: str, inner: str, name: str) -> str:
        gain = self.constant(f"{name}.gain", weights[root + ".weight"])
        shift = self.constant(f"{name}.shift", weights[root + ".bias"])
        return self.node(
            "LayerNormalization", [inner, gain, shift], [name], epsilon=self.shape.epsilon, axis=-1
        )


_FUSED = {"Attention", "BiasGelu"}
