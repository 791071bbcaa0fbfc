"""Reads what a verifier is trained on and what it is measured with, and keeps the two apart."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.training.reading_items import ReadingItem, read_items
from coder_ir.training.sentences import load_triplets
from coder_ir.training.verifier.entailment_sets import NLI, entailment_files, entailment_groups
from coder_ir.training.verifier.groups import READING, Group, item_groups, triplet_groups
from coder_ir.training.verifier.mixture import TRIPLET_SOURCES, Mixture
from coder_ir.training.verifier.reviews import MAMS, review_file, review_groups
from coder_ir.types import Triplet


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Where the data is."""

    triplets: Path  # jsonl as `coder-ir data sentences` writes it
    development_triplets: Path
    items: tuple[Path, ...]  # reading items to train on
    development_items: Path
    measured_items: Path  # read once, when training is over
    published: Path  # folder that holds CAD-NLI, NegNLI and MAMS as published

    def hashes(self) -> dict[str, str]:
        """sha256 of every file, by its name."""
        files = (
            self.triplets,
            self.development_triplets,
            *self.items,
            self.development_items,
            self.measured_items,
            *entailment_files(self.published),
            review_file(self.published),
        )
        for file in files:
            if not file.is_file():
                raise NotFound(f"no file {file}; docs/training.md says where each comes from")
        return {f"{file.parent.name}/{file.name}": file_sha256(file) for file in files}


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What no training mixture may hold."""

    triplets: Sequence[Triplet]
    items: Sequence[ReadingItem]
    measured: Sequence[ReadingItem]

    @property
    def texts(self) -> frozenset[str]:
        """Queries and passages of the triplets."""
        rows = ((t.query, t.satisfying, t.violating) for t in self.triplets)
        return frozenset(text for row in rows for text in row)

    @property
    def topics(self) -> frozenset[str]:
        """Topics of the items."""
        return frozenset(item.topic for item in (*self.items, *self.measured))


def read_held_out(files: DataFiles) -> HeldOut:
    """The development data and the items to measure with."""
    return HeldOut(
        load_triplets(files.development_triplets),
        read_items(files.development_items),
        read_items(files.measured_items),
    )


def read_pool(
    files: DataFiles, mixture: Mixture, held_out: HeldOut, rng: random.Random
) -> list[Group]:
    """The groups of every source that the mixture draws.

    Raises:
        InvalidValue: a topic or a group of triplets is also in the held-out data.
    """
    reading: list[Group] = []
    if READING in mixture.sources:
        reading = [group for file in files.items for group in _items(file, held_out, rng)]
    pool: list[Group] = []
    if any(source in mixture.sources for source in TRIPLET_SOURCES):
        pool += triplet_groups(_triplets(files.triplets, held_out))
    if NLI in mixture.sources:
        pool += entailment_groups(files.published, held_out=held_out.texts)
    if MAMS in mixture.sources:
        pool += review_groups(files.published, rng)
    return pool + reading


def _triplets(file: Path, held_out: HeldOut) -> list[Triplet]:
    triplets = load_triplets(file)
    kept_back = {triplet.group for triplet in held_out.triplets}
    for triplet in triplets:
        if triplet.group in kept_back:
            raise InvalidValue(
                f"{file} holds the group {triplet.group!r}, which is development data; build both "
                "files in one run of: coder-ir data sentences"
            )
    return triplets


def _items(file: Path, held_out: HeldOut, rng: random.Random) -> list[Group]:
    items = read_items(file)
    topics = held_out.topics
    for topic in (item.topic for item in items):
        if topic in topics:
            raise InvalidValue(
                f"{file} holds the topic {topic!r}, which is held out; a topic is trained on or "
                "measured with, never both"
            )
    return item_groups(items, rng)
