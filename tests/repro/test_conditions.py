"""Conditions hold: kept results are what the TOML expects, and measuring again finds it too."""

import json
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from coder_ir.experiments.comparison import load_comparison, measure_comparison
from coder_ir.experiments.run import COMPARISONS
from coder_ir.experiments.setup import Setup

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_kept_table_is_what_the_condition_expects(name: str):
    asked = load_comparison(name)
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]
    compared = 0
    for system, sets in asked.expected.items():
        for data, values in sets.items():
            for measure, value in zip(asked.measures, values, strict=True):
                if isnan(value):
                    continue
                seen = kept[data][system][measure.name]["mean"] * (100 if measure.rate else 1)
                limit = asked.tolerance if measure.rate else asked.rank_tolerance
                assert seen == pytest.approx(value, abs=limit), f"{system}, {data}, {measure.name}"
                compared += 1
    assert compared >= len(asked.systems), "a condition without expected figures shows nothing"


def test_an_exclusion_measured_again_moves_violations_as_far_down_as_expected(tmp_path: Path):
    asked = load_comparison("diagnostics")
    systems = tuple(system for system in asked.systems if system.name in ("topical", "auto"))
    setup = Setup(tmp_path / "no-data", tmp_path / "out", "none", "built-in")
    again = replace(asked, data=("exclusion",), systems=systems)
    table = measure_comparison(again, setup, lambda message: None)
    assert table.unexpected == ()
    found = table.figures["results"]["exclusion"]
    assert found["auto"]["FVR@10"]["mean"] > 3 * found["topical"]["FVR@10"]["mean"]
