"""What a batch of triplets asks of an encoder."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coder_ir.training.config import Config, Stage
from coder_ir.training.tower import Tower
from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch

Positives = dict[str, set[str]]  # query to every passage that satisfies it


def positives_of(triplets: Sequence[Triplet]) -> Positives:
    """Every passage known to satisfy each query."""
    positives: Positives = defaultdict(set)
    for triplet in triplets:
        positives[triplet.query].add(triplet.satisfying)
    return positives


def contrastive_loss(
    tower: Tower, batch: Sequence[Triplet], positives: Positives, *, config: Config, stage: Stage
) -> torch.Tensor:
    """Multiple negatives ranking loss plus the terms a stage turns on.

    Every text is encoded once; one that several triplets of the batch hold counts as often. A
    passage that satisfies a query never counts as its negative, wherever it stands.
    """
    import torch

    queries = [triplet.query for triplet in batch]
    times = Counter(p for t in batch for p in (t.satisfying, t.violating))
    passages = list(times)
    distinct = list(dict.fromkeys(queries))
    line = torch.tensor([distinct.index(query) for query in queries])
    asked = tower.embed([config.query_prefix + query for query in distinct], train=True)[line]
    found = tower.embed(passages, train=True)
    scores = asked @ found.T  # (batch, passages)
    place = {passage: column for column, passage in enumerate(passages)}
    good = torch.tensor([place[triplet.satisfying] for triplet in batch])
    bad = torch.tensor([place[triplet.violating] for triplet in batch])
    satisfies = torch.tensor([[p in positives[query] for p in passages] for query in queries])
    copies = torch.tensor([float(times[p]) for p in passages]).log().masked_fill(satisfies, 0.0)
    loss = _ranking(config.scale * scores + copies, good, satisfies)
    rows = torch.arange(len(batch))
    if stage.symmetric:
        # Each passage picks its query: the opposite query of its pair is the hard negative.
        towards = config.scale * scores.T[good]  # (batch, batch)
        loss = loss + stage.symmetric * _ranking(towards, rows, satisfies.T[good])
    if stage.pairwise:
        margins = scores[rows, good] - scores[rows, bad]
        loss = loss + stage.pairwise * torch.nn.functional.softplus(-config.scale * margins).mean()
    if stage.anchor:
        loss = loss + stage.anchor * _drift(tower, batch, passages, asked, found, config)
    return loss


def _ranking(scores: torch.Tensor, good: torch.Tensor, satisfies: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the right column in each row, other right columns left out."""
    import torch

    other = satisfies.clone()
    other[torch.arange(len(good)), good] = False
    return torch.nn.functional.cross_entropy(scores.masked_fill(other, float("-inf")), good)


def _drift(
    tower: Tower,
    batch: Sequence[Triplet],
    passages: Sequence[str],
    asked: torch.Tensor,
    found: torch.Tensor,
    config: Config,
) -> torch.Tensor:
    """How far similarities of unrelated texts have moved from the base encoder's (mean square)."""
    import torch

    group = {p: t.group for t in batch for p in (t.satisfying, t.violating)}
    before_asked = tower.at_first([config.query_prefix + t.query for t in batch])
    before_found = tower.at_first(passages)
    groups = [group[p] for p in passages]
    unrelated = torch.tensor([[t.group != g for g in groups] for t in batch])
    moved = (asked @ found.T - before_asked @ before_found.T)[unrelated]
    return (moved**2).mean() if len(moved) else moved.sum()
