"""Downloads from a real server on this machine: whole, or nothing at all."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.datasets.download import download
from coder_ir.datasets.registry import BENCHMARKS, Benchmark, load_benchmark
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from tests.local_home import PAIR, TINY, Home, put, serving, tiny_zip, zipped


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as opened:
        yield opened


@pytest.fixture(params=["zip", "single file"])
def known(request: pytest.FixtureRequest, home: Home) -> Benchmark:
    return home.nevir() if request.param == "single file" else home.beir(tiny_zip())


def found(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class TestGood:
    def test_the_wanted_files_leave_the_zip_and_nothing_else_stays(
        self, home: Home, tmp_path: Path
    ):
        folder = download(home.beir(tiny_zip(**{"tiny/README.md": b"Hello"})), tmp_path)
        assert folder == tmp_path / "tiny"
        assert found(tmp_path) == {f"tiny/{name}": content for name, content in TINY.items()}

    def test_a_single_file_is_kept_as_it_was_sent(self, home: Home, tmp_path: Path):
        download(home.nevir(), tmp_path)
        assert found(tmp_path) == {"nevir/test.jsonl": PAIR}

    def test_what_was_downloaded_loads(
        self, known: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(BENCHMARKS, known.name, known)
        download(known, tmp_path)
        loaded = load_benchmark(known.name, tmp_path)
        assert (len(loaded.documents), len(loaded.queries)) == (2, 2)

    def test_a_root_that_is_not_there_is_made(self, known: Benchmark, tmp_path: Path):
        assert download(known, tmp_path / "a" / "b").parent == tmp_path / "a" / "b"
        assert known.missing(tmp_path / "a" / "b") == []

    def test_progress_adds_up_to_the_bytes_that_were_sent(self, home: Home, tmp_path: Path):
        packed = tiny_zip(**{"tiny/large": bytes(3_000_000)})
        steps: list[int] = []
        download(home.beir(packed), tmp_path, progress=steps.append)
        assert sum(steps) == len(packed)
        assert len(steps) > 1

    def test_files_that_are_there_are_not_replaced(self, home: Home, tmp_path: Path):
        put(tmp_path / "tiny", {"corpus.jsonl": b"mine", "notes.txt": b"mine too"})
        download(home.beir(tiny_zip()), tmp_path)
        assert found(tmp_path / "tiny") == {
            **TINY,
            "corpus.jsonl": b"mine",
            "notes.txt": b"mine too",
        }


class TestRefused:
    def test_a_zip_with_another_md5(self, home: Home, tmp_path: Path):
        known = home.beir(tiny_zip())
        home.files["/tiny.zip"] = tiny_zip(**{"tiny/more": b"!"})
        with pytest.raises(InvalidFile, match=r"tiny\.zip has the md5 [0-9a-f]{32}, published is"):
            download(known, tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", TINY)
    def test_a_zip_without_a_wanted_file(self, home: Home, tmp_path: Path, name: str):
        packed = zipped({f"tiny/{n}": content for n, content in TINY.items() if n != name})
        with pytest.raises(InvalidFile, match=rf"holds no tiny/{name}"):
            download(home.beir(packed), tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_home_that_sends_one_file_of_two(self, home: Home, tmp_path: Path):
        known = replace(home.nevir(), files=("test.jsonl", "more.jsonl"))
        with pytest.raises(InvalidFile, match=r"what nevir's home sent has no more\.jsonl"):
            download(known, tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("status", [404, 500])
    def test_a_server_that_answers_with_an_error(
        self, home: Home, known: Benchmark, tmp_path: Path, status: int
    ):
        home.status = status
        with pytest.raises(NotFound, match=rf"cannot fetch {home.url}/.*{status}.*try again"):
            download(known, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_connection_that_is_dropped_half_way(
        self, home: Home, known: Benchmark, tmp_path: Path
    ):
        home.cut = True
        with pytest.raises(NotFound, match=r"cannot fetch .* ended after \d+ of \d+ bytes"):
            download(known, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_server_that_is_gone(self, tmp_path: Path):
        with serving() as home:
            known = home.nevir()
        with pytest.raises(NotFound, match=f"cannot fetch {home.url}/pair.jsonl"):
            download(known, tmp_path)

    def test_a_failure_leaves_what_was_there_before(
        self, home: Home, known: Benchmark, tmp_path: Path
    ):
        put(tmp_path / known.folder, {"mine.txt": b"mine"})
        home.cut = True
        with pytest.raises(NotFound):
            download(known, tmp_path)
        assert found(tmp_path) == {f"{known.folder}/mine.txt": b"mine"}

    def test_a_benchmark_that_cannot_be_downloaded_names_its_home(self, tmp_path: Path):
        says = "excluir cannot be downloaded; see https://github.com/zwh-sdu/ExcluIR"
        with pytest.raises(InvalidValue, match=says):
            download(BENCHMARKS["excluir"], tmp_path / "new")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "name", ["../evil", "tiny/../../evil", "/evil", "tiny/qrels/../../../evil"]
)
def test_a_name_that_points_out_of_the_zip_has_no_effect(home: Home, tmp_path: Path, name: str):
    root = tmp_path / "a" / "root"
    download(home.beir(tiny_zip(**{name: b"evil"})), root)
    assert found(tmp_path) == {f"a/root/tiny/{n}": content for n, content in TINY.items()}


def test_an_interrupted_download_leaves_nothing(known: Benchmark, tmp_path: Path):
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(known, tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []
