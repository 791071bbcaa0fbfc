"""Which model folder's parser goes with an encoder."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.folder import Manifest, Role
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace, Runtime
from coder_ir.query import load_parser, loading
from tests.conftest import FakeEncoder
from tests.query.stubs import parsing

BUILT_IN = Path("built-in")
ROLE = Role("graph.onnx", "hidden", "cls", "", "", max_length=512, dimensions=2)


class Folder(OnnxEncoder):
    """A model folder that exists in memory only; the built-in one has a parser."""

    def __init__(self, folder: Path, *, parser: bool | None = None) -> None:
        self.folder = folder
        self.spec = str(folder)
        self.runtime = Runtime()
        parsed = parsing() if parser or folder == BUILT_IN else None
        self.manifest = Manifest("toy", "none", "tokenizer.json", ROLE, ROLE, {}, parser=parsed)


WITH = Folder(Path("with"), parser=True)
OTHER = Folder(Path("other"), parser=True)
BARE = Folder(Path("bare"), parser=False)
APART = SimpleNamespace(fingerprint="apart", max_length=10)  # one space, of no model folder


@pytest.fixture(autouse=True)
def loads_by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A parser is its encoder, a folder is loaded without files, and no other test sees it."""
    monkeypatch.setattr(loading, "built_in_folder", lambda: BUILT_IN)
    monkeypatch.setattr(loading, "OnnxEncoder", Folder)
    monkeypatch.setattr(loading, "TrainedParser", lambda encoder: encoder)
    loading._built_in.cache_clear()
    yield
    loading._built_in.cache_clear()


def pair(topical: object, compatibility: object) -> CombinedEncoder:
    return CombinedEncoder(topical, compatibility, spec="pair")


def topical(folder: OnnxEncoder) -> OnnxSpace:
    return OnnxSpace(folder, "topical")


def compatibility(folder: OnnxEncoder) -> OnnxSpace:
    return OnnxSpace(folder, "compatibility")


@pytest.mark.parametrize(
    ("encoder", "read"),
    [
        (WITH, WITH),
        (topical(WITH), WITH),
        (compatibility(WITH), WITH),
        (pair(topical(WITH), APART), WITH),
        (pair(APART, compatibility(WITH)), WITH),
        (pair(topical(BARE), compatibility(WITH)), WITH),
        (pair(topical(WITH), compatibility(OTHER)), WITH),
        (pair(topical(OTHER), compatibility(WITH)), OTHER),
    ],
    ids=[
        "a folder",
        "its topical side",
        "its other side",
        "a pair, topical",
        "a pair, compatibility",
        "the side that has one",
        "both sides have one",
        "the topical side first",
    ],
)
def test_a_parser_in_the_encoders_own_folder_is_taken_as_it_is_loaded(
    encoder: object, read: OnnxEncoder
):
    assert load_parser(encoder) is read


@pytest.mark.parametrize(
    "encoder",
    [
        BARE,
        topical(BARE),
        pair(topical(BARE), compatibility(BARE)),
        pair(APART, APART),
        FakeEncoder(["a"]),
        object(),
    ],
    ids=["a folder", "one side", "a pair of it", "a pair of others", "another encoder", "anything"],
)
def test_an_encoder_without_a_parser_gets_the_built_in_one(encoder: object):
    assert load_parser(encoder).folder == BUILT_IN


def test_the_built_in_parser_is_loaded_once():
    assert load_parser(BARE) is load_parser(FakeEncoder(["a"]))
