"""`coder-ir train verifier`: what it passes on and what it says."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coder_ir.cli.app import app
from coder_ir.training.verifier.config import VerifierConfig

RECIPE = Path(__file__).parents[3] / "recipes" / "verifier.toml"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the training was called with; nothing is trained."""
    seen: dict[str, Any] = {}

    def train(config: VerifierConfig, output: Path, *, report: Any) -> Path:
        seen.update(config=config, output=output)
        return output

    monkeypatch.setattr("coder_ir.training.verifier.run.train_verifier", train)
    return seen


def test_the_recipe_is_run_as_it_is(given: dict[str, Any]):
    done = CliRunner().invoke(app, ["train", "verifier", str(RECIPE), "-o", "some-run"])
    assert done.exit_code == 0, done.output
    assert given["output"] == Path("some-run")
    assert (given["config"].teacher.seed, given["config"].student.seed) == (3, 5)
    assert done.stdout == ""
    assert "finished: some-run/model.safetensors" in done.stderr


def test_options_stand_in_for_the_file_s(given: dict[str, Any]):
    options = ["--wheel", "w.whl", "--base", "b", "--published", "p", "--seed", "0"]
    done = CliRunner().invoke(app, ["train", "verifier", str(RECIPE), "-o", "run", *options])
    assert done.exit_code == 0, done.output
    config = given["config"]
    assert (config.teacher.wheel, config.student.base) == (Path("w.whl"), Path("b"))
    assert config.data.published == Path("p")
    assert (config.teacher.seed, config.student.seed) == (0, 0)


def test_a_missing_recipe_starts_no_run(tmp_path: Path):
    missing = str(tmp_path / "nothing.toml")
    done = CliRunner().invoke(app, ["train", "verifier", missing, "-o", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert not (tmp_path / "run").exists()
