"""The student: a few layers of a small cross-encoder, taught by labels and by the teacher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder_ir.errors import InvalidFile, InvalidValue, MissingExtra, NotFound
from coder_ir.training.verifier.config import StudentPlan
from coder_ir.training.verifier.evaluate import Figures
from coder_ir.training.verifier.groups import CLASSES, Group, Pair
from coder_ir.training.verifier.int8_weights import Weights, float_weights, layers_in
from coder_ir.training.verifier.loss import class_loss, label_loss
from coder_ir.training.verifier.probe import Probe
from coder_ir.training.verifier.reader import PairReader
from coder_ir.training.verifier.states import StateScale, load_scales, save_scales, state_loss
from coder_ir.training.verifier.steps import RateGroup
from coder_ir.training.verifier.teacher import TrainedTeacher
from coder_ir.training.verifier.words import mean_by_word, word_places

if TYPE_CHECKING:
    import torch

_SCORED = 24  # pairs of like length that go through the network together
_HEAD_SPREAD = 0.02
_RELEVANCE = (1.0, 0.6, -0.6)  # how much of the base's direction of relevance each class starts at
_LAYERS = "bert.encoder.layer"


class Student:
    """The student under training, with the teacher beside it."""

    def __init__(
        self, plan: StudentPlan, teacher: TrainedTeacher, probe: Probe, *, bfloat16: bool
    ) -> None:
        """Unpack the base, cut it and give it a new head."""
        import torch
        from tokenizers import Tokenizer

        self.network = student_network(plan)
        width = self.network.config.hidden_size
        self._projections = torch.nn.ModuleList(
            [torch.nn.Linear(width, teacher.dimensions) for _ in plan.states]
        )
        tokenizer = Tokenizer.from_file(str(plan.base / "tokenizer.json"))
        self._reader = PairReader(
            tokenizer, plan.length, passage_first=False, types=True, bfloat16=bfloat16
        )
        self._plan = plan
        self._teacher = teacher
        self._probe = probe
        self._scales: list[StateScale] = []

    def fix_scales(self, batch: Sequence[Group], path: Path) -> None:
        """Standardise the teacher's states as in this batch; a file of an earlier start decides."""
        if not path.is_file():
            read = self._teacher.read([pair for group in batch for pair in group.pairs])
            save_scales([StateScale.from_states(states) for states in read.states], path)
        self._scales = load_scales(path)

    def rate_groups(self) -> Sequence[RateGroup]:
        """The network, without its word embeddings, and the projections, which learn faster."""
        own = [(n, p) for n, p in self.network.named_parameters() if p.requires_grad]
        lines = [(f"projections.{n}", p) for n, p in self._projections.named_parameters()]
        return [RateGroup(own, 1.0), RateGroup(lines, self._plan.projections)]

    def losses(self, batch: Sequence[Group]) -> dict[str, torch.Tensor]:
        """Against the labels, the teacher's classes and the teacher's word states."""
        self.network.train()
        pairs = [pair for group in batch for pair in group.pairs]
        encodings = self._reader.encode(pairs)
        taught = self._teacher.read(pairs)
        with self._reader.products():
            out = self.network(**self._reader.feed(encodings), output_hidden_states=True)
        logits = out.logits.float()
        places = word_places(encodings, pairs, passage_first=False)
        states = [mean_by_word(out.hidden_states[x.student], places) for x in self._plan.states]
        told = state_loss(states, taught.states, self._scales, list(self._projections))
        return {
            "labels": label_loss(logits, batch),
            "classes": self._plan.from_classes * class_loss(logits, taught.logits),
            "states": self._plan.from_states * told,
        }

    def score(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Logits (pairs, 3)."""
        self.network.eval()
        return self._reader.logits(self.network, pairs, together=_SCORED)

    def develop(self) -> dict[str, Figures]:
        """Figures of the probe."""
        return self._probe.figures(self.score)

    def save(self, folder: Path) -> None:
        """Weights named as BertForSequenceClassification names them, config and tokeniser."""
        from safetensors.torch import save_file

        state = {name: value.contiguous() for name, value in self.network.state_dict().items()}
        partial = folder / "model.partial"
        save_file(state, partial, metadata={"format": "pt"})
        partial.replace(folder / "model.safetensors")
        self.network.config.architectures = [type(self.network).__name__]
        self.network.config.to_json_file(str(folder / "config.json"))
        plain = self._reader.tokenizer.from_str(self._reader.tokenizer.to_str())
        plain.no_truncation()
        plain.save(str(folder / "tokenizer.json"))


def student_network(plan: StudentPlan) -> Any:
    """The layers that are kept, under a head that starts near the base's relevance.

    A passage that satisfies or violates is on the topic, one that is silent is less so. Nothing is
    dropped out in training; the word embeddings stay as they are.
    """
    import torch
    from transformers import BertForSequenceClassification

    weights = _base_weights(plan)
    config = _config(plan, weights)
    network = BertForSequenceClassification(config)
    torch.manual_seed(plan.seed)
    head = torch.nn.Linear(config.hidden_size, len(CLASSES))
    relevance = torch.tensor(weights["classifier.weight"])[0]
    with torch.no_grad():
        head.weight.normal_(0, _HEAD_SPREAD)
        head.bias.zero_()
        head.weight += torch.outer(torch.tensor(_RELEVANCE), relevance / relevance.norm())
    kept = {name: torch.tensor(value) for name, value in _kept(weights, plan.layers).items()}
    head_state = {f"classifier.{name}": value for name, value in head.state_dict().items()}
    network.load_state_dict(kept | head_state)
    network.bert.embeddings.word_embeddings.weight.requires_grad = False
    return network


def _base_weights(plan: StudentPlan) -> Weights:
    model = plan.base / "model.onnx"
    if not model.is_file():
        raise NotFound(f"no {model}; the base is a folder with model.onnx and tokenizer.json")
    weights = float_weights(model.read_bytes())
    layers = layers_in(weights, _LAYERS)
    if not layers:
        raise InvalidFile(f"{model} holds no int8 layers of a BERT cross-encoder, named {_LAYERS}")
    if plan.layers[-1] >= layers:
        raise InvalidValue(f"{model} has {layers} layers, so none is number {plan.layers[-1]}")
    return weights


def _kept(weights: Weights, layers: Sequence[int]) -> Weights:
    """The weights of these layers, numbered anew, and all that belongs to no layer."""
    kept = {name: w for name, w in weights.items() if not name.startswith(f"{_LAYERS}.")}
    for new, old in enumerate(layers):
        stem = f"{_LAYERS}.{old}."
        kept |= {
            f"{_LAYERS}.{new}.{name.removeprefix(stem)}": weight
            for name, weight in weights.items()
            if name.startswith(stem)
        }
    return kept


def _config(plan: StudentPlan, weights: Weights) -> Any:
    """Sizes of the weights; no dropout."""
    try:
        from transformers import BertConfig
    except ImportError as error:
        raise MissingExtra("Training a verifier", extra="train") from error
    words, hidden = weights["bert.embeddings.word_embeddings.weight"].shape
    return BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(plan.layers),
        num_attention_heads=plan.heads,
        intermediate_size=len(weights[f"{_LAYERS}.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["bert.embeddings.position_embeddings.weight"]),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label={number: str(name) for number, name in enumerate(CLASSES)},
        label2id={str(name): number for number, name in enumerate(CLASSES)},
    )
