"""The commands: what they print, where, and how they exit."""

import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from coder_ir import __version__
from coder_ir.cli import completed
from coder_ir.cli.app import app
from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.registry import built_in_folder
from coder_ir.retriever import Retriever
from coder_ir.training.sentences import load_triplets
from coder_ir.types import Document
from tests.conftest import Command, Done
from tests.fake_verifier import FakeVerifier

HIT_FIELDS = ("rank", "doc_id", "score", "topical", "compatibility", "risk", "text")
ROWS = [
    {"_id": "garden", "text": "Back rooms look onto a silent garden.", "metadata": {"stars": 4}},
    {"_id": "club", "text": "The club downstairs plays until four.", "metadata": {"stars": 2}},
    {"_id": "pool", "text": "There is a heated pool for swimming.", "metadata": {"stars": 4}},
]
QUERY = "a quiet hotel, nothing near nightlife"


def real(*args: object, cwd: Path, stdin: str | None = None, **env: str) -> Done:
    """Runs `python -m coder_ir` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "coder_ir", *map(str, args)],
        cwd=cwd,
        input=stdin,
        env={**os.environ, "COLUMNS": "120", **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Demo:
    """A demo that kept its index."""

    folder: Path
    done: Done


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Tests only read from it."""
    folder = tmp_path_factory.mktemp("demo")
    return Demo(folder / "kept", real("demo", "--keep", "kept", cwd=folder))


@pytest.fixture(scope="module")
def sample(demo: Demo) -> Path:
    """The index of the sample corpus."""
    assert demo.done.code == 0, demo.done.err
    return demo.folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "corpus.jsonl", ROWS)


def stored(index: Path) -> list[str]:
    """The ids in an index, found by asking for everything."""
    with Retriever.open(index, read_only=True) as retriever:
        return sorted(hit.doc_id for hit in retriever.search("anything", k=1000, policy="topical"))


def commands() -> dict[str, bool]:
    """Every command line that has a --help, and whether it is a group."""
    found = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        inner = getattr(command, "commands", {})
        found[" ".join(path)] = bool(inner)
        for name, each in inner.items():
            walk(each, (*path, name))

    walk(typer.main.get_command(app), ())
    return found


class TestHelp:
    def test_it_answers_fast(self, tmp_path: Path):
        # 0.5 s is promised on a quiet machine. CPU time hardly depends on what else runs; the
        # rest of the margin is for a busy machine, where it is up to twice as long.
        seconds = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert real("--help", cwd=tmp_path).code == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert min(seconds) < 1.0

    @pytest.mark.parametrize("command", [name for name, group in commands().items() if not group])
    def test_every_command_shows_an_example(self, command: str):
        shown = CliRunner().invoke(app, [*command.split(), "--help"])
        assert shown.exit_code == 0
        assert f"Example: coder-ir {command.removesuffix(' run')}" in " ".join(shown.output.split())

    @pytest.mark.parametrize(
        "command", [name for name, group in commands().items() if group], ids=lambda c: c or "root"
    )
    def test_every_group_shows_what_to_type(self, command: str):
        shown = CliRunner().invoke(app, [*command.split(), "--help"])
        assert shown.exit_code == 0
        usage, _, rest = shown.output.strip().partition("\n")
        assert usage.startswith("Usage:")
        assert re.search(r": coder-ir \w+", " ".join(rest.split()))

    def test_the_words_other_tools_rely_on_are_there(self):
        assert {"demo", "index", "search", "run", "model info", "data wordnet"} <= set(commands())
        assert {"data sentences", "train run", "train export"} <= set(commands())

    def test_the_version_is_the_packages(self, tmp_path: Path):
        assert real("--version", cwd=tmp_path) == Done(0, f"coder-ir {__version__}\n", "")

    @pytest.mark.parametrize("args", [("nonsense",), ("search",), ("demo", "--nonsense")])
    def test_misuse_exits_2_with_nothing_on_stdout(self, cli: Command, args: Sequence[str]):
        done = cli(*args)
        assert (done.code, done.out) == (2, "")
        assert done.err


