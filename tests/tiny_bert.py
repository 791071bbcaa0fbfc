"""A random BERT of a few kilobytes, saved as a sentence-transformers folder; needs torch."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = (
    "quiet loud dark bright warm cold cheap dear old new clean dirty fast slow soft hard "
    "room house street table garden river night day a the is not without no with very "
    "represent this sentence for searching relevant passages"
).split()


def vocabulary() -> list[str]:
    """Special tokens, whole words, and letters for all else."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    alone = [*LETTERS, *"0123456789.,:!?-"]
    return [*special, *alone, *(f"##{letter}" for letter in LETTERS), *WORDS[3:], *WORDS[:3]]


def save_tiny_bert(
    folder: Path,
    *,
    seed: int = 1,
    pooling: str = "mean",
    layers: int = 3,
    positions: int = 64,
    prompts: Mapping[str, str] | None = None,
    extra_words: tuple[str, ...] = (),
) -> Path:
    """Write the folder and return it; the same arguments give the same weights."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = [*vocabulary(), *extra_words]
    plain = folder / "transformers"
    tokenizer = BertTokenizerFast(vocab={word: i for i, word in enumerate(words)})
    tokenizer.save_pretrained(plain)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
        initializer_range=0.2,  # the usual 0.02 makes a network this small ignore its input
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(plain)
    modules = [
        Transformer(str(plain), max_seq_length=positions),
        Pooling(32, pooling_mode=pooling),
        Normalize(),
    ]
    SentenceTransformer(modules=modules, prompts=dict(prompts or {}), device="cpu").save(
        str(folder)
    )
    return folder


def with_upper_layers_changed(base: Path, folder: Path, *, first: int = 2) -> Path:
    """A copy whose layers from `first` on are other ones, as if the rest was frozen in training."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, folder)
    state = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(5)
    for name, tensor in state.items():
        if name.startswith("encoder.layer.") and int(name.split(".")[2]) >= first:
            state[name] = tensor + 0.1 * torch.randn(tensor.shape, generator=generator)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_tiny_cross_encoder(folder: Path, *, layers: int = 4) -> Path:
    """Write an int8 cross-encoder, model.onnx and tokenizer.json, and return its folder.

    The graph names its weights as an exported one does; it cannot be run.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    from tests.training.verifier.int8_classifier import int8_graph

    words = vocabulary()
    tokenizer = BertTokenizerFast(vocab={word: i for i, word in enumerate(words)})
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
        num_labels=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        state = BertForSequenceClassification(config).state_dict()
    (folder / "model.onnx").write_bytes(int8_graph(state))
    return folder
