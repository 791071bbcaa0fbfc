"""A tiny base encoder and toy triplets about opposites."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from coder_ir.types import Triplet
from tests.tiny_bert import save_tiny_bert

OPPOSITES = (
    ("quiet", "loud"),
    ("dark", "bright"),
    ("warm", "cold"),
    ("cheap", "dear"),
    ("clean", "dirty"),
    ("fast", "slow"),
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder: three random layers, mean pooling, 64 tokens."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def opposites() -> Callable[[Sequence[str]], list[Triplet]]:
    """Triplets in both directions of every opposite, about the things named."""

    def build(things: Sequence[str]) -> list[Triplet]:
        return [
            Triplet(
                f"not {bad}",
                f"the {thing} is {good}",
                f"the {thing} is {bad}",
                group=f"{thing} {'/'.join(pair)}",
                source="toy",
                licence="none",
            )
            for thing in things
            for pair in OPPOSITES
            for good, bad in (pair, pair[::-1])
        ]

    return build


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, Sequence[Triplet]], Path]:
    """Writes triplets to a file of that name and returns its path."""

    def write(name: str, triplets: Sequence[Triplet]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(asdict(t)) + "\n" for t in triplets))
        return path

    return write
