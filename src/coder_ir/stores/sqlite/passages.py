"""The searchable part of a store: passages, their documents and both vector sets.

A large index has most of them in a sidecar, mapped; the rest, its tail, is in memory.
"""

from collections.abc import Sequence

import numpy as np

from coder_ir.stores.pool import Found, PassageRow, as_candidates, best_documents, widths
from coder_ir.stores.sqlite.columns import Columns, Fetched
from coder_ir.stores.sqlite.covered import Covered, Looked
from coder_ir.stores.sqlite.exact import ExactIndex, Mask, Positions
from coder_ir.types import Candidates, Floats, Space, VectorPair
from coder_ir.vectors import cosine


class PassageTable:
    """Rows by position, in step in every column: first the sidecar's, then the tail's."""

    def __init__(self, topical: int, compatibility: int, *, covered: Covered | None = None) -> None:
        """Start with what a sidecar covers, or empty; the numbers are the two dimensions."""
        self.covered = covered
        self._tail = Columns()
        self._indexes: dict[Space, ExactIndex] = {
            "topical": ExactIndex(topical),
            "compatibility": ExactIndex(compatibility),
        }

    def __len__(self) -> int:
        """Number of passages that are not deleted."""
        return (self.covered.alive if self.covered else 0) + len(self._tail)

    @property
    def tail(self) -> int:
        """Number of passages that no sidecar covers."""
        return len(self._tail)

    @property
    def last_row(self) -> int:
        """The highest row id; row ids only grow."""
        if len(self._tail):
            return int(self._tail.rows["row"][-1])
        return self.covered.last_row if self.covered else 0

    @property
    def _first(self) -> int:
        """Position of the tail's first row."""
        return len(self.covered) if self.covered else 0

    def add(self, rows: Sequence[Fetched], vectors: VectorPair) -> None:
        """Append rows with their vectors to the tail."""
        self._indexes["topical"].add(vectors.topical)
        self._indexes["compatibility"].add(vectors.compatibility)
        self._tail.add(rows)

    def keep_only(self, row_ids: Positions) -> None:
        """Drop every passage whose row id is not among these."""
        if self.covered:
            self.covered.keep_only(row_ids)
        gone = ~np.isin(self._tail.rows["row"], row_ids)
        if gone.any():
            for index in self._indexes.values():
                index.remove(gone)
            self._tail.keep(~gone)

    def allowed(self, documents: Positions) -> Mask:
        """Marks the passages of these documents (row ids)."""
        tail = np.isin(self._tail.rows["document"], documents)
        if not self.covered:
            return tail
        return np.concatenate([np.isin(self.covered.rows["document"], documents), tail])

    def candidates(
        self,
        query: VectorPair,
        *,
        n: int,
        spaces: Sequence[Space],
        allowed: Mask | None,
        also: Positions,
    ) -> Candidates:
        """The best passage of each of the n best documents of each space, scored in both.

        The documents of `also` (row ids) join them in any case, each by its best topical passage.
        """
        found: dict[int, PassageRow] = {}
        for space in spaces:
            found |= self._best_documents(space, query.space(space)[0], n, allowed)
        if len(also):
            chosen = self.allowed(also)
            found |= self._best_documents("topical", query.topical[0], len(also), chosen)
        positions = np.fromiter(found, dtype=np.int64)
        vectors = VectorPair(
            self._vectors("topical", positions), self._vectors("compatibility", positions)
        )
        return as_candidates(list(found.values()), vectors, query)

    def _best_documents(
        self, space: Space, vector: Floats, n: int, allowed: Mask | None
    ) -> dict[int, PassageRow]:
        """The best passage of each of the n best documents by position, ties by ascending id."""
        for wanted in widths(n):
            looked = self._looked(space, vector, wanted, allowed)
            rows, scores = self._rows(looked.positions), cosine(looked.vectors, vector)
            best = best_documents(Found(rows, scores, looked.floor), n)
            if best is not None:
                return {int(looked.positions[i]): rows[i] for i in best}
        raise AssertionError("unreachable: the widest search sees every passage")

    def _looked(self, space: Space, vector: Floats, wanted: int, allowed: Mask | None) -> Looked:
        """The best rows of the sidecar and of the tail, each as many as wanted."""
        first, inside = self._first, None if allowed is None else allowed[self._first :]
        reachable = len(self._tail) if inside is None else int(inside.sum())
        index = self._indexes[space]
        positions, raw = index.top(vector, max(1, min(wanted, reachable)), inside)
        floor = -np.inf if wanted >= reachable else float(raw[-1])
        tail = Looked(positions + first, index.rows(positions), floor)
        if not self.covered:
            return tail
        inside = None if allowed is None else allowed[:first]
        looked = self.covered.top(space, vector, wanted, inside)
        return Looked(
            np.concatenate([looked.positions, tail.positions]),
            np.concatenate([looked.vectors, tail.vectors]),
            max(looked.floor, tail.floor),
        )

    def _rows(self, positions: Positions) -> list[PassageRow]:
        """The passages at these positions, in their order."""
        if not self.covered:
            return self._tail.at(positions)
        first = self._first
        rows = iter(self.covered.at(positions[positions < first]))
        tail = iter(self._tail.at(positions[positions >= first] - first))
        return [next(rows if position < first else tail) for position in positions.tolist()]

    def _vectors(self, space: Space, positions: Positions) -> Floats:
        """The vectors at these positions, in their order."""
        if not self.covered:
            return self._indexes[space].rows(positions)
        tail = positions >= self._first
        vectors = np.empty((len(positions), self.covered.dimensions(space)), dtype=np.float32)
        vectors[~tail] = self.covered.vectors(space, positions[~tail])
        vectors[tail] = self._indexes[space].rows(positions[tail] - self._first)
        return vectors
