"""What is trained: a verifier that reads query and passage at once, beside the encoder."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

import torch
from safetensors.torch import load_file

from coder_ir.errors import InvalidValue
from coder_ir.training.config import Config, Stage
from coder_ir.training.fit import train
from coder_ir.training.learners import (
    HEAD,
    EncoderLearner,
    VerifierLearner,
    learner_of,
    load_head,
)
from coder_ir.types import Triplet
from tests.fake_tower import ANGLES, FakeTower, triplet

Opposites = Callable[[Sequence[str]], list[Triplet]]
PREFIX = "no "
HELD_OUT = ("garden", "river")
PAIRS = [
    ("not quiet", "the room is loud"),
    ("very quiet", "the old house is quiet and the street is not very dark"),
    ("not quiet", "a table"),
    ("warm", "the room is loud"),
]


def silent(_: str) -> None:
    """Reports to nobody."""


def cached(config: Config, pairs: Sequence[tuple[str, str]] = PAIRS) -> VerifierLearner:
    """An untrained verifier that may be asked about these pairs; the same one every time."""
    torch.manual_seed(config.seed)
    learner = learner_of(config)
    assert isinstance(learner, VerifierLearner)
    texts = [text for query, passage in pairs for text in (config.query_prefix + query, passage)]
    learner.tower.cache(texts, done=lambda _: None)
    return learner


def verifier_config(base: Path, output: Path, *stages: Stage) -> Config:
    return Config(
        base=str(base),
        output=output,
        stages=stages,
        kind="verifier",
        frozen_layers=1,
        max_length=32,
        query_prefix=PREFIX,
        threads=1,
        checkpoint_steps=15,
    )


@pytest.fixture
def config(tiny: Path, tmp_path: Path) -> Config:
    return verifier_config(tiny, tmp_path / "run")


def test_the_kind_of_a_config_decides_what_is_trained(config: Config):
    assert isinstance(learner_of(config), VerifierLearner)
    assert isinstance(learner_of(replace(config, kind="encoder")), EncoderLearner)


def test_a_verifier_over_no_frozen_layers_is_refused(config: Config):
    with pytest.raises(InvalidValue, match="a verifier needs frozen_layers of 1 or more, got 0"):
        learner_of(replace(config, frozen_layers=0))


class TestScores:
    @torch.no_grad()
    def by_hand(self, learner: VerifierLearner, query: str, passage: str) -> float:
        """Each text alone through the frozen layers, then both in one row, unpadded."""
        network, tokenizer = learner.tower.network.eval(), learner.tower.tokenizer
        rows = []
        for text in (PREFIX + query, passage):
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            rows.append(network(input_ids=ids, output_hidden_states=True).hidden_states[1])
        hidden = torch.cat(rows, dim=1)
        for layer in network.encoder.layer[1:]:
            hidden = layer(hidden)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return float(learner.head(hidden[0, 0]))

    def test_both_texts_go_side_by_side_above_the_frozen_layers(self, config: Config):
        learner = cached(config)
        expected = [self.by_hand(learner, *pair) for pair in PAIRS]
        # Cached activations are half precision.
        assert learner.scores(PAIRS, train=False).tolist() == pytest.approx(expected, abs=2e-3)

    def test_they_come_in_the_order_of_the_pairs_whatever_their_length(self, config: Config):
        learner = cached(config)
        pairs = PAIRS * 5  # more than go through the layers together
        once = learner.scores(PAIRS, train=False).tolist()
        assert learner.scores(pairs, train=False).tolist() == pytest.approx(once * 5, abs=1e-5)

    def test_a_passage_is_read_in_the_light_of_the_query(self, config: Config):
        one, *_, other = cached(config).scores(PAIRS, train=False).tolist()
        assert abs(one - other) > 1e-4

    def test_scoring_leaves_no_gradient_and_training_does(self, config: Config):
        learner = cached(config)
        assert not learner.scores(PAIRS, train=False).requires_grad
        assert learner.scores(PAIRS, train=True).requires_grad

    def test_the_margin_of_a_triplet_is_satisfying_less_violating(self, config: Config):
        learner = cached(config)
        [good, _, bad, _] = learner.scores(PAIRS, train=False).tolist()
        [found] = learner.margins([triplet("not quiet", "the room is loud", "a table")])
        assert found == pytest.approx(good - bad, abs=1e-5)


def test_the_loss_of_a_verifier_is_that_of_its_logits(config: Config, tmp_path: Path):
    learner = cached(config)
    for module in learner.tower.network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # so that training and scoring give the same logits
    [good, _, bad, _] = learner.scores(PAIRS, train=False).tolist()
    batch = [triplet("not quiet", "the room is loud", "a table")]
    loss = learner.loss(batch, {}, Stage("plain", tmp_path)).item()
    alone = (math.log(1 + math.exp(-good)) + math.log(1 + math.exp(bad))) / 2
    assert loss == pytest.approx(math.log(1 + math.exp(bad - good)) + alone, abs=1e-3)


def test_the_margins_of_an_encoder_are_differences_of_cosines(tmp_path: Path):
    config = Config(base="", output=tmp_path, stages=(), query_prefix="")
    learner = EncoderLearner(None, FakeTower(ANGLES), config)  # type: ignore[arg-type]
    assert learner.margins([triplet("q", "good", "bad"), triplet("r", "bad", "good")]) == (
        pytest.approx([math.cos(0.3) - math.cos(0.9), math.cos(0.5) - math.cos(0.1)])
    )


class TestSaved:
    def test_the_head_is_read_back_as_it_was(self, config: Config, tmp_path: Path):
        learner = learner_of(config)
        assert isinstance(learner, VerifierLearner)
        learner.save(tmp_path)
        head = load_head(tmp_path)
        assert {name: value.shape for name, value in head.items()} == {
            "weight": (1, 32),
            "bias": (1,),
        }
        np.testing.assert_array_equal(head["weight"], learner.head.weight.detach().numpy())

    def test_a_folder_without_a_head_is_no_verifier(self, tiny: Path):
        with pytest.raises(InvalidValue, match=r"is no trained verifier: it has no head\.safetens"):
            load_head(tiny)


def by_overlap(triplets: Sequence[Triplet]) -> float:
    """Share that counting shared words gets right."""
    gains = [
        len(asked & set(t.satisfying.split())) - len(asked & set(t.violating.split()))
        for t in triplets
        for asked in [set(t.query.split())]
    ]
    return sum(gain > 0 for gain in gains) / len(gains)


@pytest.fixture(scope="module")
def toy(
    tmp_path_factory: pytest.TempPathFactory, tiny: Path, opposites: Opposites
) -> Callable[..., Config]:
    """A verifier's run by its output folder: 72 triplets in 5 batches an epoch, 24 held out."""
    folder = tmp_path_factory.mktemp("rule")
    for name, things in (
        ("train.jsonl", ["room", "house", "street", "table", "day", "night"]),
        ("development.jsonl", HELD_OUT),
    ):
        lines = (json.dumps(asdict(triplet)) + "\n" for triplet in opposites(things))
        (folder / name).write_text("".join(lines))

    def build(output: Path, *, epochs: int) -> Config:
        stage = Stage(
            name="toy",
            triplets=folder / "train.jsonl",
            development=folder / "development.jsonl",
            epochs=epochs,
            learning_rate=1e-3,
        )
        return verifier_config(tiny, output, stage)

    return build


