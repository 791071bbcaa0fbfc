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
from coder_ir.encoders.registry import load_calibration, load_verifier
from coder_ir.training.calibrate import CalibrationReport, calibrate, cross_fitted_risks
from coder_ir.types import Triplet
from tests.tiny_bert import save_tiny_verifier, with_upper_layers_changed
from tests.training.conftest import THINGS


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
    exported: Path, labelled: Path, claims: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CalibrationReport]:
    """A calibrated copy and the report on it; tests only look at them."""
    model = Path(shutil.copytree(exported, tmp_path_factory.mktemp("done") / "model"))
    return model, calibrate(model, written=labelled, triplets=claims)


@pytest.fixture(scope="module")
def fitted(done: tuple[Path, CalibrationReport]) -> Calibration:
    found = load_calibration(str(done[0]))
    assert found is not None
    return found


def test_the_reading_is_fitted_on_what_satisfies_against_what_violates(
    exported: Path, fitted: Calibration
):
    from sklearn.linear_model import LogisticRegression

    encoder = OnnxEncoder(exported)
    verifier = load_verifier(encoder)
    features, labels = [], []
    for thing in THINGS:
        query = f"a {thing} without noise"
        texts = [f"the {thing} is quiet", f"the {thing} is loud", "the night is warm"]
        asked = encoder.encode([query], kind="query").compatibility[0]
        cosines = encoder.encode(texts, kind="document").compatibility @ asked
        pairs = np.stack([cosines, verifier.read(query, texts)], axis=1)
        features.append(pairs[:2])  # the third says nothing to the point
        labels += [True, False]
    expected = LogisticRegression(C=100, max_iter=5000).fit(np.concatenate(features), labels)
    assert fitted.reading is not None
    # Int8 scales follow the batch, so that cosines differ a little from those fitted on.
    assert fitted.reading.weights == pytest.approx(expected.coef_[0], rel=0.1, abs=0.1)


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
    done: tuple[Path, CalibrationReport], fitted: Calibration, labelled: Path
):
    model, report = done
    curves = cross_fitted_risks(OnnxEncoder(model), labelled, fitted)
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


def test_the_other_fits_do_not_depend_on_a_verifier(
    exported: Path, fitted: Calibration, labelled: Path, claims: Path, tmp_path: Path
):
    model = without_verifier(exported, tmp_path / "model")
    report = calibrate(model, written=labelled, triplets=claims)
    assert report.read_risk is None
    assert load_calibration(str(model)) == replace(fitted, reading=None, read_risk=None)


def test_without_a_verifier_there_is_no_curve_of_verified_hits(
    exported: Path, fitted: Calibration, labelled: Path, tmp_path: Path
):
    encoder = OnnxEncoder(without_verifier(exported, tmp_path / "model"))
    assert cross_fitted_risks(encoder, labelled, fitted)[1] is None
