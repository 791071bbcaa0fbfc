"""From a model folder back to torch: one of its encoders as a sentence-transformers folder.

The weights are the ones the int8 graphs compute with, steps times scales, in float32. What the
export rounded away does not come back. The graphs also round what flows through them, and torch
does not: vectors are close to the folder's, not equal. The report says how close.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.folder import Manifest, Role
from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidFile, InvalidValue, MissingExtra
from coder_ir.training.bert_graph import Shape, Weights
from coder_ir.training.export import LEAST_COSINE
from coder_ir.types import Kind, Space

if TYPE_CHECKING:
    import onnx

_STEPS, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"
_SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}


@dataclass(frozen=True, slots=True)
class UnpackReport:
    """How close torch's vectors are to those of the model folder."""

    space: Space
    texts: int
    mean_cosine: float
    least_cosine: float

    @property
    def passed(self) -> bool:
        """Whether the mean cosine is high enough, as after an export."""
        return self.mean_cosine >= LEAST_COSINE

    def table(self) -> str:
        """Text for a terminal."""
        return (
            f"{self.space}: {self.texts} texts, cosine with the model folder's vectors "
            f"{self.mean_cosine:.4f} in the mean, {self.least_cosine:.4f} at least"
        )


def unpack(folder: Path, output: Path, *, space: Space = "compatibility") -> UnpackReport:
    """Write the encoder of one space and compare it with the folder's own vectors."""
    if output.is_dir() and any(output.iterdir()):
        raise InvalidValue(f"{output} is not empty; choose another folder")
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    role = manifest.role(space)
    weights, shape = read_graphs([folder / name for name in (manifest.trunk, role.graph) if name])
    _save(weights, shape, role, folder / manifest.tokenizer, output)
    _save_card(folder, manifest, space, output)
    return _compared(folder, output, space)


def read_graphs(paths: Sequence[Path]) -> tuple[Weights, Shape]:
    """Weights under the names of a BERT checkpoint, from graphs that run one after the other.

    The inverse of `bert_graph.build` and quantisation. Positions come with the vector of token
    type 0 added to them, as the graph has them.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("Unpacking a model", extra="train") from error
    tensors: dict[str, NDArray[Any]] = {}
    heads, epsilons = set(), set()
    for path in paths:
        graph = onnx.load(str(path)).graph
        tensors |= _tensors(graph)
        heads |= _attributes(graph, "num_heads")
        epsilons |= _attributes(graph, "epsilon")
    layers = len({name.split(".")[1] for name in tensors if name.startswith("layer.")})
    if "words" not in tensors or len(heads) != 1 or len(epsilons) != 1:
        raise InvalidFile(
            f"{', '.join(map(str, paths))} is no encoder that `coder-ir train export` wrote"
        )
    return _renamed(tensors, layers), Shape(layers, int(heads.pop()), float(epsilons.pop()))


def _tensors(graph: onnx.GraphProto) -> dict[str, NDArray[Any]]:
    """The graph's constants, int8 ones as what they stand for; the scale is a column's or all's."""
    from onnx import numpy_helper

    found = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    whole = [name.removesuffix(_STEPS) for name in found if name.endswith(_STEPS)]
    for name in whole:
        steps, scale, zero = (found.pop(name + part) for part in (_STEPS, _SCALE, _ZERO))
        found[name] = (steps.astype(np.float32) - zero.astype(np.float32)) * scale
    return found


def _attributes(graph: onnx.GraphProto, name: str) -> set[float]:
    """The values an attribute has in the graph; floats by six digits, as they are written."""
    from onnx import helper

    values = (
        helper.get_attribute_value(attribute)
        for node in graph.node
        for attribute in node.attribute
        if attribute.name == name
    )
    return {float(f"{value:.6g}") for value in values}


def _renamed(tensors: Mapping[str, NDArray[Any]], layers: int) -> Weights:
    words = tensors["words"].astype(np.float32) * tensors["word_scales"]
    found = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": tensors["places"],
        "embeddings.token_type_embeddings.weight": np.zeros_like(tensors["places"][:2]),
        **_norm(tensors, "embedding", "embeddings"),
    }
    for number in range(layers):
        found |= _layer(tensors, f"layer.{number}", f"encoder.layer.{number}")
    hidden = words.shape[1]
    found["pooler.dense.weight"] = np.zeros((hidden, hidden))  # not used by mean or cls pooling
    found["pooler.dense.bias"] = np.zeros(hidden)
    return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in found.items()}


