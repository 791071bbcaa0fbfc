"""The training loop on a random BERT of a few kilobytes and toy opposites."""

import hashlib
import json
import math
import pickletools
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

import torch
from safetensors.torch import load_file

from coder_ir.errors import CoderError, InvalidValue, MissingExtra, NotFound
from coder_ir.training.config import Config, Stage
from coder_ir.training.fit import data_hashes, develop, plan, train
from coder_ir.training.learners import EncoderLearner, learner_of
from coder_ir.training.sentences import load_triplets
from coder_ir.types import Triplet
from tests.fake_tower import ANGLES, FakeTower, triplet

# tower.py imports Pooling from where sentence-transformers no longer wants it;
# test_training_uses_nothing_deprecated holds that against it, once.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Importing from 'sentence_transformers.models':DeprecationWarning"
)

Written = Callable[[str, Sequence[Triplet]], Path]
Opposites = Callable[[Sequence[str]], list[Triplet]]
Weights = dict[str, torch.Tensor]


def silent(_: str) -> None:
    """Reports to nobody."""


def stop_at(words: str) -> Callable[[str], None]:
    """Kills the run when it reports these words."""

    def report(message: str) -> None:
        if words in message:
            raise KeyboardInterrupt

    return report


def weights(folder: Path) -> Weights:
    return load_file(folder / "model.safetensors")


