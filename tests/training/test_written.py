"""The contrast items and marked queries that the package's model is made from."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder_ir.training.marked_queries import MarkedQuery, read_marked_part
from coder_ir.training.sentences import HELD_OUT, split_by_group, texts_in
from coder_ir.training.sources import item_group, read_contrast_items, read_jsonl, read_written

WRITTEN = Path(__file__).parents[2] / "recipes" / "written"
NEXT = WRITTEN.parent / "next" / "written"
QUERIES = WRITTEN.parent / "queries"
PARTS = ("train", "development", "heldout")
PASSAGES = ("a", "b", "neutral")
Items = list[dict[str, Any]]
Queries = dict[str, list[MarkedQuery]]


@pytest.fixture(scope="module")
def train() -> Items:
    return _items("contrast.train*.jsonl*")


@pytest.fixture(scope="module")
def held_out() -> Items:
    return _items("contrast.development*.jsonl*")


@pytest.fixture(scope="module")
def queries() -> Queries:
    return {part: read_marked_part(QUERIES, part) for part in PARTS}


def _items(files: str) -> Items:
    return [row for folder in (WRITTEN, NEXT) for row in read_contrast_items(folder, files)]


def texts(items: Items) -> set[str]:
    return {item[part] for item in items for part in PASSAGES if item.get(part)}


def test_no_group_is_both_trained_on_and_held_out(train: Items, held_out: Items):
    assert {item_group(item) for item in train} & {item_group(item) for item in held_out} == set()


def test_no_passage_or_query_is_both_trained_on_and_held_out(train: Items, held_out: Items):
    assert texts(train) & texts(held_out) == set()
    one, two = (
        {item[q] for item in part for q in ("qa", "qb") if item.get(q)}
        for part in (train, held_out)
    )
    assert one & two == set()


def test_no_id_comes_twice(train: Items, held_out: Items):
    counts = Counter(item["id"] for item in (*train, *held_out))
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_item_has_two_passages_that_differ_and_a_query(train: Items, held_out: Items):
    for item in (*train, *held_out):
        assert all(item[part].strip() for part in ("a", "b", "qa")), item["id"]
        assert item["a"] != item["b"], item["id"]


def test_at_least_fifteen_hundred_items_were_written_beyond_the_first(
    train: Items, held_out: Items
):
    grown = re.compile(r"(?:g[345]|edit-|turn-|flip-|fx-).*|conda-\d+-\d-\d")
    first = [i for i in (*train, *held_out) if "of" not in i and not grown.fullmatch(i["id"])]
    assert len(first) <= 1561
    assert len(train) + len(held_out) - len(first) >= 1500


def test_further_questions_are_about_passages_of_another_item(train: Items, held_out: Items):
    for part in (train, held_out):
        named = {item["id"]: item for item in part if "of" not in item}
        for item in part:
            if "of" in item:
                assert (item["a"], item["b"]) == tuple(named[item["of"]][p] for p in ("a", "b"))


def test_about_a_twelfth_is_held_out(train: Items, held_out: Items):
    held, kept = ({item_group(item) for item in part} for part in (held_out, train))
    assert 0.06 < len(held) / (len(held) + len(kept)) < 0.10


def test_the_data_command_holds_out_the_items_of_the_development_file(held_out: Items):
    """`coder-ir data sentences` reads both files and splits them anew, by the same rule."""
    read = (*read_written(WRITTEN), *read_written(NEXT))
    _, development = split_by_group(read, share=HELD_OUT)
    assert {t.satisfying for t in development} <= texts(held_out)
    assert {t.group for t in development} == {item_group(item) for item in held_out}


def test_every_item_becomes_a_triplet_a_query(train: Items, held_out: Items):
    asked = sum(bool(item.get(q)) for item in (*train, *held_out) for q in ("qa", "qb"))
    assert len([*read_written(WRITTEN), *read_written(NEXT)]) == asked


def test_no_topic_is_both_trained_on_and_used_for_settings(queries: Queries):
    trained, development = ({q.topic for q in queries[part]} for part in PARTS[:2])
    assert trained & development == set()


def test_no_query_stands_in_two_files_or_twice_in_one(queries: Queries):
    counts = Counter(query.text for part in PARTS for query in queries[part])
    assert [text for text, count in counts.items() if count > 1] == []


def test_at_least_eight_thousand_queries_of_either_kind_are_trained_on(queries: Queries):
    counts = Counter(query.constrained for query in queries["train"])
    assert set(counts) == {True, False}
    assert min(counts.values()) >= 8000


@pytest.mark.parametrize("part", PARTS)
def test_every_query_stands_under_a_topic_and_a_domain(queries: Queries, part: str):
    assert [query.text for query in queries[part] if not (query.topic and query.domain)] == []


@pytest.mark.parametrize("part", PARTS)
def test_queries_are_of_at_least_fifteen_domains(queries: Queries, part: str):
    assert len({query.domain for query in queries[part]}) >= 15


@pytest.mark.parametrize("part", PARTS)
def test_a_sentence_names_what_it_rules_out_or_requires_if_it_asks_under_a_constraint(
    queries: Queries, part: str
):
    for sentence in (sentence for query in queries[part] for sentence in query.sentences):
        named = {"excluded", "required", "implied"} & {s.role for s in sentence.segments}
        assert bool(named) == (sentence.kind == "constraint"), sentence.text


@pytest.mark.parametrize("part", PARTS)
def test_a_sentence_of_another_kind_has_no_marks(queries: Queries, part: str):
    for sentence in (sentence for query in queries[part] for sentence in query.sentences):
        if sentence.kind != "constraint":
            assert {segment.role for segment in sentence.segments} == {None}, sentence.text


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every eight words in a row."""
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[n:] for n in range(8)), strict=False)


