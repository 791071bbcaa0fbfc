"""From a trained cross-encoder to a verifier folder: a fused int8 graph, checked against torch."""

from __future__ import annotations

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
from coder_ir.types import Reading
from coder_ir.verifier import OnnxVerifier, VerifierManifest
from coder_ir.verifier.folder import CLASSES, GRAPH, MANIFEST, TOKENIZER

_LARGEST_GAP = 0.05  # mean difference of probabilities from torch's


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
    if (card := trained / "README.md").is_file():
        (output / "README.md").write_bytes(card.read_bytes())
    VerifierManifest(
        name,
        licence,
        CLASSES,
        max_length=min(384, network.config.max_position_embeddings),
        sha256={file: file_sha256(output / file) for file in (GRAPH, TOKENIZER)},
    ).save(output)
    return _compared(network, output)


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


def _compared(network: Any, output: Path) -> VerifierReport:
    """Probabilities of both on the sample's queries and passages."""
    documents, queries = load_sample()
    texts = {document.doc_id: document.content for document in documents}
    verifier = OnnxVerifier(output)
    gaps: list[float] = []
    for query in queries:
        passages = [texts[doc_id] for doc_id in sorted(query.satisfying | query.violating)]
        found = verifier.read(query.text, passages)
        expected = _torch_probabilities(network, output / TOKENIZER, query.text, passages)
        gaps += np.abs(_rows(found) - expected).mean(axis=1).tolist()
    size = (output / GRAPH).stat().st_size / 1e6
    return VerifierReport(len(gaps), float(np.mean(gaps)), size)


def _rows(readings: Sequence[Reading]) -> Any:
    return np.array([[r.satisfies, r.violates, r.silent] for r in readings])


def _torch_probabilities(network: Any, tokenizer: Path, query: str, passages: Sequence[str]) -> Any:
    import torch
    from tokenizers import Tokenizer

    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    reader.no_truncation()
    rows = []
    for passage in passages:
        pair = reader.encode(query, passage)
        with torch.no_grad():
            logits = network(
                input_ids=torch.tensor([pair.ids]), token_type_ids=torch.tensor([pair.type_ids])
            ).logits
        rows.append(logits.softmax(-1)[0].numpy())
    return np.array(rows)
