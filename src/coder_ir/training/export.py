"""From two torch encoders to a model folder: fused int8 graphs, checked against torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.datasets.sample import load_sample
from coder_ir.datasets.wordnet import load_antonyms
from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.folder import Manifest, Pooling, Role, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.training.bert_graph import Shape, build, shared_layers
from coder_ir.training.rounding import quantise, weights_of
from coder_ir.training.sentences import load_triplets
from coder_ir.types import Encoder, Floats, Space, Triplet

if TYPE_CHECKING:
    import onnx

LEAST_COSINE = 0.99
_CHECKED_TEXTS = 500
_TRUNK = "shared.onnx"
_SPACES: tuple[Space, Space] = ("topical", "compatibility")


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What to export and where to."""

    topical: str  # sentence-transformers or Hugging Face name, or a folder
    compatibility: str
    output: Path
    name: str
    licence: str
    check: Path | None = None  # triplets; None: the package's sample and WordNet glosses


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """One space before and after quantisation."""

    space: Space
    mean_cosine: float
    least_cosine: float
    accuracy_before: float  # share of triplets with the satisfying passage scored higher, torch
    accuracy_after: float  # the same with the exported model


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How far the exported model is from torch's."""

    texts: int
    triplets: int
    shared_layers: int
    spaces: tuple[SpaceReport, SpaceReport]

    @property
    def passed(self) -> bool:
        """Whether the mean cosine of both spaces is high enough."""
        return all(space.mean_cosine >= LEAST_COSINE for space in self.spaces)

    def table(self) -> str:
        """Text for a terminal."""
        lines = [
            f"{self.shared_layers} layers shared; {self.texts} texts, {self.triplets} triplets",
            "space          mean cosine   least   satisfying first: torch   exported",
        ]
        lines += [
            f"{s.space:14} {s.mean_cosine:11.4f} {s.least_cosine:7.4f} "
            f"{100 * s.accuracy_before:23.1f}% {100 * s.accuracy_after:9.1f}%"
            for s in self.spaces
        ]
        return "\n".join(lines)


def export_model(plan: ExportPlan) -> ExportReport:
    """Write the folder and measure it."""
    if (plan.output / "model.json").exists():
        raise InvalidValue(f"{plan.output} already holds a model; choose another folder")
    runtime = Runtime()
    topical = SentenceTransformerEncoder(plan.topical, runtime=runtime)
    compatibility = SentenceTransformerEncoder(plan.compatibility, runtime=runtime)
    # The pair reads the same tokens, so one pass serves both; learned positions allow it.
    limit = min(topical.max_length, _network(compatibility).config.max_position_embeddings)
    topical.model.max_seq_length = compatibility.model.max_seq_length = limit
    shared, graphs = _graphs(topical, compatibility)
    roles = [_role(e, s) for e, s in zip((topical, compatibility), _SPACES, strict=True)]
    plan.output.mkdir(parents=True, exist_ok=True)
    _save_tokenizer(topical, compatibility, plan.output)
    for file, graph in graphs.items():
        quantise(graph, plan.output / file)
    files = [*graphs, "tokenizer.json"]
    Manifest(
        name=plan.name,
        licence=plan.licence,
        tokenizer="tokenizer.json",
        topical=roles[0],
        compatibility=roles[1],
        trunk=_TRUNK if shared else None,
        sha256={file: file_sha256(plan.output / file) for file in sorted(files)},
    ).save(plan.output)
    _save_card(plan)
    torch_pair = CombinedEncoder(topical, compatibility, spec="torch")
    return compare(torch_pair, OnnxEncoder(plan.output), plan.check, shared)


def _save_card(plan: ExportPlan) -> None:
    """The card of the trained encoder, where it has one."""
    card = Path(plan.compatibility) / "README.md"
    if card.is_file():
        text = card.read_text(encoding="utf-8")
        (plan.output / "README.md").write_text(text, encoding="utf-8")


def _graphs(
    topical: SentenceTransformerEncoder, compatibility: SentenceTransformerEncoder
) -> tuple[int, dict[str, onnx.ModelProto]]:
    """How many layers the two share, and their graphs: these layers once, then each one's own."""
    shapes = [Shape.from_config(_network(e).config) for e in (topical, compatibility)]
    weights = (weights_of(_network(topical)), weights_of(_network(compatibility)))
    same = shapes[0] == shapes[1] and weights[0].keys() == weights[1].keys()
    shared = shared_layers(*weights, shapes[0].layers) if same else 0
    graphs = {}
    if shared:
        graphs[_TRUNK] = build(weights[0], shapes[0], range(shared), output="hidden")
    for space, own, shape in zip(_SPACES, weights, shapes, strict=True):
        layers = range(shared, shape.layers)
        graphs[f"{space}.onnx"] = build(own, shape, layers, output=space)
    return shared, graphs


