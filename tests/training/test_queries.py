"""Labelled queries: written ones, those of contrast items, and statements that look alike."""

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.queries import LabelledQuery, read_queries, statements
from coder_ir.types import Triplet


def lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(text: str, *, excluded: str = "", constrained: bool = True) -> dict[str, Any]:
    return {"q": text, "has_constraint": constrained, "cue": "", "excluded": excluded}


def item(query: str, kind: str = "exclusion", source: str = "ours") -> dict[str, Any]:
    return {"id": "x-1", "source": source, "kind": kind, "a": "A.", "b": "B.", "qa": query}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two labelled queries, no contrast item."""
    rows = [row("tea, no milk", excluded="milk"), row("green tea", constrained=False)]
    (tmp_path / "queries.jsonl").write_text(lines(rows))
    (tmp_path / "contrast.train.jsonl").write_text("")
    return tmp_path


def test_a_written_query_comes_with_its_labels(folder: Path):
    assert read_queries(folder) == [
        LabelledQuery("tea, no milk", constrained=True, excludes=True),
        LabelledQuery("green tea", constrained=False, excludes=False),
    ]


def test_a_constraint_may_rule_out_nothing_by_name(folder: Path):
    (folder / "queries.jsonl").write_text(lines([row("what else did he write")]))
    (found,) = read_queries(folder)
    assert (found.constrained, found.excludes) == (True, False)


def test_every_query_file_is_read_packed_or_not(folder: Path):
    with lzma.open(folder / "queries.more.jsonl.xz", "wt") as file:
        file.write(lines([row("cake without nuts", excluded="nuts")]))
    assert [query.text for query in read_queries(folder)] == [
        "tea, no milk",
        "green tea",
        "cake without nuts",
    ]


def test_an_exclusion_query_of_a_contrast_item_is_a_constrained_one(folder: Path):
    (folder / "contrast.train.jsonl").write_text(lines([item("pies without meat")]))
    assert read_queries(folder)[2:] == [
        LabelledQuery("pies without meat", constrained=True, excludes=True)
    ]


@pytest.mark.parametrize(
    "left_out",
    [
        item("pies with meat"),
        item("pies without meat", kind="antonym"),
        item("pies without meat", kind="negation"),
        item("pies without meat", kind="preference"),
        item("pies without meat", source="Wikipedia paragraph"),
    ],
    ids=["no cue", "antonym", "negation", "preference", "not ours"],
)
def test_a_contrast_item_of_another_kind_is_left_out(folder: Path, left_out: dict[str, Any]):
    (folder / "contrast.train.jsonl").write_text(lines([left_out]))
    assert len(read_queries(folder)) == 2


def test_a_query_that_comes_twice_is_taken_once(folder: Path):
    (folder / "contrast.train.jsonl").write_text(
        lines([item("tea, no milk"), item("tea, no milk")])
    )
    assert len(read_queries(folder)) == 2


@pytest.mark.parametrize("name", ["contrast.jsonl", "contrast.development.jsonl"])
def test_items_that_are_not_trained_on_are_not_read(folder: Path, name: str):
    (folder / name).write_text(lines([item("pies without meat")]))
    assert len(read_queries(folder)) == 2


def test_a_folder_without_training_items_is_named(folder: Path):
    (folder / "contrast.train.jsonl").rename(folder / "contrast.jsonl")
    with pytest.raises(NotFound, match=r"no contrast\.train\*\.jsonl\* in "):
        read_queries(folder)


def test_a_folder_without_queries_says_what_was_expected(tmp_path: Path):
    with pytest.raises(NotFound, match=r"no labelled queries in .*; expected queries\*\.jsonl"):
        read_queries(tmp_path)


def test_a_broken_line_is_named(folder: Path):
    (folder / "queries.jsonl").write_text(lines([row("tea")]) + "{\n")
    with pytest.raises(InvalidFile, match=r"queries\.jsonl:2 is not JSON"):
        read_queries(folder)


def triplet(source: str, query: str, satisfying: str) -> Triplet:
    return Triplet(query, satisfying, "Something else altogether.", "g", source, "none")


CLAIM, SENTENCE = "The bridge was never finished.", "No dog barked in the whole street."


@pytest.mark.parametrize(
    ("source", "text"),
    [("FeverSymmetric", CLAIM), ("CANNOT", SENTENCE), ("AFIN", SENTENCE), ("NegNLI", SENTENCE)],
)
def test_a_claim_or_sentence_of_a_public_source_states_no_constraint(source: str, text: str):
    assert statements([triplet(source, CLAIM, SENTENCE)], seed=1) == [
        LabelledQuery(text, constrained=False, excludes=False)
    ]


@pytest.mark.parametrize("source", ["CondaQA dev", "written: ours", "ScoNe", "WordNet"])
def test_other_sources_give_no_statements(source: str):
    assert statements([triplet(source, CLAIM, SENTENCE)], seed=1) == []


@pytest.mark.parametrize(("length", "kept"), [(20, 0), (21, 1), (159, 1), (160, 0)])
def test_statements_too_short_or_too_long_are_left_out(length: int, kept: int):
    assert len(statements([triplet("CANNOT", CLAIM, "x" * length)], seed=1)) == kept


def many(source: str) -> list[Triplet]:
    return [triplet(source, CLAIM, f"{source} sentence number {n:04}.") for n in range(700)]


def test_a_source_gives_six_hundred_statements_at_most_each_once():
    found = statements([*many("CANNOT"), *many("CANNOT"), *many("AFIN")], seed=1)
    assert len(found) == len(set(found)) == 1200
    assert sum(query.text.startswith("AFIN") for query in found) == 600


def test_the_sample_follows_the_seed_alone():
    one, again, other = (
        statements(triplets, seed=seed)
        for triplets, seed in ((many("CANNOT"), 1), (many("CANNOT")[::-1], 1), (many("CANNOT"), 2))
    )
    assert one == again
    assert one != other
