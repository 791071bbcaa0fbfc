"""Benchmarks by name: found, checked against what was published, or refused."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.datasets.registry import (
    BENCHMARKS,
    Benchmark,
    benchmark_named,
    how_to_get,
    load_benchmark,
)
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from tests.local_home import TINY, put, tiny_beir


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "tiny", TINY)
    monkeypatch.setattr("coder_ir.datasets.registry.BENCHMARKS", {"tiny": tiny_beir()})


def known_as(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Benchmark:
    known = replace(tiny_beir(), **changes)
    monkeypatch.setattr("coder_ir.datasets.registry.BENCHMARKS", {"tiny": known})
    return known


class TestNames:
    def test_an_unknown_name_lists_the_known_ones(self):
        with pytest.raises(InvalidValue, match="no benchmark 'sciFact'; there are scifact, nfcorp"):
            benchmark_named("sciFact")

    @pytest.mark.parametrize("name", BENCHMARKS)
    def test_a_known_name_gives_that_benchmark(self, name: str):
        assert benchmark_named(name).name == name

    def test_one_that_can_be_downloaded_says_the_command(self):
        found = how_to_get(BENCHMARKS["scifact"], Path("sets"))
        assert found == "run: coder-ir data get scifact --to sets"

    def test_one_that_cannot_be_downloaded_says_where_to_look(self):
        found = how_to_get(BENCHMARKS["negconstraint"], Path("sets"))
        assert found == "see https://github.com/NICE-HKU/CoDeR"

    @pytest.mark.parametrize("known", BENCHMARKS.values(), ids=lambda known: known.name)
    def test_digests_and_addresses_belong_to_its_files(self, known: Benchmark):
        assert {*known.sha256, *known.urls} <= {*known.files}


class TestLoad:
    @pytest.mark.usefixtures("listed")
    def test_a_whole_folder_is_loaded(self, tmp_path: Path):
        loaded = load_benchmark("tiny", tmp_path)
        assert [document.doc_id for document in loaded.documents] == ["d1", "d2"]
        assert loaded.qrels.grades == {"q1": {"d1": 1}, "q2": {"d2": 2}}

    @pytest.mark.usefixtures("listed")
    @pytest.mark.parametrize("name", TINY)
    def test_a_missing_file_is_named_with_what_to_do(self, tmp_path: Path, name: str):
        (tmp_path / "tiny" / name).unlink()
        with pytest.raises(NotFound, match=rf"no .*tiny/{name}; see https://github\.com/beir"):
            load_benchmark("tiny", tmp_path)

    def test_files_that_are_not_there_come_in_the_order_of_the_set(self, tmp_path: Path):
        put(tmp_path / "tiny", {"queries.jsonl": b""})
        assert tiny_beir().missing(tmp_path) == ["corpus.jsonl", "qrels/test.tsv"]

    @pytest.mark.usefixtures("listed")
    @pytest.mark.parametrize(
        ("changes", "published"),
        [({"documents": 3}, "3 and 2"), ({"queries": 3}, "2 and 3"), ({"queries": 1}, "2 and 1")],
        ids=["documents", "fewer queries", "more queries"],
    )
    def test_other_counts_are_refused(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        changes: dict[str, int],
        published: str,
    ):
        known_as(monkeypatch, **changes)
        says = f"holds 2 documents and 2 judged queries, published are {published}"
        with pytest.raises(InvalidFile, match=says):
            load_benchmark("tiny", tmp_path)

    @pytest.mark.usefixtures("listed")
    def test_a_number_of_documents_that_nobody_published_is_not_checked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        known_as(monkeypatch, documents=None)
        assert len(load_benchmark("tiny", tmp_path).documents) == 2

    @pytest.mark.usefixtures("listed")
    @pytest.mark.parametrize("name", TINY)
    def test_a_file_with_another_sha256_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ):
        digests = {n: hashlib.sha256(content).hexdigest() for n, content in TINY.items()}
        known_as(monkeypatch, sha256=digests)
        assert load_benchmark("tiny", tmp_path)
        with (tmp_path / "tiny" / name).open("ab") as file:
            file.write(b"\n")
        says = rf"tiny/{name} is not the published file: .* expected {digests[name][:12]}"
        with pytest.raises(InvalidFile, match=says):
            load_benchmark("tiny", tmp_path)


class TestPackaged:
    known = BENCHMARKS["antonym"]

    def test_its_files_are_looked_for_in_the_package_whatever_the_root(self, tmp_path: Path):
        assert self.known.place(tmp_path) == self.known.place(Path("elsewhere"))
        assert self.known.place(tmp_path).parts[-3:] == ("coder_ir", "datasets", "diagnostics")

    def test_one_that_does_not_ship_says_how_to_build_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        gone = replace(self.known, folder="datasets/none")
        monkeypatch.setattr("coder_ir.datasets.registry.BENCHMARKS", {"gone": gone})
        with pytest.raises(NotFound, match=r"antonym\.csv\.xz; .* coder-ir data diagnostics"):
            load_benchmark("gone", tmp_path)


@pytest.mark.parametrize(
    ("name", "counts", "documents", "queries"),
    [
        (
            "scifact",
            (5183, 300, 339),
            (("4983", "Microstructural development of human"), ("198309074", "Adhesion molecules")),
            (("1", "0-dimensional biomaterials show"), ("1395", "p16INK4A accumulation is")),
        ),
        (
            "nfcorpus",
            (3633, 323, 12334),
            (("MED-10", "Statin Use and Breast Cancer"), ("MED-999", "Polybrominated diphenyl")),
            (("PLAIN-2", "Do Cholesterol Statin Drugs"), ("PLAIN-3472", "How Doctors Responded")),
        ),
        (
            "nevir-open",
            (1041, 1382, 2764),
            (("d0", "Aggressive challenging behavior"), ("d1040", "In 1998, Pinochet traveled")),
            (("1052-2-q1", "What medication did a"), ("1179-2-q2", "Whose arrest attracted")),
        ),
        (
            "negconstraint",
            (3946, 198, 198),
            (("10000", "Aaron and his sons to the"), ("13945", "met by the Adelaide Electric")),
            (("0", "Aaron's profile, but don't"), ("197", "How do the feminist perspectives")),
        ),
    ],
    ids=["SciFact", "NFCorpus", "NevIR, open half", "NegConstraint"],
)
def test_a_published_set_is_loaded_whole(
    shared: Path,
    name: str,
    counts: tuple[int, int, int],
    documents: tuple[tuple[str, str], ...],
    queries: tuple[tuple[str, str], ...],
):
    loaded = load_benchmark(name, shared / "data")
    judged = sum(len(grades) for grades in loaded.qrels.grades.values())
    assert (len(loaded.documents), len(loaded.queries), judged) == counts
    for place, (doc_id, words) in zip((0, -1), documents, strict=True):
        assert loaded.documents[place].doc_id == doc_id
        assert loaded.documents[place].content.startswith(words)
    for place, (query_id, words) in zip((0, -1), queries, strict=True):
        assert loaded.queries[place].query_id == query_id
        assert loaded.queries[place].text.startswith(words)
