"""`bench reading-cost`: every way is run in turn; ratios by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coder_ir import Document, Retriever
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments import reading_cost
from coder_ir.experiments.reading_cost import (
    CONSTRAINED,
    PEER,
    PLAIN,
    READING,
    RERANKED,
    TOPICAL,
    measure_reading_cost,
)
from coder_ir.experiments.setup import Setup
from coder_ir.types import Scores
from tests.conftest import FakeEncoder, FakeParser
from tests.experiments.conftest import said
from tests.fake_verifier import FakeVerifier

QUERIES = 2


class Peer:
    """A cross-encoder that keeps how many passages it was given."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        self.given.append(len(passages))
        return np.arange(len(passages), dtype=np.float64)


def test_every_way_is_run_for_every_query_of_every_round(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
):
    alone, inside, peer = FakeVerifier(), FakeVerifier(), Peer()
    monkeypatch.setattr(reading_cost, "load_verifier", lambda *, threads: alone)
    monkeypatch.setattr(reading_cost, "_QUERIES", QUERIES)
    monkeypatch.setattr(reading_cost, "_ROUNDS", 1)
    retriever.verifier, retriever.parser = inside, FakeParser()
    retriever.add(Document(f"d{i:02}", f"hotel number {i}") for i in range(30))
    passages = [f"passage {i}" for i in range(40)]
    constrained, plain = ["hotel without noise", "hotel without sea"], ["hotel", "garden"]
    bench = reading_cost._Bench(retriever, peer, passages, constrained, plain)  # type: ignore[arg-type]
    times = bench.times(said)
    assert list(times) == [READING, PEER, CONSTRAINED, RERANKED, PLAIN, TOPICAL]
    assert min(times.values()) > 0
    runs = QUERIES * 2  # a round that counts and one that warms up
    assert [texts for _, texts in alone.asked[:2]] == [passages[:20], passages[20:]]
    assert len(alone.asked) == runs
    assert peer.given == [20] * 2 * runs  # by itself, and over a topical search
    constraints = [query for query, _ in inside.asked if "without" in query]
    assert constraints == constrained * 2


def test_ratios_are_to_what_people_put_there_today():
    times = dict(
        zip(
            (READING, PEER, CONSTRAINED, RERANKED, PLAIN, TOPICAL),
            (3, 6, 4, 5, 2.5, 2),
            strict=True,
        )
    )
    table = reading_cost._table(times, 7)
    assert table.figures == {
        "milliseconds": times,
        "ratio": {READING: 0.5, CONSTRAINED: 0.8, PLAIN: 1.25},
    }
    assert table.rows == (
        (READING, "3.0", "0.50x"),
        (PEER, "6.0", "1.00x"),
        (CONSTRAINED, "4.0", "0.80x"),
        (RERANKED, "5.0", "1.00x"),
        (PLAIN, "2.5", "1.25x"),
        (TOPICAL, "2.0", "1.00x"),
    )
    assert "(7 texts under random vectors)" in table.notes[0]


def test_queries_that_state_no_constraint_are_left_out(retriever: Retriever):
    retriever.parser = FakeParser()
    queries = ["hotel", "hotel without noise", "sea", "sea without club"]
    assert reading_cost._stated(retriever, queries) == [queries[1], queries[3]]


def test_without_a_cross_encoder_to_compare_with_nothing_is_measured(setup: Setup):
    with pytest.raises(NotFound, match="needs a cross-encoder to compare with; see --reranker"):
        measure_reading_cost(setup, said)


def test_a_model_that_is_no_folder_is_refused(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    encoder = FakeEncoder(["hotel"])
    monkeypatch.setattr(reading_cost, "load_encoder", lambda model, *, runtime: encoder)
    monkeypatch.setattr(reading_cost, "CrossEncoder", lambda folder, *, threads: Peer())
    for name, row in (
        ("negconstraint/queries.jsonl", '{"_id": "q", "text": "a hotel"}'),
        ("scifact/queries.jsonl", '{"_id": "q", "text": "a hotel"}'),
        ("scifact/corpus.jsonl", '{"_id": "d", "title": "", "text": "a hotel"}'),
    ):
        path = setup.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row + "\n", encoding="utf-8")
    with pytest.raises(InvalidValue, match="reading-cost measures a model folder, got 'fake'"):
        measure_reading_cost(replace(setup, reranker=tmp_path), said)