class TestDemo:
    def test_it_shows_both_rankings_of_every_query(self, demo: Demo):
        assert demo.done.code == 0
        for query in load_sample()[1]:
            assert f"“{query.text}”" in demo.done.out
        heads = [line for line in demo.done.out.splitlines() if "topical only" in line]
        assert len(heads) == len(load_sample()[1]) + 1  # and the summary
        assert all("CoDeR" in line for line in heads)

    def test_it_marks_passages_that_break_the_constraint(self, demo: Demo):
        assert re.search(r"^\s*✗ ", demo.done.out, re.MULTILINE)

    def test_it_ends_with_what_to_type_next(self, demo: Demo):
        _, _, ending = demo.done.out.partition("What to type next:\n")
        lines = ending.splitlines()
        assert len(lines) >= 2
        assert all(line.startswith("  ") and " kept" in lines[0] for line in lines)

    def test_the_search_it_proposes_works(self, demo: Demo, cli: Command, monkeypatch: Any):
        monkeypatch.chdir(demo.folder.parent)
        line = next(line for line in demo.done.out.splitlines() if " search kept " in line)
        done = cli(*shlex.split(line)[shlex.split(line).index("search") :])
        assert done.code == 0
        assert "score" in done.out

    def test_progress_goes_to_stderr(self, demo: Demo):
        assert "encoding the sample" in demo.done.err
        assert "encoding the sample" not in demo.done.out

    def test_without_keep_it_leaves_nothing_behind(
        self, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        done = cli("demo")
        assert done.code == 0
        assert "demo --keep demo-index" in done.out
        assert list(tmp_path.iterdir()) == []


class TestIndex:
    def test_jsonl_is_indexed_in_a_process_of_its_own(self, corpus: Path, tmp_path: Path):
        done = real("index", "new", corpus, cwd=tmp_path)
        assert (done.code, done.out) == (0, "")
        assert "new: 3 documents written, 0 unchanged, 3 in all" in done.err
        found = real("search", "new", QUERY, "--json", "--policy", "topical", cwd=tmp_path)
        assert sorted(row["doc_id"] for row in found.rows) == ["club", "garden", "pool"]

    @pytest.mark.parametrize(("name", "mark"), [("docs.csv", ","), ("docs.tsv", "\t")])
    def test_a_table_is_indexed_by_its_columns(
        self, cli: Command, tmp_path: Path, name: str, mark: str
    ):
        lines = [("key", "body", "stars"), ("a", "A silent garden", "4"), ("b", "A club", "2")]
        (tmp_path / name).write_text("\n".join(mark.join(line) for line in lines) + "\n")
        done = cli("index", tmp_path / "i", tmp_path / name, "--id", "key", "--text", "body")
        assert done.code == 0
        [hit] = cli("search", tmp_path / "i", "garden", "--where", "stars>3", "--json").rows
        assert (hit["doc_id"], hit["text"]) == ("a", "A silent garden")

    def test_a_folder_of_texts_is_indexed_by_path(self, cli: Command, tmp_path: Path):
        (tmp_path / "docs" / "deep").mkdir(parents=True)
        (tmp_path / "docs" / "one.txt").write_text("A silent garden.")
        (tmp_path / "docs" / "deep" / "two.md").write_text("# Club")
        (tmp_path / "docs" / "three.png").write_bytes(b"\x89PNG")
        assert cli("index", tmp_path / "i", tmp_path / "docs").code == 0
        assert stored(tmp_path / "i") == ["deep/two.md", "one.txt"]

    def test_standard_input_is_indexed(self, cli: Command, tmp_path: Path):
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        assert cli("index", tmp_path / "i", "-", stdin=lines.encode()).code == 0
        assert stored(tmp_path / "i") == ["club", "garden", "pool"]

    def test_a_second_time_says_unchanged(self, cli: Command, corpus: Path, tmp_path: Path):
        cli("index", tmp_path / "i", corpus)
        again = cli("index", tmp_path / "i", corpus)
        assert again.code == 0
        assert "0 documents written, 3 unchanged, 3 in all" in again.err

    def test_only_what_changed_is_written(self, cli: Command, corpus: Path, tmp_path: Path):
        cli("index", tmp_path / "i", corpus)
        jsonl(corpus, [*ROWS[:2], {**ROWS[2], "text": "The pool is closed."}])
        assert "1 documents written, 2 unchanged" in cli("index", tmp_path / "i", corpus).err

    def test_a_broken_line_is_named_and_what_came_before_is_kept(
        self, cli: Command, corpus: Path, tmp_path: Path
    ):
        corpus.write_text(corpus.read_text() + "{broken\n" + json.dumps({"_id": "z", "text": "z"}))
        done = cli("index", tmp_path / "i", corpus)
        assert (done.code, done.out) == (1, "")
        assert f"{corpus}:4 is not JSON" in done.err.replace("\n", "")
        assert stored(tmp_path / "i") == ["club", "garden", "pool"]

    def test_a_mended_file_completes_the_index(self, cli: Command, corpus: Path, tmp_path: Path):
        corpus.write_text(corpus.read_text() + "{broken\n")
        cli("index", tmp_path / "i", corpus)
        jsonl(corpus, [*ROWS, {"_id": "z", "text": "z"}])
        assert "1 documents written, 3 unchanged" in cli("index", tmp_path / "i", corpus).err

    def test_an_id_that_comes_twice_exits_1(self, cli: Command, tmp_path: Path):
        twice = jsonl(tmp_path / "twice.jsonl", [ROWS[0], ROWS[0]])
        done = cli("index", tmp_path / "i", twice)
        assert done.code == 1
        assert "'garden' comes twice" in done.err

    def test_a_file_that_is_not_utf8_exits_1(self, cli: Command, tmp_path: Path):
        (tmp_path / "latin.jsonl").write_bytes(b'{"_id": "a", "text": "caf\xe9"}\n')
        done = cli("index", tmp_path / "i", tmp_path / "latin.jsonl")
        assert done.code == 1
        assert "latin.jsonl:1 is not UTF-8" in done.err

    def test_a_missing_file_exits_1_before_an_index_is_made(self, cli: Command, tmp_path: Path):
        done = cli("index", tmp_path / "i", tmp_path / "gone.jsonl")
        assert done.code == 1
        assert "no file or folder" in done.err
        assert not (tmp_path / "i").exists()

    @pytest.mark.parametrize("options", [("--threads", -1), ("--max-length", 3)])
    def test_a_setting_that_cannot_run_exits_2(
        self, cli: Command, corpus: Path, tmp_path: Path, options: Sequence[object]
    ):
        assert cli("index", tmp_path / "i", corpus, *options).code == 2

    def test_a_folder_of_other_things_is_left_alone(
        self, cli: Command, corpus: Path, tmp_path: Path
    ):
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "letter.doc").write_text("Dear")
        done = cli("index", tmp_path / "home", corpus)
        assert done.code == 1
        assert "is not an index and not empty" in done.err
        assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter.doc"]

    def test_a_stop_by_the_user_says_how_to_go_on(
        self, cli: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Retriever, "add", interrupted)
        done = cli("index", tmp_path / "i", corpus)
        assert done.code == 1
        assert "stopped: 0 documents are in" in done.err
        assert "run it again to go on" in done.err

    def test_a_lowered_token_limit_leaves_the_index_searchable(
        self, cli: Command, corpus: Path, tmp_path: Path
    ):
        assert cli("index", tmp_path / "i", corpus, "--max-length", 64).code == 0
        done = cli("search", tmp_path / "i", QUERY, "--json", "--policy", "topical")
        assert done.code == 0, done.err
        assert len(done.rows) == 3


