"""Vectors of queries are made once for all tables, and are those that would be made."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coder_ir.encoders.sparing import encode_queries
from coder_ir.experiments.memory import remembered_queries
from coder_ir.types import Kind, VectorPair
from tests.conftest import FakeEncoder


class Counting(FakeEncoder):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__(["hotel", "sea"])
        self.asked: list[tuple[str, Kind]] = []

    def encode(self, texts: Sequence[str], *, kind: Kind, progress=None) -> VectorPair:
        self.asked += [(text, kind) for text in texts]
        return super().encode(texts, kind=kind, progress=progress)


def test_a_query_is_encoded_once_in_its_life(tmp_path: Path):
    for _ in range(2):
        encoder = Counting()
        with remembered_queries(encoder, tmp_path / "queries.sqlite"):
            found = encoder.encode(["sea", "hotel", "sea"], kind="query")
            again = encoder.encode(["hotel"], kind="query")
        assert np.array_equal(found.topical[1], again.topical[0])
    assert encoder.asked == []


def test_vectors_are_those_of_the_encoder_in_the_order_of_the_texts(tmp_path: Path):
    encoder, texts = Counting(), ["sea+", "hotel", "hotel sea"]
    plain = encoder.encode(texts, kind="query")
    with remembered_queries(encoder, tmp_path / "queries.sqlite"):
        for order in (texts, texts[::-1]):
            found = encoder.encode(order, kind="query")
            rows = [texts.index(text) for text in order]
            assert np.array_equal(found.topical, plain.topical[rows])
            assert np.array_equal(found.compatibility, plain.compatibility[rows])


def test_documents_are_never_remembered(tmp_path: Path):
    encoder = Counting()
    with remembered_queries(encoder, tmp_path / "queries.sqlite"):
        encoder.encode(["sea"], kind="document")
        encoder.encode(["sea"], kind="document")
    assert encoder.asked == [("sea", "document")] * 2


def test_outside_the_block_the_encoder_works_as_before(tmp_path: Path):
    encoder = Counting()
    with remembered_queries(encoder, tmp_path / "queries.sqlite"):
        encoder.encode(["sea"], kind="query")
    encoder.encode(["sea"], kind="query")
    assert encoder.asked == [("sea", "query")] * 2


def test_another_encoders_vectors_are_not_taken(tmp_path: Path):
    one, other = Counting(), Counting()
    other.fingerprint = "other"
    for encoder in (one, other):
        with remembered_queries(encoder, tmp_path / "queries.sqlite"):
            encoder.encode(["sea"], kind="query")
    assert other.asked == [("sea", "query")]


def test_phrases_beside_a_query_are_remembered_too(tmp_path: Path):
    for _ in range(2):
        encoder = Counting()
        with remembered_queries(encoder, tmp_path / "queries.sqlite"):
            pair, rows = encode_queries(encoder, ["hotel"], topical_only=["sea", "sea+"])
        assert (len(pair.topical), len(pair.compatibility), len(rows)) == (1, 1, 2)
    assert encoder.asked == []
    pair, rows = encode_queries(encoder, ["sea"], topical_only=["hotel"])
    assert encoder.asked == [("sea", "query"), ("hotel", "query")]
