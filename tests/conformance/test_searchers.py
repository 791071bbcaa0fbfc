"""What holds for everything that answers a query with a ranking."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from coder_ir.baselines import BM25, Dense, Reranked
from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.registry import SYSTEMS, Workplace, open_system
from coder_ir.encoders.conventions import Similarity
from coder_ir.errors import InvalidValue
from coder_ir.lexical import LEXICAL, StoredLexical
from coder_ir.policies import POLICIES
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Floats, Kind, Progress, Ranking, Scores, Searcher
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.token_encoder import FakeTokenEncoder

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
QUERIES = ["hotel quiet+", "garden sea", "noisy- club+ hotel"]


def corpus() -> list[Document]:
    """Forty texts of three marked or unmarked words, many of them alike."""
    random = np.random.default_rng(3)
    texts = [
        " ".join(f"{word}{mark}" for word, mark in zip(words, marks, strict=True))
        for words, marks in zip(
            random.choice(WORDS, size=(40, 3)),
            random.choice(["", "+", "-"], size=(40, 3)),
            strict=True,
        )
    ]
    return [Document(f"d{number:02}", text) for number, text in enumerate(texts)]


@dataclass
class WithPolicy:
    """A retriever that always uses one policy."""

    retriever: Retriever
    policy: str

    def search(self, query: str, k: int = 10) -> Ranking:
        return self.retriever.search(query, k, policy=self.policy)


@contextmanager
def retriever_with(policy: str, folder: Path) -> Iterator[Searcher]:
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as retriever:
        retriever.add(corpus())
        yield WithPolicy(retriever, policy)


class WordsInCommon:
    """A cross-encoder with many ties: it counts the query's words that a passage has."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        asked = set(query.split())
        return np.array([len(asked & set(passage.split())) for passage in passages], dtype=float)


@contextmanager
def reranked(folder: Path) -> Iterator[Searcher]:
    with retriever_with("auto", folder) as inner:
        yield Reranked(inner, WordsInCommon(), depth=6)


@contextmanager
def bm25(folder: Path) -> Iterator[Searcher]:
    yield BM25(corpus(), folder=folder)


class TopicalSide:
    """One space of the fake encoder, with rows twice as long."""

    similarity: Similarity = "cosine"
    fingerprint = "topical side"

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        return 2 * FakeEncoder(WORDS).encode(texts, kind=kind, progress=progress).topical


@contextmanager
def dense(similarity: Similarity, folder: Path) -> Iterator[Searcher]:
    yield Dense(corpus(), TopicalSide(), folder=folder, similarity=similarity)


@contextmanager
def hybrid(policy: str, folder: Path) -> Iterator[Searcher]:
    store = SqliteStore(folder)
    lexical = StoredLexical(store, folder / LEXICAL)
    with Retriever(
        FakeEncoder(WORDS), store, lexical=lexical, verifier=FakeVerifier()
    ) as retriever:
        retriever.add(corpus())
        yield WithPolicy(retriever, policy)


@contextmanager
def system(name: str, folder: Path) -> Iterator[Searcher]:
    with Retriever(
        FakeTokenEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()
    ) as retriever:
        retriever.add(corpus())
        documents = Indexed(retriever.encoder, retriever.store)
        yield open_system(name, Workplace(documents, folder=folder))


# Each opens a searcher over the corpus in a folder: builds it there, or loads what is there.
SEARCHERS: dict[str, Callable[[Path], AbstractContextManager[Searcher]]] = {
    **{f"retriever-{policy}": partial(retriever_with, policy) for policy in POLICIES},
    "reranked": reranked,
    "bm25": bm25,
    "dense-cosine": partial(dense, "cosine"),
    "dense-dot": partial(dense, "dot"),
    **{f"hybrid-{policy}": partial(hybrid, policy) for policy in ("topical", "auto")},
    **{f"system-{name}": partial(system, name) for name in SYSTEMS},
}


@pytest.fixture(params=SEARCHERS.values(), ids=SEARCHERS.keys())
def opener(request):
    return request.param


@pytest.fixture
def searcher(opener, tmp_path) -> Iterator[Searcher]:
    with opener(tmp_path / "index") as opened:
        yield opened


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("k", [1, 5])
def test_k_hits_are_k_distinct_known_documents(searcher, query, k):
    found = [hit.doc_id for hit in searcher.search(query, k)]
    assert len(found) == len(set(found)) == k
    assert set(found) <= {document.doc_id for document in corpus()}


@pytest.mark.parametrize("query", QUERIES)
def test_ranks_run_from_one_to_k(searcher, query):
    assert [hit.rank for hit in searcher.search(query, 7)] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("query", QUERIES)
def test_scores_never_rise_with_the_rank(searcher, query):
    scores = [hit.score for hit in searcher.search(query, 40)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("query", QUERIES)
def test_equal_scores_stand_in_ascending_order_of_id(searcher, query):
    order = [(-hit.score, hit.doc_id) for hit in searcher.search(query, 40)]
    assert order == sorted(order)


@pytest.mark.parametrize("query", QUERIES)
def test_a_shorter_ranking_is_the_head_of_a_longer_one(searcher, query):
    assert searcher.search(query, 3)[:] == searcher.search(query, 12)[:3]


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_query_gets_the_same_answer_twice(searcher, query):
    assert searcher.search(query, 10) == searcher.search(query, 10)


@pytest.mark.parametrize("query", QUERIES)
def test_a_hit_carries_its_documents_text(searcher, query):
    texts = {document.doc_id: document.text for document in corpus()}
    assert all(hit.text == texts[hit.doc_id] for hit in searcher.search(query, 10))


def test_a_searcher_that_was_closed_and_loaded_answers_the_same(opener, tmp_path):
    with opener(tmp_path / "index") as built:
        before = [built.search(query, 10) for query in QUERIES]
    with opener(tmp_path / "index") as loaded:
        after = [loaded.search(query, 10) for query in QUERIES]
    assert after == before


def test_hits_and_filtered_are_different_documents(searcher):
    ranking = searcher.search(QUERIES[0], 40)
    hits, gone = ({one.doc_id for one in part} for part in (ranking.hits, ranking.filtered))
    assert not hits & gone


def test_k_larger_than_the_corpus_loses_no_document(searcher):
    ranking = searcher.search(QUERIES[0], 1000)
    assert len(ranking.hits) + len(ranking.filtered) == len(corpus())


@pytest.mark.parametrize("query", ["", "  "], ids=["empty", "space"])
def test_a_query_without_a_word_is_refused(searcher, query):
    with pytest.raises(InvalidValue, match="empty"):
        searcher.search(query, 5)


def test_k_below_one_is_refused(searcher):
    with pytest.raises(InvalidValue, match="k must be at least 1, got 0"):
        searcher.search("hotel", 0)
