"""The model folder's description and its digests."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from coder_ir.encoders.folder import MANIFEST, SCHEME, Manifest, Role, file_sha256
from coder_ir.errors import InvalidFile, ModelMismatch, NotFound

ROLE = Role(
    graph="encoder.onnx",
    output="topical",
    pooling="cls",
    query_prefix="Query: ",
    document_prefix="",
    max_length=512,
    dimensions=384,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "encoder.onnx").write_bytes(b"graph")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    return tmp_path


@pytest.fixture
def manifest(folder: Path) -> Manifest:
    return Manifest(
        name="naïve",
        licence="Apache-2.0",
        tokenizer="tokenizer.json",
        topical=ROLE,
        compatibility=dataclasses.replace(ROLE, output="compatibility", pooling="mean"),
        sha256={name: file_sha256(folder / name) for name in ("encoder.onnx", "tokenizer.json")},
    )


def changed(folder: Path, **values: object) -> None:
    """Write a model.json that differs in these top-level fields."""
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}))


def test_a_saved_manifest_loads_as_it_was(folder: Path, manifest: Manifest):
    manifest.save(folder)
    assert Manifest.load(folder) == manifest


def test_the_file_says_its_format(folder: Path, manifest: Manifest):
    manifest.save(folder)
    assert json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["format"] == 1


def test_a_verifier_of_an_earlier_version_is_left_out(folder: Path, manifest: Manifest):
    manifest.save(folder)
    changed(folder, verifier={"graph": "verifier.onnx", "output": "score"})
    assert Manifest.load(folder) == manifest


def test_an_intact_folder_verifies(folder: Path, manifest: Manifest):
    manifest.verify(folder)


def test_a_role_is_found_by_its_space(manifest: Manifest):
    assert manifest.role("topical").output == "topical"
    assert manifest.role("compatibility").output == "compatibility"


def test_a_folder_without_model_json_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match=r"is not a model folder: it has no model\.json"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{not json", "[]", "{}", '{"topical": 3}', '{"topical": {"graph": "x"}}', '"text"'],
    ids=["broken", "a list", "empty", "role is a number", "role is incomplete", "a string"],
)
def test_a_model_json_that_describes_nothing_names_the_file(tmp_path: Path, text: str):
    (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"model\.json is not a model description"):
        Manifest.load(tmp_path)


def test_a_model_json_in_another_encoding_names_the_file(tmp_path: Path):
    (tmp_path / MANIFEST).write_bytes(b'{"name": "na\xefve"}')
    with pytest.raises(InvalidFile, match=r"model\.json is not a model description"):
        Manifest.load(tmp_path)


def test_an_unknown_field_is_refused(folder: Path, manifest: Manifest):
    manifest.save(folder)
    changed(folder, colour="blue")
    with pytest.raises(InvalidFile, match="colour"):
        Manifest.load(folder)


@pytest.mark.parametrize("version", [2, None, "1"], ids=["newer", "missing", "text"])
def test_another_format_is_refused(folder: Path, manifest: Manifest, version: object):
    manifest.save(folder)
    changed(folder, format=version)
    with pytest.raises(ModelMismatch, match=rf"has format {version!r}; this version reads 1"):
        Manifest.load(folder)


@pytest.mark.parametrize("space", ["topical", "compatibility"])
def test_an_unknown_pooling_is_refused(folder: Path, manifest: Manifest, space: str):
    manifest.save(folder)
    changed(folder, **{space: {**dataclasses.asdict(ROLE), "pooling": "max"}})
    with pytest.raises(InvalidFile, match="pooling must be cls or mean, got 'max'"):
        Manifest.load(folder)


@pytest.mark.parametrize("name", ["encoder.onnx", "tokenizer.json"])
def test_a_changed_byte_names_its_file(folder: Path, manifest: Manifest, name: str):
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    with pytest.raises(ModelMismatch, match=rf"{name} is damaged or was changed"):
        manifest.verify(folder)


@pytest.mark.parametrize("name", ["encoder.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, manifest: Manifest, name: str):
    (folder / name).unlink()
    with pytest.raises(ModelMismatch, match=rf"{name} is missing"):
        manifest.verify(folder)


def test_a_graph_without_a_digest_is_refused(folder: Path, manifest: Manifest):
    bare = dataclasses.replace(
        manifest, sha256={"tokenizer.json": manifest.sha256["tokenizer.json"]}
    )
    with pytest.raises(ModelMismatch, match=r"gives no sha256 for encoder\.onnx"):
        bare.verify(folder)


@pytest.mark.parametrize(
    "field", ["pooling", "query_prefix", "document_prefix", "max_length", "dimensions", "output"]
)
def test_the_fingerprint_changes_with_what_decides_a_vector(manifest: Manifest, field: str):
    old = getattr(manifest.compatibility, field)
    role = dataclasses.replace(
        manifest.compatibility, **{field: old + 1 if isinstance(old, int) else old + "x"}
    )
    other = dataclasses.replace(manifest, compatibility=role)
    assert other.fingerprint != manifest.fingerprint


def test_the_fingerprint_changes_with_the_weights(manifest: Manifest):
    weights = {**manifest.sha256, "encoder.onnx": hashlib.sha256(b"other").hexdigest()}
    assert dataclasses.replace(manifest, sha256=weights).fingerprint != manifest.fingerprint


@pytest.mark.parametrize("field", ["name", "licence"])
def test_the_fingerprint_stays_when_only_words_change(manifest: Manifest, field: str):
    other = dataclasses.replace(manifest, **{field: "something else"})
    assert other.fingerprint == manifest.fingerprint


def test_file_sha256_is_the_digest_of_the_bytes(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"abc")
    assert file_sha256(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_the_fingerprint_changes_with_the_way_texts_are_fed(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
):
    before = manifest.fingerprint
    monkeypatch.setattr("coder_ir.encoders.folder.SCHEME", SCHEME + 1)
    assert manifest.fingerprint != before