def _layer(tensors: Mapping[str, NDArray[Any]], own: str, root: str) -> dict[str, NDArray[Any]]:
    matrices = np.split(tensors[f"{own}.qkv"], 3, axis=1)
    biases = np.split(tensors[f"{own}.qkv_bias"], 3)
    found = {}
    for part, matrix, bias in zip(("query", "key", "value"), matrices, biases, strict=True):
        found[f"{root}.attention.self.{part}.weight"] = matrix.T
        found[f"{root}.attention.self.{part}.bias"] = bias
    found[f"{root}.intermediate.dense.weight"] = tensors[f"{own}.up"].T
    found[f"{root}.intermediate.dense.bias"] = tensors[f"{own}.up_bias"]
    for ours, theirs in (("attended", "attention.output"), ("out", "output")):
        found[f"{root}.{theirs}.dense.weight"] = tensors[f"{own}.{ours}.matrix"].T
        found[f"{root}.{theirs}.dense.bias"] = tensors[f"{own}.{ours}.bias"]
        found |= _norm(tensors, f"{own}.{ours}", f"{root}.{theirs}")
    return found


def _norm(tensors: Mapping[str, NDArray[Any]], own: str, root: str) -> dict[str, NDArray[Any]]:
    return {
        f"{root}.LayerNorm.weight": tensors[f"{own}.gain"],
        f"{root}.LayerNorm.bias": tensors[f"{own}.shift"],
    }


def _save(weights: Weights, shape: Shape, role: Role, tokenizer: Path, output: Path) -> None:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import (
            Normalize,
            Pooling,
            Transformer,
        )
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingExtra("Unpacking a model", extra="train") from error
    fast_tokenizer: Any = PreTrainedTokenizerFast
    vocabulary, hidden = weights["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        layer_norm_eps=shape.epsilon,
    )
    network = BertModel(config)
    network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    with tempfile.TemporaryDirectory() as plain:
        network.save_pretrained(plain)
        fast_tokenizer(
            tokenizer_file=str(tokenizer), model_max_length=role.max_length, **_SPECIAL
        ).save_pretrained(plain)
        modules = [
            Transformer(plain, max_seq_length=role.max_length),
            Pooling(hidden, pooling_mode=role.pooling),
            Normalize(),
        ]
        SentenceTransformer(
            modules=modules,
            prompts={"query": role.query_prefix, "document": role.document_prefix},
            similarity_fn_name="cosine",
            device="cpu",
        ).save(str(output), create_model_card=False)


def _save_card(folder: Path, manifest: Manifest, space: Space, output: Path) -> None:
    """What this is, and for the trained encoder how it was made."""
    text = (
        "---\nlibrary_name: sentence-transformers\n---\n\n"
        f"The {space} encoder of {manifest.name} (licence: {manifest.licence}), unpacked by "
        "coder-ir from int8 to float32. Texts to search with go through `encode_query`, passages "
        f"through `encode_document`.\n\nFingerprint of the model folder: {manifest.fingerprint}\n"
    )
    card = folder / "README.md"
    if space == "compatibility" and card.is_file():
        trained, _, _ = card.read_text(encoding="utf-8").partition("\n# Verifier")
        text += f"\n{trained.rstrip()}\n"
    (output / "README.md").write_text(text, encoding="utf-8")


def _compared(folder: Path, output: Path, space: Space) -> UnpackReport:
    """Both over the sample that ships with the package, passages and queries."""
    before = OnnxEncoder(folder)
    after = SentenceTransformerEncoder(str(output), runtime=Runtime())
    documents, queries = load_sample()
    passages, asked = [d.content for d in documents], [q.text for q in queries]
    asking: tuple[tuple[list[str], Kind], ...] = ((passages, "document"), (asked, "query"))
    cosines: list[float] = []
    for texts, kind in asking:
        rows = before.encode_space(texts, space=space, kind=kind)
        cosines += np.sum(rows * after.encode(texts, kind=kind), axis=1).tolist()
    return UnpackReport(space, len(cosines), sum(cosines) / len(cosines), min(cosines))
