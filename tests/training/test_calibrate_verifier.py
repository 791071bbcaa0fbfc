"""Calibration of a model with a verifier: what is fitted, on what, and what is told of it."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sklearn", reason="needs scikit-learn: the extra train")

from coder_ir.calibration import Calibration
from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import load_calibration
from coder_ir.training.calibrate import CalibrationReport, calibrate, cross_fitted_risks
from coder_ir.types import Scores, Triplet
from tests.tiny_bert import save_tiny_verifier, with_upper_layers_changed

pytestmark = pytest.mark.usefixtures("fake_parser")


@pytest.fixture(scope="module")
def exported(
    tiny: Path,
    tmp_path_factory: pytest.TempPathFactory,
    opposites: Callable[[Sequence[str]], list[Triplet]],
) -> Path:
    """A model folder with a random verifier, not calibrated."""
    from coder_ir.training.export import ExportPlan, export_model

    folder = tmp_path_factory.mktemp("exported")
    check = folder / "check.jsonl"
    check.write_text("".join(json.dumps(asdict(t)) + "\n" for t in opposites(["room"])))
    other = with_upper_layers_changed(tiny, folder / "other")
    save_tiny_verifier(tiny, folder / "verifier")
    plan = ExportPlan(str(tiny), str(other), folder / "model", "toy", "none", check=check)
    export_model(replace(plan, verifier=folder / "verifier"))
    return folder / "model"


@pytest.fixture(scope="module")
def done(
    exported: Path, items: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CalibrationReport]:
    """A calibrated copy and the report on it; tests only look at them."""
    model = Path(shutil.copytree(exported, tmp_path_factory.mktemp("done") / "model"))
    return model, calibrate(model, written=items)


@pytest.fixture(scope="module")
def fitted(done: tuple[Path, CalibrationReport]) -> Calibration:
    found = load_calibration(str(done[0]))
    assert found is not None
    return found


class Reader:
    """A verifier that says one thing of what is loud, the opposite of what is quiet."""

    def __init__(self, quiet: float) -> None:
        self.quiet = quiet

    def read(self, query: str, passages: Sequence[str]) -> Scores:
        signs = [("quiet" in text) - ("loud" in text) for text in passages]
        return self.quiet * np.array(signs, dtype=np.float64)


@pytest.fixture
def calibrated_with(
    exported: Path, items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Reader], Calibration]:
    """Calibrates a copy, its verifier exchanged."""

    def run(reader: Reader) -> Calibration:
        monkeypatch.setattr("coder_ir.training.calibrate.load_verifier", lambda encoder: reader)
        model = Path(shutil.copytree(exported, tmp_path / "model"))
        calibrate(model, written=items)
        found = load_calibration(str(model))
        assert found is not None
        return found

    return run


def test_a_verifier_that_cannot_decide_leaves_the_risk_as_it_is(
    calibrated_with: Callable[[Reader], Calibration],
):
    fitted = calibrated_with(Reader(0.0))
    assert fitted.read_risk == fitted.risk


def test_a_verifier_that_is_always_right_makes_risk_follow_the_reading(
    calibrated_with: Callable[[Reader], Calibration],
):
    # The queries ask for no noise: logits this high make quiet passages 1 and loud ones -1.
    fitted = calibrated_with(Reader(100.0))
    assert fitted.read_risk is not None
    quiet, loud = fitted.read_risk.probability(np.array([[0.5, 1.0, 0.0], [0.5, -1.0, 0.0]]))
    assert quiet < 0.1
    assert loud > 0.9


def test_the_risk_of_a_verified_passage_is_fitted_beside_that_of_others(fitted: Calibration):
    assert fitted.read_risk is not None
    assert len(fitted.read_risk.weights) == len(fitted.risk.weights) == 3
    assert fitted.read_risk != fitted.risk


def test_the_report_has_a_curve_for_verified_hits(done: tuple[Path, CalibrationReport]):
    report = done[1]
    assert report.read_risk is not None
    assert report.read_risk.judgements == report.risk.judgements == 6 * 3
    assert report.table().endswith(f", {report.read_risk.error:.3f} for verified hits")


def test_the_curves_can_be_drawn_again_from_the_folder(
    done: tuple[Path, CalibrationReport], items: Path
):
    model, report = done
    curves = cross_fitted_risks(OnnxEncoder(model), items)
    assert curves == (report.risk, report.read_risk)


def test_an_index_built_before_still_opens(exported: Path, done: tuple[Path, CalibrationReport]):
    assert Manifest.load(done[0]).fingerprint == Manifest.load(exported).fingerprint
    Manifest.load(done[0]).verify(done[0])


def without_verifier(model: Path, folder: Path) -> Path:
    """A copy that differs in having no verifier."""
    shutil.copytree(model, folder)
    manifest = Manifest.load(folder)
    digests = {name: value for name, value in manifest.sha256.items() if name != "verifier.onnx"}
    replace(manifest, verifier=None, sha256=digests).save(folder)
    return folder


def test_the_fit_of_other_hits_does_not_depend_on_a_verifier(
    exported: Path, fitted: Calibration, items: Path, tmp_path: Path
):
    model = without_verifier(exported, tmp_path / "model")
    report = calibrate(model, written=items)
    assert report.read_risk is None
    assert load_calibration(str(model)) == replace(fitted, read_risk=None)


def test_without_a_verifier_there_is_no_curve_of_verified_hits(
    exported: Path, items: Path, tmp_path: Path
):
    encoder = OnnxEncoder(without_verifier(exported, tmp_path / "model"))
    assert cross_fitted_risks(encoder, items)[1] is None
