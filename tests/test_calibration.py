"""Fitted models: their value by hand, and the file they travel in."""

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidFile, NotFound

CALIBRATION = Calibration(Logistic((1.0, 2.0, -3.0), -0.7))
GOOD = {"weights": [1.0, 2.0], "bias": 0.5}


def test_a_logit_of_zero_is_a_half():
    assert Logistic((1.0, -1.0), 0.0).probability(np.array([[2.0, 2.0]])).tolist() == [0.5]


def test_probabilities_are_those_worked_out_by_hand():
    # Odds of 3 for the bias, times 2 for the first feature, by 5 for the second.
    model = Logistic((log(2), -log(5)), log(3))
    rows = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    assert model.probability(rows) == pytest.approx([3 / 4, 6 / 7, 3 / 8, 6 / 11, 12 / 13])


def test_probabilities_are_double_precision_whatever_the_features_are():
    found = Logistic((1.0,), 0.0).probability(np.zeros((3, 1), dtype=np.float32))
    assert found.dtype == np.float64
    assert found.shape == (3,)


def test_no_rows_have_no_probabilities():
    assert Logistic((1.0, 1.0), 0.0).probability(np.zeros((0, 2))).shape == (0,)


def test_a_sure_case_is_next_to_one():
    assert Logistic((1.0,), 0.0).probability(np.array([[700.0]])) == pytest.approx([1.0])


def test_a_logit_no_exponential_can_hold_is_a_probability_too():
    found = Logistic((1.0,), 0.0).probability(np.array([[1e6], [-1e6]]))
    assert found == pytest.approx([1, 0], abs=1e-200)


def test_what_is_saved_is_loaded(tmp_path: Path):
    CALIBRATION.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == CALIBRATION


def test_the_file_is_json_a_person_can_read(tmp_path: Path):
    CALIBRATION.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == {
        "risk": {"weights": [1.0, 2.0, -3.0], "bias": -0.7}
    }


@pytest.mark.parametrize("fit", [GOOD, None, {"weights": [1.0]}], ids=["fit", "null", "broken"])
@pytest.mark.parametrize("name", ["detector", "reading", "read_risk"])
def test_a_file_from_when_more_was_fitted_loads_without_that_fit(
    tmp_path: Path, name: str, fit: Any
):
    (tmp_path / "c.json").write_text(json.dumps({"risk": GOOD, name: fit}))
    assert Calibration.load(tmp_path / "c.json") == Calibration(Logistic((1.0, 2.0), 0.5))


def test_whole_numbers_are_read_as_numbers(tmp_path: Path):
    (tmp_path / "c.json").write_text('{"risk": {"weights": [1], "bias": 0}}')
    assert Calibration.load(tmp_path / "c.json") == Calibration(Logistic((1.0,), 0.0))


@pytest.mark.parametrize(
    "raw",
    [
        {"reading": GOOD},
        {"risk": {"weights": [1.0]}},
        {"risk": {"weights": 1.0, "bias": 0.0}},
        {"risk": {"weights": ["many"], "bias": 0.0}},
        {"risk": {"weights": [1.0], "bias": None}},
        {"risk": [1.0]},
        [],
        None,
        "text",
    ],
    ids=[
        "no risk",
        "no bias",
        "weights are a number",
        "a weight is a word",
        "bias is null",
        "risk is a list",
        "a list",
        "null",
        "a string",
    ],
)
def test_a_file_that_holds_no_calibration_is_named(tmp_path: Path, raw: Any):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(InvalidFile, match=r"c\.json is not a calibration"):
        Calibration.load(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00"], ids=["empty", "cut", "no UTF-8"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"c\.json is not a calibration"):
        Calibration.load(path)


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match=r"no calibration .*gone\.json"):
        Calibration.load(tmp_path / "gone.json")


def test_a_folder_is_no_calibration(tmp_path: Path):
    with pytest.raises(NotFound, match="no calibration"):
        Calibration.load(tmp_path)
