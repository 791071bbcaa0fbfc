"""The adapter for MTEB, under MTEB's own NevIR task."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mteb", reason="needs MTEB: the extra mteb")

import mteb
import numpy as np
from mteb.models import SearchProtocol

from coder_ir.datasets.nevir import load_nevir
from coder_ir.errors import InvalidValue
from coder_ir.integrations.mteb import CoderSearch, falling_scores, nevir_task
from coder_ir.metrics import pairwise_accuracy
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.stores import SqliteStore
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.integrations.conftest import HOTELS

SAMPLE = Path(__file__).parents[1] / "data" / "nevir_sample.jsonl"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """MTEB would fetch its data; none of these tests lets it."""

    def refuse(*_):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def fake() -> Iterator[CoderSearch]:
    """A model whose rankings can be worked out by hand, with the hotels indexed."""
    with CoderSearch(fake_index, policy="topical", name="tests/fake") as model:
        model.index([{"id": d.doc_id, "title": d.title, "text": d.text} for d in HOTELS])
        yield model


def fake_index(folder: Path) -> Retriever:
    encoder = FakeEncoder(["quiet", "noisy", "hotel", "garden", "club", "sea"])
    return Retriever(encoder, SqliteStore(folder), verifier=FakeVerifier())


def scores(model: CoderSearch, path: Path) -> dict[str, float]:
    result = mteb.evaluate(model, nevir_task(path), cache=None, show_progress_bar=False)
    return result.task_results[0].scores["test"][0]


def own_accuracy(path: Path, folder: Path, policy: str) -> float:
    """Pairwise accuracy as this package measures it: all documents ranked, places compared."""
    data = load_nevir(path)
    margins = {}
    with Retriever.open(folder) as retriever:
        retriever.add(data.documents)
        size = len(data.documents)
        options = SearchOptions(k=size, n=size, policy=policy)
        rankings = retriever.search_many([query.text for query in data.queries], options)
    for query, ranking in zip(data.queries, rankings, strict=True):
        place = {hit.doc_id: hit.rank for hit in ranking}
        grades = data.qrels.grades[query.query_id]
        [good] = [place[doc_id] for doc_id, grade in grades.items() if grade > 0]
        [bad] = [place[doc_id] for doc_id, grade in grades.items() if grade < 0]
        margins[query.query_id] = float(bad - good)
    values = pairwise_accuracy(margins, data.pairs)
    return sum(values) / len(values)


def test_it_is_a_search_model_in_mtebs_eyes(fake: CoderSearch):
    assert isinstance(fake, SearchProtocol)


def test_results_are_filed_under_name_policy_and_pool(fake: CoderSearch):
    meta = fake.mteb_model_meta
    assert meta.name == "tests/fake"
    assert meta.experiment_kwargs == {"policy": "topical", "n": 100, "verify": None}


@pytest.mark.parametrize("policy", ["topical", "compatibility", "auto"])
def test_mtebs_accuracy_is_our_own_on_the_sample(policy: str, tmp_path: Path):
    with CoderSearch(policy=policy) as model:
        found = scores(model, SAMPLE)
    own = own_accuracy(SAMPLE, tmp_path / "index", policy)
    assert found["paired_accuracy"] == found["main_score"] == own
    assert 0 < own < 1  # neither answer would come about by accident


@pytest.mark.parametrize("policy", ["topical", "compatibility"])
def test_mtebs_accuracy_is_our_own_on_eight_pairs_of_nevir(
    policy: str, tmp_path: Path, shared: Path
):
    lines = (shared / "data" / "nevir" / "test_open.jsonl").read_text(encoding="utf-8")
    some = tmp_path / "nevir.jsonl"
    some.write_text("\n".join(lines.splitlines()[:8]), encoding="utf-8")
    with CoderSearch(policy=policy) as model:
        found = scores(model, some)
    assert found["paired_accuracy"] == own_accuracy(some, tmp_path / "index", policy)


def test_both_queries_of_a_pair_must_be_right(tmp_path: Path):
    pair = {"id": "a_b", "q1": "quiet", "q2": "noisy", "doc1": "quiet hotel", "doc2": "noisy hotel"}
    half = {**pair, "id": "c_d", "q2": "hotel club", "doc1": "quiet club", "doc2": "sea club"}
    path = tmp_path / "nevir.jsonl"
    path.write_text(f"{json.dumps(pair)}\n{json.dumps(half)}\n", encoding="utf-8")
    with CoderSearch(fake_index, policy="topical") as model:
        assert scores(model, path)["paired_accuracy"] == 0.5


def test_candidates_are_the_pool_of_a_reranking_task(fake: CoderSearch):
    queries = [{"id": "q", "text": "hotel by the sea"}]
    found = fake.search(queries, top_k=10, top_ranked={"q": ["club", "rose"]})
    assert list(found["q"]) == ["rose", "club"]


def test_a_query_without_candidates_finds_nothing(fake: CoderSearch):
    queries = [{"id": "q", "text": "sea"}, {"id": "r", "text": "sea"}]
    found = fake.search(queries, top_k=10, top_ranked={"q": ["sea"], "r": []})
    assert [list(found["q"]), list(found["r"])] == [["sea"], []]


def test_a_retrieval_task_searches_the_whole_corpus(fake: CoderSearch):
    found = fake.search([{"id": "q", "text": "hotel by the sea"}], top_k=2)
    assert list(found["q"]) == ["sea", "rose"]


def test_an_instruction_is_read_with_its_query(fake: CoderSearch):
    queries = [{"id": "q", "text": "hotel", "instruction": "with a club"}]
    assert list(fake.search(queries, top_k=1)["q"]) == ["club"]


def test_scores_fall_for_tools_that_count_in_32_bits(tmp_path: Path):
    with fake_index(tmp_path / "index") as retriever:
        retriever.add(replace(HOTELS[2], doc_id=name) for name in ("a", "b", "c"))
        found = falling_scores(retriever.search("sea"))
    values = np.array(list(found.values()), dtype=np.float32)
    assert list(found) == ["a", "b", "c"]
    assert (np.diff(values) < 0).all()


def test_the_index_of_the_task_before_is_gone(fake: CoderSearch):
    fake.index([{"id": "only", "text": "by the sea"}])
    assert list(fake.search([{"id": "q", "text": "sea"}], top_k=10)["q"]) == ["only"]


def test_a_search_before_any_corpus_is_an_error():
    with pytest.raises(InvalidValue, match="nothing is indexed yet"):
        CoderSearch(fake_index).search([{"id": "q", "text": "sea"}], top_k=1)


def test_a_task_over_images_is_refused(fake: CoderSearch):
    with pytest.raises(InvalidValue, match="only tasks over texts"):
        fake.index([{"id": "1", "image": b""}])
