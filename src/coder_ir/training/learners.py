"""What can be trained on triplets: encoders, and verifiers that read query and passage at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coder_ir.errors import InvalidValue
from coder_ir.training.config import Config, Stage
from coder_ir.training.loss import Positives, contrastive_loss, reading_loss
from coder_ir.training.tower import Tower, chunks, load_base
from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

HEAD = "head.safetensors"
_TOGETHER = 8  # pairs of like length that go through the layers together


class Learner(Protocol):
    """A network under training."""

    tower: Tower

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Trained parameters with their names, in a fixed order."""

    def loss(self, batch: Sequence[Triplet], positives: Positives, stage: Stage) -> torch.Tensor:
        """What to make smaller."""

    def margins(self, triplets: Sequence[Triplet]) -> list[float]:
        """Score of the satisfying passage minus that of the violating one."""

    def save(self, folder: Path) -> None:
        """Write the network."""


def learner_of(config: Config) -> Learner:
    """The network a config describes, as it is before training."""
    model = load_base(config.base, max_length=config.max_length, query_prefix=config.query_prefix)
    tower = Tower(
        model,
        frozen_layers=config.frozen_layers,
        max_length=config.max_length,
        bfloat16=config.bfloat16,
    )
    if config.kind == "verifier":
        return VerifierLearner(model, tower, config)
    return EncoderLearner(model, tower, config)


class EncoderLearner:
    """A bi-encoder: cosine of the query's and the passage's vector."""

    def __init__(self, model: SentenceTransformer | None, tower: Tower, config: Config) -> None:
        """The tower trains the model's own layers."""
        self.model = model
        self.tower = tower
        self.config = config

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Those of the tower."""
        return self.tower.parameters()

    def loss(self, batch: Sequence[Triplet], positives: Positives, stage: Stage) -> torch.Tensor:
        """Contrastive."""
        return contrastive_loss(self.tower, batch, positives, config=self.config, stage=stage)

    def margins(self, triplets: Sequence[Triplet]) -> list[float]:
        """Differences of cosines."""
        asked = [self.config.query_prefix + triplet.query for triplet in triplets]
        queries = self.tower.embed(asked, train=False)
        satisfying = self.tower.embed([t.satisfying for t in triplets], train=False)
        violating = self.tower.embed([t.violating for t in triplets], train=False)
        margins: list[float] = (
            (queries * satisfying).sum(1) - (queries * violating).sum(1)
        ).tolist()
        return margins

    def save(self, folder: Path) -> None:
        """As a sentence-transformers folder."""
        if self.model is not None:
            self.model.save(str(folder))


class VerifierLearner:
    """A cross-encoder above the frozen layers: both texts side by side, scored by the first token.

    The frozen layers see each text by itself, so that their activations are cached once a text, and
    so that at search time the trunk is the one the vectors come from.
    """

    def __init__(self, model: SentenceTransformer, tower: Tower, config: Config) -> None:
        """The head starts at small random weights."""
        import torch

        if not config.frozen_layers:
            raise InvalidValue("a verifier needs frozen_layers of 1 or more, got 0")
        for stage in config.stages:
            if stage.symmetric or stage.pairwise or stage.anchor:
                raise InvalidValue(
                    f"stage {stage.name!r} sets symmetric, pairwise or anchor, terms of an "
                    "encoder's loss; a verifier has none of them"
                )
        self.model = model
        self.tower = tower
        self.config = config
        self.head = torch.nn.Linear(int(tower.network.config.hidden_size), 1)
        torch.nn.init.normal_(self.head.weight, std=0.02)
        torch.nn.init.zeros_(self.head.bias)

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Those of the tower, then the head's."""
        head = [(f"head.{name}", value) for name, value in self.head.named_parameters()]
        return self.tower.parameters() + head

    def loss(self, batch: Sequence[Triplet], positives: Positives, stage: Stage) -> torch.Tensor:
        """Each passage against its label, and the two against each other."""
        scores = self.scores(_pairs(batch), train=True)
        return reading_loss(scores[: len(batch)], scores[len(batch) :])

    def margins(self, triplets: Sequence[Triplet]) -> list[float]:
        """Differences of logits."""
        scores = self.scores(_pairs(triplets), train=False)
        margins: list[float] = (scores[: len(triplets)] - scores[len(triplets) :]).tolist()
        return margins

    def scores(self, pairs: Sequence[tuple[str, str]], *, train: bool) -> torch.Tensor:
        """One logit for each (query, passage), high where the passage satisfies the query."""
        import torch

        self.tower.network.train(train)
        prefix = self.config.query_prefix
        order = sorted(range(len(pairs)), key=lambda i: sum(map(len, pairs[i])))
        with torch.set_grad_enabled(train):
            parts = []
            for part in chunks(order, _TOGETHER):
                texts = [(prefix + pairs[i][0], pairs[i][1]) for i in part]
                parts.append(self.head(self.tower.side_by_side(texts)[:, 0])[:, 0])
            back = sorted(range(len(order)), key=lambda i: order[i])
            return torch.cat(parts)[back]

    def save(self, folder: Path) -> None:
        """As a sentence-transformers folder with the head beside it."""
        from safetensors.torch import save_file

        self.model.save(str(folder))
        save_file({n: p.detach() for n, p in self.head.named_parameters()}, folder / HEAD)


def load_head(folder: Path) -> dict[str, Any]:
    """Weight (1, dimensions) and bias (1,) of a saved verifier, as numpy arrays."""
    from safetensors.numpy import load_file

    path = folder / HEAD
    if not path.is_file():
        raise InvalidValue(
            f'{folder} is no trained verifier: it has no {HEAD}; train with kind = "verifier"'
        )
    return dict(load_file(path))


def _pairs(triplets: Sequence[Triplet]) -> list[tuple[str, str]]:
    """Every query with its satisfying, then every query with its violating passage."""
    good = [(triplet.query, triplet.satisfying) for triplet in triplets]
    return good + [(triplet.query, triplet.violating) for triplet in triplets]