@pytest.fixture(scope="module")
def written_runs(train: Items, held_out: Items) -> dict[tuple[str, ...], str]:
    """Eight words in a row of a passage, with the id of its item."""
    return {
        run: item["id"]
        for item in (*train, *held_out)
        for part in PASSAGES
        for run in runs(item.get(part) or "")
    }


def shared_ids(found: dict[tuple[str, ...], str], *files: Path) -> list[str]:
    return sorted({found[run] for text in texts_in(files) for run in runs(text) if run in found})


def test_no_passage_shares_eight_words_in_a_row_with_nevir(
    shared: Path, written_runs: dict[tuple[str, ...], str]
):
    assert shared_ids(written_runs, shared / "data" / "nevir" / "test_open.jsonl") == []


def test_no_passage_shares_eight_words_in_a_row_with_negconstraint(
    shared: Path, written_runs: dict[tuple[str, ...], str]
):
    folder = shared / "data" / "negconstraint"
    files = (folder / "corpus.jsonl", folder / "queries.jsonl")
    assert shared_ids(written_runs, *files) == []


def test_a_shared_run_of_eight_words_would_be_seen(tmp_path: Path):
    (tmp_path / "b.jsonl").write_text('{"text": "So: one two three four Five, six seven eight!"}\n')
    found = {run: "x" for run in runs("one two three four five six seven eight nine")}
    assert shared_ids(found, tmp_path / "b.jsonl") == ["x"]
    assert shared_ids({run: "x" for run in runs("one two three")}, tmp_path / "b.jsonl") == []


def test_no_passage_that_was_added_shares_eight_words_in_a_row_with_a_benchmark(
    shared: Path, written_runs: dict[tuple[str, ...], str]
):
    files = [
        shared / "data" / name for name in ("nevir/test_open.jsonl", "negconstraint/corpus.jsonl")
    ]
    found = shared_ids(written_runs, *files)
    assert [
        name
        for name in found
        if name.startswith(("g3", "g4", "g5", "fx-", "turn-", "flip-", "edit-"))
    ] == []


def test_items_that_share_words_with_negconstraint_are_left_out_of_the_triplets(shared: Path):
    path = Path(__file__).parents[2] / "recipes" / "triplets" / "sentences.jsonl"
    if not path.is_file():
        pytest.skip("the triplets were not built on this machine: make triplets")
    away = {
        run for text in texts_in([shared / "data/negconstraint/corpus.jsonl"]) for run in runs(text)
    }
    leaked = [
        row["group"]
        for row in read_jsonl(path)
        if any(run in away for part in ("satisfying", "violating") for run in runs(row[part]))
    ]
    assert leaked == []
