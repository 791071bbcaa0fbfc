"""Passages as columns: forty bytes and an id each; a Python object would take five hundred."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.stores.pool import PassageRow, passage_row

ROW = np.dtype(
    [
        ("row", "<i8"),  # row id of the passage
        ("document", "<i8"),  # row id of its document
        ("id_start", "<i8"),  # of the document's id among the bytes of all ids
        ("id_size", "<i4"),  # bytes
        ("number", "<i4"),
        ("start", "<i4"),
        ("end", "<i4"),
    ]
)
Rows = NDArray[np.void]
Fetched = tuple[int, str, int, int, int, int]
"""What a database returns: row id, document id, row id of the document, number, start, end."""


class Columns:
    """Rows by position; they may be mapped from a file, and then take no addition."""

    def __init__(self, rows: Rows | None = None, ids: Any = None) -> None:
        """Start with rows and the bytes of their ids, or empty."""
        self.rows: Rows = np.empty(0, dtype=ROW) if rows is None else rows
        self._ids: Any = bytearray() if ids is None else ids

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.rows)

    def add(self, fetched: Sequence[Fetched]) -> None:
        """Append passages."""
        rows, ids = packed(fetched, start=len(self._ids))
        self._ids += ids
        self.rows = np.concatenate([self.rows, rows])

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop all but the marked rows; the bytes of their ids stay."""
        self.rows = self.rows[kept]

    def at(self, positions: NDArray[np.int64]) -> list[PassageRow]:
        """The passages at these positions, in their order."""
        return [
            passage_row(
                row,
                bytes(self._ids[first : first + size]).decode("utf-8"),
                document,
                (number, start, end),
            )
            for row, document, first, size, number, start, end in self.rows[positions].tolist()
        ]


def packed(fetched: Sequence[Fetched], *, start: int) -> tuple[Rows, bytes]:
    """Rows, and the bytes of their ids; `start` is how many bytes come before these.

    Passages of one document follow one another and share the bytes.
    """
    made, ids, end, last = [], [], start, None
    for row, doc_id, document, number, first, stop in fetched:
        if document != last:
            ids.append(doc_id.encode("utf-8"))
            end, last = end + len(ids[-1]), document
        made.append((row, document, end - len(ids[-1]), len(ids[-1]), number, first, stop))
    return np.array(made, dtype=ROW), b"".join(ids)
