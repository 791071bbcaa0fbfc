"""What a verifier's logits cost: against the labels, and against the teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coder_ir.training.verifier.groups import CLASSES, READING, Group

if TYPE_CHECKING:
    import torch

_SMOOTHING = 0.03  # of the labels
_LABELS_OF_OTHERS = 0.5  # weight of the cross-entropy outside reading items
_WORTH = {"satisfies": 2, "silent": 1, "violates": 0}  # the order a query wants
_WITHIN_QUERY = {2: 1.0, 1: 0.5}  # weight of a pair of passages by how far apart they are
_WITHIN_PASSAGE = 0.5  # weight of a pair of queries
_MARGINS = 0.1  # weight of the teacher's margins beside its classes
_WIDEST = 8.0  # margin of a teacher, at most


def margin(logits: torch.Tensor) -> torch.Tensor:
    """Logit of *satisfies* less that of *violates*: (..., 3) to (...)."""
    return logits[..., 0] - logits[..., 1]


def label_loss(logits: torch.Tensor, groups: Sequence[Group]) -> torch.Tensor:
    """The mean over groups; `logits` (pairs, 3) are of all their pairs, in order."""
    import torch

    parts = torch.split(logits, [len(group.pairs) for group in groups])
    return torch.stack([_group_loss(*part) for part in zip(parts, groups, strict=True)]).mean()


def _group_loss(logits: torch.Tensor, group: Group) -> torch.Tensor:
    """Cross-entropy of the classes, then margins within a query and within a passage.

    A passage that satisfies should have a higher margin than one that is silent, and that one than
    one that violates; of two queries, the same over one passage.
    """
    import torch
    from torch.nn.functional import cross_entropy, softplus

    columns = [i for i, label in enumerate(group.labels[0]) if label is not None]
    known = [[label for label in row if label is not None] for row in group.labels]
    table = logits.view(len(group.queries), len(group.passages), 3)[:, columns]
    classes = torch.tensor([[CLASSES.index(label) for label in row] for row in known])
    classed = cross_entropy(
        table.reshape(-1, 3), classes.reshape(-1), label_smoothing=_SMOOTHING
    ) * (1.0 if group.source == READING else _LABELS_OF_OTHERS)
    worth = torch.tensor([[_WORTH[label] for label in row] for row in known])
    margins = margin(table)  # (queries, passages)
    passages = _pair_weights(worth[:, :, None] - worth[:, None, :], _WITHIN_QUERY)
    queries = _pair_weights(
        worth[:, None, :] - worth[None, :, :], dict.fromkeys((1, 2), _WITHIN_PASSAGE)
    )
    ranked = (softplus(margins[:, None, :] - margins[:, :, None]) * passages).sum()
    crossed = (softplus(margins[None, :, :] - margins[:, None, :]) * queries).sum()
    count = int((passages > 0).sum() + (queries > 0).sum())
    return classed + (ranked + crossed) / max(1, count)


def _pair_weights(apart: torch.Tensor, weights: dict[int, float]) -> torch.Tensor:
    """The weight of each ordered pair by how much more the first is worth; else 0."""
    import torch

    found = torch.zeros(apart.shape)
    for distance, weight in weights.items():
        found[apart == distance] = weight
    return found


def class_loss(logits: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
    """Divergence from the teacher's probabilities, and a little of its margins; both (pairs, 3)."""
    from torch.nn.functional import kl_div, smooth_l1_loss

    divergence = kl_div(logits.log_softmax(-1), taught.softmax(-1), reduction="batchmean")
    wanted = margin(taught).clamp(-_WIDEST, _WIDEST)
    return divergence + _MARGINS * smooth_l1_loss(margin(logits), wanted)
