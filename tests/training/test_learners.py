"""What is trained on triplets: an encoder."""

import math
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

from coder_ir.training.config import Config
from coder_ir.training.learners import EncoderLearner
from tests.fake_tower import ANGLES, FakeTower, triplet


def test_the_margins_of_an_encoder_are_differences_of_cosines(tmp_path: Path):
    config = Config(base="", output=tmp_path, stages=(), query_prefix="")
    learner = EncoderLearner(None, FakeTower(ANGLES), config)  # type: ignore[arg-type]
    assert learner.margins([triplet("q", "good", "bad"), triplet("r", "bad", "good")]) == (
        pytest.approx([math.cos(0.3) - math.cos(0.9), math.cos(0.5) - math.cos(0.1)])
    )
