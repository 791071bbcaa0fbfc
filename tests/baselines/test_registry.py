"""Systems by name over a small index, and what they keep of its documents."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.baselines import NSIR
from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.registry import DECOMPOSING, SYSTEMS, Workplace, open_system
from coder_ir.encoders.conventions import Similarity
from coder_ir.errors import InvalidValue
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Floats, Kind, Progress, Searcher
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.token_encoder import FakeTokenEncoder

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
DOCUMENTS = [Document(word, f"hotel {word}") for word in WORDS if word != "hotel"]
NEEDS = {"bm25": ("bm25s", "hybrid"), "ns-ir": ("ot", "baselines")}


def need(name: str) -> None:
    if name in NEEDS:
        package, extra = NEEDS[name]
        pytest.importorskip(package, reason=f"needs the extra {extra}")


@pytest.fixture
def encoder() -> FakeTokenEncoder:
    return FakeTokenEncoder(WORDS)


@pytest.fixture
def work(tmp_path: Path, encoder: FakeTokenEncoder) -> Iterator[Workplace]:
    with Retriever(encoder, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as retriever:
        retriever.add(DOCUMENTS)
        yield Workplace(Indexed(encoder, retriever.store), folder=tmp_path / "kept")


def closed(system: Searcher) -> None:
    if isinstance(system, NSIR):
        system.close()


def kept(work: Workplace) -> set[str]:
    """Names in the folder, less the files that SQLite has beside its own."""
    assert work.folder is not None
    if not work.folder.is_dir():
        return set()
    return {path.name for path in work.folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_answers_over_the_documents_of_the_index(work: Workplace, name: str):
    need(name)
    system = open_system(name, work)
    found = system.search("hotel sea", 5)
    closed(system)
    assert found.policy == name
    assert {hit.doc_id for hit in found} == {document.doc_id for document in DOCUMENTS}
    if name != "ns-ir":  # whose fake tokens mean nothing
        assert found[0].doc_id == "sea"


def test_those_that_read_queries_are_systems_too():
    assert set(DECOMPOSING) < set(SYSTEMS)


def test_an_unknown_name_lists_the_known_ones(work: Workplace):
    says = "no system 'splade'; there are coder, bm25, dense, hyde, deo, ns-ir"
    with pytest.raises(InvalidValue, match=says):
        open_system("splade", work)


@pytest.mark.parametrize(
    ("name", "files"),
    [("bm25", {"bm25"}), ("ns-ir", {"ns-ir.sqlite"}), *((n, set()) for n in ("dense", "deo"))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_only_what_takes_long_is_kept(work: Workplace, name: str, files: set[str]):
    need(name)
    system = open_system(name, work)
    system.search("hotel", 3)
    assert kept(work) == files
    closed(system)


@pytest.mark.parametrize("name", SYSTEMS)
def test_without_a_folder_nothing_is_written(work: Workplace, tmp_path: Path, name: str):
    need(name)
    before = sorted(tmp_path.rglob("*"))
    system = open_system(name, replace(work, folder=None))
    system.search("hotel", 3)
    closed(system)
    assert sorted(tmp_path.rglob("*")) == before


def test_bm25_counts_once(work: Workplace, monkeypatch: pytest.MonkeyPatch):
    need("bm25")
    before = open_system("bm25", work).search("hotel sea", 5)
    monkeypatch.setattr(
        "coder_ir.lexical.LexicalIndex.build", lambda *a, **k: pytest.fail("counted again")
    )
    assert open_system("bm25", work).search("hotel sea", 5) == before


def test_ns_ir_reads_documents_once(work: Workplace, encoder: FakeTokenEncoder):
    need("ns-ir")
    first = open_system("ns-ir", work)
    before = first.search("sea", 5)
    closed(first)
    encoder.read.clear()
    again = open_system("ns-ir", work)
    assert again.search("sea", 5) == before
    closed(again)
    assert len(encoder.read) == 2  # the query and its formula


class Loaded:
    """An encoder of another name: the fake one's topical side."""

    similarity: Similarity = "cosine"
    fingerprint = "0123456789abcdef-and-more"

    def __init__(self) -> None:
        self.inner = FakeEncoder(WORDS)

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        return self.inner.encode(texts, kind=kind, progress=progress).topical


class TestDenseWithAnotherEncoder:
    @pytest.fixture
    def other(self, monkeypatch: pytest.MonkeyPatch) -> Loaded:
        loaded = Loaded()
        monkeypatch.setattr(
            "coder_ir.baselines.registry.load_dense_encoder",
            lambda name, **_: {"other/model": loaded}[name],
        )
        return loaded

    def test_its_vectors_are_kept_under_its_fingerprint(self, work: Workplace, other: Loaded):
        found = open_system("dense", replace(work, encoder="other/model")).search("sea", 1)
        assert found[0].doc_id == "sea"
        assert kept(work) == {"dense-0123456789abcdef"}

    def test_documents_are_encoded_once(self, work: Workplace, other: Loaded):
        for _ in range(2):
            open_system("dense", replace(work, encoder="other/model"))
        assert sorted(other.inner.encoded) == sorted(document.text for document in DOCUMENTS)

    def test_progress_adds_up_to_the_documents(self, work: Workplace, other: Loaded):
        seen: list[int] = []
        open_system("dense", replace(work, encoder="other/model", progress=seen.append))
        assert sum(seen) == len(DOCUMENTS)
