"""The review sheet: what is written is read again, and what cannot be read is named."""

import csv
import lzma
from pathlib import Path

import pytest

from coder_ir.datasets.diagnostics.sheet import COLUMNS, read_sheet, write_sheet
from coder_ir.errors import InvalidFile, NotFound
from tests.datasets.diagnostics.texts import pair


def edited(path: Path, line: int, **cells: str) -> Path:
    """The sheet with cells of a row set to something else; line 2 is the first pair."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[line - 2].update(cells)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    write_sheet([pair(1), pair(2)], tmp_path / "sheet.csv")
    return tmp_path / "sheet.csv"


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.csv.xz"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str):
    pairs = [pair(1, a1='He said "no, α".', note="ok; fine"), pair(2, decision="", neutral2="")]
    write_sheet(pairs, tmp_path / "new" / name)
    assert read_sheet(tmp_path / "new" / name) == pairs


def test_a_packed_sheet_holds_the_same_table(tmp_path: Path, sheet: Path):
    write_sheet([pair(1), pair(2)], tmp_path / "sheet.csv.xz")
    assert lzma.decompress((tmp_path / "sheet.csv.xz").read_bytes()) == sheet.read_bytes()


def test_a_spreadsheets_mark_line_ends_and_blank_rows_are_no_obstacle(sheet: Path):
    text = sheet.read_text(encoding="utf-8").replace("\n", "\r\n") + "," * (len(COLUMNS) - 1)
    sheet.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n")
    assert read_sheet(sheet) == [pair(1), pair(2)]


def test_a_line_break_inside_a_cell_is_a_space(sheet: Path):
    edited(sheet, 2, a1="One line.\nAnother  line.")
    assert read_sheet(sheet)[0].a1 == "One line. Another line."


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"decision": "maybe"}, r"sheet\.csv:3: a decision is keep, drop or nothing, got 'maybe'"),
        ({"kind": "irony"}, r"sheet\.csv:3: a kind is one of antonym, .* got 'irony'"),
        ({"b2": "", "query_a": ""}, r"sheet\.csv:3 has nothing in query_a, b2"),
        ({"pair_id": "antonym-001"}, "has the pair 'antonym-001' twice"),
    ],
    ids=["decision", "kind", "empty cells", "same id"],
)
def test_a_row_that_cannot_be_is_named(sheet: Path, cells: dict[str, str], says: str):
    with pytest.raises(InvalidFile, match=says):
        read_sheet(edited(sheet, 3, **cells))


def test_a_dropped_row_may_have_empty_cells(sheet: Path):
    assert read_sheet(edited(sheet, 3, decision="drop", a2=""))[1].a2 == ""


def test_a_row_with_another_number_of_cells_is_named(sheet: Path):
    with sheet.open("a", encoding="utf-8") as file:
        file.write("one,two\n")
    with pytest.raises(InvalidFile, match=rf"sheet\.csv:4 has 2 cells, .* has {len(COLUMNS)}"):
        read_sheet(sheet)


def test_a_missing_column_is_named(sheet: Path):
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("neutral2", "other"), "utf-8")
    with pytest.raises(InvalidFile, match=r"sheet\.csv:1 lacks the columns neutral2"):
        read_sheet(sheet)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.xz"])
def test_a_file_that_is_no_sheet_is_named(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidFile, match=f"{name} is not a CSV sheet in UTF-8"):
        read_sheet(tmp_path / name)


def test_a_quotation_that_never_ends_is_named(sheet: Path):
    with sheet.open("a", encoding="utf-8") as file:
        file.write('"antonym-003,')
    with pytest.raises(InvalidFile, match=r"sheet\.csv:4 is not a table row"):
        read_sheet(sheet)


def test_a_sheet_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(NotFound, match=r"no review sheet .*none\.csv"):
        read_sheet(tmp_path / "none.csv")
