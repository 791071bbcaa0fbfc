"""What is trained on triplets: an encoder, by what a batch asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coder_ir.training.config import Config, Stage
from coder_ir.training.loss import Positives, contrastive_loss
from coder_ir.training.tower import Tower, load_base
from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer


def learner_of(config: Config) -> EncoderLearner:
    """The encoder a config describes, as it is before training."""
    model = load_base(config.base, max_length=config.max_length, query_prefix=config.query_prefix)
    tower = Tower(
        model,
        frozen_layers=config.frozen_layers,
        max_length=config.max_length,
        bfloat16=config.bfloat16,
    )
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
