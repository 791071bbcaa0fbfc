"""Twenty thousand documents, fifty constraint queries: every exact store gives the same ids."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.registry import BUILT_IN, load_calibration, load_encoder
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.stores import open_store
from coder_ir.training.marked_queries import read_marked_part
from coder_ir.types import Document, ModelStamp, Record, Span, Store, VectorPair
from coder_ir.vectors import unit_rows
from tests.conformance.test_stores import PLACES
from tests.serve.live import ROOT

pytestmark = pytest.mark.large
DOCUMENTS, QUERIES, BATCH = 20_000, 50, 2000
# A query over the whole index, then a union of both spaces, then a filter that leaves a tenth.
OPTIONS = (
    SearchOptions(),
    SearchOptions(policy="union", k=50),
    SearchOptions(policy="seq", where=("shelf=3",)),
)
# Milvus Lite searches in Python, half a second a query: one way to search, over its server.
ASKED = {"pgvector": OPTIONS, "milvus": OPTIONS[:1]}
Hits = list[list[str]]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(BUILT_IN)


@pytest.fixture(scope="module")
def queries() -> list[str]:
    """Marked queries, half of which rule something out."""
    asked = read_marked_part(ROOT / "recipes" / "queries", "development")
    random.Random(7).shuffle(asked)
    named = [query.text for query in asked if query.constrained][: QUERIES // 2]
    return named + [query.text for query in asked if not query.constrained][: QUERIES // 2]


@pytest.fixture(scope="module")
def records(encoder) -> list[Record]:
    """The sample's passages, each many times over with vectors moved a little; one in ten a copy.

    Copies have equal vectors, so that every search has ties.
    """
    texts = [document.content for document in load_sample()[0]]
    known, draw = encoder.encode(texts, kind="document"), np.random.default_rng(7)
    rows = np.arange(DOCUMENTS) % len(texts)
    noise = draw.normal(0, 0.02, (DOCUMENTS, known.topical.shape[1]))
    noise[::10] = 0
    topical, compatibility = (
        unit_rows(part[rows] + noise) for part in (known.topical, known.compatibility)
    )
    made = []
    for i, row in enumerate(rows):
        document = Document(f"d{i}", texts[row], "", {"shelf": i % 10})
        pair = VectorPair(topical[i : i + 1], compatibility[i : i + 1])
        made.append(Record(document, str(i), [Span(0, len(texts[row]))], pair))
    return made


def filled(store: Store, records: Sequence[Record], stamp: ModelStamp) -> Store:
    store.set_stamp(stamp)
    for start in range(0, len(records), BATCH):
        store.write(records[start : start + BATCH])
    return store


def hits(store: Store, encoder, queries: Sequence[str], ways=OPTIONS) -> list[Hits]:
    retriever = Retriever(encoder, store, calibration=load_calibration(BUILT_IN))
    return [
        [[hit.doc_id for hit in ranking] for ranking in retriever.search_many(queries, options)]
        for options in ways
    ]


@pytest.fixture(scope="module")
def expected(
    encoder, queries, records, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Hits]]:
    folder = tmp_path_factory.mktemp("embedded") / "index"
    stamp = ModelStamp(encoder.fingerprint, encoder.spec)
    store = filled(open_store(str(folder)), records, stamp)
    yield hits(store, encoder, queries)
    store.close()


def test_there_is_something_to_compare(expected: list[Hits], queries: list[str]):
    assert len(set(queries)) == QUERIES
    whole, union, filtered = expected
    assert {len(found) for found in whole} == {10}
    assert {len(found) for found in union} == {50}
    assert all(int(doc_id[1:]) % 10 == 3 for found in filtered for doc_id in found)
    assert len({tuple(found) for found in whole}) > QUERIES // 2


@pytest.mark.parametrize("place", ASKED)
def test_every_exact_store_gives_the_same_ids_in_the_same_order(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, encoder, queries, records, expected
):
    store = open_store(PLACES[place](request, tmp_path / "index"))
    try:
        filled(store, records, ModelStamp(encoder.fingerprint, encoder.spec))
        store.compact()
        ways = ASKED[place]
        assert hits(store, encoder, queries, ways) == expected[: len(ways)]
    finally:
        store.close()
