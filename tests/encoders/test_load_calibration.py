"""What a model folder was calibrated with, and token limits in a model's name."""

from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.folder import Manifest, Role, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.registry import load_calibration, load_encoder
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound

ONE = Runtime(threads=1)
CALIBRATION = Calibration(Logistic((1.0, -2.0), 0.5))
ROLE = Role("encoder.onnx", "topical", "cls", "", "", 64, 8)


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    """The description in `folder`."""
    (tmp_path / "encoder.onnx").write_bytes(b"graph")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    sha256 = {name: file_sha256(tmp_path / name) for name in ("encoder.onnx", "tokenizer.json")}
    return Manifest("toy", "none", "tokenizer.json", ROLE, ROLE, sha256)


@pytest.fixture
def folder(tmp_path: Path, manifest: Manifest) -> Path:
    """A model folder that was not calibrated."""
    manifest.save(tmp_path)
    return tmp_path


@pytest.fixture
def calibrated(folder: Path, manifest: Manifest) -> Path:
    CALIBRATION.save(folder / "fit.json")
    sha256 = {**manifest.sha256, "fit.json": file_sha256(folder / "fit.json")}
    replace(manifest, calibration="fit.json", sha256=sha256).save(folder)
    return folder


def test_a_folder_gives_what_it_was_calibrated_with(calibrated: Path):
    assert load_calibration(str(calibrated)) == CALIBRATION


def test_a_folder_that_was_not_calibrated_gives_none(folder: Path):
    assert load_calibration(str(folder)) is None


def test_a_token_limit_leaves_the_calibration(calibrated: Path):
    assert load_calibration(f"{calibrated}@32") == CALIBRATION


def test_a_pair_has_no_calibration_even_of_calibrated_folders(calibrated: Path):
    for pair in ("a+b", f"{calibrated}+{calibrated}", f"built-in+{calibrated}", "a+b@64"):
        assert load_calibration(pair) is None


def test_a_folder_with_a_plus_in_its_name_is_no_pair(calibrated: Path):
    (calibrated.parent / "a+b").symlink_to(calibrated)
    assert load_calibration(str(calibrated.parent / "a+b")) == CALIBRATION


def test_a_name_that_is_no_folder_has_no_calibration(tmp_path: Path):
    assert load_calibration(str(tmp_path / "gone")) is None


def test_a_calibration_that_is_named_but_missing_is_not_found(calibrated: Path):
    (calibrated / "fit.json").unlink()
    with pytest.raises(NotFound, match=r"no calibration .*fit\.json"):
        load_calibration(str(calibrated))


def test_a_calibration_does_not_change_the_fingerprint(folder: Path, manifest: Manifest):
    fitted = replace(
        manifest, calibration="fit.json", sha256={**manifest.sha256, "fit.json": "0" * 64}
    )
    assert fitted.fingerprint == manifest.fingerprint
    refitted = replace(fitted, sha256={**manifest.sha256, "fit.json": "1" * 64})
    assert refitted.fingerprint == manifest.fingerprint


def test_an_intact_calibration_verifies(calibrated: Path):
    Manifest.load(calibrated).verify(calibrated)


def test_a_calibration_without_a_digest_is_refused(calibrated: Path, manifest: Manifest):
    unpinned = replace(manifest, calibration="fit.json")
    with pytest.raises(ModelMismatch, match=r"gives no sha256 for fit\.json"):
        unpinned.verify(calibrated)


def test_a_damaged_calibration_is_noticed(calibrated: Path):
    (calibrated / "fit.json").write_text("{}")
    with pytest.raises(ModelMismatch, match=r"fit\.json is damaged or was changed"):
        Manifest.load(calibrated).verify(calibrated)


def test_a_token_limit_may_follow_the_name():
    loaded = load_encoder("built-in@32", runtime=ONE)
    assert isinstance(loaded, OnnxEncoder)
    assert loaded.max_length("topical") == loaded.max_length("compatibility") == 32
    assert loaded.spec == "built-in@32"


def test_the_limit_in_the_name_is_the_limit_of_the_runtime():
    named = load_encoder("built-in@32", runtime=ONE)
    set_up = load_encoder("built-in", runtime=Runtime(threads=1, max_length=32))
    assert (named.spec, named.fingerprint) == (set_up.spec, set_up.fingerprint)


def test_a_limit_holds_for_both_sides_of_a_pair():
    pair = load_encoder("built-in+built-in@32", runtime=ONE)
    assert isinstance(pair, CombinedEncoder)
    assert pair.topical.max_length == pair.compatibility.max_length == 32
    assert pair.spec == "built-in+built-in@32"


def test_two_token_limits_are_refused():
    with pytest.raises(InvalidValue, match="and max_length=64 name two token limits"):
        load_encoder("built-in@32", runtime=Runtime(threads=1, max_length=64))


@pytest.mark.parametrize("model", ["built-in@", "built-in@many", "built-in@-8"])
def test_what_follows_the_at_sign_must_be_a_number(model: str):
    with pytest.raises(InvalidValue, match="model must be 'built-in'"):
        load_encoder(model, runtime=ONE)


def test_a_limit_too_small_to_read_anything_is_refused():
    with pytest.raises(InvalidValue, match="max_length must be at least 8 tokens, got 4"):
        load_encoder("built-in@4", runtime=ONE)
