"""Tiny sets under the names of published ones, and a fake encoder to search them with.

The fake encoder counts `word` in both spaces, `word-` in the topical one alone and `word+` in the
compatibility one alone. Equal scores go by ascending id.
"""

from pathlib import Path

import pytest

from coder_ir.datasets.registry import BENCHMARKS
from coder_ir.datasets.testset import TestSet
from coder_ir.encoders import Runtime
from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Setup
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING, Document, Qrels, Query
from tests.conftest import FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier
from tests.token_encoder import FakeTokenEncoder

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
Loaded = list[tuple[str, Runtime | None]]

# Scores as (topical, compatibility). For q, a is (1, .5), b is (1, 1) and c is next to 0; so by
# topic a stands before b, by compatibility b before a. For r, c is (1, 1), the others next to 0.
STAY = TestSet(
    documents=(
        Document("a", "hotel noisy+"),
        Document("b", "hotel quiet+"),
        Document("c", "garden"),
    ),
    queries=(Query("q", "hotel quiet+"), Query("r", "garden")),
    qrels=Qrels({"q": {"a": VIOLATING, "b": SATISFYING, "c": NEUTRAL}, "r": {"c": SATISFYING}}),
)
# As in STAY for q; for s, d is (1, .5) and f is (1, 1), and it is the wrong one.
TRIP = TestSet(
    documents=(*STAY.documents[:2], Document("d", "sea noisy+"), Document("f", "sea club+")),
    queries=(Query("q", "hotel quiet+"), Query("s", "sea club+")),
    qrels=Qrels({"q": {"a": VIOLATING, "b": SATISFYING}, "s": {"d": SATISFYING, "f": VIOLATING}}),
)


ABSENT = {
    name: f"{known.title} is not at hand (see {known.home})"
    for name, known in BENCHMARKS.items()
    if not known.downloadable
}


def said(message: str) -> None:
    assert message


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path / "data", tmp_path / "out", "reference", "fake", tmp_path / "written")


@pytest.fixture
def encoder() -> FakeTokenEncoder:
    return FakeTokenEncoder(WORDS, limit=3)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, encoder: FakeEncoder) -> Loaded:
    """What was asked of the loader that gives the fake encoder for any model."""
    calls: Loaded = []

    def load(model: str, *, runtime: Runtime | None = None) -> FakeEncoder:
        calls.append((model, runtime))
        return encoder

    for module in ("retriever", "experiments.detection", "experiments.separation"):
        monkeypatch.setattr(f"coder_ir.{module}.load_encoder", load)
    monkeypatch.setattr("coder_ir.retriever.load_calibration", lambda model: None)
    monkeypatch.setattr(
        "coder_ir.retriever.load_verifier", lambda name="", *, threads=0: FakeVerifier()
    )
    for module in ("retriever", "experiments.detection"):
        monkeypatch.setattr(f"coder_ir.{module}.load_parser", lambda encoder: FakeParser())
    return calls


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> dict[str, TestSet]:
    """The only benchmarks there are; a test puts its own in."""
    known: dict[str, TestSet] = {}

    def load(name: str, root: Path) -> TestSet:
        if name not in known:
            raise NotFound(f"no {name} here; see its home")
        return known[name]

    monkeypatch.setattr("coder_ir.experiments.systems.load_benchmark", load)
    return known
