"""A verifier by name, loaded when there is something to read."""

from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import NotFound
from coder_ir.types import Verifier
from coder_ir.verifier import load_verifier
from coder_ir.verifier.folder import GRAPH, TOKENIZER
from tests.fake_verifier import FakeVerifier, violating


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Any]]:
    """Folder and threads of each verifier that was loaded."""
    calls: list[tuple[Path, Any]] = []

    def load(folder: Path, *, threads: int | None) -> Verifier:
        calls.append((folder, threads))
        return FakeVerifier()

    monkeypatch.setattr("coder_ir.verifier.registry.OnnxVerifier", load)
    return calls


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (GRAPH, TOKENIZER):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(("threads", "given"), [(0, None), (3, 3)])
def test_it_is_loaded_once_and_with_its_threads(
    folder: Path, loaded: list[tuple[Path, Any]], threads: int, given: int | None
):
    verifier = load_verifier(str(folder), threads=threads)
    assert loaded == []
    for _ in range(2):
        assert verifier.read("a room without noise", ["noise"])[0].violates == violating().violates
    assert loaded == [(folder, given)]


def test_a_folder_that_is_none_is_refused_at_once(tmp_path: Path):
    with pytest.raises(NotFound, match="is not a verifier folder"):
        load_verifier(str(tmp_path))


def test_the_built_in_one_lies_in_the_built_in_model_folder(
    folder: Path, loaded: list[tuple[Path, Any]], monkeypatch: pytest.MonkeyPatch
):
    own = folder / "verifier"
    own.mkdir()
    for name in (GRAPH, TOKENIZER):
        (folder / name).rename(own / name)
    monkeypatch.setattr("coder_ir.verifier.registry.built_in_folder", lambda: folder)
    load_verifier().read("hotel", ["hotel"])
    assert loaded == [(own, None)]
