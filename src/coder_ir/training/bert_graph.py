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
UNROUNDED = ("pooled", "logits")  # products of one row, which a quantiser should leave alone


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


def build(weights: Weights, shape: Shape, layers: range, *, output: str) -> onnx.ModelProto:
    """Some layers of an encoder, attention_mask (batch, tokens) in, a token matrix out.

    From layer 0 on it reads input_ids through the embeddings; a later start reads `hidden`, the
    output of a graph that ends there.
    """
    graph = _Graph(shape)
    start = graph.embeddings(weights) if layers.start == 0 else "hidden"
    graph.node("Cast", ["attention_mask"], ["mask"], to=_INT32)
    last = graph.layers(weights, start, layers, mask="mask")
    graph.node("Identity", [last], [output])
    source = ("input_ids", _INT64, 2) if layers.start == 0 else ("hidden", _FLOAT, 3)
    return graph.model([source, ("attention_mask", _INT64, 2)], [(output, _FLOAT, 3)])


def build_cross_encoder(weights: Weights, shape: Shape) -> onnx.ModelProto:
    """A classifier of text pairs: input_ids and token_type_ids (1, tokens) of one pair in.

    Out come `logits` (1, classes) and `attention` (1, tokens): how much the first token, which the
    classes are read from, looks at each token in the last layer. There is no mask, for a pair goes
    through by itself; of the last layer nothing is computed but the first token.
    """
    graph = _Graph(shape)
    start = graph.embeddings(weights, types="token_type_ids")
    lower = graph.layers(weights, start, range(shape.layers - 1))
    first = graph.first_token_layer(weights, lower, shape.layers - 1)
    graph.classes(weights, first)
    inputs = [(name, _INT64, 2) for name in ("input_ids", "token_type_ids")]
    return graph.model(inputs, [("logits", _FLOAT, 2), ("attention", _FLOAT, 2)])