def moved(before: Weights, after: Weights) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def log(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def toy(
    tmp_path_factory: pytest.TempPathFactory, tiny: Path, opposites: Opposites
) -> Callable[[Path], Config]:
    """A config by its output folder: 48 triplets in 3 batches an epoch, 8 epochs, 24 held out."""
    folder = tmp_path_factory.mktemp("toy")
    for name, things in (
        ("train.jsonl", ["room", "house", "street", "table"]),
        ("development.jsonl", ["garden", "river"]),
    ):
        lines = (json.dumps(asdict(triplet)) + "\n" for triplet in opposites(things))
        (folder / name).write_text("".join(lines))
    stage = Stage(
        name="toy",
        triplets=folder / "train.jsonl",
        development=folder / "development.jsonl",
        epochs=8,
        learning_rate=1e-2,
    )
    return lambda output: Config(
        base=str(tiny),
        output=output,
        stages=(stage,),
        frozen_layers=1,
        max_length=32,
        query_prefix="no ",
        threads=1,
        checkpoint_steps=15,
    )


@pytest.fixture
def config(toy: Callable[[Path], Config], tmp_path: Path) -> Config:
    """The toy run, not yet begun."""
    return toy(tmp_path / "run")


@pytest.fixture(scope="module")
def finished(toy: Callable[[Path], Config], tmp_path_factory: pytest.TempPathFactory) -> Config:
    """The toy run, done; tests only look at it."""
    config = toy(tmp_path_factory.mktemp("finished"))
    train(config, report=silent)
    return config


@pytest.fixture
def copied(finished: Config, tmp_path: Path) -> Config:
    """The finished run in a folder of the test's own."""
    config = replace(finished, output=tmp_path / "copy")
    shutil.copytree(finished.output, config.output)
    # A run knows its own folder.
    saved = json.loads((config.output / "config.json").read_text())
    saved["config"]["output"] = str(config.output)
    (config.output / "config.json").write_text(json.dumps(saved))
    return config


def changed(config: Config, **values: Any) -> Config:
    """The config with another first stage."""
    return replace(config, stages=(replace(config.stages[0], **values), *config.stages[1:]))


@pytest.fixture(scope="module")
def long_log(
    toy: Callable[[Path], Config], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    config = changed(toy(tmp_path_factory.mktemp("long")), epochs=40, symmetric=1.0)
    train(config, report=silent)
    return log(config.output)


def test_the_loss_falls(long_log: list[dict[str, Any]]):
    losses = [row["loss"] for row in long_log if "loss" in row]
    assert len(losses) == 6
    assert losses[-1] < 0.7 * losses[0]


def test_accuracy_on_held_out_triplets_rises(long_log: list[dict[str, Any]]):
    accuracies = [row["accuracy"] for row in long_log if "accuracy" in row]
    assert len(accuracies) == 40
    assert accuracies[-1] >= 0.7
    assert accuracies[-1] > accuracies[0] + 0.2


def test_frozen_layers_stay_bit_identical(finished: Config, tiny: Path):
    trained = moved(weights(tiny), weights(finished.output / "model"))
    assert not any(name.startswith(("embeddings.", "encoder.layer.0.")) for name in trained)


def test_layers_above_the_frozen_ones_are_trained(finished: Config, tiny: Path):
    trained = moved(weights(tiny), weights(finished.output / "model"))
    assert {f"encoder.layer.{n}.output.dense.weight" for n in (1, 2)} <= trained


def test_without_frozen_layers_everything_is_trained(config: Config, tiny: Path):
    before = weights(tiny)
    trained = moved(before, weights(train(replace(config, frozen_layers=0), report=silent)))
    # The pooler is not used, and a bias on all keys alike does not change attention.
    untrained = {n for n in before if n.startswith("pooler.") or n.endswith("key.bias")}
    assert trained | untrained == set(before)


def test_frozen_layers_give_the_loss_of_the_whole_network(config: Config):
    """Cached activations are half precision, so the first losses agree closely, not exactly."""
    for frozen, name in ((0, "whole"), (2, "cached")):
        run = changed(config, epochs=7, learning_rate=1e-9)
        train(replace(run, frozen_layers=frozen, output=config.output / name), report=silent)
    one, two = (log(config.output / name)[-1]["margin"] for name in ("whole", "cached"))
    assert one == pytest.approx(two, abs=2e-3)


@pytest.fixture(scope="module", params=[0, 2], ids=["all trained", "two layers frozen"])
def uninterrupted(
    request: pytest.FixtureRequest,
    toy: Callable[[Path], Config],
    tmp_path_factory: pytest.TempPathFactory,
) -> Config:
    config = replace(toy(tmp_path_factory.mktemp("whole")), frozen_layers=request.param)
    train(config, report=silent)
    return config


@pytest.mark.parametrize(
    "words",
    ["toy step 3/24", "toy step 18/24", "toy step 24/24"],
    ids=["before a checkpoint", "after a checkpoint", "at the last step"],
)
def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
    uninterrupted: Config, tmp_path: Path, words: str
):
    config = replace(uninterrupted, output=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(config, report=stop_at(words))
    resumed = weights(train(config, report=silent))
    for name, tensor in weights(uninterrupted.output / "model").items():
        torch.testing.assert_close(resumed[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rounded", [False, True])
def test_a_run_killed_in_its_second_stage_ends_with_the_same_weights(
    config: Config, tmp_path: Path, rounded: bool
):
    second = replace(config.stages[0], name="second", epochs=6, rounded=rounded)
    config = replace(config, stages=(replace(config.stages[0], epochs=2), second))
    whole = weights(train(replace(config, output=tmp_path / "whole"), report=silent))
    with pytest.raises(KeyboardInterrupt):
        train(config, report=stop_at("second step 18/18"))
    resumed = weights(train(config, report=silent))
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=0, atol=1e-6)


def test_a_resumed_run_does_not_repeat_what_was_checkpointed(config: Config):
    with pytest.raises(KeyboardInterrupt):
        train(config, report=stop_at("step 18/24"))
    (config.output / "log.jsonl").unlink()
    train(config, report=silent)
    assert min(row["step"] for row in log(config.output)) > 15


def test_a_resumed_run_logs_the_mean_of_the_losses_it_saw(config: Config, tmp_path: Path):
    config = changed(config, learning_rate=1e-9)  # so that the loss stays what it is
    train(replace(config, output=tmp_path / "whole"), report=silent)
    with pytest.raises(KeyboardInterrupt):
        train(config, report=stop_at("step 18/24"))
    train(config, report=silent)
    expected, seen = (
        next(row["loss"] for row in log(output) if "loss" in row)
        for output in (tmp_path / "whole", config.output)
    )
    assert seen == pytest.approx(expected, rel=0.3)


def test_a_finished_run_started_again_changes_nothing(copied: Config, finished: Config):
    again = weights(train(copied, report=silent))
    assert moved(weights(finished.output / "model"), again) == set()


def test_the_same_config_gives_the_same_weights(config: Config, finished: Config):
    again = weights(train(config, report=silent))
    assert moved(weights(finished.output / "model"), again) == set()


def test_another_seed_gives_other_weights(config: Config, finished: Config):
    other = weights(train(replace(config, seed=14), report=silent))
    assert moved(weights(finished.output / "model"), other)


@pytest.mark.parametrize(
    "values", [{"seed": 14}, {"frozen_layers": 2}, {"scale": 10.0}], ids=lambda v: next(iter(v))
)
def test_another_config_in_the_same_folder_is_refused(copied: Config, values: dict[str, Any]):
    with pytest.raises(InvalidValue, match="holds a run with other settings or data"):
        train(replace(copied, **values), report=silent)


def test_other_data_in_the_same_folder_is_refused(
    config: Config, written: Written, opposites: Opposites
):
    config = changed(config, triplets=written("mine.jsonl", opposites(["room"])), epochs=1)
    train(config, report=silent)
    written("mine.jsonl", opposites(["house"]))
    with pytest.raises(InvalidValue, match="holds a run with other settings or data"):
        train(config, report=silent)


def test_a_refused_config_leaves_the_run_as_it_was(copied: Config):
    before = {path: path.read_bytes() for path in copied.output.rglob("*") if path.is_file()}
    with pytest.raises(InvalidValue, match="holds a run"):
        train(replace(copied, seed=14), report=silent)
    assert before == {p: p.read_bytes() for p in copied.output.rglob("*") if p.is_file()}


def test_the_output_folder_holds_the_config_and_the_data_hashes(finished: Config):
    saved = json.loads((finished.output / "config.json").read_text())
    file = finished.stages[0].triplets
    assert saved["config"] == finished.as_json()
    assert (
        saved["data"][f"{finished.stages[0].name} triplets"]
        == hashlib.sha256(file.read_bytes()).hexdigest()
    )


def test_the_model_folder_holds_the_record_of_its_training(finished: Config):
    record = json.loads((finished.output / "model" / "training.json").read_text())
    last = log(finished.output)[-1]
    assert record["config"]["seed"] == finished.seed
    assert len(record["data"]) == 2
    assert record["software"].startswith("coder-ir ")
    assert record["development"]["toy"]["accuracy"] == pytest.approx(last["accuracy"], abs=1e-6)


def test_the_model_card_tells_recipe_data_and_figures(finished: Config):
    model = finished.output / "model"
    card = (model / "README.md").read_text()
    accuracy = json.loads((model / "training.json").read_text())["development"]["toy"]["accuracy"]
    digest = hashlib.sha256(finished.stages[0].triplets.read_bytes()).hexdigest()
    assert "# Compatibility encoder" in card
    assert f"| toy | 8 | 16 | 0.01 | none | train.jsonl | {digest[:16]} |" in card
    source = load_triplets(finished.stages[0].triplets)[0]
    assert f"| {source.source} | {source.licence} | 48 |" in card
    assert f"| toy | 24 | {100 * accuracy:.1f}% |" in card


def test_the_finished_folder_is_a_sentence_transformers_model(finished: Config):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(finished.output / "model"), device="cpu")
    assert model.prompts["query"] == "no "
    assert model.max_seq_length == 32
    assert model.encode(["a quiet room"], show_progress_bar=False).shape == (1, 32)


def test_the_finished_folder_gives_the_vectors_it_was_scored_with(finished: Config):
    from sentence_transformers import SentenceTransformer

    folder = finished.output / "model"
    model = SentenceTransformer(str(folder), device="cpu")
    rows = [json.loads(line) for line in finished.stages[0].development.read_text().splitlines()]
    asked, good, bad = (
        model.encode([prefix + row[name] for row in rows], show_progress_bar=False)
        for prefix, name in (("no ", "query"), ("", "satisfying"), ("", "violating"))
    )
    margin = float((asked * good - asked * bad).sum(axis=1).mean())
    scores = json.loads((folder / "training.json").read_text())["development"]["toy"]
    assert margin == pytest.approx(scores["margin"], abs=2e-3)


def test_no_file_of_a_run_is_a_pickle(finished: Config):
    files = [path for path in finished.output.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if is_pickle(path)] == []


def is_pickle(path: Path) -> bool:
    """A bare pickle, or a zip as torch.save writes it."""
    if zipfile.is_zipfile(path):
        return True
    try:
        return any(code.name == "STOP" for code, _, _ in pickletools.genops(path.read_bytes()))
    except Exception:
        return False


def test_what_torch_saves_would_be_seen_as_a_pickle(tmp_path: Path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "new")
    torch.save({"a": 1}, tmp_path / "old", _use_new_zipfile_serialization=False)
    assert is_pickle(tmp_path / "new")
    assert is_pickle(tmp_path / "old")


def test_files_of_one_name_in_two_folders_are_both_hashed(
    config: Config, written: Written, opposites: Opposites
):
    files = [
        written("a/train.jsonl", opposites(["room"])),
        written("b/train.jsonl", opposites(["day"])),
    ]
    stages = tuple(Stage(name=f.parent.name, triplets=f) for f in files)
    hashes = data_hashes(replace(config, stages=stages))
    digests = {hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    assert set(hashes.values()) == digests


def test_held_out_scores_are_those_worked_out_by_hand(tmp_path: Path):
    config = Config(base="", output=tmp_path, stages=(), query_prefix="", scale=5.0)
    held_out = [
        triplet("q", "good", "bad", "pair"),
        triplet("r", "bad", "good", "pair"),  # wrong: good is nearer to r
        triplet("q", "fine", "worse", "both right"),
        triplet("r", "good", "worse", "both right"),
        triplet("q", "worse", "good", "alone"),  # wrong
    ]
    learner = EncoderLearner(None, FakeTower(ANGLES), config)  # type: ignore[arg-type]
    scores = develop(learner, held_out)
    margins = [
        math.cos(ANGLES[t.query] - ANGLES[t.satisfying])
        - math.cos(ANGLES[t.query] - ANGLES[t.violating])
        for t in held_out
    ]
    assert scores.triplets == 5
    assert scores.accuracy == pytest.approx(3 / 5)
    assert scores.paired == pytest.approx(1 / 2)  # of the groups of two or more
    assert scores.margin == pytest.approx(sum(margins) / 5)


def groups(sizes: Sequence[int]) -> list[Triplet]:
    return [
        triplet(f"q{g}-{i}", f"s{g}-{i}", f"v{g}-{i}", f"g{g}")
        for g, size in enumerate(sizes)
        for i in range(size)
    ]


def split_pairs(batches: Sequence[Sequence[Triplet]]) -> list[str]:
    """Groups of two whose triplets are not in one batch."""
    return [
        group
        for group, count in Counter(t.group for batch in batches for t in batch).items()
        if count == 2 and not any(sum(t.group == group for t in batch) == 2 for batch in batches)
    ]


def test_a_plan_holds_every_triplet_once():
    triplets = groups([2, 1, 5, 2, 3, 2, 1])
    batches = plan(triplets, 4, seed=1)
    assert sorted(t.query for b in batches for t in b) == sorted(t.query for t in triplets)
    assert all(len(batch) <= 4 for batch in batches)


def test_a_plan_keeps_pairs_in_one_batch():
    assert split_pairs(plan(groups([2] * 40), 8, seed=1)) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_keeps_pairs_in_one_batch_beside_groups_of_odd_size(seed: int):
    assert split_pairs(plan(groups([1, 3, 1] + [2] * 40), 8, seed=seed)) == []


def test_a_large_group_is_dealt_out_over_batches():
    batches = plan(groups([20] + [2] * 30), 8, seed=1)
    assert max(sum(t.group == "g0" for t in batch) for batch in batches) < 8


def test_questions_over_the_same_two_passages_meet_in_one_batch():
    asked = [
        triplet(f"q{n}-{side}", f"{side}{n % 30}", f"{other}{n % 30}", f"g{n % 10}")
        for n in range(60)
        for side, other in ("ab", "ba")
    ]
    batches = plan(asked, 16, seed=1, together=4)
    for batch in batches:
        passages = Counter(frozenset((t.satisfying, t.violating)) for t in batch)
        assert set(passages.values()) == {4}


def test_a_stage_can_take_a_part_of_its_triplets(config: Config):
    train(changed(config, most=20, epochs=1), report=silent)
    assert log(config.output)[-1]["step"] < 3


@pytest.mark.parametrize(("crops", "steps"), [(False, 2), (True, 4)])
def test_a_stage_can_also_read_what_near_copies_alone_say(
    config: Config, written: Written, crops: bool, steps: int
):
    things = [f"Thing {number}." for number in range(32)]
    copies = [Triplet(f"no {t}", f"{t} Shut.", f"{t} Open.", t, "s", "l") for t in things]
    stage = replace(config.stages[0], triplets=written("copies", copies), epochs=1, crops=crops)
    train(replace(config, stages=(stage,)), report=silent)
    assert log(config.output)[-1]["step"] == steps


@pytest.mark.parametrize("able", [True, False], ids=["processor has it", "has it not"])
def test_bfloat16_changes_the_weights_only_where_the_processor_has_it(
    config: Config, finished: Config, monkeypatch: pytest.MonkeyPatch, able: bool
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": able})
    other = train(replace(config, bfloat16=True), report=silent)
    assert bool(moved(weights(finished.output / "model"), weights(other))) is able


def test_a_rounded_stage_reads_near_what_the_layers_say(config: Config):
    texts = ["not quiet", "the old house is quiet and the street is not very dark"]
    tower = learner_of(config).tower
    tower.cache(texts, done=lambda _: None)
    plain = tower.embed(texts, train=False)
    tower.cache(texts, done=lambda _: None, rounded=True)
    rounded = tower.embed(texts, train=False)
    assert not torch.equal(plain, rounded)
    torch.testing.assert_close(plain, rounded, rtol=0, atol=0.05)


def test_a_plan_is_the_same_for_the_same_seed():
    triplets = groups([2] * 20)
    assert plan(triplets, 8, seed=1) == plan(triplets, 8, seed=1)


def test_a_plan_differs_for_another_seed():
    triplets = groups([2] * 20)
    assert plan(triplets, 8, seed=1) != plan(triplets, 8, seed=2)


def test_a_plan_leaves_the_triplets_as_they_were():
    triplets = groups([2] * 20)
    before = list(triplets)
    plan(triplets, 8, seed=1)
    assert triplets == before


def test_a_triplet_file_that_is_not_there_is_not_found(config: Config, tmp_path: Path):
    with pytest.raises(NotFound, match=r"gone\.jsonl"):
        train(changed(config, triplets=tmp_path / "gone.jsonl"), report=silent)


def test_a_base_that_is_not_there_is_not_found(config: Config, tmp_path: Path):
    with pytest.raises(NotFound, match="gone"):
        train(replace(config, base=str(tmp_path / "gone")), report=silent)


@pytest.mark.parametrize("frozen", [-1, 3, 12])
def test_freezing_layers_the_encoder_does_not_have_is_refused(config: Config, frozen: int):
    with pytest.raises(InvalidValue, match=rf"frozen_layers must be .* got {frozen}"):
        train(replace(config, frozen_layers=frozen), report=silent)


@pytest.mark.parametrize(
    "values", [{"epochs": 0}, {"batch_size": 1}, {"together": 0}, {"most": -1}], ids=str
)
def test_a_stage_that_would_train_nothing_is_refused(config: Config, values: dict[str, int]):
    with pytest.raises(InvalidValue, match=next(iter(values))):
        train(changed(config, **values), report=silent)


def test_a_stage_without_triplets_is_refused(config: Config, written: Written):
    with pytest.raises(CoderError, match="empty"):
        train(changed(config, triplets=written("empty.jsonl", [])), report=silent)


def test_texts_longer_than_the_base_can_read_are_cut(config: Config, written: Written):
    long = triplet("very " * 100, "quiet " * 100, "loud " * 100)
    short = triplet("not loud", "quiet", "loud")
    file = written("long.jsonl", [long, short])
    config = changed(config, triplets=file, epochs=1)
    assert train(replace(config, max_length=128), report=silent).is_dir()


def test_training_without_torch_says_what_to_install(
    config: Config, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"Training needs .* pip install 'coder-ir\[train\]'"):
        train(config, report=silent)


def test_training_uses_nothing_deprecated(tiny: Path):
    code = (
        "from coder_ir.training.tower import load_base\n"
        f"load_base({str(tiny)!r}, max_length=32, query_prefix='')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
