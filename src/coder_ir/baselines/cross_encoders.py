"""Cross-encoders by name: an ONNX folder, or whatever sentence-transformers loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coder_ir.baselines.rerank import GRAPH, CrossEncoder, Scorer
from coder_ir.errors import InvalidValue, MissingExtra, NotFound
from coder_ir.types import Scores


class TorchCrossEncoder:
    """A sentence-transformers cross-encoder with one logit a pair."""

    def __init__(self, name: str, *, batch_size: int = 16) -> None:
        """Load a name (from the local cache or the hub) or a folder; runs no code of its own."""
        try:
            from sentence_transformers import CrossEncoder as Model
            from torch.nn import Identity
        except ImportError as error:
            raise MissingExtra(f"Cross-encoder {name!r}", extra="train") from error
        try:
            self._model = Model(name, device="cpu", trust_remote_code=False)
        except (OSError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise NotFound(
                f"no cross-encoder {name!r}: it is neither a folder nor in the local cache, and "
                f"could not be downloaded ({first})"
            ) from error
        if self._model.num_labels != 1:
            raise InvalidValue(
                f"{name!r} gives {self._model.num_labels} numbers a pair; a reranker gives one"
            )
        self._batch_size = batch_size
        self._as_it_is = Identity()  # a sigmoid would make all high logits equal

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """The model's logit for each passage."""
        pairs = [(query, passage) for passage in passages]
        if not pairs:
            return np.zeros(0)
        found = self._model.predict(
            pairs,
            batch_size=self._batch_size,
            show_progress_bar=False,
            activation_fn=self._as_it_is,
        )
        return np.asarray(found, dtype=np.float64)


def load_cross_encoder(name: str, *, threads: int | None = None) -> Scorer:
    """A folder with `model.onnx`, or a sentence-transformers name or folder; None: all cores."""
    if (Path(name) / GRAPH).is_file():
        return CrossEncoder(Path(name), threads=threads)
    if threads:
        import torch

        torch.set_num_threads(threads)
    return TorchCrossEncoder(name)
