"""What each choice of the training recipe is worth: small runs that differ in one thing."""

import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.training.config import Config, Stage, load_config
from coder_ir.training.fit import is_run_of, train
from coder_ir.training.sentences import load_triplets, save_triplets, whole_groups

_TRIPLETS = 1600
_LAYERS = 12  # of the base encoder
_RECIPE = Path("recipes/small.toml")
_FORKS = (9, 8, 6, 4, 0)
_LOSSES: dict[str, dict[str, float]] = {
    "ranking loss alone": {"symmetric": 0, "pairwise": 0},
    "with symmetric": {"pairwise": 0},
    "with pairwise": {"symmetric": 0},
    "with symmetric, pairwise, anchor": {"anchor": 1},
}
_SEEDS = (13, 47)


def measure_recipe(setup: Setup, report: Report) -> Table:
    """Development figures of one epoch over a sample, for forks, loss terms and seeds.

    A finished run is kept under `cache/recipe` and not done again.
    """
    folder = setup.out / "cache" / "recipe"
    rows, figures = [], {}
    for name, config in _variants(_sampled(setup, folder), folder).items():
        found = _run(config, report)
        figures[name] = found
        cost = (2 * _LAYERS - config.frozen_layers) / _LAYERS
        rows.append(
            (
                name,
                f"{100 * found['accuracy']:.1f}",
                f"{100 * found['paired']:.1f}",
                f"{cost:.2f}x",
                f"{found['seconds'] / 60:.1f}",
            )
        )
    return Table(
        name="recipe",
        title="The recipe, one choice changed at a time",
        columns=("run", "satisfying first ↑", "whole group right ↑", "layers run", "minutes"),
        rows=tuple(rows),
        notes=(
            f"One epoch over {_TRIPLETS} triplets of the sentence stage, no WordNet stage; percent "
            f"of {next(iter(figures.values()))['triplets']} held-out triplets. Layers run: for "
            "both vectors against the topical one. Minutes include caching the frozen layers.",
        ),
        figures=figures,
    )


def _sampled(setup: Setup, folder: Path) -> Config:
    """The recipe's sentence stage over a sample of whole groups."""
    recipe = load_config(_RECIPE)
    stage = recipe.stages[-1]
    if not stage.triplets.is_file():
        raise NotFound(f"no {stage.triplets}; build it with: coder-ir data sentences")
    folder.mkdir(parents=True, exist_ok=True)
    sample = folder / "sample.jsonl"
    save_triplets(whole_groups(load_triplets(stage.triplets), _TRIPLETS), sample)
    stage = replace(stage, triplets=sample, epochs=1)
    return replace(recipe, base=setup.reference, stages=(stage,))


def _variants(config: Config, folder: Path) -> dict[str, Config]:
    """The recipe as it is comes as the fork of its own number of layers."""
    stage = config.stages[0]
    made = {f"{layers} layers shared": replace(config, frozen_layers=layers) for layers in _FORKS}
    for name, terms in _LOSSES.items():
        made[name] = replace(config, stages=(_with_terms(stage, terms),))
    for seed in _SEEDS:
        made[f"seed {seed}"] = replace(config, seed=seed)
    return {
        name: replace(one, output=(folder / name.replace(" ", "-").replace(",", "")).resolve())
        for name, one in made.items()
    }


def _with_terms(stage: Stage, terms: dict[str, float]) -> Stage:
    return replace(stage, **terms)  # type: ignore[arg-type]


def _run(config: Config, report: Report) -> dict[str, Any]:
    done = config.output / "result.json"
    if done.is_file() and is_run_of(config):
        kept: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
        return kept
    start = perf_counter()
    finished = train(config, report=report)
    seconds = perf_counter() - start
    record = json.loads((finished / "training.json").read_text(encoding="utf-8"))
    found = {"seconds": seconds, **record["development"][config.stages[0].name]}
    done.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return found
