"""ExcluIR's two files, in the names of its published data and of its authors' scripts."""

import json
from pathlib import Path
from typing import Any

import pytest

from coder_ir.datasets.excluir import load_excluir
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import SATISFYING, VIOLATING, Document, Query

CORPUS = ["Leo & Liz is a sitcom.", "He was known for a sketch show.", "Ajax is a club."]
ROWS = [
    {"RQ_rewrite": "What, but the sitcom?", "question0": "What?", "corpus_sub_index": [0, 1]},
    {"RQ_rewrite": "Who, apart from Ajax?", "question0": "Who?", "corpus_sub_index": [2, 0]},
]


def written(folder: Path, *, corpus: Any = CORPUS, rows: Any = ROWS) -> Path:
    (folder / "corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    (folder / "test_manual_final.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def test_passages_are_named_by_their_place(tmp_path: Path):
    assert load_excluir(written(tmp_path)).documents == (
        Document("d0", CORPUS[0]),
        Document("d1", CORPUS[1]),
        Document("d2", CORPUS[2]),
    )


def test_a_passage_may_be_an_object_with_a_text(tmp_path: Path):
    corpus = [{"text": text, "title": "none"} for text in CORPUS]
    assert load_excluir(written(tmp_path, corpus=corpus)) == load_excluir(written(tmp_path))


def test_the_question_that_excludes_is_asked_not_the_plain_one(tmp_path: Path):
    assert load_excluir(written(tmp_path)).queries == (
        Query("q0", "What, but the sitcom?"),
        Query("q1", "Who, apart from Ajax?"),
    )


def test_the_first_place_is_excluded_and_the_second_wanted(tmp_path: Path):
    assert load_excluir(written(tmp_path)).qrels.grades == {
        "q0": {"d0": VIOLATING, "d1": SATISFYING},
        "q1": {"d2": VIOLATING, "d0": SATISFYING},
    }


def test_the_names_of_the_authors_scripts_are_read_too(tmp_path: Path):
    rows = [{"ExcluQ": row["RQ_rewrite"], "index": row["corpus_sub_index"]} for row in ROWS]
    assert load_excluir(written(tmp_path, rows=rows)) == load_excluir(written(tmp_path))


def test_the_published_half_of_the_questions_has_the_fields_that_are_read(
    shared: Path, tmp_path: Path
):
    published = shared / "data" / "excluir" / "queries_open.jsonl"
    rows = [json.loads(line) for line in published.read_text(encoding="utf-8").splitlines()]
    last = max(place for row in rows for place in row["corpus_sub_index"])
    loaded = load_excluir(written(tmp_path, corpus=["passage"] * (last + 1), rows=rows))
    assert len(loaded.queries) == 1726
    assert loaded.queries[0].text.startswith('Except for "Leo & Liz in Beverly Hills"')
    assert loaded.qrels.grades["q0"] == {"d62797": VIOLATING, "d46779": SATISFYING}


@pytest.mark.parametrize(
    "row",
    [
        {"corpus_sub_index": [0, 1]},
        {"RQ_rewrite": "Who?"},
        {"RQ_rewrite": "Who?", "corpus_sub_index": [0]},
        {"RQ_rewrite": "Who?", "corpus_sub_index": [0, 1, 2]},
        {"RQ_rewrite": "Who?", "corpus_sub_index": ["a", "b"]},
        {"RQ_rewrite": "Who?", "corpus_sub_index": None},
        "Who?",
        7,
    ],
    ids=["no question", "no places", "one", "three", "words", "null", "text", "number"],
)
def test_a_bad_entry_is_named(tmp_path: Path, row: Any):
    says = r"test_manual_final\.json, entry 1 needs ExcluQ or RQ_rewrite, and index or corpus_sub"
    with pytest.raises(InvalidFile, match=says):
        load_excluir(written(tmp_path, rows=[ROWS[0], row]))


@pytest.mark.parametrize("places", [[0, 3], [-1, 0]], ids=["past the end", "negative"])
def test_a_place_where_no_passage_is_is_named(tmp_path: Path, places: list[int]):
    row = {"RQ_rewrite": "Who?", "corpus_sub_index": places}
    with pytest.raises(InvalidFile, match="entry 0 points past the 3 passages: "):
        load_excluir(written(tmp_path, rows=[row]))


@pytest.mark.parametrize("passage", [None, 5, {"title": "t"}], ids=["null", "number", "no text"])
def test_a_bad_passage_is_named(tmp_path: Path, passage: Any):
    with pytest.raises(InvalidFile, match=r"corpus\.json, entry 1 is no passage"):
        load_excluir(written(tmp_path, corpus=["one", passage]))


@pytest.mark.parametrize("name", ["corpus.json", "test_manual_final.json"])
class TestFiles:
    def test_a_missing_one_is_named(self, tmp_path: Path, name: str):
        (written(tmp_path) / name).unlink()
        with pytest.raises(NotFound, match=f"no ExcluIR file .*{name}"):
            load_excluir(tmp_path)

    @pytest.mark.parametrize("content", [b"[", b'["caf\xe9"]'], ids=["broken", "latin-1"])
    def test_one_that_is_not_json_is_named(self, tmp_path: Path, name: str, content: bytes):
        (written(tmp_path) / name).write_bytes(content)
        with pytest.raises(InvalidFile, match=f"{name} is not JSON"):
            load_excluir(tmp_path)

    def test_one_that_holds_no_list_is_named(self, tmp_path: Path, name: str):
        (written(tmp_path) / name).write_text("{}")
        with pytest.raises(InvalidFile, match=f"{name} should hold a list, got dict"):
            load_excluir(tmp_path)
