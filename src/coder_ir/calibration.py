"""Small fitted models that turn scores into probabilities; they travel with a model folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Scores


@dataclass(frozen=True, slots=True)
class Logistic:
    """The probability 1 / (1 + exp(-(bias + weights . features)))."""

    weights: tuple[float, ...]
    bias: float

    def probability(self, features: NDArray[np.floating]) -> Scores:
        """One value for each row of features (n, weights)."""
        logits = self.bias + np.asarray(features, dtype=np.float64) @ np.array(self.weights)
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted on development data for one pair of encoders."""

    risk: Logistic  # that a passage breaks it: topical, compatibility, breach

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        if not path.is_file():
            raise NotFound(f"no calibration {path}")
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            risk = _logistic(raw["risk"])
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidFile(f"{path} is not a calibration: {error}") from error
        return cls(risk)


def _logistic(raw: Mapping[str, Any]) -> Logistic:
    return Logistic(tuple(float(weight) for weight in raw["weights"]), float(raw["bias"]))
