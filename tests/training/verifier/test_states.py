"""The teacher's word states as targets, worked out by hand."""

from pathlib import Path

import pytest
import torch

from coder_ir.training.verifier.states import StateScale, load_scales, save_scales, state_loss
from coder_ir.training.verifier.words import WordStates

PLAIN = StateScale(torch.zeros(1), torch.ones(1))


def states(*values: float, tokens: tuple[int, ...] | None = None) -> WordStates:
    counts = tokens or (1,) * len(values)
    return WordStates(torch.tensor(values)[:, None], torch.tensor(counts, dtype=torch.float32))


def test_a_scale_is_that_of_the_words_that_were_read():
    scale = StateScale.from_states(states(1.0, 3.0, 99.0, tokens=(1, 2, 0)))
    assert scale.mean.tolist() == [2.0]
    assert scale.spread.tolist() == pytest.approx([2**0.5 + 1e-3])


def test_what_is_far_off_counts_as_six_deviations():
    assert PLAIN.standardised(torch.tensor([[-9.0], [2.0], [7.0]])).tolist() == [[-6], [2], [6]]


def test_the_loss_is_over_words_that_both_networks_read():
    own, taught = states(1.0, 5.0, 2.0, tokens=(1, 0, 1)), states(2.0, 9.0, 9.0, tokens=(1, 1, 0))
    found = state_loss([own], [taught], [PLAIN], [torch.nn.Identity()])
    assert found.item() == pytest.approx(1.0)


def test_layers_count_alike():
    pairs = [states(0.0), states(0.0)], [states(1.0), states(3.0)]
    found = state_loss(*pairs, [PLAIN, PLAIN], [torch.nn.Identity()] * 2)
    assert found.item() == pytest.approx((1 + 9) / 2)


def test_scales_come_back_as_they_were(tmp_path: Path):
    scales = [StateScale(torch.rand(3), torch.rand(3)) for _ in range(2)]
    save_scales(scales, tmp_path / "s.safetensors")
    for saved, scale in zip(load_scales(tmp_path / "s.safetensors"), scales, strict=True):
        assert torch.equal(saved.mean, scale.mean)
        assert torch.equal(saved.spread, scale.spread)
