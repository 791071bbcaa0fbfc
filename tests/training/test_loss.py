"""What a batch asks of an encoder; every value worked out by hand from angles in a plane."""

from collections.abc import Callable, Sequence
from math import cos, exp, log
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")

from coder_ir.training.config import Config, Stage
from coder_ir.training.loss import contrastive_loss, positives_of
from coder_ir.types import Triplet
from tests.fake_tower import ANGLES, FakeTower, triplet

SCALE = 5.0
Loss = Callable[..., float]
PAIR = [triplet("q", "good", "bad"), triplet("r", "bad", "good")]
TWO = [triplet("q", "good", "bad", "one"), triplet("r", "fine", "worse", "two")]


@pytest.fixture
def loss(tmp_path: Path) -> Loss:
    """The loss of a batch, with the terms of the stage that are named."""
    config = Config(base="", output=tmp_path, stages=(), query_prefix="", scale=SCALE)

    def value(
        batch: Sequence[Triplet],
        known: Sequence[Triplet] = (),
        *,
        tower: FakeTower | None = None,
        **terms: Any,
    ) -> float:
        stage = Stage(name="plain", triplets=tmp_path, **terms)
        positives = positives_of([*batch, *known])
        found = contrastive_loss(
            tower or FakeTower(ANGLES),  # type: ignore[arg-type]
            batch,
            positives,
            config=config,
            stage=stage,
        )
        return found.item()

    return value


def near(one: str, two: str) -> float:
    return cos(ANGLES[one] - ANGLES[two])


def picked(rows: Sequence[tuple[str, str, Sequence[str]]]) -> float:
    """Mean loss over (text that picks, right text, wrong ones)."""
    losses = []
    for text, right, wrong in rows:
        terms = [exp(SCALE * near(text, other)) for other in (right, *wrong)]
        losses.append(-log(terms[0] / sum(terms)))
    return sum(losses) / len(losses)


def test_the_loss_counts_every_other_passage_of_the_batch(loss: Loss):
    by_hand = picked(
        [("q", "good", ("fine", "bad", "worse")), ("r", "fine", ("good", "bad", "worse"))]
    )
    assert loss(TWO) == pytest.approx(by_hand)


def test_a_satisfying_passage_is_no_negative_when_its_pair_comes_both_ways(loss: Loss):
    # Passages stand as good, bad | bad, good: each query meets its own twice, the other twice.
    by_hand = picked([("q", "good", ("bad", "bad")), ("r", "bad", ("good", "good"))])
    assert loss(PAIR) == pytest.approx(by_hand)


def test_a_passage_that_satisfies_a_query_elsewhere_is_no_negative_of_it(loss: Loss):
    by_hand = picked([("q", "good", ("bad", "worse")), ("r", "fine", ("good", "bad", "worse"))])
    assert loss(TWO, [triplet("q", "fine", "bad")]) == pytest.approx(by_hand)


def test_a_passage_that_two_triplets_hold_is_a_negative_twice(loss: Loss):
    batch = [triplet("q", "good", "bad"), triplet("r", "fine", "bad")]
    by_hand = picked([("q", "good", ("fine", "bad", "bad")), ("r", "fine", ("good", "bad", "bad"))])
    assert loss(batch) == pytest.approx(by_hand)


def test_the_symmetric_term_lets_each_satisfying_passage_pick_its_query(loss: Loss):
    by_hand = picked([("good", "q", ("r",)), ("fine", "r", ("q",))])
    assert loss(TWO, symmetric=1.0) - loss(TWO) == pytest.approx(by_hand)


def test_in_the_symmetric_term_the_opposite_query_of_a_pair_is_the_negative(loss: Loss):
    by_hand = picked([("good", "q", ("r",)), ("bad", "r", ("q",))])
    assert loss(PAIR, symmetric=1.0) - loss(PAIR) == pytest.approx(by_hand)


def test_in_the_symmetric_term_another_query_a_passage_satisfies_is_no_negative(loss: Loss):
    known = [triplet("r", "good", "worse")]
    by_hand = picked([("good", "q", ()), ("fine", "r", ("q",))])
    assert loss(TWO, known, symmetric=1.0) - loss(TWO, known) == pytest.approx(by_hand)


def test_one_query_with_two_passages_is_no_negative_of_itself(loss: Loss):
    batch = [triplet("q", "good", "bad"), triplet("q", "fine", "worse")]
    assert loss(batch, symmetric=1.0) - loss(batch) == pytest.approx(0)


def test_the_pairwise_term_weighs_satisfying_against_violating_alone(loss: Loss):
    margins = [near("q", "good") - near("q", "bad"), near("r", "fine") - near("r", "worse")]
    by_hand = sum(log(1 + exp(-SCALE * margin)) for margin in margins) / 2
    assert loss(TWO, pairwise=1.0) - loss(TWO) == pytest.approx(by_hand)


