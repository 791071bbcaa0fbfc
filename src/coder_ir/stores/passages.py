"""The searchable part of a store in memory: passages, their documents and both vector sets."""

from collections.abc import Sequence

import numpy as np

from coder_ir.stores.exact import ExactIndex, Mask, Positions
from coder_ir.stores.pool import Found, PassageRow, as_candidates, best_documents, widths
from coder_ir.types import Candidates, Floats, Space, VectorPair
from coder_ir.vectors import cosine


class PassageTable:
    """Rows by position, in step in every column."""

    def __init__(self, topical: int, compatibility: int) -> None:
        """Start empty; arguments are the two dimensions."""
        self._indexes: dict[Space, ExactIndex] = {
            "topical": ExactIndex(topical),
            "compatibility": ExactIndex(compatibility),
        }
        self._rows: list[PassageRow] = []
        self.row_ids = np.empty(0, dtype=np.int64)
        self._documents = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Number of passages."""
        return len(self._rows)

    def add(self, rows: Sequence[PassageRow], vectors: VectorPair) -> None:
        """Append rows with their vectors."""
        self._indexes["topical"].add(vectors.topical)
        self._indexes["compatibility"].add(vectors.compatibility)
        self._rows.extend(rows)
        self.row_ids = np.append(self.row_ids, [row.row_id for row in rows])
        self._documents = np.append(self._documents, [row.document for row in rows])

    def keep_only(self, row_ids: Positions) -> None:
        """Drop every passage whose row id is not among these."""
        gone = ~np.isin(self.row_ids, row_ids)
        if not gone.any():
            return
        for index in self._indexes.values():
            index.remove(gone)
        self._rows = [row for row, out in zip(self._rows, gone, strict=True) if not out]
        self.row_ids, self._documents = self.row_ids[~gone], self._documents[~gone]

    def allowed(self, documents: Positions) -> Mask:
        """Marks the passages of these documents (row ids)."""
        return np.isin(self._documents, documents)

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
        found: set[int] = set()
        for space in spaces:
            found |= self._best_documents(space, query.space(space)[0], n, allowed)
        if len(also):
            chosen = self.allowed(also)
            found |= self._best_documents("topical", query.topical[0], len(also), chosen)
        positions = np.array(sorted(found), dtype=np.int64)
        vectors = VectorPair(
            self._indexes["topical"].rows(positions), self._indexes["compatibility"].rows(positions)
        )
        return as_candidates([self._rows[i] for i in positions], vectors, query)

    def _best_documents(
        self, space: Space, vector: Floats, n: int, allowed: Mask | None
    ) -> set[int]:
        """Position of the best passage of each of the n best documents, ties by ascending id."""
        index = self._indexes[space]
        reachable = len(self) if allowed is None else int(allowed.sum())
        for wanted in widths(n):
            positions, raw = index.top(vector, max(1, min(wanted, reachable)), allowed)
            best = best_documents(
                Found(
                    [self._rows[i] for i in positions],
                    cosine(index.rows(positions), vector),
                    -np.inf if wanted >= reachable else float(raw[-1]),
                ),
                n,
            )
            if best is not None:
                return {int(positions[i]) for i in best}
        raise AssertionError("unreachable: the widest search sees every passage")
