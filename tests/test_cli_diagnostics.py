"""`coder-ir data diagnostics`: sheets out of a corpus, BEIR folders out of reviewed sheets."""

from pathlib import Path

import pytest

from coder_ir.datasets.beir import load_beir
from coder_ir.datasets.diagnostics.sheet import read_sheet, write_sheet
from tests.conftest import Command
from tests.datasets.diagnostics.test_build import field_study
from tests.datasets.diagnostics.texts import corpus, pair


@pytest.fixture
def source(tmp_path: Path) -> Path:
    studies = [("bracken", "moor", "increased"), ("gorse", "quarry", "reduced")]
    others = [("bracken", "quarry", "left"), ("gorse", "moor", "left"), ("nettle", "dune", "left")]
    return corpus(tmp_path / "source", *(field_study(*names) for names in studies + others))


@pytest.fixture
def reviewed(tmp_path: Path) -> Path:
    write_sheet([pair(1), pair(2, decision="drop"), pair(3)], tmp_path / "reviewed.csv")
    return tmp_path / "reviewed.csv"


def test_a_source_folder_becomes_a_sheet_to_review(cli: Command, tmp_path: Path, source: Path):
    sheet = tmp_path / "new" / "sheet.csv"
    done = cli("data", "diagnostics", "--kind", "antonym", "--source", source, "-o", sheet)
    assert (done.code, done.out) == (0, "")
    assert f"{sheet}: 2 antonym pairs to review; set decision to keep or drop" in done.err
    assert [found.decision for found in read_sheet(sheet)] == ["", ""]


def test_pairs_and_seed_are_heeded(cli: Command, tmp_path: Path, source: Path):
    asked = ("data", "diagnostics", "--kind", "antonym", "--source", source, "--pairs", 1)
    sheets = [tmp_path / f"{seed}.csv" for seed in range(6)]
    for seed, sheet in enumerate(sheets):
        assert cli(*asked, "--seed", seed, "-o", sheet).code == 0
    assert {len(read_sheet(sheet)) for sheet in sheets} == {1}
    assert len({read_sheet(sheet)[0].source for sheet in sheets}) == 2


def test_a_reviewed_sheet_becomes_a_beir_folder(cli: Command, tmp_path: Path, reviewed: Path):
    folder = tmp_path / "set"
    done = cli("data", "diagnostics", "--kind", "antonym", "--reviewed", reviewed, "-o", folder)
    assert (done.code, done.out) == (0, "")
    assert f"{folder}: 12 documents, 4 judged queries" in done.err
    loaded = load_beir(folder)
    assert loaded.qrels.grades["antonym-003-qb"]["antonym-003-a1"] == -1


@pytest.mark.parametrize(
    ("extra", "code", "says"),
    [
        (("--source", "x", "--reviewed", "y"), 2, "--source to build a sheet or --reviewed"),
        (("--pairs", 3), 2, "--pairs and --seed belong to --source"),
        (("--reviewed", "y", "--seed", 3), 2, "--pairs and --seed belong to --source"),
        (("--reviewed", "none.csv"), 1, "no review sheet none.csv"),
        (("--source", "none"), 2, "a review sheet is named .csv or .csv.xz, got out"),
    ],
    ids=["both", "pairs alone", "seed with a sheet", "no sheet", "name of the sheet"],
)
def test_what_cannot_work_says_why(
    cli: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: tuple,
    code: int,
    says: str,
):
    monkeypatch.chdir(tmp_path)
    done = cli("data", "diagnostics", "--kind", "antonym", "-o", "out", *extra)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert not (tmp_path / "out").exists()


def test_an_unknown_kind_is_misuse(cli: Command, tmp_path: Path, reviewed: Path):
    done = cli("data", "diagnostics", "--kind", "irony", "--reviewed", reviewed, "-o", tmp_path)
    assert done.code == 2
    assert "no kind 'irony'; there are antonym, negation, exclusion" in done.err


def test_a_set_that_does_not_ship_says_how_to_make_one(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coder_ir.datasets.diagnostics.load.FOLDER", "datasets/none")
    done = cli("data", "diagnostics", "--kind", "exclusion", "-o", tmp_path / "set")
    assert (done.code, done.out) == (1, "")
    assert "this version ships no reviewed exclusion set" in done.err


def test_a_sheet_that_is_there_is_not_written_over(cli: Command, tmp_path: Path, reviewed: Path):
    before = reviewed.read_bytes()
    done = cli("data", "diagnostics", "--kind", "antonym", "--source", tmp_path, "-o", reviewed)
    assert done.code == 2
    assert "is there already" in done.err
    assert reviewed.read_bytes() == before


def test_a_set_is_not_written_into_a_file_name(cli: Command, tmp_path: Path):
    done = cli("data", "diagnostics", "--kind", "antonym", "-o", tmp_path / "sheet.csv")
    assert done.code == 2
    assert "written into a folder" in done.err
