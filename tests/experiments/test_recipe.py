"""The recipe's choices: which runs there are, on a fake trainer; and all of it on a tiny BERT."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import NotFound
from coder_ir.experiments import recipe
from coder_ir.experiments.recipe import measure_recipe
from coder_ir.experiments.setup import Setup
from coder_ir.training.config import Config, load_config
from coder_ir.training.fit import data_hashes
from coder_ir.training.sentences import load_triplets, save_triplets
from coder_ir.types import Triplet
from tests.tiny_bert import save_tiny_bert

RECIPE = """
base = "another base"
output = "elsewhere"
frozen_layers = 2
max_length = 32
seed = 5
threads = 1
[[stage]]
name = "words"
triplets = "no-such-file.jsonl"
[[stage]]
name = "sentences"
triplets = "triplets.jsonl"
development = "development.jsonl"
epochs = 3
batch_size = 4
symmetric = 1.0
pairwise = 0.5
"""
RUNS = [
    "2 layers shared",
    "0 layers shared",
    "ranking loss alone",
    "with symmetric",
    "with pairwise",
    "with symmetric, pairwise, anchor",
    "seed 13",
    "seed 47",
]


def said(message: str) -> None:
    assert message


def triplets(sizes: list[int]) -> list[Triplet]:
    """Groups of these sizes, one after the other."""
    pairs = (("quiet", "loud"), ("warm", "cold"), ("clean", "dirty"))
    return [
        Triplet(
            f"not {bad} {group}", f"{good} {group}", f"{bad} {group}", str(group), "toy", "none"
        )
        for group, size in enumerate(sizes)
        for good, bad in pairs[:size]
    ]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """Twelve groups of two triplets, of which six are asked for."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    save_triplets(triplets([2] * 12), tmp_path / "triplets.jsonl")
    save_triplets(triplets([2, 2]), tmp_path / "development.jsonl")
    monkeypatch.setattr(recipe, "_RECIPE", tmp_path / "recipe.toml")
    monkeypatch.setattr(recipe, "_TRIPLETS", 6)
    monkeypatch.setattr(recipe, "_FORKS", (2, 0))
    return Setup(tmp_path / "data", tmp_path / "out", "the base", "none")


class Trainer:
    """Keeps what it was asked to train and writes what training writes at its end."""

    def __init__(self) -> None:
        self.configs: dict[str, Config] = {}
        self.fails_at = -1

    def __call__(self, config: Config, *, report: Callable[[str], None]) -> Path:
        if len(self.configs) == self.fails_at:
            raise KeyboardInterrupt
        self.configs[config.output.name] = config
        scores = {"triplets": 4, "accuracy": 0.75, "paired": 0.5, "margin": 0.1}
        folder = config.output / "model"
        folder.mkdir(parents=True, exist_ok=True)
        identity = {"config": config.as_json(), "data": data_hashes(config)}
        (config.output / "config.json").write_text(json.dumps(identity))
        record = {"development": {"sentences": scores}}
        (folder / "training.json").write_text(json.dumps(record))
        report(f"trained {config.output}")
        return folder


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Trainer:
    made = Trainer()
    monkeypatch.setattr(recipe, "train", made)
    return made


def changed(one: Any, other: Any) -> dict[str, Any]:
    """The fields of one that differ from the other's, but for where the run lies."""
    return {
        field.name: getattr(one, field.name)
        for field in fields(one)
        if getattr(one, field.name) != getattr(other, field.name) and field.name != "output"
    }


