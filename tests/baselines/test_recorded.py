import json
import lzma
from pathlib import Path

import pytest

from coder_ir.baselines.decompose import Intents, ParserDecomposer
from coder_ir.baselines.recorded import Recorded
from coder_ir.errors import InvalidFile, NotFound

ROW = {
    "query": "Which king was never crowned?",
    "positive": ["king never crowned"],
    "negative": ["coronation of a king"],
    "passage": "He died before his coronation.",
    "formula": "∃x (King(x) ∧ ¬Crowned(x))",
}


def write(path: Path, *rows: object) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(lzma.compress(text) if path.suffix == ".xz" else text)
    return path


@pytest.mark.parametrize("name", ["said.jsonl", "said.jsonl.xz"])
def test_a_recorded_query_gets_its_recorded_parts(tmp_path, name):
    kept = Recorded(write(tmp_path / name, {"note": "by hand"}, ROW))
    assert len(kept) == 1
    assert kept.name == "recorded: said"
    assert kept.intents(ROW["query"]) == Intents(("king never crowned",), ("coronation of a king",))
    assert kept.passages(ROW["query"], 4) == [ROW["passage"]]
    assert kept.formula(ROW["query"]) == ROW["formula"]


def test_space_and_case_of_a_query_do_not_matter(tmp_path):
    kept = Recorded(write(tmp_path / "a.jsonl", ROW))
    assert kept.missing(["  which KING was  never crowned? ", "other"]) == ["other"]


def test_a_query_that_is_not_there_and_a_document_are_read_by_the_parser(tmp_path):
    kept, parsed = Recorded(write(tmp_path / "a.jsonl", ROW)), ParserDecomposer()
    other = "cake without nuts"
    assert kept.intents(other) == parsed.intents(other)
    assert kept.passages(other, 1) == parsed.passages(other, 1)
    assert kept.formulas([ROW["query"]])[0] == parsed.formulas([ROW["query"]])[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positive": []}, "positive must name what the query wants"),
        ({"positive": "king"}, "positive must be a list of texts, got 'king'"),
        ({"negative": [1]}, "negative must be a list"),
        ({"passage": ""}, "passage must be a text"),
        ({"formula": None}, "formula must be a text, got None"),
    ],
    ids=["nothing wanted", "a text", "a number", "no passage", "no formula"],
)
def test_a_row_that_cannot_be_used_is_named_with_its_line(tmp_path, change, message):
    path = write(tmp_path / "a.jsonl", ROW, ROW | {"query": "other"} | change)
    with pytest.raises(InvalidFile, match=rf"a\.jsonl:2: {message}"):
        Recorded(path)


def test_a_damaged_file_is_said(tmp_path):
    path = write(tmp_path / "a.jsonl.xz", ROW)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidFile, match=r"a\.jsonl\.xz is damaged"):
        Recorded(path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(NotFound, match=r"no file .*nowhere\.jsonl"):
        Recorded(tmp_path / "nowhere.jsonl")
