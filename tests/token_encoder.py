"""The fake encoder, token by token."""

from collections.abc import Sequence

import numpy as np

from coder_ir.encoders.tokens import TokenVectors
from tests.conftest import FakeEncoder


class FakeTokenEncoder(FakeEncoder):
    """Each word of a text is a token with a vector of its own; a connective has one too."""

    def __init__(self, words: Sequence[str], *, limit: int = 1000) -> None:
        super().__init__(words, limit=limit)
        self.read: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.read += texts
        found = []
        for text in texts:
            tokens = ("[CLS]", *text.lower().replace("¬", "¬ ").split(), "[SEP]")
            seeds = [sum(token.encode()) for token in tokens]
            rows = np.stack(
                [np.random.default_rng(seed).normal(size=len(self.words) + 1) for seed in seeds]
            ).astype(np.float32)
            found.append(TokenVectors(tokens, rows, self._rows([text], "-")[0]))
        return found