_FLOAT, _INT32, _INT64 = 1, 6, 7  # onnx.TensorProto's numbers
Value = tuple[str, int, int]  # name, type and rank of an input or output


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

    def model(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.ModelProto:
        """The finished graph, checked."""
        from onnx import checker, helper

        ends = [
            [
                helper.make_tensor_value_info(name, kind, ["b", "t", "d"][:rank])
                for name, kind, rank in side
            ]
            for side in (inputs, outputs)
        ]
        model = helper.make_model(
            helper.make_graph(self.nodes, "encoder", ends[0], ends[1], self.constants),
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
            ir_version=9,
        )
        checker.check_model(model)
        return model

    def embeddings(self, weights: Weights, *, types: str = "") -> str:
        """Word (int8 rows, a scale each) + position + type, normalised; type 0 if none is given."""
        words = weights["embeddings.word_embeddings.weight"]
        scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), 1e-8) / 127
        table = np.rint(words / scales).astype(np.int8)
        places = weights["embeddings.position_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        if not types:
            places = places + kinds[0]
        self.node("Gather", [self.constant("words", table), "input_ids"], ["word_steps"])
        scale = self.constant("word_scales", scales.astype(np.float32))
        self.node("Gather", [scale, "input_ids"], ["word_scale"])
        self.node("Cast", ["word_steps"], ["word_float"], to=1)
        self.node("Mul", ["word_float", "word_scale"], ["word"])
        self.node("Shape", ["input_ids"], ["length"], start=1, end=2)
        zero = self.constant("zero", np.array([0]))
        table_of_places = self.constant("places", places)
        self.node("Slice", [table_of_places, zero, "length", zero], ["place"])
        summed = self.node("Add", ["word", "place"], ["embedded"])
        if types:
            self.node("Gather", [self.constant("kinds", kinds), types], ["kind"])
            summed = self.node("Add", [summed, "kind"], ["embedded_pair"])
        return self._normalised(weights, "embeddings.LayerNorm", summed, "embedding")

    def layers(self, weights: Weights, hidden: str, numbers: range, *, mask: str = "") -> str:
        for number in numbers:
            hidden = self._layer(weights, hidden, number, mask)
        return hidden

    def first_token_layer(self, weights: Weights, hidden: str, number: int) -> str:
        """A layer's output at the first token (1, dimensions), and `attention` beside it."""
        name, root = f"layer.{number}", f"encoder.layer.{number}."
        size = len(weights[root + "attention.self.query.bias"])
        heads = self.shape.heads
        first = self.node(
            "Gather", [hidden, self.constant("first", np.array(0))], ["first_token"], axis=1
        )
        asked = self._linear(weights, root + "attention.self.query", first, f"{name}.asked")
        keys = self._linear(weights, root + "attention.self.key", hidden, f"{name}.keys")
        values = self._linear(weights, root + "attention.self.value", hidden, f"{name}.values")
        split = self.constant("split", np.array([1, -1, heads, size // heads]))
        parts = {}
        for part, axes in ((asked, (0, 2, 1, 3)), (keys, (0, 2, 3, 1)), (values, (0, 2, 1, 3))):
            self.node("Reshape", [part, split], [f"{part}.split"])
            parts[part] = self.node("Transpose", [f"{part}.split"], [f"{part}.heads"], perm=axes)
        scale = self.constant("scale", np.array((size // heads) ** -0.5, dtype=np.float32))
        self.node("MatMul", [parts[asked], parts[keys]], [f"{name}.products"])
        self.node("Mul", [f"{name}.products", scale], [f"{name}.scores"])
        looks = self.node("Softmax", [f"{name}.scores"], [f"{name}.looks"], axis=-1)
        self.node("ReduceMean", [looks], ["attention"], axes=[1, 2], keepdims=0)
        mixed = self.node("MatMul", [looks, parts[values]], [f"{name}.mixed_heads"])
        row = self.constant("row", np.array([1, size]))
        mixed = self.node("Reshape", [mixed, row], [f"{name}.mixed"])
        attended = self._project(
            weights, root + "attention.output", mixed, first, name + ".attended"
        )
        return self._widened(weights, root, attended, name)

    def classes(self, weights: Weights, first: str) -> None:
        """The pooler and the class head over the first token."""
        self._linear(weights, "pooler.dense", first, "pooled")
        self.node("Tanh", ["pooled_biased"], ["pooled_active"])
        matrix = self.constant("classes.matrix", weights["classifier.weight"].T)
        bias = self.constant("classes.bias", weights["classifier.bias"])
        self.node("Gemm", ["pooled_active", matrix, bias], ["logits"])

    def _linear(self, weights: Weights, root: str, inner: str, name: str) -> str:
        matrix = self.constant(f"{name}.matrix", weights[root + ".weight"].T)
        product = self.node("MatMul", [inner, matrix], [name])
        bias = self.constant(f"{name}.bias", weights[root + ".bias"])
        return self.node("Add", [product, bias], [f"{name}_biased"])

    def _layer(self, weights: Weights, hidden: str, number: int, mask: str) -> str:
        name, root = f"layer.{number}", f"encoder.layer.{number}."
        parts = [root + f"attention.self.{part}" for part in ("query", "key", "value")]
        joint = np.concatenate([weights[part + ".weight"].T for part in parts], axis=1)
        bias = np.concatenate([weights[part + ".bias"] for part in parts])
        inputs = [hidden, self.constant(f"{name}.qkv", joint)]
        inputs += [self.constant(f"{name}.qkv_bias", bias), *filter(None, [mask])]
        mixed = self.node("Attention", inputs, [f"{name}.mixed"], num_heads=self.shape.heads)
        attended = self._project(
            weights, root + "attention.output", mixed, hidden, name + ".attended"
        )
        return self._widened(weights, root, attended, name)

    def _widened(self, weights: Weights, root: str, attended: str, name: str) -> str:
        """The second half of a layer."""
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
