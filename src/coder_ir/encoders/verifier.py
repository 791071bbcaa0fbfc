"""A closer look: query and passage through one stack of layers, so that each sees the other."""

from collections.abc import Sequence

import numpy as np

from coder_ir.encoders.onnx import OnnxEncoder, each_alone, session
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
        question = self._encoder.lower(asked[0])
        tokens = self._encoder.tokens(passages, role, "document")

        def run(ids: Sequence[int]) -> float:
            return self._read(question, ids)

        threads = self._encoder.runtime.threads
        return np.array(list(each_alone(tokens, run, threads=threads)), dtype=np.float64)

    def _read(self, question: Floats, ids: Sequence[int]) -> float:
        both = np.concatenate([question, self._encoder.lower(ids)], axis=1)
        feed = {"hidden": both, "attention_mask": np.ones(both.shape[:2], dtype=np.int64)}
        (scores,) = self._session.run([self._reading.output], feed)
        return float(scores[0, 0])
