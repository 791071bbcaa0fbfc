"""The passages that a sidecar covers: which of them are left, and how they are searched."""

from dataclasses import dataclass

import numpy as np

from coder_ir.stores.pool import PassageRow
from coder_ir.stores.sqlite.columns import Rows
from coder_ir.stores.sqlite.exact import Mask, Positions, top_of
from coder_ir.stores.sqlite.sidecar import Manifest, Sidecar
from coder_ir.types import Floats, Space

# Cost of a row, in rows of a scan from first to last, as measured at a million rows: one that a
# filter allows, one that it does not, one that is looked at by its code, and one read by itself.
_ALLOWED, _PASSED = 2.5, 0.02
_CODED, _READ = 0.1, 10.0
_LATE = 0.1  # share of the best rows that may have come late, in the second half of all brought


@dataclass(frozen=True, slots=True)
class Looked:
    """What a search has found, in no order."""

    positions: Positions
    vectors: Floats  # at these positions
    floor: float  # what rows it has not found score at most; -inf where it has seen all


class Covered:
    """Rows of a sidecar by position. Deleted ones keep their place and are passed over."""

    def __init__(self, sidecar: Sidecar, *, exact: bool) -> None:
        """All rows are there at first. With `exact`, codes are never used."""
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
        return np.asarray(self._sidecar.vectors[space][positions])

    def keep_only(self, row_ids: Positions) -> None:
        """Pass over every row whose id is not among these from now on."""
        left = np.isin(self.rows["row"], row_ids)
        self.alive = int(left.sum())
        self._left = None if self.alive == len(left) else left

    def top(self, space: Space, vector: Floats, wanted: int, allowed: Mask | None) -> Looked:
        """The best rows, at least as many as wanted where there are so many.

        By the way that costs less: codes, or looking at every row that is allowed.
        """
        filtered = allowed is not None
        if self._left is not None:
            allowed = self._left if allowed is None else self._left & allowed
        reachable = self.alive if allowed is None or not filtered else int(allowed.sum())
        if not reachable:
            nothing = np.empty(0, dtype=np.int64)
            return Looked(nothing, self.vectors(space, nothing), -np.inf)
        brought = self._sidecar.codes[space].rows_for(wanted)
        while not self._exact and brought < reachable and self._cheaper(brought, reachable):
            if looked := self._by_codes(space, vector, wanted, brought, allowed):
                return looked
            brought *= 2
        vectors = self._sidecar.vectors[space]
        positions, raw = top_of(vectors, vector, min(wanted, reachable), allowed)
        floor = -np.inf if wanted >= reachable else float(raw[-1])
        return Looked(positions, self.vectors(space, positions), floor)

    def _cheaper(self, brought: int, reachable: int) -> bool:
        """Whether all codes and so many rows cost less than looking at the rows themselves."""
        coded = len(self) * _CODED + brought * _READ
        return coded < min(reachable * _ALLOWED + len(self) * _PASSED, float(len(self)))

    def _by_codes(
        self, space: Space, vector: Floats, wanted: int, brought: int, allowed: Mask | None
    ) -> Looked | None:
        """The best of what the codes brought, by their true scores; None: bring more.

        A row left behind may score more than its code says. Where many of the best came late, as
        they do when a filter allows only what is far from the query, too many were left behind.
        Copies of one vector have one code: where some of them came last, others were left behind.
        """
        found, rough = self._sidecar.codes[space].top(vector, brought, allowed)
        vectors = self.vectors(space, found)
        true = vectors @ vector
        order = np.argsort(-true, kind="stable")
        first = order[:wanted]
        if np.count_nonzero(first >= len(found) // 2) > _LATE * wanted:
            return None
        floor = max(float(true[order[wanted]]), float(true[rough <= rough[-1]].max()))
        return Looked(found[first], vectors[first], floor)
