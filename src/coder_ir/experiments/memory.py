"""Vectors of queries, encoded once for all tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from coder_ir.baselines.kept import KeptVectors
from coder_ir.encoders.sparing import first
from coder_ir.types import Encoder, Floats, Kind, Progress, VectorPair


@contextmanager
def remembered_queries(encoder: Encoder, path: Path) -> Iterator[None]:
    """Inside, the encoder takes the vectors of queries from a file, and keeps new ones there.

    A query is always encoded alone, so its vectors are those that it would get anyway. Not for a
    measurement of time.
    """
    plain, kept, stamp = encoder.encode, KeptVectors(path), encoder.fingerprint

    def encode(texts: Sequence[str], *, kind: Kind, progress: Progress | None = None) -> VectorPair:
        if kind != "query" or not texts:
            return plain(texts, kind=kind, progress=progress)
        keys = [kept.key(stamp, text) for text in texts]
        known = kept.get(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            fresh = plain(list(missing.values()), kind=kind)
            pairs = zip(fresh.topical, fresh.compatibility, strict=True)
            new = dict(zip(missing, pairs, strict=True))
            kept.put(new)
            known |= new
        rows = zip(*(known[key] for key in keys), strict=True)
        return VectorPair(*(np.stack(one) for one in rows))

    def encode_queries(
        texts: Sequence[str], *, topical_only: Sequence[str]
    ) -> tuple[VectorPair, Floats]:
        return first(encode([*texts, *topical_only], kind="query"), len(texts))

    ways = {"encode": encode, "encode_queries": encode_queries}
    vars(encoder).update(ways)
    try:
        yield
    finally:
        for name in ways:
            delattr(encoder, name)
        kept.close()