def weights(model: Path) -> dict[str, torch.Tensor]:
    """All of a saved verifier, its head included."""
    return {**load_file(model / "model.safetensors"), **load_file(model / HEAD)}


@pytest.fixture(scope="module")
def log(
    toy: Callable[..., Config], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    config = toy(tmp_path_factory.mktemp("learnt"), epochs=50)
    train(config, report=silent)
    return [json.loads(line) for line in (config.output / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(
    toy: Callable[..., Config], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    config = toy(tmp_path_factory.mktemp("whole"), epochs=4)
    return weights(train(config, report=silent))


class TestTraining:
    def test_a_rule_is_learnt_that_shared_words_cannot_give(
        self, log: list[dict[str, Any]], opposites: Opposites
    ):
        assert by_overlap(opposites(HELD_OUT)) == 0
        accuracies = [row["accuracy"] for row in log if "accuracy" in row]
        assert accuracies[-1] >= 0.9

    def test_the_logits_of_the_two_kinds_move_apart(self, log: list[dict[str, Any]]):
        margins = [row["margin"] for row in log if "margin" in row]
        assert margins[-1] > 1 > margins[0]

    @pytest.mark.parametrize(
        "words",
        ["toy step 5/20", "toy step 20/20 loss", "toy step 20/20 triplets"],
        ids=["before a checkpoint", "after a checkpoint", "at the end of an epoch"],
    )
    def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
        self,
        toy: Callable[..., Config],
        whole: dict[str, torch.Tensor],
        tmp_path: Path,
        words: str,
    ):
        def killing(message: str) -> None:
            if words in message:
                raise KeyboardInterrupt

        config = toy(tmp_path, epochs=4)
        with pytest.raises(KeyboardInterrupt):
            train(config, report=killing)
        resumed = weights(train(config, report=silent))
        assert resumed.keys() == whole.keys()
        for name, tensor in whole.items():
            torch.testing.assert_close(resumed[name], tensor, rtol=0, atol=1e-6)

    def test_the_head_and_the_upper_layers_are_trained_and_the_frozen_ones_are_not(
        self, whole: dict[str, torch.Tensor], tiny: Path
    ):
        base = load_file(tiny / "model.safetensors")
        moved = {name for name in base if not torch.equal(base[name], whole[name])}
        assert {f"encoder.layer.{n}.output.dense.weight" for n in (1, 2)} <= moved
        assert not any(name.startswith(("embeddings.", "encoder.layer.0.")) for name in moved)
        assert whole["bias"].item() != 0  # where it starts

    def test_a_run_of_another_kind_in_the_same_folder_is_refused(
        self, toy: Callable[..., Config], tmp_path: Path
    ):
        config = toy(tmp_path, epochs=1)
        train(config, report=silent)
        with pytest.raises(InvalidValue, match="holds a run with other settings or data"):
            train(replace(config, kind="encoder"), report=silent)
