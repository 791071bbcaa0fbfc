"""The searchable part of a store in memory: passages, their documents and both vector sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coder_ir.stores.exact import ExactIndex, Mask, Positions
from coder_ir.types import Candidates, Floats, Passage, Space, Span, VectorPair
from coder_ir.vectors import best_first, cosine

_MARGIN = 1e-5  # how far float32 search scores may stray from the rounded ones


@dataclass(frozen=True, slots=True)
class PassageRow:
    """One passage as the store keeps it."""

    row_id: int
    doc_id: str
    document: int  # row id of its document
    passage: Passage


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
        order = sorted(found, key=lambda i: (self._rows[i].doc_id, self._rows[i].passage.number))
        positions = np.array(order, dtype=np.int64)
        rows = self._indexes["topical"].rows(positions)
        return Candidates(
            doc_ids=[self._rows[i].doc_id for i in order],
            passages=[self._rows[i].passage for i in order],
            topical=cosine(rows, query.topical[0]),
            compatibility=cosine(
                self._indexes["compatibility"].rows(positions), query.compatibility[0]
            ),
            rows=rows,
        )

    def _best_documents(
        self, space: Space, vector: Floats, n: int, allowed: Mask | None
    ) -> set[int]:
        """Position of the best passage of each of the n best documents, ties by ascending id.

        Widens the search until n documents are in and every tie at the cut has been seen.
        """
        index = self._indexes[space]
        reachable = len(self) if allowed is None else int(allowed.sum())
        wanted = n + 16
        while True:
            positions, raw = index.top(vector, wanted, allowed)
            scores = cosine(index.rows(positions), vector)
            best = self._best_passages(positions.tolist(), scores.tolist())
            ids = [self._rows[i].doc_id for i in best]
            first = best_first(list(best.values()), ids, n)
            exhausted = len(positions) >= reachable or wanted >= reachable
            order = list(best)
            if exhausted:
                return {order[i] for i in first}
            if len(best) > n and raw[-1] < best[order[first[-1]]] - _MARGIN:
                return {order[i] for i in first}
            wanted = min(wanted * 4, reachable)

    def _best_passages(self, positions: list[int], scores: list[float]) -> dict[int, float]:
        """For each document its best passage's position and score; ties go to the earlier one."""
        best: dict[int, tuple[float, int, int]] = {}  # document: score, -number, position
        for position, score in zip(positions, scores, strict=True):
            row = self._rows[position]
            entry = (score, -row.passage.number, position)
            if row.document not in best or entry > best[row.document]:
                best[row.document] = entry
        return {position: score for score, _, position in best.values()}


def passage_row(row_id: int, doc_id: str, document: int, part: tuple[int, int, int]) -> PassageRow:
    """A row from the plain numbers a database returns: passage number, start, end."""
    number, start, end = part
    return PassageRow(row_id, doc_id, document, Passage(number, Span(start, end)))
