"""What a user may pass as `model=`."""

import shutil
import sys
from pathlib import Path

import pytest

from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace, Runtime
from coder_ir.encoders.registry import built_in_folder, load_encoder
from coder_ir.errors import InvalidValue, MissingExtra, ModelMismatch

ONE = Runtime(threads=1)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in model as a user's own folder."""
    return Path(shutil.copytree(built_in_folder(), tmp_path_factory.mktemp("models") / "mine"))


def test_the_built_in_folder_holds_a_model():
    assert (built_in_folder() / "model.json").is_file()


def test_the_built_in_model_loads_by_its_name(built_in: OnnxEncoder):
    loaded = load_encoder("built-in", runtime=ONE)
    assert isinstance(loaded, OnnxEncoder)
    assert (loaded.spec, loaded.fingerprint) == ("built-in", built_in.fingerprint)


def test_a_model_folder_loads_by_its_path(copied: Path, built_in: OnnxEncoder):
    loaded = load_encoder(str(copied), runtime=ONE)
    assert (loaded.spec, loaded.fingerprint) == (str(copied), built_in.fingerprint)


def test_the_spec_of_a_relative_folder_is_absolute(copied: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(copied.parent)
    assert load_encoder("mine", runtime=ONE).spec == str(copied)


def test_the_runtime_reaches_the_model():
    loaded = load_encoder("built-in", runtime=Runtime(threads=1, max_length=32))
    assert isinstance(loaded, OnnxEncoder)
    assert loaded.max_length("topical") == 32


@pytest.mark.parametrize("spaces", ["built-in+{mine}", " built-in + {mine} "])
def test_a_plus_joins_the_roles_of_two_folders(copied: Path, built_in: OnnxEncoder, spaces: str):
    pair = load_encoder(spaces.format(mine=copied), runtime=ONE)
    assert isinstance(pair, CombinedEncoder)
    assert pair.spec == f"built-in+{copied}"
    assert pair.topical.fingerprint == OnnxSpace(built_in, "topical").fingerprint
    assert pair.compatibility.fingerprint == OnnxSpace(built_in, "compatibility").fingerprint


def test_a_joined_pair_gives_the_vectors_of_its_sides(copied: Path, built_in: OnnxEncoder):
    pair = load_encoder(f"built-in+{copied}", runtime=ONE).encode(["a quiet room"], kind="query")
    alone = built_in.encode(["a quiet room"], kind="query")
    assert pair.topical == pytest.approx(alone.topical, abs=1e-6)
    assert pair.compatibility == pytest.approx(alone.compatibility, abs=1e-6)


def test_a_model_folder_may_have_a_plus_in_its_path(copied: Path, tmp_path: Path):
    (tmp_path / "a+b").symlink_to(copied)
    assert isinstance(load_encoder(str(tmp_path / "a+b"), runtime=ONE), OnnxEncoder)


@pytest.mark.parametrize("model", ["", "nothing-like-it", "a+", "+b", "+", " + "])
def test_a_spec_that_names_no_pair_is_refused(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InvalidValue, match=r"model must be 'built-in', a folder with a model\.json"
    ):
        load_encoder(model, runtime=ONE)


def test_a_folder_without_model_json_is_refused(tmp_path: Path):
    with pytest.raises(InvalidValue, match=f"got '{tmp_path}'"):
        load_encoder(str(tmp_path), runtime=ONE)


@pytest.mark.parametrize("model", ["{bad}", "{bad}+built-in", "built-in+{bad}"])
def test_a_damaged_folder_is_refused_in_any_role(copied: Path, tmp_path: Path, model: str):
    bad = Path(shutil.copytree(copied, tmp_path / "bad"))
    (bad / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelMismatch, match=r"tokenizer\.json is damaged or was changed"):
        load_encoder(model.format(bad=bad), runtime=ONE)


@pytest.mark.parametrize("model", ["some/name+built-in", "built-in+some/name"])
def test_a_name_without_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch, model: str):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"'some/name' needs .* pip install 'coder-ir\[train\]'"):
        load_encoder(model, runtime=ONE)
