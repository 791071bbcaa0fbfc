"""The passages that a sidecar covers: which of them are left, and how they are searched."""

from dataclasses import dataclass

import numpy as np

from coder_ir.stores.pool import PassageRow
from coder_ir.stores.sqlite.approximate import ApproximateIndex
from coder_ir.stores.sqlite.columns import Rows
from coder_ir.stores.sqlite.exact import Mask, Positions, top_of
from coder_ir.stores.sqlite.sidecar import Manifest, Sidecar
from coder_ir.types import Floats, Space

# Cost of a row, in rows of a scan from first to last, as measured at a million rows: one that a
# filter allows, one that it does not, and one that is read from a list.
_ALLOWED, _PASSED = 2.5, 0.02
_LISTED = 1.0
_OFTEN = 4  # times that a filter may have lists read, each time twice as many
_NEWS = 0.02  # share of the rows wanted that may be new when twice the lists are read


@dataclass(frozen=True, slots=True)
class Looked:
    """What a search has found, in no order."""

    positions: Positions
    vectors: Floats  # at these positions
    floor: float  # what rows it has not found score at most; -inf where it has seen all


@dataclass(frozen=True, slots=True)
class _Asked:
    """One search."""

    space: Space
    vector: Floats
    wanted: int
    allowed: Mask | None
    reachable: int  # rows that are allowed


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
        return int(self._sidecar.vectors[space].all.shape[1])

    def vectors(self, space: Space, positions: Positions) -> Floats:
        """The vectors at these positions, copied out of the file."""
        return self._sidecar.vectors[space].at(positions)

    def keep_only(self, row_ids: Positions) -> None:
        """Pass over every row whose id is not among these from now on."""
        left = np.isin(self.rows["row"], row_ids)
        self.alive = int(left.sum())
        self._left = None if self.alive == len(left) else left

    def top(self, space: Space, vector: Floats, wanted: int, allowed: Mask | None) -> Looked:
        """The best rows, at least as many as wanted where there are so many.

        By the way that costs less: lists, or looking at every row that is allowed.
        """
        filtered = allowed is not None
        if self._left is not None:
            allowed = self._left if allowed is None else self._left & allowed
        reachable = self.alive if allowed is None or not filtered else int(allowed.sum())
        if not reachable:
            nothing = np.empty(0, dtype=np.int64)
            return Looked(nothing, self.vectors(space, nothing), -np.inf)
        if not self._exact and 2 * wanted < reachable:
            asked = _Asked(space, vector, wanted, allowed, reachable)
            if looked := self._by_lists(asked, filtered=filtered):
                return looked
        vectors = self._sidecar.vectors[space].all
        positions, raw = top_of(vectors, vector, min(wanted, reachable), allowed)
        floor = -np.inf if wanted >= reachable else float(raw[-1])
        return Looked(positions, self.vectors(space, positions), floor)

    def _by_lists(self, asked: _Asked, *, filtered: bool) -> Looked | None:
        """None where it would cost more than looking at the rows themselves, or brings too few.

        Where documents lie that a filter allows is not known: more lists are read until they
        bring nothing new.
        """
        lists = self._sidecar.lists[asked.space]
        width = 2 * asked.wanted  # eight bits a number misplace some of the last
        probes = lists.probes(width, asked.reachable / len(self))
        before: Positions | None = None
        if filtered:
            if not self._cheaper(lists, _OFTEN * probes, asked.reachable):
                return None
            probes = max(1, probes // 2)
        while self._cheaper(lists, probes, asked.reachable):
            found, raw = lists.top(asked.vector, width, probes=probes, allowed=asked.allowed)
            if not filtered and len(found) < width:
                return None
            first = found[: asked.wanted]
            news = len(first) if before is None else len(np.setdiff1d(first, before))
            if len(found) == width and (not filtered or news <= _NEWS * asked.wanted):
                return self._rescored(asked.space, asked.vector, found, raw)
            before, probes = found, 2 * probes
        return None

    def _cheaper(self, lists: ApproximateIndex, probes: int, reachable: int) -> bool:
        """Whether reading so many lists costs less than looking at the rows themselves."""
        listed = lists.lists + min(1.0, probes / lists.lists) * len(self) * _LISTED
        return listed < min(reachable * _ALLOWED + len(self) * _PASSED, float(len(self)))

    def _rescored(self, space: Space, vector: Floats, found: Positions, raw: Floats) -> Looked:
        """The better half of what the lists brought, by their true scores.

        A row that was not brought scores at most what the last one was thought to score, and as
        much more as these have strayed.
        """
        vectors = self.vectors(space, found)
        true = vectors @ vector
        unseen = float(raw[-1]) + max(0.0, float((true - raw).max()))
        order = np.argsort(-true, kind="stable")
        half = len(found) // 2
        first = order[:half]
        return Looked(found[first], vectors[first], max(unseen, float(true[order[half]])))
