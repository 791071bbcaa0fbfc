"""Labelled queries for constraint detection: written ones, and statements that only look alike."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.constraints import find_cues
from coder_ir.errors import NotFound
from coder_ir.training.sources import read_contrast_items, read_jsonl
from coder_ir.types import Triplet

_STATEMENTS = 600  # of each source, at most


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and whether it states a constraint."""

    text: str
    constrained: bool
    excludes: bool  # whether the constraint names what it rules out


def read_queries(folder: Path) -> list[LabelledQuery]:
    """Written queries with a label, and the exclusion queries of the contrast items."""
    files = sorted(folder.glob("queries*.jsonl*"))
    if not files:
        raise NotFound(f"no labelled queries in {folder}; expected queries*.jsonl")
    found = [
        LabelledQuery(row["q"], bool(row["has_constraint"]), bool(row["excluded"]))
        for file in files
        for row in read_jsonl(file)
    ]
    found += [
        LabelledQuery(row["qa"], constrained=True, excludes=True)
        for row in read_contrast_items(folder, "contrast.train*.jsonl*")
        if row["source"] == "ours" and row["kind"] not in _PLAIN and find_cues(row["qa"])
    ]
    return list(dict.fromkeys(found))


_PLAIN = ("antonym", "negation", "preference")


def statements(triplets: Sequence[Triplet], *, seed: int) -> list[LabelledQuery]:
    """Claims and sentences that hold negations and ask for nothing."""
    by_source: dict[str, list[str]] = {}
    for source, text in _sentences(triplets):
        by_source.setdefault(source, []).append(text)
    found = []
    for texts in by_source.values():
        distinct = sorted({text for text in texts if 20 < len(text) < 160})
        random.Random(seed).shuffle(distinct)
        found += [LabelledQuery(text, False, False) for text in distinct[:_STATEMENTS]]
    return found


def _sentences(triplets: Sequence[Triplet]) -> Iterator[tuple[str, str]]:
    for triplet in triplets:
        if triplet.source == "FeverSymmetric":
            yield triplet.source, triplet.query
        elif triplet.source in ("CANNOT", "AFIN", "NegNLI"):
            yield triplet.source, triplet.satisfying