class TestLongText:
    TEXT = "The walled garden has roses and a bench. " * 120 + "Submarine engines are mended here."
    ASKED = "repair of submarine engines"

    @pytest.fixture
    def long(self, tmp_path: Path) -> Path:
        return jsonl(tmp_path / "long.jsonl", [{"_id": "long", "text": self.TEXT}])

    def test_it_is_found_by_the_passage_that_answers(
        self, cli: Command, long: Path, tmp_path: Path
    ):
        cli("index", tmp_path / "i", long)
        [hit] = cli("search", tmp_path / "i", self.ASKED, "--policy", "topical", "--json").rows
        assert hit["passage"]["number"] > 0
        assert hit["passage"]["end"] == len(self.TEXT)
        assert hit["text"] == self.TEXT

    def test_no_split_keeps_it_one_passage(self, cli: Command, long: Path, tmp_path: Path):
        cli("index", tmp_path / "i", long, "--no-split")
        [hit] = cli("search", tmp_path / "i", self.ASKED, "--policy", "topical", "--json").rows
        assert hit["passage"] == {"number": 0, "start": 0, "end": len(self.TEXT)}


class TestSearch:
    def test_json_is_one_hit_a_line_and_nothing_else(self, sample: Path, tmp_path: Path):
        done = real("search", sample, QUERY, "-k", 5, "--json", cwd=tmp_path)
        assert done.code == 0
        assert [row["rank"] for row in done.rows] == [1, 2, 3, 4, 5]
        for row in done.rows:
            assert list(row)[: len(HIT_FIELDS)] == list(HIT_FIELDS)
            assert isinstance(row["doc_id"], str)
            assert all(isinstance(row[name], float) for name in ("topical", "compatibility"))

    def test_hits_carry_the_documents_own_text(self, cli: Command, sample: Path):
        texts = {document.doc_id: document.text for document in load_sample()[0]}
        for row in cli("search", sample, QUERY, "--json").rows:
            assert row["text"] == texts[row["doc_id"]]

    @pytest.mark.parametrize("policy", ["auto", "topical", "compatibility", "seq", "union"])
    def test_each_policy_answers_best_first(self, cli: Command, sample: Path, policy: str):
        rows = cli("search", sample, QUERY, "--policy", policy, "--json").rows
        scores = [row["score"] for row in rows]
        assert len({row["doc_id"] for row in rows}) == len(rows)
        assert len(rows) == 10 or policy == "seq"  # which drops what is below its threshold
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("space", ["topical", "compatibility"])
    def test_one_space_alone_is_scored_by_it(self, cli: Command, sample: Path, space: str):
        for row in cli("search", sample, QUERY, "--policy", space, "--json").rows:
            assert row["score"] == row[space]

    def test_settings_reach_the_policy(self, cli: Command, sample: Path):
        options = ("--policy", "seq", "--alpha", 1, "--tau", -1)
        rows = cli("search", sample, QUERY, *options, "--json").rows
        assert all(row["score"] == pytest.approx(row["topical"]) for row in rows)

    def test_the_pool_bounds_what_can_be_found(self, cli: Command, sample: Path):
        options = ("--policy", "topical", "--pool", 2, "-k", 1, "--json")
        assert len(cli("search", sample, QUERY, *options).rows) == 1

    def test_k_past_the_corpus_returns_all(self, cli: Command, sample: Path):
        rows = cli("search", sample, QUERY, "-k", 5000, "--policy", "topical", "--json").rows
        assert len(rows) == len(load_sample()[0])

    def test_the_table_names_policy_and_documents(self, cli: Command, sample: Path):
        [row] = cli("search", sample, QUERY, "-k", 1, "--policy", "union", "--json").rows
        done = cli("search", sample, QUERY, "-k", 1, "--policy", "union")
        assert done.code == 0
        assert "hits by union" in done.out
        assert row["doc_id"] in done.out
        assert row["reason"] in done.words

    def test_explain_gives_each_hit_its_reason(self, cli: Command, sample: Path):
        options = ("-k", 3, "--policy", "topical")
        rows = cli("search", sample, QUERY, *options, "--json").rows
        words = cli("search", sample, QUERY, *options, "--explain").words
        assert all(row["reason"] in words for row in rows)

    def test_explain_shows_what_was_filtered_and_why(self, cli: Command, sample: Path):
        options = ("-k", 3, "--policy", "union", "-p", 0.5)
        done = cli("search", sample, QUERY, *options, "--explain")
        assert re.search(r"Filtered: \d+", done.words)
        assert "Filtered as number" in done.words

    def test_explain_as_json_adds_what_was_filtered(self, cli: Command, sample: Path):
        options = ("-k", 3, "--policy", "union", "-p", 0.5, "--json")
        plain = cli("search", sample, QUERY, *options).rows
        first, *rows = cli("search", sample, QUERY, *options, "--explain").rows
        assert first["constraint"]["excluded"] == ["nightlife"]
        hits = [{name: row[name] for name in row if name != "decisive"} for row in rows[:3]]
        assert hits == plain
        assert len(rows) > 3
        assert all(row["filtered"] and row["reason"] for row in rows[3:])

    def test_where_keeps_to_the_condition(self, cli: Command, sample: Path):
        options = ("--where", "domain=travel", "--where", "stars>4", "-k", 100, "--json")
        rows = cli("search", sample, QUERY, "--policy", "topical", *options).rows
        wanted = [
            d.doc_id
            for d in load_sample()[0]
            if d.metadata.get("domain") == "travel" and d.metadata.get("stars", 0) > 4
        ]
        assert sorted(row["doc_id"] for row in rows) == sorted(wanted)
        assert wanted

    def test_a_condition_nothing_meets_is_said_on_stderr(self, cli: Command, sample: Path):
        done = cli("search", sample, QUERY, "--where", "stars>100")
        assert (done.code, done.out) == (0, "")
        assert "no document meets stars>100" in done.err

    def test_an_empty_index_says_how_to_fill_it(self, cli: Command, tmp_path: Path):
        Retriever.open(tmp_path / "i").close()
        done = cli("search", tmp_path / "i", QUERY)
        assert (done.code, done.out) == (0, "")
        assert "coder-ir index INDEX DOCS" in done.err

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--policy", "best"), "policy must be one of auto, topical, compatibility, seq"),
            (("-k", 0), "k must be at least 1, got 0"),
            (("-k", -3), "k must be at least 1, got -3"),
            (("--pool", 0), "the pool must hold at least 1 document"),
            (("--policy", "union", "--tau", 0.3), "policy union has no setting tau"),
            (("--policy", "seq", "-p", 0.3), "policy seq has no setting p"),
            (("--policy", "topical", "--alpha", 0.3), "policy topical has no setting alpha"),
            (("--policy", "nonsense", "--alpha", 0.3), "nonsense"),
            (("--alpha", 0.5), "policy auto has no setting alpha"),
            (("--policy", "seq", "--alpha", 1.5), "alpha must be between 0 and 1"),
            (("--where", "stars"), "a condition reads field=value"),
            (("--where", "stars<many"), "stars < compares numbers"),
            (("--model", "nonsense"), "model must be 'built-in'"),
        ],
        ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
    )
    def test_misuse_exits_2_and_says_why(
        self, cli: Command, sample: Path, options: Sequence[object], said: str
    ):
        done = cli("search", sample, QUERY, *options)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("coder-ir: ")
        assert said in done.err

    @pytest.mark.parametrize("query", ["", "   "], ids=["empty", "blank"])
    def test_a_query_without_words_exits_2(self, cli: Command, sample: Path, query: str):
        done = cli("search", sample, query)
        assert (done.code, done.out) == (2, "")
        assert "the query is empty; say what to look for" in done.err

    def test_a_missing_index_exits_1_with_advice(self, tmp_path: Path):
        done = real("search", "nowhere", QUERY, cwd=tmp_path)
        assert (done.code, done.out) == (1, "")
        assert "no index in nowhere; build one with: coder-ir index nowhere DOCS" in done.err
        assert "Traceback" not in done.err
        assert not (tmp_path / "nowhere").exists()

    def test_another_model_than_the_indexs_exits_1(
        self, cli: Command, tmp_path: Path, encoder: Any
    ):
        from coder_ir.stores import SqliteStore

        with Retriever(encoder, SqliteStore(tmp_path / "i"), verifier=FakeVerifier()) as retriever:
            retriever.add([Document("a", "quiet hotel")])
        done = cli("search", tmp_path / "i", QUERY, "--model", "built-in")
        assert done.code == 1
        assert "this index was built with model 'fake'" in done.err


