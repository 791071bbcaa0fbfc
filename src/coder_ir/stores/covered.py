"""The passages that a sidecar covers: which of them are left, and how they are searched."""

from dataclasses import dataclass

import numpy as np

from coder_ir.stores.columns import Rows
from coder_ir.stores.exact import Mask, Positions, top_among, top_of
from coder_ir.stores.pool import PassageRow
from coder_ir.stores.sidecar import Manifest, Sidecar
from coder_ir.types import Floats, Space

# Cost of a row, in rows of a scan from first to last: one that is picked out of the whole, and
# one that is read from a list. `coder-ir bench ann` measures where the ways cross.
_PICKED = 4.0
_LISTED = 1.0


@dataclass(frozen=True, slots=True)
class Looked:
    """What a search has found, in no order."""

    positions: Positions
    floor: float  # what rows it has not found score at most; -inf where it has seen all


class Covered:
    """Rows of a sidecar by position. Deleted ones keep their place and are passed over."""

    def __init__(self, sidecar: Sidecar, *, exact: bool) -> None:
        """All rows are there at first. With `exact`, lists are never used."""
        self._sidecar = sidecar
        self._exact = exact
        self._left: Mask | None = None  # None: nothing is deleted
        self.alive = len(sidecar.columns)

    def __len__(self) -> int:
        """Number of rows, deleted ones too."""
        return len(self._sidecar.columns)

    @property
    def manifest(self) -> Manifest:
        """What the sidecar says of itself."""
        return self._sidecar.manifest

    @property
    def last_row(self) -> int:
        """The highest row id it was built from."""
        return self._sidecar.manifest.last_row

    @property
    def rows(self) -> Rows:
        """The columns."""
        return self._sidecar.columns.rows

    def at(self, positions: Positions) -> list[PassageRow]:
        """The passages at these positions, in their order."""
        return self._sidecar.columns.at(positions)

    def dimensions(self, space: Space) -> int:
        """Length of a vector."""
        return int(self._sidecar.vectors[space].shape[1])

    def vectors(self, space: Space, positions: Positions) -> Floats:
        """The vectors at these positions, copied out of the file."""
        return self._sidecar.vectors[space][positions]

    def keep_only(self, row_ids: Positions) -> None:
        """Pass over every row whose id is not among these from now on."""
        left = np.isin(self.rows["row"], row_ids)
        self.alive = int(left.sum())
        self._left = None if self.alive == len(left) else left

    def top(self, space: Space, vector: Floats, wanted: int, allowed: Mask | None) -> Looked:
        """The best rows, at least as many as wanted where there are so many.

        By the way that costs least: lists, only the allowed rows, or all rows.
        """
        if self._left is not None:
            allowed = self._left if allowed is None else self._left & allowed
        reachable = len(self) if allowed is None else int(allowed.sum())
        if not reachable:
            return Looked(np.empty(0, dtype=np.int64), -np.inf)
        lists = self._sidecar.lists[space]
        width = 2 * wanted  # eight bits a number misplace some of the last
        probes = lists.probes(width, reachable / len(self))
        listed = lists.lists + probes / lists.lists * len(self) * _LISTED
        scanned = min(reachable * _PICKED, float(len(self)))
        if not self._exact and width < reachable and listed < scanned:
            positions, raw = lists.top(vector, width, probes=probes, allowed=allowed)
            if len(positions) == width:
                return self._rescored(space, vector, positions, raw)
        vectors = self._sidecar.vectors[space]
        if allowed is not None and reachable * _PICKED < len(self):
            positions, raw = top_among(vectors, vector, wanted, np.flatnonzero(allowed))
        else:
            positions, raw = top_of(vectors, vector, min(wanted, reachable), allowed)
        return Looked(positions, -np.inf if wanted >= reachable else float(raw[-1]))

    def _rescored(self, space: Space, vector: Floats, found: Positions, raw: Floats) -> Looked:
        """The better half of what the lists brought, by their true scores.

        A row that was not brought scores at most what the last one was thought to score, and as
        much more as these have strayed.
        """
        true = self._sidecar.vectors[space][found] @ vector
        unseen = float(raw[-1]) + max(0.0, float((true - raw).max()))
        order = np.argsort(-true, kind="stable")
        half = len(found) // 2
        return Looked(found[order[:half]], max(unseen, float(true[order[half]])))
