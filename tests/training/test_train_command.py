"""`coder-ir train` on a tiny encoder."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coder_ir.cli.app import app
from coder_ir.types import Triplet
from tests.training.conftest import THINGS

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

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
