"""Plain nearest-neighbour search with a query vector that a method has made."""

from dataclasses import dataclass, replace

from coder_ir.baselines.whole import check_search
from coder_ir.policies import TopicalOnly
from coder_ir.searching import assemble
from coder_ir.types import Candidates, Encoder, Floats, Order, Ranking, Store, VectorPair


@dataclass(frozen=True, slots=True)
class Indexed:
    """Documents with their vectors, and the encoder these come from."""

    encoder: Encoder
    store: Store

    def encode(self, query: str, k: int) -> VectorPair:
        """The query's own vectors; one without a word, or for no hits, is refused."""
        check_search(query, k)
        return self.encoder.encode([query], kind="query")

    def nearest(self, vectors: VectorPair, topical: Floats, n: int) -> Candidates:
        """The best passage of each of the n documents nearest to a topical vector."""
        asked = VectorPair(topical[None, :], vectors.compatibility)
        return self.store.candidates(asked, n=n, spaces=("topical",))

    def ranking(self, query: str, name: str, pool: Candidates, order: Order, k: int) -> Ranking:
        """Hits of a pool under the method's name."""
        policy = replace(TopicalOnly(), name=name)
        return assemble(query, policy, pool, order, k=k, risk=None, fetch=self.store.get)

    def by_distance(self, query: str, name: str, pool: Candidates, k: int) -> Ranking:
        """Hits in order of their cosine with the vector they were found by."""
        return self.ranking(query, name, pool, TopicalOnly().order(pool), k)


@dataclass(frozen=True, slots=True)
class Nearest:
    """Plain dense retrieval with an index's own topical vectors."""

    base: Indexed

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits, nearest first."""
        own = self.base.encode(query, k)
        return self.base.by_distance(query, "dense", self.base.nearest(own, own.topical[0], k), k)
