"""Development figures of a verifier: how often it puts right what it should."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coder_ir.training.reading_items import Label
from coder_ir.training.tower import chunks
from coder_ir.training.verifier.groups import CLASSES, Group, Pair, triplet_source
from coder_ir.training.verifier.loss import margin
from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch

Scorer = Callable[[Sequence[Pair]], "torch.Tensor"]  # pairs to logits (pairs, 3)
_TRIPLETS, _GROUPS = 64, 12  # scored at once
_FIRST = "satisfies over violates"
_ORDERS: dict[str, tuple[Label, Label]] = {  # which label should have the higher margin
    _FIRST: ("satisfies", "violates"),
    "satisfies over silent": ("satisfies", "silent"),
    "silent over violates": ("silent", "violates"),
}


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some cases are right."""

    right: int
    of: int

    @property
    def percent(self) -> float:
        """0 to 100; 0 where there is no case."""
        return 100 * self.right / max(1, self.of)

    def __str__(self) -> str:
        return f"{self.percent:.1f}/{self.of}"


Figures = Mapping[str, Share]


def triplet_figures(score: Scorer, triplets: Sequence[Triplet]) -> Figures:
    """Triplets whose satisfying passage has the higher margin: all, then by source."""
    right: dict[str, list[bool]] = {"all": []}
    for part in chunks(triplets, _TRIPLETS):
        pairs = [(t.query, passage) for t in part for passage in (t.satisfying, t.violating)]
        margins = _margins(score, pairs)
        for number, triplet in enumerate(part):
            is_right = margins[2 * number] > margins[2 * number + 1]
            right["all"].append(is_right)
            right.setdefault(triplet_source(triplet), []).append(is_right)
    return {name: _share(cases) for name, cases in right.items()}


def item_figures(score: Scorer, groups: Sequence[Group]) -> Figures:
    """Pairs of passages in each of three orders, whole queries in order, classes, and kinds.

    A query is in order when each of its satisfying passages is above each violating and silent one.
    `kind NAME` is *satisfies over violates* among the items of a kind.
    """
    right: dict[str, list[bool]] = {name: [] for name in (*_ORDERS, "order", "class")}
    kinds: dict[str, list[bool]] = defaultdict(list)
    for group, logits in _scored(score, groups):
        for labels, own in zip(group.labels, logits, strict=True):
            orders = _orders(margin(own).tolist(), labels)
            for name, cases in orders.items():
                right[name] += cases
            right["order"].append(all(orders[_FIRST] + orders["satisfies over silent"]))
            chosen = [CLASSES[number] for number in own.argmax(dim=1).tolist()]
            right["class"] += [c == label for c, label in zip(chosen, labels, strict=True)]
            kinds[f"kind {group.kind}"] += orders[_FIRST]
    return {name: _share(cases) for name, cases in (right | dict(sorted(kinds.items()))).items()}


def _scored(score: Scorer, groups: Sequence[Group]) -> Iterator[tuple[Group, torch.Tensor]]:
    """Each group with its logits (queries, passages, 3)."""
    import torch

    for part in chunks(groups, _GROUPS):
        logits = _logits(score, [pair for group in part for pair in group.pairs])
        tables = torch.split(logits, [len(group.pairs) for group in part])
        for group, table in zip(part, tables, strict=True):
            yield group, table.view(len(group.queries), len(group.passages), 3)


def _orders(margins: Sequence[float], labels: Sequence[Label | None]) -> dict[str, list[bool]]:
    """For each order, whether each pair of passages that it is about is in it."""
    known = list(zip(margins, labels, strict=True))
    return {
        name: [
            above > below
            for above, first in known
            for below, second in known
            if (first, second) == order
        ]
        for name, order in _ORDERS.items()
    }


def _margins(score: Scorer, pairs: Sequence[Pair]) -> list[float]:
    margins: list[float] = margin(_logits(score, pairs)).tolist()
    return margins


def _logits(score: Scorer, pairs: Sequence[Pair]) -> torch.Tensor:
    import torch

    with torch.no_grad():
        return score(pairs)


def _share(cases: Iterable[bool]) -> Share:
    listed = list(cases)
    return Share(sum(listed), len(listed))
