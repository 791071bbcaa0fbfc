"""TREC run files."""

from collections.abc import Iterable
from math import isfinite
from pathlib import Path

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Ranking

_STEP = 1e-6


def write_run(path: Path, rankings: Iterable[tuple[str, Ranking]], *, tag: str) -> None:
    """Write `query Q0 document rank score tag` lines.

    Scores strictly fall with rank, by a step that also evaluators with 32-bit scores can see, so
    that none reorders ties.
    """
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        for query_id, ranking in rankings:
            last = float("inf")
            for hit in ranking:
                _check(query_id, hit.doc_id)
                last = min(round(hit.score, 6), last - _step(last))
                file.write(f"{query_id} Q0 {hit.doc_id} {hit.rank} {last:.6f} {tag}\n")
    partial.replace(path)


def _step(score: float) -> float:
    """Twice the distance to the next 32-bit number, at least the last decimal written."""
    return max(_STEP, 2 * float(np.spacing(np.float32(abs(score))))) if isfinite(score) else 0.0


def _check(*ids: str) -> None:
    for name in ids:
        if len(name.split()) != 1:
            raise InvalidValue(f"a run file cannot hold an id with white space in it, got {name!r}")