def compare(
    torch_pair: Encoder, exported: Encoder, check: Path | None, shared: int
) -> ExportReport:
    """Vectors and rankings of both on the same texts."""
    triplets = load_triplets(check) if check else _sample_triplets()
    extra = [pair.gloss for pair in load_antonyms()] if not check else []
    passages = list(
        dict.fromkeys([p for t in triplets for p in (t.satisfying, t.violating)] + extra)
    )
    passages = passages[:_CHECKED_TEXTS]
    known = set(passages)
    triplets = [t for t in triplets if t.satisfying in known and t.violating in known]
    queries = list(dict.fromkeys(t.query for t in triplets))
    before = [
        torch_pair.encode(passages, kind="document"),
        torch_pair.encode(queries, kind="query"),
    ]
    after = [exported.encode(passages, kind="document"), exported.encode(queries, kind="query")]
    spaces = []
    for space in _SPACES:
        old, new = ([pair.space(space) for pair in pairs] for pairs in (before, after))
        cosines = np.concatenate([(a * b).sum(axis=1) for a, b in zip(old, new, strict=True)])
        accuracies = [
            _accuracy(passages, queries, (side[0], side[1]), triplets) for side in (old, new)
        ]
        spaces.append(SpaceReport(space, float(cosines.mean()), float(cosines.min()), *accuracies))
    return ExportReport(len(passages) + len(queries), len(triplets), shared, (spaces[0], spaces[1]))


def _accuracy(
    passages: Sequence[str],
    queries: Sequence[str],
    vectors: tuple[Floats, Floats],
    triplets: Sequence[Triplet],
) -> float:
    documents, asked = vectors
    row = {text: i for i, text in enumerate(passages)}
    line = {text: i for i, text in enumerate(queries)}
    right = [
        float(asked[line[t.query]] @ (documents[row[t.satisfying]] - documents[row[t.violating]]))
        > 0
        for t in triplets
    ]
    return sum(right) / len(right)


def _sample_triplets() -> list[Triplet]:
    documents, queries = load_sample()
    texts = {document.doc_id: document.content for document in documents}
    return [
        Triplet(query.text, texts[good], texts[bad], query.text, "sample", "Apache-2.0")
        for query in queries
        for good in sorted(query.satisfying)
        for bad in sorted(query.violating)
    ]


def _save_tokenizer(
    topical: SentenceTransformerEncoder, compatibility: SentenceTransformerEncoder, folder: Path
) -> None:
    one, two = (encoder.model.tokenizer for encoder in (topical, compatibility))
    if one.get_vocab() != two.get_vocab():
        raise InvalidValue(
            f"{topical.name} and {compatibility.name} have different vocabularies; a model folder "
            "holds one tokenizer. Use them together as model='TOPICAL+COMPATIBILITY' instead"
        )
    backend = one.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.save(str(folder / "tokenizer.json"))


def _role(encoder: SentenceTransformerEncoder, space: Space) -> Role:
    return Role(
        graph=f"{space}.onnx",
        output=space,
        pooling=_pooling(encoder),
        query_prefix=encoder.query_prefix,
        document_prefix=encoder.document_prefix,
        max_length=encoder.max_length,
        dimensions=encoder.dimensions,
    )


def _pooling(encoder: SentenceTransformerEncoder) -> Pooling:
    kinds = [type(module).__name__ for module in encoder.model]
    if kinds[1:] not in (["Pooling"], ["Pooling", "Normalize"]):
        raise InvalidValue(
            f"{encoder.name} has the modules {', '.join(kinds)}; a model folder describes a "
            "transformer with pooling, so use it directly through model="
        )
    module: Any = encoder.model[1]
    mode = module.pooling_mode
    if mode == "cls":
        return "cls"
    if mode == "mean":
        return "mean"
    raise InvalidValue(f"{encoder.name} pools by {mode!r}; a model folder knows cls and mean")


def _network(encoder: SentenceTransformerEncoder) -> Any:
    return encoder.model[0].auto_model
