"""`coder-ir data list` and `data get`: what they print, where, and how they exit."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.datasets.registry import BENCHMARKS, Benchmark
from tests.conftest import Command
from tests.local_home import PAIR, TINY, Home, put, serving, tiny_zip


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as opened:
        yield opened


@pytest.fixture(autouse=True)
def listed(home: Home, monkeypatch: pytest.MonkeyPatch) -> dict[str, Benchmark]:
    """The only benchmarks there are: two on this machine's server, one that cannot be had."""
    known = {"tiny": home.beir(tiny_zip()), "nevir": home.nevir()}
    known["excluir"] = BENCHMARKS["excluir"]
    monkeypatch.setattr("coder_ir.datasets.registry.BENCHMARKS", known)
    return known


class TestList:
    def test_every_benchmark_is_a_line_with_its_size_and_licence(
        self, cli: Command, tmp_path: Path
    ):
        done = cli("data", "list", tmp_path)
        head, tiny, nevir, excluir = (" ".join(line.split()) for line in done.out.splitlines())
        assert done.code == 0
        assert head == "name what documents queries licence state"
        assert tiny.startswith("tiny Tiny 2 2 CC BY 4.0, ODC-By")
        assert nevir.startswith("nevir NevIR, test ? 2 MIT")
        assert excluir.startswith("excluir ExcluIR ? 3,452 none stated")

    def test_what_is_missing_comes_with_how_to_get_it(self, cli: Command, tmp_path: Path):
        lines = cli("data", "list", tmp_path).out.splitlines()
        assert [line.rstrip().rpartition("  ")[2] for line in lines[1:]] == [
            f"missing; run: coder-ir data get tiny --to {tmp_path}",
            f"missing; run: coder-ir data get nevir --to {tmp_path}",
            "missing; see https://github.com/zwh-sdu/ExcluIR",
        ]

    def test_what_is_there_is_said_to_be_there(self, cli: Command, tmp_path: Path):
        put(tmp_path, {f"tiny/{name}": content for name, content in TINY.items()})
        put(tmp_path, {"nevir/test.jsonl": PAIR, "excluir/corpus.json": b"[]"})
        lines = cli("data", "list", tmp_path).out.splitlines()
        states = [line.rstrip().rpartition("  ")[2] for line in lines[1:]]
        assert states[:2] == ["there", "there"]
        assert states[2].startswith("missing")  # one file of two

    def test_without_a_folder_it_looks_into_benchmarks(
        self, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(tmp_path)
        put(tmp_path / "benchmarks", {"nevir/test.jsonl": PAIR})
        assert cli("data", "list").out.splitlines()[2].split()[-1] == "there"

    def test_nothing_is_fetched(self, cli: Command, tmp_path: Path, home: Home):
        cli("data", "list", tmp_path / "none")
        assert home.asked == []
        assert not (tmp_path / "none").exists()


class TestGet:
    def test_it_fetches_checks_and_says_what_there_is(self, cli: Command, tmp_path: Path):
        done = cli("data", "get", "tiny", "nevir", "--to", tmp_path)
        assert (done.code, done.out) == (0, "")
        assert f"{tmp_path}/tiny: 2 documents, 2 judged queries (CC BY 4.0, ODC-By)" in done.err
        assert f"{tmp_path}/nevir: 2 documents, 2 judged queries (MIT)" in done.err
        assert (tmp_path / "nevir" / "test.jsonl").read_bytes() == PAIR
        assert (tmp_path / "tiny" / "corpus.jsonl").read_bytes() == TINY["corpus.jsonl"]

    def test_without_a_folder_it_goes_into_benchmarks(
        self, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(tmp_path)
        assert cli("data", "get", "nevir").code == 0
        assert (tmp_path / "benchmarks" / "nevir" / "test.jsonl").is_file()

    def test_what_is_there_is_checked_and_not_fetched_again(
        self, cli: Command, tmp_path: Path, home: Home
    ):
        cli("data", "get", "tiny", "--to", tmp_path)
        done = cli("data", "get", "tiny", "--to", tmp_path)
        assert done.code == 0
        assert "2 judged queries" in done.err
        assert home.asked == ["/tiny.zip"]

    def test_an_unknown_name_is_refused_before_anything_is_fetched(
        self, cli: Command, tmp_path: Path, home: Home
    ):
        done = cli("data", "get", "tiny", "huge", "--to", tmp_path)
        assert (done.code, done.out, home.asked) == (2, "", [])
        assert done.err == "coder-ir: no benchmark 'huge'; there are tiny, nevir, excluir\n"

    def test_no_name_at_all_is_misuse(self, cli: Command):
        assert cli("data", "get").code == 2

    def test_one_that_cannot_be_downloaded_says_where_it_is(self, cli: Command, tmp_path: Path):
        done = cli("data", "get", "excluir", "--to", tmp_path)
        assert done.code == 2
        assert "excluir cannot be downloaded; see https://github.com/zwh-sdu/ExcluIR" in done.err

    @pytest.mark.parametrize("name", ["tiny", "nevir"])
    def test_a_server_in_trouble_fails_and_leaves_nothing(
        self, cli: Command, tmp_path: Path, home: Home, name: str
    ):
        home.status = 500
        done = cli("data", "get", name, "--to", tmp_path)
        assert (done.code, done.out) == (1, "")
        assert f"coder-ir: cannot fetch {home.url}/" in done.err
        assert list(tmp_path.iterdir()) == []

    def test_a_zip_that_is_not_the_published_one_fails(
        self, cli: Command, tmp_path: Path, home: Home
    ):
        home.files["/tiny.zip"] = tiny_zip(**{"tiny/more": b"!"})
        done = cli("data", "get", "tiny", "--to", tmp_path)
        assert done.code == 1
        assert "has the md5" in done.err

    def test_a_set_of_another_size_than_published_fails(
        self, cli: Command, tmp_path: Path, listed: dict[str, Benchmark]
    ):
        listed["tiny"] = replace(listed["tiny"], queries=300)
        done = cli("data", "get", "tiny", "--to", tmp_path)
        assert done.code == 1
        assert "2 documents and 2 judged queries, published are 2 and 300" in done.err
