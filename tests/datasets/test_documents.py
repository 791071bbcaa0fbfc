import io
import json
import sys
from pathlib import Path

import pytest

from coder_ir.datasets.documents import Columns, check_sources, count_documents, read_documents
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.types import Document


def written(folder: Path, name: str, content: str | bytes) -> str:
    """Path of a new file; text is stored as UTF-8 without any change of line ends."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(*sources: str, columns: Columns | None = None) -> list[Document]:
    return list(read_documents(sources, columns))


class TestJsonl:
    def test_a_beir_line_is_a_document(self, tmp_path: Path):
        row = {"_id": "d1", "title": "Hotel", "text": "Silent.", "metadata": {"stars": 4}}
        path = written(tmp_path, "docs.jsonl", json.dumps(row))
        assert read(path) == [Document("d1", "Silent.", "Hotel", {"stars": 4})]

    def test_documents_come_in_the_order_of_the_lines(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", "".join(line(i) for i in "cab"))
        assert [document.doc_id for document in read(path)] == ["c", "a", "b"]

    def test_other_keys_become_metadata(self, tmp_path: Path):
        row = {"_id": "d1", "text": "t", "city": "Alvena", "tags": ["a", "b"]}
        path = written(tmp_path, "docs.jsonl", json.dumps(row))
        assert read(path)[0].metadata == {"city": "Alvena", "tags": ["a", "b"]}

    def test_other_keys_join_the_metadata_object_which_wins(self, tmp_path: Path):
        row = {"_id": "d1", "text": "t", "city": "x", "stars": 3, "metadata": {"city": "Alvena"}}
        path = written(tmp_path, "docs.jsonl", json.dumps(row))
        assert read(path)[0].metadata == {"city": "Alvena", "stars": 3}

    @pytest.mark.parametrize("name", ["_id", "id", "doc_id"])
    def test_the_id_has_three_names(self, tmp_path: Path, name: str):
        path = written(tmp_path, "docs.jsonl", json.dumps({name: "d1", "text": "t"}))
        assert read(path) == [Document("d1", "t")]

    def test_a_whole_number_as_id_becomes_text(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", '{"_id": 42, "text": "t"}')
        assert read(path)[0].doc_id == "42"

    def test_columns_name_the_fields(self, tmp_path: Path):
        row = {"key": "d1", "body": "Silent.", "name": "Hotel", "text": "other"}
        path = written(tmp_path, "docs.jsonl", json.dumps(row))
        columns = Columns(doc_id="key", text="body", title="name")
        assert read(path, columns=columns) == [
            Document("d1", "Silent.", "Hotel", {"text": "other"})
        ]

    def test_a_byte_order_mark_is_no_part_of_the_first_line(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", b"\xef\xbb\xbf" + line("d1").encode())
        assert [document.doc_id for document in read(path)] == ["d1"]

    def test_blank_lines_are_passed_over(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", f"\n{line('a')}\n   \n{line('b')}\n\n")
        assert [document.doc_id for document in read(path)] == ["a", "b"]

    def test_windows_line_ends_are_no_part_of_the_text(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", line("a").replace("\n", "\r\n"))
        assert read(path) == [Document("a", "text of a")]

    def test_a_line_separator_inside_a_text_does_not_end_the_line(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", '{"_id": "a", "text": "one\u2028two\u0085three"}\n')
        assert read(path)[0].text == "one\u2028two\u0085three"

    @pytest.mark.parametrize("text", ["a\0b", "\0", "tab\tand\nline", "🏨 naïve 静か"], ids=repr)
    def test_unusual_characters_survive(self, tmp_path: Path, text: str):
        path = written(tmp_path, "docs.jsonl", json.dumps({"_id": "d1", "text": text}))
        assert read(path)[0].text == text

    def test_an_empty_title_and_a_null_title_are_no_title(self, tmp_path: Path):
        rows = '{"_id": "a", "text": "t", "title": ""}\n{"_id": "b", "text": "t", "title": null}\n'
        path = written(tmp_path, "docs.jsonl", rows)
        assert [document.title for document in read(path)] == ["", ""]

    def test_an_empty_file_has_no_documents(self, tmp_path: Path):
        assert read(written(tmp_path, "docs.jsonl", "")) == []

    def test_documents_are_read_as_they_are_asked_for(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", f"{line('a')}broken\n")
        assert next(read_documents([path])).doc_id == "a"


class TestBadJsonl:
    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            (b"{not json}", "is not JSON"),
            (b'{"_id": "b", "text": "cut off', "is not JSON"),
            (b'["b", "text"]', r"should hold a JSON object, got \[\"b\""),
            (b'"text"', "should hold a JSON object"),
            (b"7", "should hold a JSON object"),
            (b"null", "should hold a JSON object"),
            (b'{"_id": "b", "text": "caf\xe9"}', "is not UTF-8 .byte 0xe9 at column 26"),
            (b'{"_id": "b"}', "has no field 'text'"),
            (b'{"_id": "b", "text": null}', "has no field 'text'"),
            (b'{"text": "t"}', "has no field '_id'"),
            (b'{"_id": null, "text": "t"}', "has no field '_id'"),
            (b"{}", "has no field '_id' .it has none"),
            (b'{"_id": "", "text": "t"}', "an id is text or a whole number, got ''"),
            (b'{"_id": 1.5, "text": "t"}', "an id is text or a whole number, got 1.5"),
            (b'{"_id": true, "text": "t"}', "an id is text or a whole number, got True"),
            (b'{"_id": ["x"], "text": "t"}', "an id is text or a whole number"),
            (b'{"_id": "b", "text": 5}', "text and title must be text, got 5"),
            (b'{"_id": "b", "text": "t", "title": ["x"]}', "text and title must be text"),
            (b'{"_id": "b", "text": "t", "metadata": [1]}', "metadata should be an object"),
            (b'{"_id": "b", "text": "t", "metadata": "x"}', "metadata should be an object"),
            (b'{"_id": "b", "text": "half \\ud800"}', "surrogate"),
            (b'{"_id": "b", "text": "t", "price": NaN}', "is not JSON"),
            (b'{"_id": "b", "text": "t", "price": 1e999}', "is not JSON"),
        ],
        ids=[
            "broken",
            "cut off",
            "list",
            "string",
            "number",
            "null",
            "latin-1",
            "no text",
            "null text",
            "no id",
            "null id",
            "nothing",
            "empty id",
            "float id",
            "bool id",
            "list id",
            "number as text",
            "list as title",
            "list as metadata",
            "string as metadata",
            "half a character",
            "NaN",
            "infinite number",
        ],
    )
    def test_a_bad_line_is_named_with_its_file(self, tmp_path: Path, bad: bytes, says: str):
        path = written(tmp_path, "docs.jsonl", line("a").encode() + b"\n" + bad + b"\n")
        with pytest.raises(InvalidFile, match=says) as caught:
            read(path)
        assert f"{path}:3" in str(caught.value)

    def test_a_missing_field_says_which_fields_there_are_and_what_to_do(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", '{"key": "a", "body": "t"}')
        with pytest.raises(InvalidFile, match=r"it has key, body\); name the fields with --id"):
            read(path)


class TestTables:
    def test_a_csv_row_is_a_document(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", 'id,title,text\nd1,Hotel,"Silent, cheap."\n')
        assert read(path) == [Document("d1", "Silent, cheap.", "Hotel")]

    def test_a_tsv_row_is_a_document(self, tmp_path: Path):
        path = written(tmp_path, "docs.tsv", "id\ttext\nd1\tSilent, cheap.\n")
        assert read(path) == [Document("d1", "Silent, cheap.")]

    def test_a_suffix_in_capitals_is_a_table_too(self, tmp_path: Path):
        path = written(tmp_path, "DOCS.CSV", "id,text\nd1,Silent.\n")
        assert read(path) == [Document("d1", "Silent.")]

    def test_columns_name_the_cells(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "key,body,name,text\n7,Silent.,Hotel,other\n")
        columns = Columns(doc_id="key", text="body", title="name")
        assert read(path, columns=columns) == [Document("7", "Silent.", "Hotel", {"text": "other"})]

    def test_other_cells_become_metadata_with_numbers_as_numbers(self, tmp_path: Path):
        path = written(
            tmp_path, "docs.csv", "id,text,stars,price,open,city,code\n1,t,4,9.5,true,Alvena,007\n"
        )
        assert read(path)[0].metadata == {
            "stars": 4,
            "price": 9.5,
            "open": True,
            "city": "Alvena",
            "code": "007",
        }

    @pytest.mark.parametrize("cell", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_a_cell_that_json_cannot_hold_as_a_number_stays_text(self, tmp_path: Path, cell: str):
        path = written(tmp_path, "docs.csv", f"id,text,price\n1,t,{cell}\n")
        assert read(path)[0].metadata == {"price": cell}

    def test_id_title_and_text_stay_text_even_if_they_are_numbers(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "id,title,text\n007,1984,3.50\n")
        assert read(path) == [Document("007", "3.50", "1984")]

    def test_a_cell_may_be_longer_than_128_kib(self, tmp_path: Path):
        text = "word " * 40_000
        path = written(tmp_path, "docs.csv", f'id,text\nd1,"{text}"\n')
        assert read(path)[0].text == text

    def test_a_quoted_cell_may_hold_line_ends(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", 'id,text\nd1,"one\r\ntwo"\nd2,three\n')
        assert [d.text for d in read(path)] == ["one\r\ntwo", "three"]

    def test_a_byte_order_mark_is_no_part_of_the_first_column(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", b"\xef\xbb\xbfid,text\nd1,Silent.\n")
        assert read(path) == [Document("d1", "Silent.")]

    def test_a_null_byte_in_a_cell_survives(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "id,text\nd1,a\0b\n")
        assert read(path)[0].text == "a\0b"

    @pytest.mark.parametrize("row", ["d2,t,extra", "d2"], ids=["too many", "too few"])
    def test_a_ragged_row_is_named(self, tmp_path: Path, row: str):
        path = written(tmp_path, "docs.csv", f"id,text\nd1,t\n{row}\n")
        with pytest.raises(InvalidFile, match=r"docs\.csv:3 has another number of cells"):
            read(path)

    def test_a_row_without_a_text_column_says_which_columns_there_are(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "id,body\nd1,t\n")
        with pytest.raises(InvalidFile, match=r"docs\.csv:2 has no field 'text' .it has id, body"):
            read(path)

    def test_a_header_that_names_a_column_twice_is_refused(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "id,text,text\nd1,one,two\n")
        with pytest.raises(InvalidFile, match="text"):
            read(path)

    def test_a_table_that_is_not_utf8_is_named(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", b"id,text\nd1,caf\xe9\n")
        with pytest.raises(InvalidFile, match=r"docs\.csv is not UTF-8"):
            read(path)

    @pytest.mark.parametrize("content", ["", "id,text\n"], ids=["nothing", "only a header"])
    def test_a_table_without_rows_has_no_documents(self, tmp_path: Path, content: str):
        assert read(written(tmp_path, "docs.csv", content)) == []


class TestFolders:
    def test_every_txt_and_md_file_is_a_document_in_sorted_order(self, tmp_path: Path):
        for name in ("b.txt", "a.md", "c.TXT"):
            written(tmp_path, name, f"text of {name}")
        assert [(d.doc_id, d.text) for d in read(str(tmp_path))] == [
            ("a.md", "text of a.md"),
            ("b.txt", "text of b.txt"),
            ("c.TXT", "text of c.TXT"),
        ]

    def test_other_files_are_passed_over(self, tmp_path: Path):
        written(tmp_path, "a.txt", "t")
        written(tmp_path, "picture.png", b"\xff\xd8")
        assert [d.doc_id for d in read(str(tmp_path))] == ["a.txt"]

    def test_nested_files_have_their_relative_path_as_id(self, tmp_path: Path):
        for name in ("deep/er/x.md", "deep/y.txt", "z.txt"):
            written(tmp_path, name, "t")
        ids = [d.doc_id for d in read(str(tmp_path))]
        assert ids == ["deep/er/x.md", "deep/y.txt", "z.txt"]

    def test_a_folder_named_like_a_text_file_is_no_document(self, tmp_path: Path):
        written(tmp_path, "notes.txt/inner.txt", "t")
        assert [d.doc_id for d in read(str(tmp_path))] == ["notes.txt/inner.txt"]

    def test_a_folder_without_text_files_is_an_error(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"holds no \.txt or \.md file"):
            read(str(tmp_path))

    def test_a_text_file_that_is_not_utf8_is_named(self, tmp_path: Path):
        written(tmp_path, "a.txt", b"caf\xe9")
        with pytest.raises(InvalidFile, match=r"a\.txt is not UTF-8 \(byte 0xe9 at 3\)"):
            read(str(tmp_path))

    def test_the_text_is_the_whole_file_without_its_byte_order_mark(self, tmp_path: Path):
        written(tmp_path, "a.txt", b"\xef\xbb\xbf one\n\0two \n")
        assert read(str(tmp_path))[0].text == " one\n\0two \n"

    def test_a_single_text_file_is_one_document_named_after_it(self, tmp_path: Path):
        path = written(tmp_path, "deep/a.md", "t")
        assert read(path) == [Document("a.md", "t")]


class TestSources:
    @pytest.mark.parametrize("name", ["no.jsonl", "no.csv", "no.tsv", "no.txt", "no.md", "no"])
    def test_a_missing_file_is_named(self, tmp_path: Path, name: str):
        with pytest.raises(NotFound, match=f"no file or folder .*{name}"):
            read(str(tmp_path / name))

    def test_several_sources_are_read_in_the_order_given(self, tmp_path: Path):
        one = written(tmp_path, "one.jsonl", line("z"))
        two = written(tmp_path, "two.csv", "id,text\na,t\n")
        assert [d.doc_id for d in read(one, two)] == ["z", "a"]

    def test_a_dash_reads_jsonl_from_standard_input(self, monkeypatch: pytest.MonkeyPatch):
        feed = io.TextIOWrapper(io.BytesIO(f"{line('a')}\n{line('b')}".encode()))
        monkeypatch.setattr(sys, "stdin", feed)
        assert [d.doc_id for d in read("-")] == ["a", "b"]

    def test_a_bad_line_of_standard_input_is_named(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"nonsense")))
        with pytest.raises(InvalidFile, match="standard input:1 is not JSON"):
            read("-")

    def test_checking_refuses_what_is_not_there(self, tmp_path: Path):
        with pytest.raises(NotFound, match="no file or folder nowhere"):
            check_sources([str(tmp_path), "nowhere"])

    def test_checking_refuses_no_sources_at_all(self):
        with pytest.raises(InvalidValue, match="no documents were named"):
            check_sources([])

    def test_checking_lets_files_folders_and_standard_input_pass(self, tmp_path: Path):
        assert check_sources([written(tmp_path, "a.txt", "t"), str(tmp_path), "-"]) is None


class TestCountDocuments:
    def test_lines_of_a_jsonl_file_are_counted(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", "".join(line(str(i)) for i in range(7)))
        assert count_documents([path]) == 7

    def test_a_last_line_without_a_line_end_is_counted_too(self, tmp_path: Path):
        path = written(tmp_path, "docs.jsonl", f"{line('a')}{line('b').rstrip()}")
        assert count_documents([path]) == 2

    def test_files_of_a_folder_are_counted(self, tmp_path: Path):
        for name in ("a.txt", "b/c.md", "d.png"):
            written(tmp_path, name, "one\ntwo\n")
        assert count_documents([str(tmp_path)]) == 2

    def test_a_text_file_counts_once_whatever_its_length(self, tmp_path: Path):
        assert count_documents([written(tmp_path, "a.txt", "one\ntwo\nthree\n")]) == 1

    def test_several_sources_are_added_up(self, tmp_path: Path):
        one, two = written(tmp_path, "one.jsonl", line("a")), written(tmp_path, "two.txt", "t")
        assert count_documents([one, two]) == 2

    def test_a_table_counts_at_least_its_rows(self, tmp_path: Path):
        path = written(tmp_path, "docs.csv", "id,text\na,t\nb,t")
        assert count_documents([path]) in (2, 3)

    def test_standard_input_cannot_be_counted(self, tmp_path: Path):
        assert count_documents([written(tmp_path, "one.jsonl", line("a")), "-"]) is None


def line(doc_id: str) -> str:
    return json.dumps({"_id": doc_id, "text": f"text of {doc_id}"}) + "\n"
