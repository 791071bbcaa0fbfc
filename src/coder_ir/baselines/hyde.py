"""HyDE (Gao et al., 2023): search with passages that a model imagines."""

import numpy as np

from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Decomposer
from coder_ir.errors import InvalidValue
from coder_ir.types import Ranking
from coder_ir.vectors import unit_rows

PASSAGES = 4


class HyDE:
    """Nearest to the mean of the query's vector and those of n hypothetical passages."""

    def __init__(self, base: Indexed, decomposer: Decomposer, *, n: int = PASSAGES) -> None:
        """The passages are encoded as documents, the query as a query."""
        if n < 1:
            raise InvalidValue(f"HyDE needs at least 1 passage, got {n}")
        self._base, self._decomposer, self._n = base, decomposer, n

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits, best first."""
        own = self._base.encode(query, k)
        passages = self._decomposer.passages(query, self._n)
        imagined = self._base.encoder.encode(passages, kind="document").topical
        mean = unit_rows(np.concatenate([own.topical, imagined]).mean(axis=0, keepdims=True))[0]
        return self._base.by_distance(query, "hyde", self._base.nearest(own, mean, k), k)