def test_the_anchor_term_is_nothing_before_training_moved_anything(loss: Loss):
    assert loss(TWO, anchor=1.0) == pytest.approx(loss(TWO))


def test_the_anchor_term_is_the_mean_square_drift_between_groups(loss: Loss):
    # Only fine moved, from 0.1; of the four scores across groups, q with fine is one.
    drift = cos(0.5) - cos(0.1)
    tower = FakeTower(ANGLES, {"fine": 0.1})
    assert loss(TWO, tower=tower, anchor=1.0) - loss(TWO) == pytest.approx(drift**2 / 4)


def test_a_query_that_moved_counts_against_the_passages_of_other_groups(loss: Loss):
    drifts = [near("q", "fine") - cos(0.2 - 0.5), near("q", "worse") - cos(0.2 - 1.4)]
    tower = FakeTower(ANGLES, {"q": 0.2})
    by_hand = sum(drift**2 for drift in drifts) / 4
    assert loss(TWO, tower=tower, anchor=1.0) - loss(TWO) == pytest.approx(by_hand)


def test_within_one_group_texts_may_move_as_they_like(loss: Loss):
    tower = FakeTower(ANGLES, {"good": 2.0, "q": 1.0})
    assert loss(PAIR, tower=tower, anchor=1.0) == pytest.approx(loss(PAIR))


@pytest.mark.parametrize("term", ["symmetric", "pairwise", "anchor"])
def test_a_term_counts_by_its_weight(loss: Loss, term: str):
    moved = {"fine": 0.1}
    whole, half = (
        loss(TWO, tower=FakeTower(ANGLES, moved), **{term: weight}) - loss(TWO)
        for weight in (1.0, 0.5)
    )
    assert whole > 0
    assert half == pytest.approx(whole / 2)


def test_the_terms_add_up(loss: Loss):
    moved = FakeTower(ANGLES, {"fine": 0.1})
    weights = {"symmetric": 1.0, "pairwise": 0.5, "anchor": 2.0}
    parts = [loss(TWO, tower=moved, **{term: w}) - loss(TWO) for term, w in weights.items()]
    assert loss(TWO, tower=moved, **weights) == pytest.approx(loss(TWO) + sum(parts))


def test_each_text_is_encoded_once_whatever_the_terms(loss: Loss):
    tower = FakeTower(ANGLES)
    loss(PAIR, tower=tower, symmetric=1.0, pairwise=1.0, anchor=1.0)
    assert sorted(tower.embedded) == ["bad", "good", "q", "r"]


def test_a_query_that_two_triplets_ask_is_encoded_once(loss: Loss):
    tower = FakeTower(ANGLES)
    loss([triplet("q", "good", "bad"), triplet("q", "fine", "worse")], tower=tower)
    assert sorted(tower.embedded) == ["bad", "fine", "good", "q", "worse"]


def test_queries_carry_the_prefix_and_passages_do_not(tmp_path: Path):
    config = Config(base="", output=tmp_path, stages=(), query_prefix="find: ", scale=SCALE)
    tower = FakeTower({**ANGLES, "find: q": 0.0, "find: r": 0.4})
    contrastive_loss(
        tower,  # type: ignore[arg-type]
        TWO,
        positives_of(TWO),
        config=config,
        stage=Stage(name="plain", triplets=tmp_path, anchor=1.0),
    )
    assert sorted(tower.embedded) == ["bad", "find: q", "find: r", "fine", "good", "worse"]


def test_a_gradient_pulls_a_query_towards_its_passage(tmp_path: Path):
    import torch

    angle = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)

    class Turning(FakeTower):
        def embed(self, texts: Sequence[str], *, train: bool) -> torch.Tensor:
            rows = super().embed(texts, train=False)
            if texts != ["q"]:
                return rows
            return torch.stack([angle.cos(), angle.sin()])[None]

    contrastive_loss(
        Turning(ANGLES),  # type: ignore[arg-type]
        TWO[:1],
        positives_of(TWO),
        config=Config(base="", output=tmp_path, stages=(), query_prefix="", scale=SCALE),
        stage=Stage(name="plain", triplets=tmp_path),
    ).backward()
    # good is at 0.3 and bad at 0.9: the loss falls as the angle does.
    assert angle.grad is not None
    assert angle.grad.item() > 0


def test_every_passage_known_to_satisfy_a_query_is_among_its_positives():
    known = positives_of([*TWO, triplet("q", "fine", "bad")])
    assert known == {"q": {"good", "fine"}, "r": {"fine"}}