class TestRun:
    @pytest.fixture
    def queries(self, tmp_path: Path) -> Path:
        texts = [query.text for query in load_sample()[1]]
        rows = [{"_id": f"q{n}", "text": text} for n, text in enumerate(texts)]
        return jsonl(tmp_path / "queries.jsonl", rows)

    @pytest.mark.parametrize("policy", ["topical", "union"])
    def test_it_writes_scores_that_strictly_fall(
        self, cli: Command, sample: Path, queries: Path, tmp_path: Path, policy: str
    ):
        output = tmp_path / "run.trec"
        done = cli("run", sample, queries, "-o", output, "-k", 20, "--policy", policy)
        assert (done.code, done.out) == (0, "")
        lines = [line.split() for line in output.read_text().splitlines()]
        asked = list(dict.fromkeys(line[0] for line in lines))
        assert asked == [f"q{n}" for n in range(len(load_sample()[1]))]
        for query in asked:
            mine = [line for line in lines if line[0] == query]
            scores = [float(line[4]) for line in mine]
            assert [int(line[3]) for line in mine] == list(range(1, len(mine) + 1))
            assert all(above > below for above, below in pairwise(scores))
            assert {(line[1], line[5]) for line in mine} == {("Q0", f"coder-ir-{policy}")}

    def test_documents_that_score_alike_still_fall(self, cli: Command, tmp_path: Path):
        same = jsonl(
            tmp_path / "same.jsonl", [{"_id": name, "text": "A garden."} for name in "cab"]
        )
        asked = jsonl(tmp_path / "queries.jsonl", [{"_id": "q", "text": "garden"}])
        cli("index", tmp_path / "i", same)
        cli("run", tmp_path / "i", asked, "-o", tmp_path / "run.trec", "--policy", "topical")
        lines = [line.split() for line in (tmp_path / "run.trec").read_text().splitlines()]
        scores = [float(line[4]) for line in lines]
        assert [line[2] for line in lines] == ["a", "b", "c"]
        assert scores[0] > scores[1] > scores[2]

    def test_it_orders_as_search_does(
        self, cli: Command, sample: Path, queries: Path, tmp_path: Path
    ):
        text = load_sample()[1][0].text
        one = jsonl(tmp_path / "one.jsonl", [{"_id": "q", "text": text}])
        cli("run", sample, one, "-o", tmp_path / "run.trec", "-k", 10)
        lines = [line.split() for line in (tmp_path / "run.trec").read_text().splitlines()]
        hits = cli("search", sample, text, "-k", 10, "--json").rows
        assert [line[2] for line in lines] == [hit["doc_id"] for hit in hits]

    def test_missing_queries_exit_1(self, cli: Command, sample: Path, tmp_path: Path):
        done = cli("run", sample, tmp_path / "gone.jsonl", "-o", tmp_path / "run.trec")
        assert done.code == 1
        assert "no query file" in done.err

    def test_a_broken_query_line_is_named(self, cli: Command, sample: Path, queries: Path):
        queries.write_text('{"_id": "q1", "text": "a"}\n{"_id": "q2"}\n')
        done = cli("run", sample, queries, "-o", queries.with_name("run.trec"))
        assert done.code == 1
        assert f"{queries}:2 needs an _id and a text" in done.err
        assert not queries.with_name("run.trec").exists()

    def test_settings_of_another_policy_exit_2(
        self, cli: Command, sample: Path, queries: Path, tmp_path: Path
    ):
        options = ("-o", tmp_path / "run.trec", "--policy", "union", "--tau", 0.3)
        assert cli("run", sample, queries, *options).code == 2

    def test_an_output_that_cannot_be_written_exits_1(
        self, sample: Path, queries: Path, tmp_path: Path
    ):
        done = real("run", sample, queries, "-o", tmp_path / "gone" / "run.trec", cwd=tmp_path)
        assert done.code in (0, 1)  # making the folder is as good as refusing
        assert "Traceback" not in done.err


