"""The verifier folder: its description, its digests, and what a stranger's config says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coder_ir.calibration import Logistic
from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidFile, ModelMismatch, NotFound
from coder_ir.verifier import VerifierManifest
from coder_ir.verifier.folder import CLASSES, GRAPH, MANIFEST, TOKENIZER

WRITTEN = VerifierManifest(
    "small",
    "MIT",
    ("silent", "violates", "satisfies"),
    passage_first=True,
    max_length=384,
    risk=Logistic((0.5, -1.0), 0.25),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / GRAPH).write_bytes(b"a graph")
    (tmp_path / TOKENIZER).write_bytes(b"a tokenizer")
    return tmp_path


def named(folder: Path, labels: dict[str, str] | None) -> Path:
    """The folder with a transformers config of these labels."""
    config = {"model_type": "bert"} if labels is None else {"id2label": labels}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def rewritten(folder: Path, **changes: Any) -> Path:
    """The folder with a description that differs from a good one."""
    WRITTEN.save(folder)
    raw = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(raw | changes), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "manifest",
    [WRITTEN, replace(WRITTEN, risk=None), VerifierManifest("ranker", "MIT")],
    ids=["all of it", "no risk", "one logit"],
)
def test_what_is_saved_is_loaded(folder: Path, manifest: VerifierManifest):
    manifest.save(folder)
    assert VerifierManifest.load(folder) == manifest
    assert sorted(path.name for path in folder.iterdir()) == sorted([GRAPH, TOKENIZER, MANIFEST])


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
def test_a_folder_without_a_graph_or_a_tokenizer_is_none(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(NotFound, match=rf"is not a verifier folder: it has no {name}"):
        VerifierManifest.load(folder)


class TestDigests:
    @pytest.fixture
    def manifest(self, folder: Path) -> VerifierManifest:
        digests = {name: file_sha256(folder / name) for name in (GRAPH, TOKENIZER)}
        return replace(WRITTEN, sha256=digests)

    def test_files_as_they_were_written_pass(self, folder: Path, manifest: VerifierManifest):
        manifest.verify(folder)

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
    def test_a_changed_file_is_named(self, folder: Path, manifest: VerifierManifest, name: str):
        (folder / name).write_bytes(b"another")
        with pytest.raises(ModelMismatch, match=rf"{name} is damaged or was changed: its sha256"):
            manifest.verify(folder)

    def test_a_missing_file_is_named(self, folder: Path, manifest: VerifierManifest):
        (folder / GRAPH).unlink()
        with pytest.raises(ModelMismatch, match=rf"{GRAPH} is missing; {MANIFEST} names it"):
            manifest.verify(folder)


class TestDescription:
    @pytest.mark.parametrize("version", [None, 0, 2, "1"])
    def test_another_format_is_refused(self, folder: Path, version: object):
        with pytest.raises(ModelMismatch, match=rf"has format {version!r}; this version reads 1"):
            VerifierManifest.load(rewritten(folder, format=version))

    @pytest.mark.parametrize(
        "classes", [["yes", "no"], ["satisfies", "violates"], ["satisfies"] * 3], ids=", ".join
    )
    def test_unknown_classes_are_refused(self, folder: Path, classes: list[str]):
        with pytest.raises(InvalidFile, match="classes must be satisfies, violates, silent, got"):
            VerifierManifest.load(rewritten(folder, classes=classes))

    @pytest.mark.parametrize(
        "changes",
        [{"classes": None}, {"risk": {"weights": [1.0]}}, {"risk": 3}, {"speed": "high"}],
        ids=["no classes", "no bias", "a number", "unknown field"],
    )
    def test_what_is_no_description_is_named(self, folder: Path, changes: dict[str, Any]):
        with pytest.raises(InvalidFile, match=rf"{MANIFEST} is not a verifier's description"):
            VerifierManifest.load(rewritten(folder, **changes))

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"\xff"], ids=["empty", "cut", "[]", "ff"]
    )
    def test_a_broken_file_is_named(self, folder: Path, content: bytes):
        (folder / MANIFEST).write_bytes(content)
        with pytest.raises(InvalidFile, match=rf"{MANIFEST} is not a verifier's description"):
            VerifierManifest.load(folder)


class TestStranger:
    """A folder with no description of ours."""

    def test_one_without_a_config_has_one_logit(self, folder: Path):
        found = VerifierManifest.load(folder)
        assert (found.name, found.classes, found.passage_first) == (folder.name, (), False)
        assert (found.risk, found.sha256) == (None, {})

    @pytest.mark.parametrize("labels", [None, {}, {"0": "LABEL_0"}], ids=str)
    def test_one_whose_config_names_at_most_one_class_has_one_logit(
        self, folder: Path, labels: dict[str, str] | None
    ):
        assert VerifierManifest.load(named(folder, labels)).classes == ()

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [
            (
                {"0": "contradiction", "1": "entailment", "2": "neutral"},
                ("violates", "satisfies", "silent"),
            ),
            (
                {"2": "CONTRADICTION", "0": "ENTAILMENT", "1": "NEUTRAL"},
                ("satisfies", "silent", "violates"),
            ),
            (dict(zip("012", CLASSES, strict=True)), CLASSES),
        ],
        ids=["entailment", "capitals, out of order", "ours"],
    )
    def test_classes_stand_in_the_order_of_the_logits(
        self, folder: Path, labels: dict[str, str], classes: tuple[str, ...]
    ):
        assert VerifierManifest.load(named(folder, labels)).classes == classes

    @pytest.mark.parametrize(
        "labels",
        [{"0": "yes", "1": "no"}, {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}],
        ids=["two", "unnamed"],
    )
    def test_classes_that_mean_something_else_are_refused(
        self, folder: Path, labels: dict[str, str]
    ):
        with pytest.raises(InvalidFile, match=r"names the classes .*; a verifier has one logit"):
            VerifierManifest.load(named(folder, labels))

    @pytest.mark.parametrize("content", ["", "{", "[]", "3"])
    def test_a_config_that_is_none_is_named(self, folder: Path, content: str):
        (folder / "config.json").write_text(content, encoding="utf-8")
        with pytest.raises(InvalidFile, match=r"config\.json is not a model's config"):
            VerifierManifest.load(folder)

    def test_its_own_description_comes_before_a_config(self, folder: Path):
        WRITTEN.save(named(folder, {"0": "yes", "1": "no"}))
        assert VerifierManifest.load(folder) == WRITTEN
