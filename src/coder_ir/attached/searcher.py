"""Seq over topical scores of the user's own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from coder_ir.attached.opening import open_source
from coder_ir.attached.source import Held, Source, digest_of
from coder_ir.encoders.combined import SpaceEncoder
from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.registry import load_space
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound
from coder_ir.policies import Sequential
from coder_ir.query import OperatorParser, load_parser
from coder_ir.searching import SearchOptions, assemble, check_query
from coder_ir.types import (
    Candidates,
    Document,
    Floats,
    Passage,
    Policy,
    QueryParser,
    Ranking,
    Span,
)
from coder_ir.vectors import cosine

Vector = Sequence[float] | NDArray[np.floating]
Topical = Callable[[str], Vector]
SEQ = Sequential()


class Attached:
    """A user's own collection, searched by their topical vectors and our compatibility ones.

    Example:
        >>> attached = Attached.open("postgresql://…?table=items&id=id&text=body&vector=embedding")
        >>> attached.search("hotel without noise", topical=my_vector, k=10)
    """

    def __init__(
        self,
        source: Source,
        encoder: SpaceEncoder,
        *,
        topical: Topical | None = None,
        parser: QueryParser | None = None,
    ) -> None:
        """Join parts that were opened elsewhere; vectors of another model are refused.

        Without a parser only operators such as `-word` state a constraint.
        """
        stamp = source.stamp()
        if stamp is None:
            raise NotFound(
                f"nothing is attached to {source.place} yet; run: coder-ir attach SOURCE"
            )
        if stamp.fingerprint != encoder.fingerprint:
            raise ModelMismatch(
                f"{source.place} was attached with model {stamp.spec!r} "
                f"({stamp.fingerprint[:12]}…), not the one given ({encoder.fingerprint[:12]}…); "
                "open it with that one; if an earlier version of coder-ir attached it, attach it "
                "anew with: coder-ir attach SOURCE"
            )
        self.source = source
        self.encoder = encoder
        self.topical = topical
        self.parser = parser or OperatorParser()

    @classmethod
    def open(
        cls,
        address: str | Path,
        *,
        topical: str | Topical | None = None,
        model: str | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Open what `coder-ir attach` was run on; nothing is written.

        Args:
            address: the same SOURCE.
            topical: what makes a query's vector in the space of the user's own ones: a function
                of its text, or an encoder by name or folder; None: each search gives a vector.
            model: of the compatibility vectors; None: the one they were made with.
            runtime: threads and token limit of the encoders.
        """
        source = open_source(address, read_only=True)
        try:
            stamp = source.stamp()
            spec = model or (stamp.spec if stamp else "built-in")
            encoder, _ = load_space(spec, "compatibility", runtime=runtime)
            asked = _by_name(topical, runtime) if isinstance(topical, str) else topical
            return cls(source, encoder, topical=asked, parser=load_parser(encoder))
        except BaseException:
            source.close()
            raise

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        topical: Vector | None = None,
        policy: Policy = SEQ,
        n: int = 100,
    ) -> Ranking:
        """At most k hits, best first, of the n items nearest to the query's topical vector.

        Args:
            query: what to look for, constraints included.
            k: number of hits.
            topical: the query's vector in the space of the user's own; None: as `open` was told.
            policy: `Sequential(alpha, tau)`, or another that ranks topical candidates.
            n: items in the pool.
        """
        options = _checked(query, k, policy, n)
        vector = _vector(self._asked(query) if topical is None else topical)
        scores = self.source.nearest(vector, options.pool_size)
        held = self.source.fetch(list(scores))  # what was deleted in between is left out
        return self._ranked(query, held, scores, options)

    def rank(
        self, query: str, scores: Mapping[str, float], k: int = 10, *, policy: Policy = SEQ
    ) -> Ranking:
        """At most k hits of the items that another search found, given with their cosines."""
        options = _checked(query, k, policy, max(1, len(scores)))
        held = self.source.fetch(list(scores))
        if missing := sorted(set(scores).difference(item.doc_id for item in held)):
            raise NotFound(f"{self.source.place} has no item {missing[0]!r}")
        if odd := [doc_id for doc_id, score in scores.items() if not np.isfinite(score)]:
            raise InvalidValue(f"the score of item {odd[0]!r} is {scores[odd[0]]}, not a number")
        return self._ranked(query, held, scores, options)

    def _asked(self, query: str) -> Vector:
        if self.topical is None:
            raise InvalidValue(
                "a search needs the query's vector in the space of your own vectors: pass "
                "topical= to search, or a function or an encoder's name to Attached.open"
            )
        return self.topical(query)

    def _ranked(
        self, query: str, held: Sequence[Held], scores: Mapping[str, float], options: SearchOptions
    ) -> Ranking:
        held = sorted(held, key=lambda item: item.doc_id)
        asked = self.encoder.encode([query], kind="query")[0]
        pool = Candidates(
            doc_ids=[item.doc_id for item in held],
            passages=[Passage(0, Span(0, len(item.text))) for item in held],
            topical=np.array([scores[item.doc_id] for item in held], dtype=np.float64),
            compatibility=cosine(self._rows(held, len(asked)), asked),
            constraint=self.parser.parse([query])[0],
        )
        texts = {item.doc_id: item.text for item in held}
        policy = options.chosen_policy
        return assemble(
            query,
            policy,
            pool,
            policy.order(pool),
            k=options.k,
            risk=None,
            fetch=lambda doc_ids: [Document(doc_id, texts[doc_id]) for doc_id in doc_ids],
        )

    def _rows(self, held: Sequence[Held], dimensions: int) -> Floats:
        """Compatibility vectors (n, dimensions); new and changed texts are encoded here."""
        rows = np.zeros((len(held), dimensions), dtype=np.float32)
        stale = []
        for i, item in enumerate(held):
            if item.vector is None or item.digest != digest_of(item.text):
                stale.append(i)
            else:
                rows[i] = item.vector
        if stale:
            rows[stale] = self.encoder.encode([held[i].text for i in stale], kind="document")
        return rows

    def close(self) -> None:
        """Release files and connections."""
        self.source.close()

    def __enter__(self) -> Self:
        """Close at the end of a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _by_name(name: str, runtime: Runtime | None) -> Topical:
    encoder, _ = load_space(name, "topical", runtime=runtime)
    return lambda text: encoder.encode([text], kind="query")[0]


def _checked(query: str, k: int, policy: Policy, n: int) -> SearchOptions:
    options = SearchOptions(k=k, policy=policy, n=n)
    check_query(query, options, "the query")
    if "compatibility" in options.chosen_policy.spaces:
        raise InvalidValue(
            f"policy {options.chosen_policy.name} looks for candidates by compatibility; over "
            "topical vectors of your own use Sequential(), the default"
        )
    return options


def _vector(values: Vector) -> Floats:
    vector = np.asarray(values, dtype=np.float32)
    if vector.ndim != 1 or not vector.size:
        raise InvalidValue(f"a topical vector is a row of numbers, got shape {vector.shape}")
    if not np.isfinite(vector).all() or not vector.any():
        raise InvalidValue("a topical vector needs finite numbers that are not all zero")
    return vector