class TestModelInfo:
    @pytest.fixture
    def copied(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(built_in_folder(), tmp_path / "model"))

    def test_the_built_in_model_is_described_and_sound(self, cli: Command):
        done = cli("model", "info")
        assert done.code == 0
        assert re.search(r"^topical .*384 dimensions, 512 tokens", done.out, re.MULTILINE)
        assert re.search(r"^compatibility .*384 dimensions", done.out, re.MULTILINE)
        assert re.search(r"^tokenizer\.json .* ok$", done.out, re.MULTILINE)

    def test_json_is_the_whole_description(self, cli: Command):
        [row] = cli("model", "info", "--json").rows
        assert {"name", "licence", "topical", "compatibility", "sha256", "fingerprint"} <= set(row)

    def test_a_changed_byte_exits_1_and_names_the_file(self, cli: Command, copied: Path):
        with (copied / "tokenizer.json").open("r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
        done = cli("model", "info", copied)
        assert (done.code, done.out) == (1, "")
        assert "tokenizer.json is damaged or was changed" in done.err

    def test_an_intact_copy_is_sound(self, cli: Command, copied: Path):
        assert cli("model", "info", copied).code == 0

    def test_a_folder_without_a_model_exits_1(self, cli: Command, tmp_path: Path):
        done = cli("model", "info", tmp_path)
        assert done.code == 1
        assert "is not a model folder" in done.err


class TestTraining:
    def test_wordnet_triplets_come_without_a_download(self, cli: Command, tmp_path: Path):
        done = cli("data", "wordnet", "-o", tmp_path / "new" / "wordnet.jsonl")
        assert (done.code, done.out) == (0, "")
        triplets = load_triplets(tmp_path / "new" / "wordnet.jsonl")
        assert len(triplets) > 5000
        assert {triplet.source for triplet in triplets} == {"WordNet"}
        assert f"{len(triplets)} triplets" in done.err

    def test_a_missing_wordnet_folder_exits_1(self, cli: Command, tmp_path: Path):
        output = tmp_path / "out.jsonl"
        done = cli("data", "wordnet", "-o", output, "--source", tmp_path / "gone")
        assert done.code == 1
        assert "no WordNet database file" in done.err
        assert not output.exists()

    def test_a_folder_of_sources_that_is_not_there_exits_1(self, cli: Command, tmp_path: Path):
        done = cli("data", "sentences", tmp_path / "gone", "-o", tmp_path / "out.jsonl")
        assert (done.code, done.out) == (1, "")
        assert "gone" in done.err
        assert not (tmp_path / "out.jsonl").exists()

    def test_the_share_that_is_held_out_is_no_option(self, cli: Command, tmp_path: Path):
        output = tmp_path / "out.jsonl"
        done = cli("data", "sentences", tmp_path, "-o", output, "--development", 0.5)
        assert (done.code, done.out) == (2, "")
        assert "--development" in done.err

    def test_a_missing_config_exits_1(self, cli: Command, tmp_path: Path):
        done = cli("train", tmp_path / "gone.toml")
        assert (done.code, done.out) == (1, "")
        assert f"no training config {tmp_path / 'gone.toml'}" in done.err

    def test_run_may_be_said_or_left_out(self, cli: Command, tmp_path: Path):
        said = cli("train", "run", tmp_path / "gone.toml")
        assert said == cli("train", tmp_path / "gone.toml")

    def test_a_config_with_a_typo_exits_2(self, cli: Command, tmp_path: Path):
        (tmp_path / "c.toml").write_text(
            'base = "x"\noutput = "o"\nsede = 1\n[[stage]]\nname="s"\ntriplets="t"\n'
        )
        done = cli("train", tmp_path / "c.toml")
        assert done.code == 2
        assert "sets 'sede'" in done.err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("index a b --ray", "index a b --ray local"),
        ("index a --ray --threads 2 b", "index a --ray local --threads 2 b"),
        ("index a b --ray auto", "index a b --ray auto"),
        ("search a --ray", "search a --ray"),
        ("", ""),
    ],
)
def test_ray_without_an_address_is_this_machine_s(line: str, expected: str):
    assert completed(line.split()) == expected.split()
