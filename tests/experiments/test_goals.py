"""Settings, goals and risk: measured on made-up data, or read from hand-made results."""

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.errors import InvalidValue, MissingExtra, NotFound
from coder_ir.experiments.goals import DIAGNOSTICS, GOALS, MOST_FALSE, Goal, measure_goals
from coder_ir.experiments.ordinary import SETS as ORDINARY
from coder_ir.experiments.reading_cost import CONSTRAINED, PLAIN, READING
from coder_ir.experiments.risk import draw, measure_risk
from coder_ir.experiments.settings import measure_settings
from coder_ir.experiments.setup import Setup
from coder_ir.policies import Auto
from coder_ir.training.calibrate import Curve, Point
from tests.conftest import FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier

# The passages of an item share most of their words, as near-duplicates do.
ITEMS = [
    {
        "id": "t-1",
        "source": "ours",
        "a": "one hotel in town quiet+",
        "b": "one hotel in town noisy+",
        "qa": "hotel without noisy",
    },
    {
        "id": "e-1",
        "source": "Wiki",
        "a": "one sea in town quiet+",
        "b": "one sea in town noisy+",
        "qa": "sea quiet+",
    },
]


def mean(value: float) -> dict[str, float]:
    return {"mean": value}


def results(**data: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Figures as a comparison writes them: data, system, measure."""
    return {
        "results": {
            name: {system: {m: mean(v) for m, v in own.items()} for system, own in systems.items()}
            for name, systems in data.items()
        }
    }


# Every figure is at the bound of its goal or on the right side of it.
RESULTS: dict[str, dict[str, Any]] = {
    "nevir": {
        "policies": {
            "auto": {"V@1": mean(0.2), "pairwise": mean(0.625), "R@5": mean(0.89)},
            "topical": {"V@1": mean(0.4), "R@5": mean(0.9)},
            "compatibility": {"pairwise": mean(0.29)},
        }
    },
    "negconstraint": results(
        negconstraint={
            "auto": {"nDCG@5": 0.82, "AP@10": 0.77, "R@10": 0.9375},
            "topical": {"nDCG@5": 0.75, "AP@10": 0.75, "R@10": 0.9375},
        }
    ),
    "ordinary": {
        data: {"difference": mean(0.001 if data == "SciFact" else -0.002)} for data in ORDINARY
    },
    "parsing": {
        "held out": {
            "found": mean(0.99),
            "false": mean(0.01),
            "exact": mean(0.9),
            "F1": mean(0.95),
        },
        "readings of ExcluIR": {"F1": mean(0.8125)},
    },
    "detection": {
        "ExcluIR, exclusion query (RQ_rewrite)": mean(0.98),
        **{name: mean(bound / 200) for name, bound in MOST_FALSE.items()},
    },
    "encoding": {"ratio": {"coder-ir, topical vector": 2.5, "coder-ir, both vectors": 2.0}},
    "query-encoding": {"ratio": 1.05},
    "risk": {"risk_error": 0.04, "risk_area": 0.9375},
    "development": {
        "auto": {"ours": mean(0.9375), "V@1": mean(0.05), "R@5": mean(0.9)},
        "topical": {"R@5": mean(0.875)},
    },
    "reading": {
        "contrast items, development": {"satisfies over violates": mean(0.875)},
        "of them ours": {"satisfies over violates": mean(0.9375)},
        "300 triples": {"satisfies over violates": mean(0.8125), "order": mean(0.625)},
    },
    "reading-cost": {"ratio": {READING: 0.5, CONSTRAINED: 0.75, PLAIN: 1.0}},
    "diagnostics": results(
        **{data: {"auto": {"V@2": bound / 200}} for data, bound in DIAGNOSTICS.items()}
    ),
}


def said(message: str) -> None:
    assert message


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path / "data", tmp_path / "out", "none", "fake", tmp_path / "written")


class TestSettings:
    @pytest.fixture
    def figures(self, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        encoder = FakeEncoder(["quiet", "noisy", "hotel", "sea"])
        monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda spec, runtime: encoder)
        monkeypatch.setattr("coder_ir.retriever.load_calibration", lambda spec: None)
        monkeypatch.setattr("coder_ir.retriever.load_parser", lambda encoder: FakeParser())
        monkeypatch.setattr(
            "coder_ir.retriever.load_verifier", lambda name, *, threads: FakeVerifier()
        )
        setup.written.mkdir()
        text = "".join(json.dumps(item) + "\n" for item in ITEMS)
        (setup.written / "contrast.development.jsonl").write_text(text)
        return measure_settings(setup, said).figures

    def test_one_setting_is_changed_at_a_time(self, monkeypatch: pytest.MonkeyPatch, setup: Setup):
        policies: dict[str, Auto] = {}
        monkeypatch.setattr(
            "coder_ir.experiments.settings.measure_policies",
            lambda setup, report, variants, **names: policies.update(variants),
        )
        measure_settings(setup, said)
        assert policies.pop("auto") == Auto()
        for label, variant in policies.items():
            changed = {
                field.name
                for field in fields(Auto)
                if getattr(variant, field.name) != getattr(Auto(), field.name)
            }
            assert len(changed) == 1 or changed == {"doubt", "sure"}, label

    def test_what_is_read_tells_near_duplicates_apart(self, figures: dict[str, Any]):
        # Topic ties within an item, and the query without noise is as near to noise as it can be.
        found = {
            label: (figures[label]["ours"]["mean"], figures[label]["edits"]["mean"])
            for label in ("auto", "nothing read", "no compatibility")
        }
        assert found == {"auto": (1, 1), "nothing read": (0, 1), "no compatibility": (1, 1)}


class TestGoals:
    @pytest.fixture(autouse=True)
    def results(self, setup: Setup) -> None:
        setup.out.mkdir()
        for name, figures in RESULTS.items():
            (setup.out / f"{name}.json").write_text(json.dumps(figures))

    def test_every_goal_is_a_row_and_these_all_hold(self, setup: Setup):
        table = measure_goals(setup, said)
        assert [row[0] for row in table.rows] == [goal.words for goal in GOALS]
        assert {row[3] for row in table.rows} == {"yes"}

    def test_rows_say_what_was_asked_and_what_was_found(self, setup: Setup):
        rows = {row[0]: row[1:] for row in measure_goals(setup, said).rows}
        assert rows["NevIR, pairwise accuracy of s_C"] == ("≥ 28", "29.00", "yes")
        assert rows["NevIR, pairwise accuracy of auto"] == ("≥ 58", "62.50", "yes")
        assert rows["NevIR, V@1 of auto against topical"] == ("≤ -50%", "-50.00%", "yes")
        assert rows["NevIR, R@5 of auto minus topical"] == ("≥ -2", "-1.00", "yes")
        assert rows["Diagnostic antonym, V@2 of auto"] == ("≤ 52.9%", "26.45%", "yes")
        assert rows["NegConstraint, nDCG@5 of auto"] == ("≥ 81.6", "82.00", "yes")
        assert rows["NegConstraint, MAP@10 of auto"] == ("≥ 76.4", "77.00", "yes")
        assert rows["NegConstraint, MAP@10 of auto minus topical"] == ("≥ 0", "2.00", "yes")
        assert rows["SciFact, nDCG@10 of auto minus topical"] == ("≥ -0.3", "0.10", "yes")
        assert rows["NFCorpus, nDCG@10 of auto minus topical"] == ("≥ -0.3", "-0.20", "yes")
        assert rows["False alarms, SciFact, test"] == ("≤ 3%", "1.50%", "yes")
        assert rows["The same, token F1"] == ("≥ 93%", "95.00%", "yes")
        assert rows["Encoding both vectors against topical alone"] == ("≤ 1.4x", "1.25x", "yes")
        risk = "Expected calibration error of the risk of what was read"
        assert rows[risk] == ("≤ 0.05", "0.04", "yes")
        assert rows["Area under its ROC curve"] == ("≥ 0.92", "0.94", "yes")
        assert rows["300 triples, the whole order"] == ("≥ 60%", "62.50%", "yes")
        cost = "Reading 20 passages against ms-marco-MiniLM-L12 int8"
        assert rows[cost] == ("≤ 0.7x", "0.50x", "yes")

    def test_a_goal_that_is_missed_says_no_and_the_others_stay(self, setup: Setup):
        (setup.out / "risk.json").write_text('{"risk_error": 0.051, "risk_area": 0.92}')
        missed = [row[0] for row in measure_goals(setup, said).rows if row[3] == "no"]
        assert missed == ["Expected calibration error of the risk of what was read"]

    def test_the_figures_are_the_rows_by_name(self, setup: Setup):
        table = measure_goals(setup, said)
        assert table.figures["goals"][0] == dict(zip(table.columns, table.rows[0], strict=True))
        assert len(table.figures["goals"]) == len(GOALS)

    @pytest.mark.parametrize("name", RESULTS)
    def test_a_missing_measurement_is_named_with_its_command(self, setup: Setup, name: str):
        (setup.out / f"{name}.json").unlink()
        with pytest.raises(NotFound, match=rf"{name}\.json; run first: coder-ir bench {name}"):
            measure_goals(setup, said)


@pytest.mark.parametrize(
    ("least", "found", "holds"),
    [(True, 2.0, "yes"), (True, 1.99, "no"), (False, 2.0, "yes"), (False, 2.01, "no")],
)
def test_a_bound_itself_holds(least: bool, found: float, holds: str):
    goal = Goal("speed", lambda figures: float(figures["speed"]), 2, least, "x")
    assert goal.row({"speed": found})[-1] == holds


class TestRisk:
    @pytest.mark.parametrize("names", [("read",), ("read", "not read")], ids=str)
    def test_reliability_curves_are_drawn_as_png(self, tmp_path: Path, names: tuple[str, ...]):
        pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")
        curve = Curve((Point(0.1, 0.2, 6), Point(0.9, 0.6, 3)), area=0.7)
        draw(dict.fromkeys(names, curve), tmp_path / "risk.png")
        assert (tmp_path / "risk.png").read_bytes().startswith(b"\x89PNG")

    def test_without_matplotlib_the_extra_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingExtra, match=r"coder-ir\[bench\]"):
            draw({"risk": Curve((Point(0.1, 0.2, 6),), area=0.5)}, tmp_path / "risk.png")

    def test_a_model_that_is_no_folder_is_refused(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ):
        encoder = FakeEncoder(["hotel"])
        monkeypatch.setattr("coder_ir.experiments.risk.load_encoder", lambda model: encoder)
        with pytest.raises(InvalidValue, match="risk needs a model folder, got 'fake'"):
            measure_risk(setup, said)

    def test_the_table_has_both_curves_and_the_figures_are_of_what_was_read(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ):
        unread = Curve((Point(0.2, 0.5, 4),), area=0.7)
        read = Curve((Point(0.125, 0.25, 3), Point(0.9, 0.9, 1)), area=0.9375)
        encoder, verifier = object.__new__(OnnxEncoder), object()
        given: list[object] = []

        def cross_fitted(*parts: object) -> tuple[Curve, Curve]:
            given.extend(parts)
            return unread, read

        module = "coder_ir.experiments.risk"
        monkeypatch.setattr(f"{module}.load_encoder", lambda model: encoder)
        monkeypatch.setattr(f"{module}.OnnxVerifier", lambda folder: verifier)
        monkeypatch.setattr(f"{module}.cross_fitted_risks", cross_fitted)
        monkeypatch.setattr(f"{module}.draw", lambda curves, path: None)
        table = measure_risk(setup, said)
        assert given == [encoder, verifier, setup.written]
        assert table.rows == (
            ("read by the verifier", "0.12", "0.25", "3"),
            ("read by the verifier", "0.90", "0.90", "1"),
            ("not read", "0.20", "0.50", "4"),
        )
        assert table.figures["risk_error"] == pytest.approx(3 * 0.125 / 4)
        assert table.figures["risk_area"] == 0.9375
        assert "read by the verifier 0.094 and 0.938; not read 0.300 and 0.700" in table.notes[0]
