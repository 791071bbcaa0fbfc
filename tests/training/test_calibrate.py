"""Calibration: its figures by hand, and what it leaves in a model folder."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sklearn", reason="needs scikit-learn: the extra train")

from coder_ir.calibration import Calibration, Logistic
from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import load_calibration, load_encoder
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound
from coder_ir.training.calibrate import (
    CalibrationReport,
    Curve,
    Point,
    calibrate,
    calibrate_verifier,
    cross_fitted_risks,
    reliability,
)
from coder_ir.types import STATED, Scores, Triplet
from coder_ir.verifier import OnnxVerifier, VerifierManifest
from tests.conftest import FakeParser
from tests.tiny_bert import save_tiny_bert
from tests.training.conftest import LOADER
from tests.verifier.graphs import counting, save_counting

pytestmark = pytest.mark.usefixtures("fake_parser")

Row = dict[str, Any]
Rewritten = Callable[[Callable[[list[Row]], None]], Path]


def curve_of(*judged: tuple[float, bool]) -> Curve:
    risks, breaks = zip(*judged, strict=True)
    return reliability(np.array(risks), np.array(breaks))


def test_predictions_are_gathered_in_ten_bins_of_equal_width():
    curve = curve_of((0.02, False), (0.06, True), (0.55, True), (0.97, True), (0.99, False))
    assert curve.points == (
        Point(pytest.approx(0.04), 0.5, 2),
        Point(pytest.approx(0.55), 1.0, 1),
        Point(pytest.approx(0.98), 0.5, 2),
    )
    assert curve.judgements == 5


def test_a_bin_begins_at_its_lower_bound_and_the_last_holds_certainty():
    curve = curve_of((0.0, False), (0.1, False), (0.5, True), (1.0, True), (0.9, True))
    assert [(p.risk, p.passages) for p in curve.points] == [(0.0, 1), (0.1, 1), (0.5, 1), (0.95, 2)]


def test_the_error_is_the_gap_of_each_bin_weighted_by_its_size():
    curve = Curve((Point(0.1, 0.2, 6), Point(0.5, 0.5, 1), Point(0.9, 0.6, 3)), area=0.5)
    assert curve.error == pytest.approx((6 * 0.1 + 1 * 0 + 3 * 0.3) / 10)


def test_predictions_that_come_true_have_no_error():
    assert curve_of((0.0, False), (0.5, True), (0.5, False), (1.0, True)).error == 0


@pytest.mark.parametrize(
    ("judged", "area"),
    [
        ([(0.9, True), (0.4, True), (0.4, False), (0.1, False)], 3.5 / 4),
        ([(0.9, True), (0.1, False)], 1),
        ([(0.1, True), (0.9, False)], 0),
        ([(0.5, True), (0.5, False), (0.5, False)], 0.5),
        ([(0.9, True)], 0.5),
        ([(0.9, False)], 0.5),
    ],
    ids=["one tie", "right", "wrong", "all tie", "only violating", "none violating"],
)
def test_the_area_is_the_share_of_pairs_in_which_the_violating_one_is_riskier(
    judged: list[tuple[float, bool]], area: float
):
    assert curve_of(*judged).area == pytest.approx(area)


def test_the_table_shows_how_many_judgements_there_were_their_error_and_their_area():
    report = CalibrationReport(Curve((Point(0.25, 0.5, 8),), area=0.75))
    assert report.table() == (
        "risk: 8 judgements, expected calibration error 0.250, area under the ROC curve 0.750"
    )


@pytest.fixture(scope="module")
def exported(
    tiny: Path,
    tmp_path_factory: pytest.TempPathFactory,
    opposites: Callable[[Sequence[str]], list[Triplet]],
) -> Path:
    """A model folder of two random encoders, not calibrated."""
    from coder_ir.training.export import ExportPlan, export_model

    folder = tmp_path_factory.mktemp("exported")
    check = folder / "check.jsonl"
    check.write_text("".join(json.dumps(asdict(t)) + "\n" for t in opposites(["room"])))
    other = save_tiny_bert(folder / "other", seed=9)
    export_model(ExportPlan(str(tiny), str(other), folder / "model", "toy", "none", check=check))
    return folder / "model"


@pytest.fixture(scope="module")
def done(
    exported: Path, items: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CalibrationReport]:
    """A calibrated copy and the report on it; tests only look at them."""
    model = Path(shutil.copytree(exported, tmp_path_factory.mktemp("done") / "model"))
    return model, calibrate(model, written=items)


def fit_of(model: Path) -> Path:
    """The file that holds what was fitted."""
    name = Manifest.load(model).calibration
    assert name is not None
    return model / name


def fits_in(model: Path) -> list[Path]:
    return sorted(model.glob("calibration*"))


def test_the_report_counts_judgements(done: tuple[Path, CalibrationReport]):
    _, report = done
    # Items and their passages; their second query states no constraint that could be broken.
    assert report.risk.judgements == 6 * 3
    assert 0 <= report.risk.error <= 1


def test_the_description_names_the_calibration_with_its_digest(
    done: tuple[Path, CalibrationReport],
):
    manifest = Manifest.load(done[0])
    digest = file_sha256(fit_of(done[0]))
    assert manifest.calibration == f"calibration-{digest[:8]}.json"
    assert manifest.sha256[manifest.calibration] == digest
    manifest.verify(done[0])


def test_an_index_built_before_calibration_still_opens(
    exported: Path, done: tuple[Path, CalibrationReport]
):
    assert Manifest.load(done[0]).fingerprint == Manifest.load(exported).fingerprint


def test_the_rest_of_the_folder_is_left_alone(exported: Path, done: tuple[Path, CalibrationReport]):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    after = {path.name: path.read_bytes() for path in done[0].iterdir()}
    changed = {name for name in after if before.get(name) != after[name]}
    assert changed == {fit_of(done[0]).name, "model.json"}
    assert before.keys() < after.keys()


def test_the_calibration_is_found_by_the_models_name(
    exported: Path, done: tuple[Path, CalibrationReport]
):
    found = load_calibration(str(done[0]))
    assert found == Calibration.load(fit_of(done[0]))
    assert load_calibration(f"{done[0]}@32") == found
    assert load_calibration(str(exported)) is None


def test_the_fit_reads_what_search_gives_it(done: tuple[Path, CalibrationReport]):
    found = load_calibration(str(done[0]))
    assert found is not None
    assert len(found.risk.weights) == 3


def test_a_damaged_calibration_is_noticed(done: tuple[Path, CalibrationReport], tmp_path: Path):
    model = Path(shutil.copytree(done[0], tmp_path / "model"))
    fit_of(model).write_text(fit_of(model).read_text().replace("1", "2", 1))
    with pytest.raises(ModelMismatch, match=r"calibration-.*\.json is damaged or was changed"):
        Manifest.load(model).verify(model)
    with pytest.raises(ModelMismatch, match=r"calibration-.*\.json is damaged or was changed"):
        load_encoder(str(model))


def test_a_calibration_that_went_missing_is_noticed(
    done: tuple[Path, CalibrationReport], tmp_path: Path
):
    model = Path(shutil.copytree(done[0], tmp_path / "model"))
    fit_of(model).unlink()
    with pytest.raises(ModelMismatch, match=r"calibration-.*\.json is missing"):
        Manifest.load(model).verify(model)
    with pytest.raises(NotFound, match="no calibration"):
        load_calibration(str(model))


def test_calibrating_again_gives_the_same(
    done: tuple[Path, CalibrationReport], items: Path, tmp_path: Path
):
    model = Path(shutil.copytree(done[0], tmp_path / "model"))
    assert calibrate(model, written=items) == done[1]
    assert load_calibration(str(model)) == load_calibration(str(done[0]))
    assert fits_in(model) == [fit_of(model)]
    Manifest.load(model).verify(model)


def calibrated_otherwise(model: Path) -> Path:
    """The folder with another calibration, under the name that older versions gave it."""
    before = Manifest.load(model)
    Calibration(Logistic((0.0, 0.0, 1.0), 0.0)).save(model / "calibration.json")
    digests = {**before.sha256, "calibration.json": file_sha256(model / "calibration.json")}
    replace(before, calibration="calibration.json", sha256=digests).save(model)
    return model


def test_a_new_calibration_takes_the_place_of_the_old_one(
    exported: Path,
    done: tuple[Path, CalibrationReport],
    items: Path,
    tmp_path: Path,
):
    model = calibrated_otherwise(Path(shutil.copytree(exported, tmp_path / "model")))
    calibrate(model, written=items)
    assert load_calibration(str(model)) == load_calibration(str(done[0]))
    assert fits_in(model) == [fit_of(model)]
    assert "calibration.json" not in Manifest.load(model).sha256
    load_encoder(str(model))


@pytest.mark.parametrize("before", ["never calibrated", "calibrated before"])
def test_a_kill_before_the_description_is_written_leaves_the_folder_as_it_was(
    exported: Path,
    items: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
):
    model = Path(shutil.copytree(exported, tmp_path / "model"))
    if before == "calibrated before":
        calibrated_otherwise(model)
    loaded = load_calibration(str(model))

    def killed(self: Manifest, folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Manifest, "save", killed)
        calibrate(model, written=items)
    load_encoder(str(model))
    assert load_calibration(str(model)) == loaded
    calibrate(model, written=items)  # a second try ends well
    load_encoder(str(model))
    assert fits_in(model) == [fit_of(model)]


def test_items_that_were_trained_on_do_not_stand_in_for_held_out_ones(
    exported: Path, items: Path, tmp_path: Path
):
    model = Path(shutil.copytree(exported, tmp_path / "model"))
    trained = Path(shutil.copytree(items, tmp_path / "written"))
    (trained / "contrast.development.jsonl").rename(trained / "contrast.jsonl")
    with pytest.raises(NotFound, match=r"contrast\.development\.jsonl"):
        calibrate(model, written=trained)
    assert fits_in(model) == []


def test_without_a_query_under_a_constraint_nothing_is_written(
    exported: Path, items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LOADER, lambda encoder: FakeParser(STATED - 0.01))
    model = Path(shutil.copytree(exported, tmp_path / "model"))
    with pytest.raises(InvalidValue, match=r"no development query in .* is taken for one with a"):
        calibrate(model, written=items)
    assert fits_in(model) == []


@pytest.fixture
def verifier(tmp_path_factory: pytest.TempPathFactory) -> OnnxVerifier:
    """It counts tokens and the word `loud`."""
    folder = tmp_path_factory.mktemp("verifier")
    return OnnxVerifier(save_counting(folder, manifest=counting()))


@pytest.fixture
def rewritten(items: Path, tmp_path: Path) -> Rewritten:
    """A folder with the items after a change to their rows."""

    def write(change: Callable[[list[Row]], None]) -> Path:
        name = "contrast.development.jsonl"
        rows = [json.loads(line) for line in (items / name).read_text().splitlines()]
        change(rows)
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path

    return write


def ask_both_ways(rows: list[Row]) -> None:
    for row in rows:
        row["qb"] = row["qa"].replace("noise", "quiet")


def mean_risk(curve: Curve) -> float:
    return sum(point.risk * point.passages for point in curve.points) / curve.judgements


def test_risk_is_measured_on_all_queries_that_count_as_constrained(
    exported: Path,
    rewritten: Rewritten,
    verifier: OnnxVerifier,
    monkeypatch: pytest.MonkeyPatch,
):
    encoder, folder = OnnxEncoder(exported), rewritten(ask_both_ways)
    curves = []
    for probability in (STATED, 0.9):
        monkeypatch.setattr(LOADER, lambda encoder, p=probability: FakeParser(p))
        curves.append(cross_fitted_risks(encoder, verifier, folder)[0])
    doubtful, sure = curves
    assert doubtful.judgements == sure.judgements == 6 * 2 * 3  # items, queries, passages
    assert mean_risk(doubtful) == pytest.approx(mean_risk(sure))


@pytest.mark.parametrize("left_out", [("qb",), ("neutral",), ("qb", "neutral")], ids="+".join)
def test_an_item_need_not_have_a_second_query_or_a_third_passage(
    exported: Path, rewritten: Rewritten, verifier: OnnxVerifier, left_out: Sequence[str]
):
    def change(rows: list[Row]) -> None:
        ask_both_ways(rows)
        for row in rows:
            for field in left_out:
                del row[field]

    curves = cross_fitted_risks(OnnxEncoder(exported), verifier, rewritten(change))
    queries, passages = 2 - ("qb" in left_out), 3 - ("neutral" in left_out)
    assert [curve.judgements for curve in curves] == [6 * queries * passages] * 2


def test_items_on_one_passage_share_a_fold(
    exported: Path,
    rewritten: Rewritten,
    verifier: OnnxVerifier,
    monkeypatch: pytest.MonkeyPatch,
):
    # The last two are of one group, which is the fifth and so has the fifth fold to itself.
    def join_the_last_two(rows: list[Row]) -> None:
        for row, item_id in zip(rows[-2:], ("edit-7-a", "edit-7-b"), strict=True):
            row["id"] = item_id

    seen: list[int] = []
    probability = Logistic.probability

    def predicted(self: Logistic, features: Scores) -> Scores:
        seen.append(len(features))
        return probability(self, features)

    monkeypatch.setattr(Logistic, "probability", predicted)
    cross_fitted_risks(OnnxEncoder(exported), verifier, rewritten(join_the_last_two))
    # An item's first query with three passages, by the vectors and then as read.
    assert seen == [3, 3, 3, 3, 6] * 2


class TestVerifier:
    """The risk of what was read, fitted for a verifier that counts `loud`."""

    @pytest.fixture
    def fitted(self, exported: Path, items: Path, tmp_path: Path) -> tuple[Path, CalibrationReport]:
        folder = save_counting(tmp_path, manifest=counting())
        return folder, calibrate_verifier(folder, written=items, encoder=OnnxEncoder(exported))

    def test_it_is_fitted_on_two_log_ratios(self, fitted: tuple[Path, CalibrationReport]):
        folder, report = fitted
        risk = VerifierManifest.load(folder).risk
        assert risk is not None
        assert len(risk.weights) == 2
        assert report.risk.judgements == 6 * 3

    def test_what_was_fitted_gives_the_risk_of_a_reading(
        self, fitted: tuple[Path, CalibrationReport]
    ):
        # Of the passages on a thing the one that says `loud` breaks the query without noise.
        quiet, loud = OnnxVerifier(fitted[0]).read(
            "a room without noise", ["the room is quiet", "the room is loud"]
        )
        assert quiet.risk < 0.5 < loud.risk

    def test_only_the_description_changes(self, fitted: tuple[Path, CalibrationReport]):
        manifest = VerifierManifest.load(fitted[0])
        assert replace(manifest, risk=None) == counting()

    def test_fitting_again_gives_the_same(
        self, fitted: tuple[Path, CalibrationReport], exported: Path, items: Path
    ):
        folder, report = fitted
        before = VerifierManifest.load(folder)
        again = calibrate_verifier(folder, written=items, encoder=OnnxEncoder(exported))
        assert (again, VerifierManifest.load(folder)) == (report, before)

    def test_a_second_query_is_broken_by_the_passage_that_satisfies_the_first(
        self, exported: Path, rewritten: Rewritten, tmp_path_factory: pytest.TempPathFactory
    ):
        def state_it_in_the_second_alone(rows: list[Row]) -> None:
            ask_both_ways(rows)
            for row in rows:
                row["qa"] = row["qa"].replace(" without noise", "")

        folder = save_counting(tmp_path_factory.mktemp("verifier"), manifest=counting())
        written = rewritten(state_it_in_the_second_alone)
        report = calibrate_verifier(folder, written=written, encoder=OnnxEncoder(exported))
        assert report.risk.judgements == 6 * 3
        # It rules out `quiet`, which the first of an item's passages says.
        quiet, loud = OnnxVerifier(folder).read(
            "a room without quiet", ["the room is quiet", "the room is loud"]
        )
        assert loud.risk < quiet.risk
