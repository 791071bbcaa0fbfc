"""Which documents meet conditions: found once, and known until something is written.

SQLite reads every document's metadata for it, which takes longer than a search.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coder_ir.stores.sqlite.current import numbers
from coder_ir.stores.sqlite.exact import Mask, Positions
from coder_ir.stores.sqlite.passages import PassageTable
from coder_ir.stores.sqlite.where import document_ids_sql
from coder_ir.types import Condition

_KEPT = 16  # filters; each takes up to nine bytes a passage


@dataclass(frozen=True, slots=True)
class Met:
    """What meets all conditions of a filter."""

    documents: Positions  # row ids
    passages: Mask  # by position in the table

    def among(self, documents: Sequence[int]) -> list[int]:
        """Those of some documents (row ids) that meet it, in their order."""
        met = np.isin(numbers(documents), self.documents)
        return [number for number, passes in zip(documents, met, strict=True) if passes]


class Filters:
    """Filters of one state of a table."""

    def __init__(self) -> None:
        """None is known yet."""
        self._state: tuple[PassageTable | None, tuple[int, ...]] = (None, ())
        self._known: OrderedDict[str, Met] = OrderedDict()

    def met(
        self,
        connection: sqlite3.Connection,
        table: PassageTable,
        version: tuple[int, ...],
        where: Sequence[Condition],
    ) -> Met:
        """What meets all of `where`; `version` says as of which commit the table is."""
        known, of = self._state
        if known is not table or of != version:
            self._state = (table, version)
            self._known.clear()
        sql, values = document_ids_sql(where)
        name = repr((sql, values))  # 1 and true are not the same condition
        if name not in self._known:
            documents = numbers(row[0] for row in connection.execute(sql, values))
            self._known[name] = Met(documents, table.allowed(documents))
        self._known.move_to_end(name)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return self._known[name]
