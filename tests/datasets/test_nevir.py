import csv
import json
from pathlib import Path

import pytest

from coder_ir.datasets.nevir import load_nevir
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import SATISFYING, VIOLATING, Document, Query

ROWS = [
    {"id": "1-2", "q1": "quiet?", "q2": "loud?", "doc1": "It is quiet.", "doc2": "It is loud."},
    {"id": "1-3", "q1": "calm?", "q2": "wild?", "doc1": "It is quiet.", "doc2": "It is wild."},
]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "nevir.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_a_row_gives_two_queries(small: Path):
    assert load_nevir(small).queries == (
        Query("1-2-q1", "quiet?"),
        Query("1-2-q2", "loud?"),
        Query("1-3-q1", "calm?"),
        Query("1-3-q2", "wild?"),
    )


def test_a_text_that_comes_twice_is_one_document(small: Path):
    assert load_nevir(small).documents == (
        Document("d0", "It is quiet."),
        Document("d1", "It is loud."),
        Document("d2", "It is wild."),
    )


def test_the_first_document_satisfies_the_first_query_and_violates_the_second(small: Path):
    assert load_nevir(small).qrels.grades == {
        "1-2-q1": {"d0": SATISFYING, "d1": VIOLATING},
        "1-2-q2": {"d1": SATISFYING, "d0": VIOLATING},
        "1-3-q1": {"d0": SATISFYING, "d2": VIOLATING},
        "1-3-q2": {"d2": SATISFYING, "d0": VIOLATING},
    }


def test_pairs_name_the_two_queries_of_a_row(small: Path):
    assert load_nevir(small).pairs == (("1-2-q1", "1-2-q2"), ("1-3-q1", "1-3-q2"))


@pytest.mark.parametrize("field", ["id", "q1", "q2", "doc1", "doc2"])
def test_a_row_without_a_field_is_named(small: Path, field: str):
    row = {name: value for name, value in ROWS[0].items() if name != field}
    small.write_text(f"{json.dumps(ROWS[1])}\n{json.dumps(row)}\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match=rf"nevir\.jsonl:2 has no field '{field}'"):
        load_nevir(small)


def test_a_broken_line_is_named(small: Path):
    small.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"nevir\.jsonl:1 is not JSON"):
        load_nevir(small)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(NotFound, match=r"no NevIR file .*none\.jsonl"):
        load_nevir(tmp_path / "none.jsonl")


class TestCsv:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        path = tmp_path / "nevir.csv"
        with path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, ["WorkerId", *ROWS[0]])
            writer.writeheader()
            writer.writerows({"WorkerId": "7", **row} for row in ROWS)
        return path

    def test_it_holds_what_the_lines_of_json_hold(self, table: Path, small: Path):
        assert load_nevir(table) == load_nevir(small)

    def test_a_cell_may_hold_commas_quotes_and_line_ends(self, table: Path):
        table.write_text('id,q1,q2,doc1,doc2\n1,a?,b?,"He said, ""go"".\nThen left.",b\n')
        assert load_nevir(table).documents[0].text == 'He said, "go".\nThen left.'

    def test_a_byte_order_mark_is_no_part_of_the_first_column(self, table: Path):
        table.write_text("id,q1,q2,doc1,doc2\n1,a?,b?,a,b\n", encoding="utf-8-sig")
        assert load_nevir(table).pairs == (("1-q1", "1-q2"),)

    def test_a_missing_column_is_named_with_the_row(self, table: Path):
        table.write_text("id,q1,q2,doc1\n1,a?,b?,a\n")
        with pytest.raises(InvalidFile, match=r"nevir\.csv:2 has no field 'doc2'"):
            load_nevir(table)

    @pytest.mark.parametrize("row", ["2,a?,b?,a", "2,a?,b?,a,b,c"], ids=["too few", "too many"])
    def test_a_ragged_row_is_named(self, table: Path, row: str):
        table.write_text(f"id,q1,q2,doc1,doc2\n1,a?,b?,a,b\n{row}\n")
        with pytest.raises(InvalidFile, match=r"nevir\.csv:3 has another number of cells"):
            load_nevir(table)

    def test_a_table_that_is_not_utf8_is_named(self, table: Path):
        table.write_bytes(b"id,q1,q2,doc1,doc2\n1,caf\xe9,b?,a,b\n")
        with pytest.raises(InvalidFile, match=r"nevir\.csv is not UTF-8"):
            load_nevir(table)


class TestPublishedHalf:
    @pytest.fixture
    def path(self, shared: Path) -> Path:
        return shared / "data" / "nevir" / "test_open.jsonl"

    def test_it_has_691_pairs_and_twice_as_many_queries(self, path: Path):
        loaded = load_nevir(path)
        counts = len(loaded.pairs), len(loaded.queries), len(loaded.qrels), len(loaded.documents)
        assert counts == (691, 1382, 1382, 1041)

    @pytest.mark.parametrize(
        ("place", "row_id", "words"),
        [(0, "1052-2", "What medication did"), (-1, "1179-2", "Whose arrest attracted")],
        ids=["first", "last"],
    )
    def test_its_ends_are_the_published_records(
        self, path: Path, place: int, row_id: str, words: str
    ):
        loaded = load_nevir(path)
        row = json.loads(path.read_text(encoding="utf-8").splitlines()[place])
        one, two = loaded.pairs[place]
        texts = {query.query_id: query.text for query in loaded.queries}
        documents = {document.doc_id: document.text for document in loaded.documents}
        best = {
            q: next(documents[d] for d, grade in loaded.qrels.grades[q].items() if grade > 0)
            for q in (one, two)
        }
        assert (one, two) == (f"{row_id}-q1", f"{row_id}-q2")
        assert texts[one].startswith(words)
        assert (texts[one], texts[two]) == (row["q1"], row["q2"])
        assert (best[one], best[two]) == (row["doc1"], row["doc2"])

    def test_every_query_has_one_satisfying_and_one_violating_document(self, path: Path):
        for grades in load_nevir(path).qrels.grades.values():
            assert sorted(grades.values()) == [VIOLATING, SATISFYING]