class TestRuns:
    def test_one_thing_is_changed_at_a_time(self, setup: Setup, trainer: Trainer):
        measure_recipe(setup, said)
        plain = trainer.configs.pop("2-layers-shared")
        found = {}
        for name, config in trainer.configs.items():
            found[name] = changed(config, plain)
            if "stages" in found[name]:
                found[name] = changed(found[name]["stages"][0], plain.stages[0])
        assert found == {
            "0-layers-shared": {"frozen_layers": 0},
            "ranking-loss-alone": {"symmetric": 0, "pairwise": 0},
            "with-symmetric": {"pairwise": 0},
            "with-pairwise": {"symmetric": 0},
            "with-symmetric-pairwise-anchor": {"anchor": 1},
            "seed-13": {"seed": 13},
            "seed-47": {"seed": 47},
        }

    def test_the_plain_run_is_one_epoch_of_the_last_stage_from_the_reference(
        self, setup: Setup, trainer: Trainer, tmp_path: Path
    ):
        measure_recipe(setup, said)
        plain = trainer.configs["2-layers-shared"]
        given = load_config(tmp_path / "recipe.toml")
        sample = tmp_path / "out" / "cache" / "recipe" / "sample.jsonl"
        assert changed(plain, given) == {"base": "the base", "stages": plain.stages}
        assert len(plain.stages) == 1
        assert changed(plain.stages[0], given.stages[1]) == {"triplets": sample, "epochs": 1}

    def test_every_run_has_a_folder_of_its_own_under_the_cache(
        self, setup: Setup, trainer: Trainer
    ):
        measure_recipe(setup, said)
        folders = [config.output for config in trainer.configs.values()]
        assert len(set(folders)) == len(RUNS)
        assert {folder.parent for folder in folders} == {setup.out / "cache" / "recipe"}

    def test_a_finished_run_is_not_done_again(self, setup: Setup, trainer: Trainer):
        first = measure_recipe(setup, said)
        trainer.configs.clear()
        assert measure_recipe(setup, said) == first
        assert trainer.configs == {}

    def test_a_run_with_other_settings_is_not_taken_for_it(
        self, setup: Setup, trainer: Trainer, tmp_path: Path
    ):
        measure_recipe(setup, said)
        trainer.configs.clear()
        changed_recipe = RECIPE.replace("batch_size = 4", "batch_size = 3")
        (tmp_path / "recipe.toml").write_text(changed_recipe)
        measure_recipe(setup, said)
        assert len(trainer.configs) == len(RUNS)

    def test_after_an_interruption_only_the_rest_is_run(self, setup: Setup, trainer: Trainer):
        trainer.fails_at = 3
        with pytest.raises(KeyboardInterrupt):
            measure_recipe(setup, said)
        trainer.configs, trainer.fails_at = {}, -1
        measure_recipe(setup, said)
        assert next(iter(trainer.configs)) == "with-symmetric"
        assert len(trainer.configs) == len(RUNS) - 3

    def test_missing_triplets_are_named_with_the_command(self, setup: Setup, tmp_path: Path):
        (tmp_path / "triplets.jsonl").unlink()
        with pytest.raises(
            NotFound, match=r"triplets\.jsonl; build it with: coder-ir data sentence"
        ):
            measure_recipe(setup, said)


@pytest.mark.usefixtures("trainer")
class TestSample:
    def sampled(self, setup: Setup, folder: Path, sizes: list[int]) -> list[Triplet]:
        save_triplets(triplets(sizes), folder / "triplets.jsonl")
        measure_recipe(setup, said)
        return load_triplets(setup.out / "cache" / "recipe" / "sample.jsonl")

    def test_it_is_spread_over_the_whole_file(self, setup: Setup, tmp_path: Path):
        found = self.sampled(setup, tmp_path, [2] * 12)
        assert [t.group for t in found] == ["0", "0", "4", "4", "8", "8"]

    @pytest.mark.parametrize("sizes", [[1, 3, 3, 2, 3, 1, 3, 2], [2, 3, 3], [3] * 7], ids=str)
    def test_groups_are_taken_whole(self, setup: Setup, tmp_path: Path, sizes: list[int]):
        found = Counter(t.group for t in self.sampled(setup, tmp_path, sizes))
        assert found == {group: sizes[int(group)] for group in found}
        assert sum(found.values()) >= 6

    def test_a_small_file_is_taken_as_it_is(self, setup: Setup, tmp_path: Path):
        assert self.sampled(setup, tmp_path, [2, 1]) == triplets([2, 1])


@pytest.mark.usefixtures("trainer")
class TestTable:
    def test_a_row_shows_percent_cost_and_time(self, setup: Setup):
        table = measure_recipe(setup, said)
        cells = {row[0]: row[1:4] for row in table.rows}
        assert list(cells) == list(table.figures) == RUNS
        # Both towers have twelve layers; those that are shared run once.
        assert cells["2 layers shared"] == ("75.0", "50.0", "1.83x")
        assert cells["0 layers shared"] == ("75.0", "50.0", "2.00x")
        assert {len(row) for row in table.rows} == {len(table.columns)}

    def test_the_note_says_what_it_was_trained_and_measured_on(self, setup: Setup):
        (note,) = measure_recipe(setup, said).notes
        assert note.startswith("One epoch over 6 triplets")
        assert "percent of 4 held-out triplets" in note


def test_a_tiny_base_is_trained_for_every_choice(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("torch", reason="needs torch: the extra train")
    pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
    monkeypatch.setattr(recipe, "_SEEDS", (13,))
    base = save_tiny_bert(tmp_path / "base")
    here = Setup(setup.data, setup.out, str(base), "none")
    figures = measure_recipe(here, said).figures
    assert list(figures) == RUNS[:-1]
    assert {found["triplets"] for found in figures.values()} == {4}
    assert all(0 <= found["accuracy"] <= 1 and found["seconds"] > 0 for found in figures.values())
    assert len({found["margin"] for found in figures.values()}) == len(figures)  # none is another
