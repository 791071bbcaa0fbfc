"""Layers of a network as the exported model runs them: int8 products on ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder_ir.encoders.onnx import session
from coder_ir.errors import MissingExtra
from coder_ir.training.bert_graph import UNROUNDED, Shape, Weights, build

if TYPE_CHECKING:
    import onnx


def quantise(graph: onnx.ModelProto, path: Path, *, per_channel: bool = True) -> None:
    """Dynamic int8 of every matrix product, a scale a channel or one for all.

    Weights keep 7 bits, so that CPUs without VNNI do not saturate.
    """
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise MissingExtra("Export", extra="train") from error
    # The graph needs no shape inference or folding first; this tells the quantiser so.
    onnx.helper.set_model_props(graph, {"onnx.infer": "onnxruntime.quant"})
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        onnx.save(graph, str(whole))
        quantize_dynamic(
            whole,
            path,
            per_channel=per_channel,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=list(UNROUNDED),
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )


def weights_of(network: Any) -> Weights:
    """Every weight of a torch encoder that vectors depend on."""
    state: Mapping[str, Any] = network.state_dict()
    return {
        name: tensor.detach().float().numpy()
        for name, tensor in state.items()
        if not name.startswith("pooler.") and tensor.is_floating_point()
    }


def rounded_layers(network: Any, layers: int) -> Any:
    """The lower layers as a session: input_ids and attention_mask in, token vectors out."""
    graph = build(
        weights_of(network), Shape.from_config(network.config), range(layers), output="hidden"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.onnx"
        quantise(graph, path)
        return session(path)
