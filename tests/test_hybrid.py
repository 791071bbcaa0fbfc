"""Words beside vectors: the query that is matched, the fused order, and a retriever with both."""

import numpy as np
import pytest

from coder_ir.hybrid import fused_ranks, lexical_query
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Constraint, Document
from tests.conftest import FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier


@pytest.mark.parametrize(
    ("query", "constraint", "words"),
    [
        ("quiet hotel", Constraint(0.0), "quiet hotel"),
        (
            "hotel without nightlife",
            Constraint(1.0, ("nightlife",), topic="hotel"),
            "hotel",
        ),
        ("no nightlife", Constraint(1.0, ("nightlife",)), "no"),
        ("hotel Nightlife", Constraint(1.0, excluded=("nightlife",)), "hotel"),
        ("nut bars and Nuts", Constraint(1.0, excluded=("nuts",)), "bars and"),
        ("cars in Paris", Constraint(1.0, excluded=("the Paris Hilton",)), "cars in Paris"),
        ("hotel", Constraint(1.0, required=("parking",)), "hotel parking"),
    ],
    ids=[
        "plain",
        "topic",
        "no topic",
        "named by the caller",
        "forms of a word",
        "part of a phrase",
        "required",
    ],
)
def test_the_matched_words_leave_out_what_is_ruled_out(query, constraint, words):
    assert " ".join(lexical_query(query, constraint).split()) == words


def test_documents_come_in_the_order_of_their_reciprocal_ranks():
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    fused = fused_ranks(scores, ["a", "b", "c", "d"], ["d", "c"])
    # a 1/61, b 1/62, c 1/63 + 1/62, d 1/64 + 1/61
    assert fused.tolist() == pytest.approx([0.7, 0.6, 0.8, 0.9])


def test_scores_keep_their_spread():
    random = np.random.default_rng(1)
    scores = random.random(30)
    ids = [f"d{i:02}" for i in range(30)]
    fused = fused_ranks(scores, ids, list(random.permutation(ids)[:12]))
    assert sorted(fused) == pytest.approx(sorted(scores), abs=1e-6)


def test_without_a_match_the_scores_stay():
    scores = np.array([0.3, 0.9, 0.5])
    assert fused_ranks(scores, ["a", "b", "c"], []).tolist() == [0.3, 0.9, 0.5]


def test_passages_of_one_document_move_together():
    scores = np.array([0.9, 0.5, 0.4])
    fused = fused_ranks(scores, ["a", "b", "b"], ["b"])
    assert fused.tolist() == pytest.approx([0.5, 0.9, 0.8])


def test_an_empty_pool_stays_empty():
    assert fused_ranks(np.zeros(0), [], ["a"]).tolist() == []


DOCUMENTS = [
    Document("sea", "hotel sea", metadata={"stars": 3}),
    Document("garden", "hotel garden", metadata={"stars": 3}),
    Document("code", "XR-500 club", metadata={"stars": 5}),
]


class Words:
    """A lexical side that finds documents holding a word."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents
        self.asked: list[str] = []

    def best(self, query: str, n: int) -> list[str]:
        self.asked.append(query)
        words = query.lower().split()
        held = [d for d in self.documents if any(w in d.text.lower().split() for w in words)]
        return [document.doc_id for document in held][:n]


@pytest.fixture
def both(tmp_path, encoder: FakeEncoder):
    store = SqliteStore(tmp_path / "index")
    with Retriever(
        encoder, store, lexical=Words(DOCUMENTS), parser=FakeParser(), verifier=FakeVerifier()
    ) as opened:
        opened.add(DOCUMENTS)
        yield opened


def test_a_document_that_only_words_find_enters_the_pool(both):
    assert [hit.doc_id for hit in both.search("XR-500", 2, n=1, policy="topical")] == [
        "code",
        "garden",
    ]


def test_a_condition_holds_for_what_words_find_too(both):
    found = both.search("XR-500", 3, policy="topical", where=["stars=3"])
    assert "code" not in {hit.doc_id for hit in found}


def test_conditions_come_before_the_cut_of_what_words_find(tmp_path, encoder: FakeEncoder):
    texts = [Document(f"other{i}", "XR-500", metadata={"stars": 5}) for i in range(5)]
    texts += [Document(f"plain{i}", "hotel sea", metadata={"stars": 3}) for i in range(5)]
    texts += [Document("wanted", "XR-500 club", metadata={"stars": 3})]
    with Retriever(
        encoder, SqliteStore(tmp_path / "index"), lexical=Words(texts), verifier=FakeVerifier()
    ) as retriever:
        retriever.add(texts)
        found = retriever.search("XR-500", 2, n=2, policy="topical", where=["stars=3"])
        assert "wanted" in {hit.doc_id for hit in found}


def test_a_hit_shows_its_true_cosine_and_says_what_words_made_of_it(both):
    plain = {
        hit.doc_id: hit.topical
        for hit in Retriever(both.encoder, both.store, verifier=FakeVerifier()).search(
            "XR-500", 3, policy="topical"
        )
    }
    for hit in both.search("XR-500", 3, policy="topical"):
        assert hit.topical == plain[hit.doc_id]
        assert f"cosine {hit.topical:.3f}, taken as {hit.score:.3f}" in hit.scoring


def test_an_excluded_word_does_not_bring_its_document_back(both):
    found = both.search("hotel without club", 3, policy="topical")
    assert "club" not in both.lexical.asked[-1]
    assert found[-1].doc_id == "code"


def test_an_explicit_exclusion_is_not_matched_either(both):
    both.search("hotel club", 3, exclude=["club"])
    assert both.lexical.asked[-1].split() == ["hotel"]


@pytest.fixture
def indexed(tmp_path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch):
    """Opens a real index with BM25, on the fake encoder."""
    pytest.importorskip("bm25s", reason="needs the extra hybrid")
    monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda *a, **k: encoder)
    monkeypatch.setattr("coder_ir.retriever.load_calibration", lambda *a: None)
    monkeypatch.setattr("coder_ir.retriever.load_parser", lambda encoder: FakeParser())
    monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda name, *, threads: FakeVerifier())
    return lambda **how: Retriever.open(tmp_path / "index", hybrid=True, **how)


def test_counts_follow_what_is_added_and_deleted(indexed):
    with indexed() as retriever:
        retriever.add(DOCUMENTS)
        assert retriever.search("xr 500", 1, policy="topical")[0].doc_id == "code"
        retriever.delete(["code"])
        retriever.add([Document("other", "the XR 500 manual")])
        assert retriever.search("xr 500", 1, policy="topical")[0].doc_id == "other"


def test_counts_are_kept_beside_the_index_and_read_again(indexed, tmp_path, monkeypatch):
    with indexed() as retriever:
        retriever.add(DOCUMENTS)
        before = retriever.search("xr 500", 3)
    assert (tmp_path / "index" / "lexical").is_dir()
    monkeypatch.setattr(
        "coder_ir.lexical.LexicalIndex.build", lambda *a, **k: pytest.fail("counted again")
    )
    with indexed(read_only=True) as retriever:
        assert retriever.search("xr 500", 3) == before


def test_a_read_only_index_is_counted_in_memory(indexed, tmp_path, encoder):
    with Retriever(encoder, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as plain:
        plain.add(DOCUMENTS)
    with indexed(read_only=True) as retriever:
        assert retriever.search("xr 500", 1, policy="topical")[0].doc_id == "code"
    assert not (tmp_path / "index" / "lexical").exists()


def test_hybrid_search_over_an_empty_index_finds_nothing(indexed):
    with indexed() as retriever:
        assert not retriever.search("hotel", 3)
