"""A closer look: query and passage through one stack of layers, so that each sees the other."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coder_ir.encoders.onnx import OnnxEncoder, cores, session
from coder_ir.errors import InvalidValue
from coder_ir.types import Floats, Scores


class OnnxVerifier:
    """The verifier of a model folder.

    Both texts go through the trunk that the encoder has loaded already, each by itself; the
    verifier's own layers then read them side by side.
    """

    def __init__(self, encoder: OnnxEncoder) -> None:
        """Load the verifier's own layers."""
        manifest = encoder.manifest
        if manifest.verifier is None or manifest.trunk is None:
            raise InvalidValue(f"{encoder.spec!r} has no verifier")
        self._encoder = encoder
        self._reading = manifest.verifier
        self._session = session(encoder.folder / manifest.verifier.graph)

    def read(self, query: str, passages: Sequence[str]) -> Scores:
        """A logit for each passage, above 0 where it satisfies the query."""
        role = self._encoder.manifest.compatibility
        asked = self._encoder.tokens([query], role, "query")
        question = self._encoder.lower(asked)[0][0]  # (tokens, dimensions)
        tokens = self._encoder.tokens(passages, role, "document")
        scores = np.zeros(len(passages))

        def run(batch: list[int]) -> Scores:
            return self._read(question, [tokens[i] for i in batch])

        batches = list(self._encoder.batches(tokens))
        with ThreadPoolExecutor(self._encoder.runtime.threads or cores()) as workers:
            for batch, part in zip(batches, workers.map(run, batches), strict=True):
                scores[batch] = part
        return scores

    def _read(self, question: Floats, tokens: Sequence[Sequence[int]]) -> Scores:
        found, mask = self._encoder.lower(tokens)
        asked = np.broadcast_to(question, (len(tokens), *question.shape))
        seen = np.concatenate([np.ones((len(tokens), len(question)), np.int64), mask], axis=1)
        feed = {"hidden": np.concatenate([asked, found], axis=1), "attention_mask": seen}
        (scores,) = self._session.run([self._reading.output], feed)
        return np.asarray(scores[:, 0], dtype=np.float64)
