"""Groups: queries and passages that are read against each other, with a label for each pair."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from coder_ir.training.reading_items import Label, LabelledQuery, ReadingItem
from coder_ir.types import Triplet

CLASSES: tuple[Label, ...] = ("satisfies", "violates", "silent")  # in the order of the logits
READING = "reading"  # the source of groups from reading items
_WANTED = 0.3  # share of the phrases that are asked for, when a training mixture is drawn
_SWAPPED: dict[Label, Label] = {
    "satisfies": "violates",
    "violates": "satisfies",
    "silent": "silent",
}
Pair = tuple[str, str]  # query, passage


@dataclass(frozen=True, slots=True)
class Group:
    """Queries over the same few passages."""

    source: str
    queries: tuple[str, ...]
    passages: tuple[str, ...]
    labels: tuple[tuple[Label | None, ...], ...]  # a row a query; None: only the teacher knows
    kind: str  # of a reading item: how its passages differ; else the source
    topic: str = ""  # of a reading item

    @property
    def pairs(self) -> list[Pair]:
        """Every query with every passage, query by query."""
        return [(query, passage) for query in self.queries for passage in self.passages]

    def joined_by(self, passage: str, label: Label | None) -> "Group":
        """The group with one more passage, which has the same label for every query."""
        labels = tuple((*row, label) for row in self.labels)
        return replace(self, passages=(*self.passages, passage), labels=labels)


def triplet_source(triplet: Triplet) -> str:
    """Which of five sources a triplet is drawn with; the mixture weighs them apart."""
    if triplet.source == "written: ours":
        return "ours"
    for words, source in (
        ("turned", "turned"),
        ("Wikipedia paragraph", "wikipedia"),
        ("CondaQA", "condaqa"),
    ):
        if words in triplet.source:
            return source
    return "public"


def triplet_groups(triplets: Iterable[Triplet]) -> list[Group]:
    """Two passages with one query, or with a query for each direction.

    Where two passages have several queries, each is in one group at least; the direction with
    fewer queries repeats them.
    """
    pairs: dict[frozenset[str], list[Triplet]] = defaultdict(list)
    for triplet in triplets:
        pairs[frozenset((triplet.satisfying, triplet.violating))].append(triplet)
    return [group for same in pairs.values() for group in _both_directions(same)]


def _both_directions(triplets: list[Triplet]) -> Iterable[Group]:
    """Groups of the triplets over one pair of passages."""
    first = triplets[0]
    forth = [triplet for triplet in triplets if triplet.satisfying == first.satisfying]
    back = [triplet for triplet in triplets if triplet.satisfying != first.satisfying]
    source = triplet_source(first)
    for number in range(max(len(forth), len(back))):
        asked = [forth[number % len(forth)], *([back[number % len(back)]] if back else [])]
        labels: tuple[tuple[Label, Label], ...] = (
            ("satisfies", "violates"),
            ("violates", "satisfies"),
        )
        yield Group(
            source,
            tuple(triplet.query for triplet in asked),
            (first.satisfying, first.violating),
            labels[: len(asked)],
            source,
        )


def item_groups(items: Iterable[ReadingItem], rng: random.Random | None = None) -> list[Group]:
    """A group an item; a phrase to keep out is asked as "without PHRASE".

    With `rng`, three phrases in ten are asked as "with PHRASE" and their labels swapped, so that
    naming a thing is not enough to rule it out.
    """
    return [_item_group(item, rng) for item in items]


def _item_group(item: ReadingItem, rng: random.Random | None) -> Group:
    asked = [_asked(query, tuple(item.passages), rng) for query in item.queries]
    return Group(
        READING,
        tuple(query for query, _ in asked),
        tuple(item.passages.values()),
        tuple(labels for _, labels in asked),
        item.kind,
        item.topic,
    )


def _asked(
    query: LabelledQuery, letters: tuple[str, ...], rng: random.Random | None
) -> tuple[str, tuple[Label, ...]]:
    """The words of a query and its labels, in the order of the passages."""
    labels = tuple(query.labels[letter] for letter in letters)
    if not query.is_phrase:
        return query.text, labels
    if rng is not None and rng.random() < _WANTED:
        return f"with {query.text}", tuple(_SWAPPED[label] for label in labels)
    return f"without {query.text}", labels
