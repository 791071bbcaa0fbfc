"""BM25 as a searcher over documents."""

import math
from pathlib import Path

import pytest

from coder_ir.baselines import BM25
from coder_ir.errors import DuplicateId, InvalidFile, InvalidValue
from coder_ir.lexical import LexicalIndex, saved_stamp
from coder_ir.types import UNSCORED, Constraint, Document, Passage, Span

pytest.importorskip("bm25s", reason="needs bm25s: the extra hybrid")
pytest.importorskip("Stemmer", reason="needs PyStemmer: the extra hybrid")

DOCUMENTS = [
    Document("d", "Silent rooms."),
    Document("c", "A noisy club beside the hotel."),
    Document("b", "Rooms look to the garden.", title="Quiet hotel", metadata={"stars": 4}),
    Document("a", "Fish and chips."),
]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of documents of each index that was built and not loaded."""
    seen: list[int] = []
    real = LexicalIndex.build

    def build(ids: list[str], texts: list[str], *, stamp: str = "") -> LexicalIndex:
        seen.append(len(ids))
        return real(ids, texts, stamp=stamp)

    monkeypatch.setattr(LexicalIndex, "build", build)
    return seen


def test_hits_go_by_score_and_the_rest_follow_by_id():
    ranking = BM25(DOCUMENTS).search("a quiet hotel room")
    assert [hit.doc_id for hit in ranking] == ["b", "d", "c", "a"]
    assert [hit.rank for hit in ranking] == [1, 2, 3, 4]
    assert ranking[0].score > ranking[1].score > ranking[2].score > ranking[3].score == 0


def test_documents_without_a_word_of_the_query_stand_in_order_of_id():
    assert [hit.doc_id for hit in BM25(DOCUMENTS).search("zebra", 3)] == ["a", "b", "c"]
    assert [hit.doc_id for hit in BM25(DOCUMENTS).search("not the", 3)] == ["a", "b", "c"]


def test_a_title_is_searched_with_its_text():
    ranking = BM25(DOCUMENTS).search("quiet", 1)
    assert ranking[0].doc_id == "b"


def test_a_hit_says_which_words_it_has():
    by_id = {hit.doc_id: hit for hit in BM25(DOCUMENTS).search("Quiet hotels, rooms")}
    assert by_id["b"].reason == f"BM25 score {by_id['b'].score:.3f} for quiet, hotels, rooms."
    assert by_id["a"].reason == "BM25 score 0: it has none of the query's words."


def test_a_hit_carries_its_document_and_no_score_it_does_not_have():
    [hit] = BM25(DOCUMENTS).search("quiet", 1)
    assert (hit.title, hit.text, hit.metadata) == ("Quiet hotel", DOCUMENTS[2].text, {"stars": 4})
    assert hit.passage == Passage(0, Span(0, len(DOCUMENTS[2].content)))
    assert hit.passage_text == DOCUMENTS[2].content
    assert hit.topical is hit.compatibility is UNSCORED
    assert (math.isnan(UNSCORED), hit.risk) == (True, None)


def test_the_ranking_names_its_method_and_no_constraint():
    ranking = BM25(DOCUMENTS).search("hotel without noise", 2)
    assert (ranking.query, ranking.policy) == ("hotel without noise", "bm25")
    assert (ranking.filtered, ranking.constraint) == ((), Constraint(0.0))


@pytest.mark.parametrize("folder", [None, "i"], ids=["memory", "folder"])
def test_no_documents_give_an_empty_ranking(tmp_path: Path, folder: str | None):
    for _ in range(2):
        assert not BM25([], folder=tmp_path / folder if folder else None).search("hotel").hits


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_is_refused(query: str):
    with pytest.raises(InvalidValue, match="the query is empty; say what to look for"):
        BM25(DOCUMENTS).search(query)


def test_what_cannot_be_searched_or_indexed_is_refused():
    with pytest.raises(InvalidValue, match="k must be at least 1, got 0"):
        BM25(DOCUMENTS).search("hotel", 0)
    with pytest.raises(InvalidValue, match="half a surrogate pair"):
        BM25(DOCUMENTS).search("hotel \ud800")
    with pytest.raises(DuplicateId, match="document id 'd' comes twice"):
        BM25([*DOCUMENTS, DOCUMENTS[0]])
    with pytest.raises(InvalidValue, match="must be text"):
        BM25([Document("d", None)])  # type: ignore[arg-type]


def test_a_folder_with_the_same_documents_is_loaded(tmp_path: Path, builds: list[int]):
    first = BM25(iter(DOCUMENTS), folder=tmp_path / "i").search("quiet rooms")
    assert BM25(DOCUMENTS, folder=tmp_path / "i").search("quiet rooms") == first
    assert builds == [4]


@pytest.mark.parametrize(
    "documents",
    [
        DOCUMENTS[1:],
        [*DOCUMENTS, Document("e", "More.")],
        [Document("d", "Silent halls."), *DOCUMENTS[1:]],
        [Document("d", "Silent rooms.", title="New"), *DOCUMENTS[1:]],
        DOCUMENTS[::-1],
    ],
    ids=["one gone", "one more", "a text changed", "a title changed", "another order"],
)
def test_a_folder_of_other_documents_is_built_anew(
    tmp_path: Path, builds: list[int], documents: list[Document]
):
    BM25(DOCUMENTS, folder=tmp_path / "i")
    before = saved_stamp(tmp_path / "i")
    for _ in range(2):
        found = BM25(documents, folder=tmp_path / "i").search("silent halls")
        assert found == BM25(documents).search("silent halls")
    assert builds == [4, *[len(documents)] * 3]
    assert saved_stamp(tmp_path / "i") != before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidFile, match="name a new folder"):
        BM25(DOCUMENTS, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
