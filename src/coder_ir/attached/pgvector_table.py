"""A user's pgvector table: its address, its columns, and the table that goes beside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coder_ir.errors import InvalidValue, NotFound
from coder_ir.stores.address import flag
from coder_ir.stores.pgvector.address import Server
from coder_ir.stores.pgvector.schema import ITERATIVE_SINCE, extension_version

if TYPE_CHECKING:
    from psycopg import sql

    from coder_ir.stores.pgvector.connections import Connection

SUFFIX = "_coder"
_COLUMNS = ("id", "text", "vector")
_OWN = ("table", *_COLUMNS, "foreign_key")
_LONGEST = 63  # bytes of a name; PostgreSQL cuts longer ones
_OPERATORS = {"cosine": "<=>", "ip": "<#>", "l2": "<->"}  # best first where there are several
_INDEXES = """
SELECT o.opcname FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
WHERE i.indrelid = %s AND i.indkey[0] = %s AND i.indisvalid
"""
_UNIQUE = """
SELECT EXISTS (
    SELECT 1 FROM pg_index WHERE indrelid = %s AND indkey[0] = %s AND indnkeyatts = 1
    AND indisunique AND indisvalid AND indpred IS NULL
)
"""
_ATTRIBUTES = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname, a.atttypmod, a.attnotnull,
       a.attnum
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


@dataclass(frozen=True, slots=True)
class Address:
    """What a source's address says."""

    server: Server
    schema: str  # "": the first of the search path that has the table
    table: str
    id: str
    text: str
    vector: str
    foreign_key: bool  # let the database drop our row with its item

    @classmethod
    def read(cls, address: str) -> "Address":
        """Read `postgresql://…?table=TABLE&id=COLUMN&text=COLUMN&vector=COLUMN`."""
        server, own = Server.reached_by(address, _OWN)
        for name in ("table", *_COLUMNS):
            if not own.get(name):
                raise InvalidValue(
                    f"{server.place} does not say {name}=…; a source is "
                    "postgresql://…?table=TABLE&id=COLUMN&text=COLUMN&vector=COLUMN"
                )
            if "\0" in own[name]:
                raise InvalidValue(f"{name} of {server.place} holds a null character")
        schema, dot, table = own["table"].partition(".")
        schema, table = (schema, table) if dot else ("", schema)
        if len(f"{table}{SUFFIX}".encode()) > _LONGEST:
            raise InvalidValue(f"no table can go beside {table!r}: {table}{SUFFIX} is too long")
        columns = {name: own[name] for name in _COLUMNS}
        key = flag(own.get("foreign_key", "false"), "foreign_key", where=server.place)
        return cls(server, schema, table, foreign_key=key, **columns)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is there, with what its columns are."""

    address: Address
    schema: str
    oid: int
    id_type: str  # as SQL writes it
    vector_type: str  # vector or halfvec
    dimensions: int | None  # None: the column takes vectors of any
    metric: str  # cosine, ip or l2: that of an index on the vectors, or cosine
    iterative: bool  # an index goes on until there are enough rows

    def sql(self, statement: str) -> "sql.Composed":
        """A statement of this package with its {names} filled in; always run it with values.

        With values, even none, psycopg reads % as a mark; names that hold one have it doubled.
        """
        from psycopg import sql

        address = self.address

        def name(*parts: str) -> sql.Identifier:
            return sql.Identifier(*(part.replace("%", "%%") for part in parts))

        filled: dict[str, sql.Composable] = {
            "items": name(self.schema, address.table),
            "side": name(self.schema, address.table + SUFFIX),
            "id": name(address.id),
            "text": name(address.text),
            "vector": name(address.vector),
            # What PostgreSQL itself said of its types and operators, no word of a user.
            "id_type": _verbatim(self.id_type),
            "vector_type": _verbatim(self.vector_type),
            "send": _verbatim(f"{self.vector_type}_send"),
            "operator": _verbatim(_OPERATORS[self.metric]),
        }
        return sql.SQL(_literal(statement)).format(**filled)

    @property
    def side(self) -> str:
        """The table beside it, as messages name it."""
        return f"{self.schema}.{self.address.table}{SUFFIX}"


def _literal(text: str) -> Any:
    return text  # psycopg wants literals; these are fixed pieces of this package


def _verbatim(text: str) -> "sql.SQL":
    from psycopg import sql

    return sql.SQL(_literal(text))


def find_table(connection: "Connection", address: Address) -> Table:
    """Look the table up and check the columns that the address names."""
    parts = [part for part in (address.schema, address.table) if part]
    row = connection.execute(
        "SELECT c.oid::bigint, n.nspname FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
        [".".join('"' + part.replace('"', '""') + '"' for part in parts)],
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no table {'.'.join(parts)!r} in {address.server.place}")
    oid, schema = row
    found = {r[0]: r for r in connection.execute(_ATTRIBUTES, [oid]).fetchall()}
    for name in _COLUMNS:
        if getattr(address, name) not in found:
            raise InvalidValue(
                f"table {address.table!r} has no column {getattr(address, name)!r} for {name}=; "
                f"it has {', '.join(found)}"
            )
    _, id_type, _, _, filled, number = found[address.id]
    _check_key(connection, address, oid, number=number, filled=filled)
    vector, typmod, place = (found[address.vector][i] for i in (2, 3, 5))
    if vector not in ("vector", "halfvec"):
        raise InvalidValue(
            f"column {address.vector!r} of table {address.table!r} is of type {vector}; vectors "
            "are of type vector or halfvec"
        )
    return Table(
        address,
        schema,
        oid,
        id_type,
        vector_type=vector,
        dimensions=typmod if typmod > 0 else None,
        metric=_metric(connection, oid, place),
        iterative=extension_version(connection) >= ITERATIVE_SINCE,
    )


def _check_key(
    connection: "Connection", address: Address, oid: int, *, number: int, filled: bool
) -> None:
    row = connection.execute(_UNIQUE, [oid, number]).fetchone()
    if not filled or row is None or not row[0]:
        raise InvalidValue(
            f"column {address.id!r} of table {address.table!r} does not tell items apart; it has "
            "to be NOT NULL and alone in a unique index, as a primary key is"
        )


def _metric(connection: "Connection", oid: int, column: int) -> str:
    """What the user's own index on the vectors is for, so that searches can use it."""
    classes = [row[0] for row in connection.execute(_INDEXES, [oid, column]).fetchall()]
    for metric in _OPERATORS:
        if any(name.endswith(f"_{metric}_ops") for name in classes):
            return metric
    return "cosine"
