"""The pool of a query from PostgreSQL: one statement finds it and brings both vectors along."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.stores.pgvector_schema import Tables
from coder_ir.stores.pgvector_where import condition_sql
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
    from coder_ir.stores.pgvector_connections import Connection

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
    margin = _HALF_MARGIN if tables.vector == "halfvec" else MARGIN
    statement, bound = _statement(asked)
    bound["margin"] = margin
    with connection.transaction():
        for wanted in widths(asked.n):
            bound["wanted"] = wanted
            brought = None if exact else _by_index(connection, tables, statement, bound, asked)
            brought = brought or _by_scan(connection, tables, statement, bound, asked)
            chosen = _chosen(brought, asked, wanted, margin)
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
    parts = [_part(space) for space in spaces]
    if asked.also:
        tables.append(_NAMED.replace("CONDITION", condition))
        parts.append("SELECT id, NULL::float8, NULL::float8, true FROM joining")
    values: dict[str, Any] = {**bound, "also": _storable(asked.also), "n": asked.n}
    for space in SPACES:
        values[space] = as_text(asked.query.space(space)[0])
    head = f"WITH {', '.join(tables)}" if tables else ""
    none = "SELECT NULL::bigint AS id, 0::float8 AS topical, 0::float8 AS compatibility, false "
    none += "AS named WHERE false"
    return head + _POOL.replace("PARTS", " UNION ALL ".join([none, *parts])), values


def _top(space: Space, joined: str) -> str:
    distance = f"p.{space} <#> %({space})s::{{vector}}"
    return (
        f"best_{space} AS (SELECT p.id, {distance} AS distance FROM {{passages}} p {joined} "
        f"ORDER BY {distance} LIMIT %(wanted)s)"
    )


def _part(space: Space) -> str:
    columns = ", ".join("distance" if name == space else "NULL::float8" for name in SPACES)
    return f"SELECT id, {columns}, false FROM best_{space}"


def _storable(doc_ids: Sequence[str]) -> list[str]:
    """PostgreSQL takes no null characters, so no document has such an id."""
    return [doc_id for doc_id in doc_ids if "\0" not in doc_id]


def _by_index(
    connection: "Connection", tables: Tables, statement: str, bound: dict[str, Any], asked: Asked
) -> _Brought | None:
    """None where there is no index, or it brings too few: a narrow condition, too many ties."""
    wanted = bound["wanted"]
    if wanted > _EF_MOST:
        return None
    row = connection.execute(
        "SELECT set_config('enable_indexscan', 'on', true), "
        "set_config('hnsw.ef_search', %s, true), to_regclass(quote_ident(%s)) IS NOT NULL",
        [str(min(_EF_MOST, max(_EF_LEAST, 2 * wanted))), tables.index("compatibility")],
    ).fetchone()
    if not row or not row[2]:
        return None
    if tables.iterative:
        connection.execute("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
    brought = _bring(connection, tables, statement, bound, asked)
    counts = [int(np.isfinite(brought.raw[space]).sum()) for space in asked.spaces]
    return brought if min(counts, default=0) >= wanted else None


def _by_scan(
    connection: "Connection", tables: Tables, statement: str, bound: dict[str, Any], asked: Asked
) -> _Brought:
    # Bitmap scans stay on for ids and conditions; an HNSW index has none.
    connection.execute("SELECT set_config('enable_indexscan', 'off', true)")
    return _bring(connection, tables, statement, bound, asked)


def _bring(
    connection: "Connection", tables: Tables, statement: str, bound: dict[str, Any], asked: Asked
) -> _Brought:
    # Never prepared: a plan for any LIMIT would not use the index.
    cursor = connection.execute(tables.sql(statement), bound, prepare=False, binary=True)
    found = cursor.fetchall()
    vectors = (
        matrix([row[i] for row in found], tables.vector, dimensions=asked.query.space(s).shape[1])
        for i, s in enumerate(SPACES, 9)
    )
    raw = np.array([row[:2] for row in found], dtype=np.float64).reshape(len(found), 2)
    return _Brought(
        [passage_row(row[3], row[4], row[5], row[6:9]) for row in found],
        VectorPair(*vectors),
        {space: -raw[:, i] for i, space in enumerate(SPACES)},
        np.array([row[2] for row in found], dtype=np.bool_),
    )


def _chosen(brought: _Brought, asked: Asked, wanted: int, margin: float) -> list[int] | None:
    """Positions of the pool; None where the statement has to bring more."""
    chosen: set[int] = set()
    for space in asked.spaces:
        raw = brought.raw[space]
        positions = np.flatnonzero(np.isfinite(raw))
        floor = float(raw[positions].min()) if len(positions) >= wanted else -np.inf
        best = _best(brought, space, asked, positions, floor=floor, n=asked.n, margin=margin)
        if best is None:
            return None
        chosen.update(best)
    positions = np.flatnonzero(brought.named)
    named = _best(
        brought, "topical", asked, positions, floor=-np.inf, n=len(positions), margin=margin
    )
    return sorted(chosen.union(named or ()))


def _best(
    brought: _Brought,
    space: Space,
    asked: Asked,
    positions: NDArray[np.int64],
    *,
    floor: float,
    n: int,
    margin: float,
) -> list[int] | None:
    scores = cosine(brought.vectors.space(space)[positions], asked.query.space(space)[0])
    found = Found([brought.rows[i] for i in positions], scores, floor)
    best = best_documents(found, n, margin=margin)
    return None if best is None else positions[best].tolist()


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
