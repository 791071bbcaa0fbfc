"""The training mixture: so much of each source, with passages that the queries are not about."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coder_ir.errors import InvalidValue
from coder_ir.training.verifier.entailment_sets import NLI
from coder_ir.training.verifier.groups import READING, Group
from coder_ir.training.verifier.reviews import MAMS

TRIPLET_SOURCES = ("ours", "turned", "wikipedia", "condaqa", "public")
SOURCES = (*TRIPLET_SOURCES, NLI, MAMS, READING)


@dataclass(frozen=True, slots=True)
class Mixture:
    """How much of each source is drawn, and which passages join its groups."""

    weights: Mapping[str, float]  # by source: 2.5 is every group twice and half of them again
    strangers: float = 0.0  # share of groups joined by a passage of another group, silent
    strangers_for: tuple[str, ...] = SOURCES  # sources whose groups get strangers
    strangers_from: tuple[str, ...] = SOURCES  # sources that strangers come from
    most_passages: int = 0  # a group with so many gets no stranger; 0: no bound
    companions: float = 0.0  # share of reading groups joined by another passage on their topic

    def __post_init__(self) -> None:
        """Refuse unknown sources and shares that are none."""
        for name in (*self.weights, *self.strangers_for, *self.strangers_from):
            if name not in SOURCES:
                raise InvalidValue(f"a mixture has no source {name!r}; use {', '.join(SOURCES)}")
        for name, weight in self.weights.items():
            if weight < 0:
                raise InvalidValue(f"the weight of {name} must be 0 or more, got {weight}")
        for name in ("strangers", "companions"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidValue(f"{name} must be from 0 to 1, got {getattr(self, name)}")
        if not self.sources:
            raise InvalidValue("a mixture needs a source with a weight above 0")

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that are drawn at all."""
        return tuple(name for name in SOURCES if self.weights.get(name, 0) > 0)


def mixed(pool: Sequence[Group], mixture: Mixture, rng: random.Random) -> list[Group]:
    """Draw the groups of one pass, source by source.

    A companion is labelled `None`: it is on the topic, so only the teacher knows what it says. A
    group gets a companion or a stranger, never both.
    """
    by_source: dict[str, list[Group]] = defaultdict(list)
    on_topic: dict[str, list[str]] = defaultdict(list)
    for group in pool:
        by_source[group.source].append(group)
        if group.topic:
            on_topic[group.topic] += group.passages
    strange = [group.passages for group in pool if group.source in mixture.strangers_from]
    drawn: list[Group] = []
    for source, groups in by_source.items():
        weight = mixture.weights.get(source, 0)
        whole = int(weight)
        taken = groups * whole + rng.sample(groups, round((weight - whole) * len(groups)))
        drawn += [
            _joined(group, mixture, on_topic.get(group.topic, []), strange, rng) for group in taken
        ]
    return drawn


def _joined(
    group: Group,
    mixture: Mixture,
    on_topic: Sequence[str],
    strange: Sequence[Sequence[str]],
    rng: random.Random,
) -> Group:
    """The group, by chance with one passage more."""
    if mixture.companions and group.topic and rng.random() < mixture.companions:
        companion = rng.choice(on_topic)
        return group if companion in group.passages else group.joined_by(companion, None)
    if group.source not in mixture.strangers_for or rng.random() >= mixture.strangers:
        return group
    if mixture.most_passages and len(group.passages) >= mixture.most_passages:
        return group
    return group.joined_by(rng.choice(rng.choice(strange)), "silent")
