import json
from pathlib import Path

import pytest

from coder_ir.datasets.beir import load_beir, load_corpus, load_queries
from coder_ir.datasets.qrels import load_qrels
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Document, Query
from tests.local_home import TINY, put


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestCorpus:
    def test_it_is_the_corpus_file_of_the_folder(self, tmp_path: Path):
        row = {"_id": "d1", "title": "Hotel", "text": "Silent.", "metadata": {"stars": 4}}
        written(tmp_path, "corpus.jsonl", json.dumps(row))
        assert load_corpus(tmp_path) == [Document("d1", "Silent.", "Hotel", {"stars": 4})]

    def test_a_folder_without_one_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no file or folder .*corpus\.jsonl"):
            load_corpus(tmp_path)


class TestQueries:
    def test_they_come_in_the_order_of_the_lines(self, tmp_path: Path):
        rows = '{"_id": "q2", "text": "two", "metadata": {}}\n\n{"_id": "q1", "text": "one"}\n'
        path = written(tmp_path, "queries.jsonl", rows)
        assert load_queries(path) == [Query("q2", "two"), Query("q1", "one")]

    @pytest.mark.parametrize("name", ["_id", "id", "query_id"])
    @pytest.mark.parametrize("text", ["text", "query"])
    def test_the_fields_have_several_names(self, tmp_path: Path, name: str, text: str):
        path = written(tmp_path, "queries.jsonl", json.dumps({name: 7, text: "quiet"}))
        assert load_queries(path) == [Query("7", "quiet")]

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ('{"text": "t"}', "needs an _id and a text"),
            ('{"_id": null, "text": "t"}', "needs an _id and a text"),
            ('{"_id": "q"}', "needs an _id and a text"),
            ('{"_id": "q", "text": "  "}', "needs an _id and a text"),
            ('{"_id": "q", "text": 5}', "needs an _id and a text"),
            ("[]", "should hold a JSON object"),
            ("{", "is not JSON"),
        ],
        ids=["no id", "null id", "no text", "blank text", "number", "list", "broken"],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, bad: str, says: str):
        path = written(tmp_path, "queries.jsonl", f'{{"_id": "a", "text": "t"}}\n{bad}\n')
        with pytest.raises(InvalidFile, match=says) as caught:
            load_queries(path)
        assert f"{path}:2" in str(caught.value)

    def test_an_id_that_comes_twice_is_refused(self, tmp_path: Path):
        rows = '{"_id": "7", "text": "one"}\n{"_id": 7, "text": "two"}\n'
        with pytest.raises(InvalidFile, match="has the query id '7' twice"):
            load_queries(written(tmp_path, "queries.jsonl", rows))

    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no query file .*queries\.jsonl"):
            load_queries(tmp_path / "queries.jsonl")


class TestFolder:
    @pytest.fixture(autouse=True)
    def tiny(self, tmp_path: Path) -> None:
        put(tmp_path, TINY)

    def test_it_holds_documents_judged_queries_and_judgements(self, tmp_path: Path):
        loaded = load_beir(tmp_path)
        assert loaded.documents == (Document("d1", "Quiet.", "Inn"), Document("d2", "Loud."))
        assert loaded.queries == (Query("q1", "quiet"), Query("q2", "loud"))
        assert loaded.qrels.grades == {"q1": {"d1": 1}, "q2": {"d2": 2}}
        assert loaded.pairs == ()

    def test_another_file_of_judgements_may_be_named(self, tmp_path: Path):
        put(tmp_path, {"qrels/dev.tsv": b"q3\td1\t1\n"})
        loaded = load_beir(tmp_path, qrels="qrels/dev.tsv")
        assert [query.query_id for query in loaded.queries] == ["q3"]

    @pytest.mark.parametrize("name", TINY)
    def test_a_missing_file_is_named(self, tmp_path: Path, name: str):
        (tmp_path / name).unlink()
        with pytest.raises(NotFound, match=name):
            load_beir(tmp_path)


@pytest.mark.parametrize(
    ("name", "documents", "first", "last", "judged"),
    [("scifact", 5183, "4983", "198309074", 300), ("nfcorpus", 3633, "MED-10", "MED-999", 323)],
    ids=["SciFact", "NFCorpus"],
)
def test_a_published_set_is_read_whole(
    shared: Path, name: str, documents: int, first: str, last: str, judged: int
):
    folder = shared / "data" / name
    corpus = load_corpus(folder)
    queries = {query.query_id for query in load_queries(folder / "queries.jsonl")}
    qrels = load_qrels(folder / "qrels" / "test.tsv")
    assert (len(corpus), corpus[0].doc_id, corpus[-1].doc_id) == (documents, first, last)
    assert len(qrels) == judged
    assert set(qrels.grades) <= queries
    known = {document.doc_id for document in corpus}
    assert all(grades.keys() <= known for grades in qrels.grades.values())


@pytest.mark.parametrize(
    ("name", "count", "first", "last"),
    [
        (
            "scifact",
            1109,
            Query("0", "0-dimensional biomaterials lack inductive properties."),
            "1395",
        ),
        (
            "nfcorpus",
            3237,
            Query("PLAIN-3", "Breast Cancer Cells Feed on Cholesterol"),
            "PLAIN-3472",
        ),
    ],
    ids=["SciFact", "NFCorpus"],
)
def test_the_queries_of_a_published_set_are_read_whole(
    shared: Path, name: str, count: int, first: Query, last: str
):
    queries = load_queries(shared / "data" / name / "queries.jsonl")
    assert (len(queries), queries[0], queries[-1].query_id) == (count, first, last)
