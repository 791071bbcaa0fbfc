"""`coder-ir train` and its subcommands on a tiny encoder."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coder_ir.cli.app import app
from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.registry import load_calibration
from coder_ir.training.parser import ParserPlan
from coder_ir.types import Triplet
from tests.tiny_bert import with_upper_layers_changed
from tests.training.conftest import THINGS

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sklearn", reason="needs scikit-learn: the extra train")

Opposites = Callable[[Sequence[str]], list[Triplet]]


class TestTheCommandLine:
    def test_base_output_and_seed_stand_in_for_the_file_s(
        self, tmp_path: Path, tiny: Path, opposites: Opposites, written: Callable[..., Path]
    ):
        triplets = written("toy.jsonl", opposites(THINGS[:2]))
        recipe = tmp_path / "toy.toml"
        recipe.write_text(
            f'base = "nowhere/nothing"\noutput = "unused"\nseed = 13\n'
            f'[[stage]]\nname = "toy"\ntriplets = "{triplets}"\n'
        )

        wanted = ["--base", str(tiny), "-o", str(tmp_path / "run"), "--seed", "47"]
        done = CliRunner().invoke(app, ["train", str(recipe), *wanted])

        assert done.exit_code == 0, done.output
        record = json.loads((tmp_path / "run/model/training.json").read_text())["config"]
        assert (record["base"], record["seed"]) == (str(tiny), 47)
        assert not (tmp_path / "unused").exists()


@pytest.fixture
def model(tiny: Path, tmp_path: Path, opposites: Opposites) -> Path:
    """A model folder of two encoders that share their first layers."""
    from coder_ir.training.export import ExportPlan, export_model

    check = tmp_path / "check.jsonl"
    check.write_text("".join(json.dumps(asdict(t)) + "\n" for t in opposites(["room"])))
    other = with_upper_layers_changed(tiny, tmp_path / "other")
    export_model(ExportPlan(str(tiny), str(other), tmp_path / "model", "toy", "none", check=check))
    return tmp_path / "model"


class TestTheParser:
    @pytest.fixture
    def queries(self, tmp_path: Path) -> Path:
        folder = tmp_path / "queries"
        folder.mkdir()
        for part in ("train", "development"):
            lines = [
                line
                for thing in THINGS
                for line in (f"K|a {thing} {{c without}} {{x night}}", f"P|a {thing} with night")
            ]
            (folder / f"{part}.txt").write_text("".join(f"{line}\n" for line in lines))
        return folder

    def test_it_is_stored_in_the_folder_and_the_work_is_told(self, model: Path, queries: Path):
        done = CliRunner().invoke(app, ["train", "parser", str(model), "--queries", str(queries)])
        assert done.exit_code == 0, done.output
        assert done.stdout == ""
        assert "reading 12 queries, 5 noisy copies, 0 ordinary ones" in done.stderr
        assert Manifest.load(model).parser is not None
        Manifest.load(model).verify(model)

    @pytest.mark.parametrize(
        ("options", "seed", "ordinary"),
        [
            ([], ParserPlan().seed, None),
            (["--seed", "47"], 47, None),
            (["--ordinary", "asked.jsonl"], ParserPlan().seed, Path("asked.jsonl")),
        ],
        ids=["none", "a seed", "ordinary queries"],
    )
    def test_options_reach_the_training(
        self,
        queries: Path,
        monkeypatch: pytest.MonkeyPatch,
        options: list[str],
        seed: int,
        ordinary: Path | None,
    ):
        given: dict[str, Any] = {}
        monkeypatch.setattr(
            "coder_ir.training.parser.train_parser",
            lambda folder, **rest: given.update(rest, folder=folder),
        )
        command = ["train", "parser", "some-model", "--queries", str(queries), *options]
        assert CliRunner().invoke(app, command).exit_code == 0
        del given["report"]
        assert given == {
            "folder": Path("some-model"),
            "queries": queries,
            "ordinary": ordinary,
            "plan": ParserPlan(seed=seed),
        }


class TestCalibration:
    def test_the_risk_is_fitted_and_its_error_told(
        self, model: Path, items: Path, fake_parser: None
    ):
        done = CliRunner().invoke(app, ["train", "calibrate", str(model), "--written", str(items)])
        assert done.exit_code == 0, done.output
        assert re.fullmatch(
            r"risk: 18 judgements, expected calibration error \d\.\d{3}, "
            r"area under the ROC curve \d\.\d{3}\n",
            done.stdout,
        )
        assert load_calibration(str(model)) is not None

    @pytest.mark.parametrize("gone", ["--triplets", "--seed"])
    def test_options_of_what_is_no_longer_fitted_are_unknown(
        self, model: Path, items: Path, gone: str
    ):
        command = ["train", "calibrate", str(model), "--written", str(items), gone, "13"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2
        assert f"No such option: {gone}" in done.stderr
