"""The pool of a query from PostgreSQL: one statement finds it and brings both vectors along."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.stores.pgvector.schema import Tables
from coder_ir.stores.pgvector.where import condition_sql, storable
from coder_ir.stores.pool import (
    MARGIN,
    Found,
    PassageRow,
    as_candidates,
    best_documents,
    passage_row,
    widths,
)
from coder_ir.types import Candidates, Condition, Floats, Space, VectorPair
from coder_ir.vectors import cosine

if TYPE_CHECKING:
    from coder_ir.stores.pgvector.connections import Connection

SPACES: tuple[Space, ...] = ("topical", "compatibility")
# Numbers as the server sends them.
_WIRE: dict[str, np.dtype[Any]] = {"vector": np.dtype(">f4"), "halfvec": np.dtype(">f2")}
_HEAD = 4  # bytes before them: dimensions, and two that are unused
_EF_MOST = 1000  # pgvector's own limit of hnsw.ef_search
_EF_LEAST = 200
_HALF_MARGIN = 1e-3  # a query rounded to half precision strays further
# Of a document that `also` names: its best passage, and all that rounding could put first.
_NAMED = """named AS (
    SELECT d.id FROM unnest(%(also)s::text[]) WITH ORDINALITY AS a (doc_id, place)
    JOIN {documents} d ON d.doc_id = a.doc_id WHERE CONDITION ORDER BY a.place LIMIT %(n)s
), joining AS (
    SELECT id FROM (
        SELECT p.id, p.topical <#> %(topical)s::{vector} AS distance,
               min(p.topical <#> %(topical)s::{vector}) OVER (PARTITION BY p.document) AS least
        FROM {passages} p WHERE p.document IN (SELECT id FROM named)
    ) AS s WHERE distance <= least + %(margin)s
)"""
_NOTHING = (
    "SELECT NULL::bigint AS id, 0::float8 AS topical, 0::float8 AS compatibility, false AS named "
    "WHERE false"
)
_POOL = """
SELECT f.topical, f.compatibility, f.named, p.id, d.doc_id, d.id, p.number, p.start, p.stop,
       {send}(p.topical), {send}(p.compatibility)
FROM (
    SELECT id, max(topical) AS topical, max(compatibility) AS compatibility, bool_or(named) AS named
    FROM (PARTS) AS part GROUP BY id
) AS f JOIN {passages} p ON p.id = f.id JOIN {documents} d ON d.id = p.document
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pool is wanted for."""

    query: VectorPair
    n: int
    spaces: Sequence[Space]
    where: Sequence[Condition]
    also: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Brought:
    """What one statement returned; all columns are in step."""

    rows: list[PassageRow]
    vectors: VectorPair
    raw: dict[Space, NDArray[np.float64]]  # scores of the server; NaN: not among the space's best
    named: NDArray[np.bool_]  # of a document that `also` names


def search(connection: "Connection", tables: Tables, asked: Asked, *, exact: bool) -> Candidates:
    """The pool, by the approximate indexes where they are there, unless `exact`."""
    searching = _Search(connection, tables, asked, *_statement(asked))
    with connection.transaction():
        for wanted in widths(asked.n):
            brought = None if exact else searching.by_index(wanted)
            brought = brought or searching.by_scan(wanted)
            chosen = searching.chosen(brought, wanted)
            if chosen is not None:
                vectors = VectorPair(*(brought.vectors.space(space)[chosen] for space in SPACES))
                return as_candidates([brought.rows[i] for i in chosen], vectors, asked.query)
    raise AssertionError("unreachable: the widest search sees every passage")


def _statement(asked: Asked) -> tuple[str, dict[str, Any]]:
    """SQL with the names of tables still to be filled in, and what is bound to it."""
    condition, bound = condition_sql(asked.where)
    joined = f"JOIN {{documents}} d ON d.id = p.document WHERE {condition}" if asked.where else ""
    spaces = [space for space in SPACES if space in asked.spaces]
    tables = [_top(space, joined) for space in spaces]
    parts = [_NOTHING, *map(_part, spaces)]
    if asked.also:
        tables.append(_NAMED.replace("CONDITION", condition))
        parts.append("SELECT id, NULL::float8, NULL::float8, true FROM joining")
    values: dict[str, Any] = {**bound, "also": list(filter(storable, asked.also)), "n": asked.n}
    for space in SPACES:
        values[space] = as_text(asked.query.space(space)[0])
    head = f"WITH {', '.join(tables)}" if tables else ""
    return head + _POOL.replace("PARTS", " UNION ALL ".join(parts)), values


def _top(space: Space, joined: str) -> str:
    distance = f"p.{space} <#> %({space})s::{{vector}}"
    return (
        f"best_{space} AS (SELECT p.id, {distance} AS distance FROM {{passages}} p {joined} "
        f"ORDER BY {distance} LIMIT %(wanted)s)"
    )


def _part(space: Space) -> str:
    columns = ", ".join("distance" if name == space else "NULL::float8" for name in SPACES)
    return f"SELECT id, {columns}, false FROM best_{space}"


@dataclass(frozen=True, slots=True)
class _Search:
    """One search, in a transaction of its own."""

    connection: "Connection"
    tables: Tables
    asked: Asked
    statement: str
    bound: dict[str, Any]

    @property
    def margin(self) -> float:
        """How far the server's scores may stray from the rounded ones."""
        return _HALF_MARGIN if self.tables.vector == "halfvec" else MARGIN

    def by_index(self, wanted: int) -> _Brought | None:
        """None where there is no index, or it brings too few: a narrow condition, many ties."""
        if wanted > _EF_MOST:
            return None
        ef_search = str(min(_EF_MOST, max(_EF_LEAST, 2 * wanted)))
        row = self.connection.execute(
            "SELECT set_config('enable_indexscan', 'on', true), "
            "set_config('hnsw.ef_search', %s, true), to_regclass(quote_ident(%s)) IS NOT NULL",
            [ef_search, self.tables.index("compatibility")],
        ).fetchone()
        if not row or not row[2]:
            return None
        if self.tables.iterative:
            self.connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        brought = self._bring(wanted)
        counts = [int(np.isfinite(brought.raw[space]).sum()) for space in self.asked.spaces]
        return brought if min(counts, default=0) >= wanted else None

    def by_scan(self, wanted: int) -> _Brought:
        """Look at every passage."""
        # Bitmap scans stay on for ids and conditions; an HNSW index has none.
        self.connection.execute("SET LOCAL enable_indexscan = off")
        return self._bring(wanted)

    def _bring(self, wanted: int) -> _Brought:
        # Never prepared: a plan for any LIMIT would not use the index.
        found = self.connection.execute(
            self.tables.sql(self.statement),
            {**self.bound, "wanted": wanted, "margin": self.margin},
            prepare=False,
            binary=True,
        ).fetchall()
        raw = np.array([row[:2] for row in found], dtype=np.float64).reshape(len(found), 2)
        vectors = (
            matrix(
                [row[i] for row in found],
                self.tables.vector,
                dimensions=self.asked.query.space(space).shape[1],
            )
            for i, space in enumerate(SPACES, 9)
        )
        return _Brought(
            [passage_row(row[3], row[4], row[5], row[6:9]) for row in found],
            VectorPair(*vectors),
            {space: -raw[:, i] for i, space in enumerate(SPACES)},
            np.array([row[2] for row in found], dtype=np.bool_),
        )

    def chosen(self, brought: _Brought, wanted: int) -> list[int] | None:
        """Positions of the pool; None where the statement has to bring more."""
        pool: set[int] = set()
        for space in self.asked.spaces:
            raw = brought.raw[space]
            positions = np.flatnonzero(np.isfinite(raw))
            floor = float(raw[positions].min()) if len(positions) >= wanted else -np.inf
            best = best_documents(
                self._found(brought, space, positions, floor), self.asked.n, margin=self.margin
            )
            if best is None:
                return None
            pool.update(positions[best].tolist())
        positions = np.flatnonzero(brought.named)
        named = best_documents(
            self._found(brought, "topical", positions, -np.inf), max(1, len(positions))
        )
        return sorted(pool.union(positions[named or []].tolist()))

    def _found(
        self, brought: _Brought, space: Space, positions: NDArray[np.int64], floor: float
    ) -> Found:
        vector = self.asked.query.space(space)[0]
        scores = cosine(brought.vectors.space(space)[positions], vector)
        return Found([brought.rows[i] for i in positions], scores, floor)


def as_text(vector: Floats) -> str:
    """A vector as PostgreSQL reads it; no digit is lost."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def as_wire(vector: Floats, kind: str) -> bytes:
    """A vector as the server receives it in binary."""
    return len(vector).to_bytes(2) + b"\0\0" + vector.astype(_WIRE[kind]).tobytes()


def matrix(sent: Sequence[bytes], kind: str, *, dimensions: int = 0) -> Floats:
    """Vectors as the server sends them, (n, dimensions); what no vector is sent for is said."""
    if not sent:
        return np.empty((0, dimensions), dtype=np.float32)
    octets = np.frombuffer(b"".join(sent), dtype=np.uint8).reshape(len(sent), -1)
    return np.ascontiguousarray(octets[:, _HEAD:]).view(_WIRE[kind]).astype(np.float32)
