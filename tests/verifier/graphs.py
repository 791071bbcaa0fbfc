"""Verifier folders whose graph counts tokens, so that readings can be worked out; needs onnx."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import pytest

from coder_ir.types import Reading
from coder_ir.verifier import VerifierManifest
from coder_ir.verifier.folder import CLASSES, GRAPH, TOKENIZER
from tests.tiny_bert import vocabulary

WORDS = {word: i for i, word in enumerate(dict.fromkeys(vocabulary()))}
STEP = 0.1  # of a logit, a token


def save_tokenizer(folder: Path) -> None:
    """One token a word of the tiny vocabulary, [CLS] query [SEP] passage [SEP]."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", WORDS["[CLS]"]), ("[SEP]", WORDS["[SEP]"])],
    )
    tokenizer.save(str(folder / TOKENIZER))


def save_graph(
    folder: Path,
    *,
    width: int = 3,
    attention: bool = True,
    inputs: Sequence[str] = ("input_ids", "token_type_ids"),
) -> None:
    """Logits: a tenth of the tokens, of those of the second text, of those that are `loud`.

    `attention` looks at `loud` alone.
    """
    helper: Any = pytest.importorskip("onnx", reason="needs onnx: the extra train").helper
    import numpy as np
    from onnx import TensorProto, numpy_helper

    nodes = [
        helper.make_node("Equal", ["input_ids", "loud"], ["is_loud"]),
        helper.make_node("Cast", ["is_loud"], ["looks"], to=TensorProto.FLOAT),
        helper.make_node("Equal", ["input_ids", "input_ids"], ["is_token"]),
        helper.make_node("Cast", ["is_token"], ["tokens"], to=TensorProto.FLOAT),
    ]
    second = "tokens"
    if "token_type_ids" in inputs:
        second = "second"
        nodes.append(helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT))
    parts = ["tokens", second, "looks"][:width]
    for part in dict.fromkeys(parts):
        nodes.append(helper.make_node("ReduceSum", [part, "axis"], [f"{part}_sum"], keepdims=1))
    sums = [f"{part}_sum" for part in parts]
    nodes.append(helper.make_node("Concat", sums, ["counts"], axis=1))
    nodes.append(helper.make_node("Mul", ["counts", "step"], ["logits"]))
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, width])]
    if attention:
        nodes.append(helper.make_node("Identity", ["looks"], ["attention"]))
        outputs.append(helper.make_tensor_value_info("attention", TensorProto.FLOAT, [1, "t"]))
    constants = [
        numpy_helper.from_array(np.array(WORDS["loud"]), "loud"),
        numpy_helper.from_array(np.array([1]), "axis"),
        numpy_helper.from_array(np.array(STEP, dtype=np.float32), "step"),
    ]
    given = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, "t"]) for n in inputs]
    graph = helper.make_graph(nodes, "counts", given, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / GRAPH).write_bytes(model.SerializeToString())


def save_counting(
    folder: Path,
    *,
    manifest: VerifierManifest | None = None,
    labels: Sequence[str] = (),
    **graph: Any,
) -> Path:
    """A folder with graph, tokenizer and, of the two descriptions, those that are given."""
    save_tokenizer(folder)
    save_graph(folder, **graph)
    if manifest:
        manifest.save(folder)
    if labels:
        names = {str(i): name for i, name in enumerate(labels)}
        (folder / "config.json").write_text(json.dumps({"id2label": names}), encoding="utf-8")
    return folder


def counting(**changes: Any) -> VerifierManifest:
    return VerifierManifest("counting", "none", CLASSES, **changes)


def counted(reading: Reading) -> tuple[int, int]:
    """Tokens and those of the second text, each beyond the `loud` ones, behind a reading."""
    tokens, second = (
        log(share / reading.silent) / STEP for share in (reading.satisfies, reading.violates)
    )
    return round(tokens), round(second)
