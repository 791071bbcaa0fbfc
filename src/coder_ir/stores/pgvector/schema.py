"""Tables of the PostgreSQL store: how they are made, brought up to date and checked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coder_ir.errors import InvalidValue, NotFound, StoreError
from coder_ir.stores.pgvector.address import Settings

if TYPE_CHECKING:
    from psycopg import sql

    from coder_ir.stores.pgvector.connections import Connection

# Advisory locks: one process at a time makes or changes tables, and one makes a table's indexes,
# which takes long and must keep nobody from opening another index.
_LOCK = 0x636F646572
_INDEX_LOCK = 0x636F6465
_HALFVEC_SINCE = (0, 7)
ITERATIVE_SINCE = (0, 8)
_INDEXABLE = {"vector": 2000, "halfvec": 4000}  # dimensions an HNSW index takes at most

# Step i takes the tables from version i to version i + 1.
_STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE {meta} (key text PRIMARY KEY, value text NOT NULL)",
        """CREATE TABLE {documents} (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            doc_id text COLLATE "C" NOT NULL UNIQUE,
            title text NOT NULL,
            text text NOT NULL,
            metadata text NOT NULL,
            fields jsonb NOT NULL,
            digest text NOT NULL
        )""",
        "CREATE INDEX ON {documents} USING gin (fields jsonb_path_ops)",
        """CREATE TABLE {passages} (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            document bigint NOT NULL REFERENCES {documents} (id) ON DELETE CASCADE,
            number integer NOT NULL,
            start integer NOT NULL,
            stop integer NOT NULL,
            topical {vector} NOT NULL,
            compatibility {vector} NOT NULL,
            UNIQUE (document, number)
        ) WITH (toast_tuple_target = 8160)""",  # vectors stay in the row: scans are faster
        "INSERT INTO {meta} VALUES ('identity', gen_random_uuid()::text), ('writes', '0')",
    ),
)
SCHEMA_VERSION = len(_STEPS)


@dataclass(frozen=True, slots=True)
class Tables:
    """Names, each a quoted identifier in a statement, and the type of the vectors."""

    table: str
    vector: str  # vector or halfvec
    iterative: bool  # the extension goes on where a filter leaves too few of an index scan

    @property
    def passages(self) -> str:
        """The table of passages."""
        return f"{self.table}_passages"

    @property
    def meta(self) -> str:
        """The table of schema version, model and number of writes."""
        return f"{self.table}_meta"

    def index(self, space: str) -> str:
        """The HNSW index of a space."""
        return f"{self.table}_{space}_hnsw"

    def sql(self, statement: str, **names: str) -> "sql.Composed":
        """A statement of this package with its {names} filled in."""
        from psycopg import sql

        filled = {
            "documents": self.table,
            "passages": self.passages,
            "meta": self.meta,
            "vector": self.vector,
            "send": f"{self.vector}_send",
            **names,
        }
        template: Any = statement  # only fixed pieces of this package
        return sql.SQL(template).format(**{k: sql.Identifier(v) for k, v in filled.items()})


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Of the two vectors of a passage."""

    topical: int
    compatibility: int

    def indexable(self, vector: str) -> bool:
        """Whether an HNSW index takes them."""
        return max(self.topical, self.compatibility) <= _INDEXABLE[vector]


def open_tables(connection: "Connection", settings: Settings, *, read_only: bool) -> Tables:
    """Check the tables; make them, or bring them up to date, unless read_only."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the database of {settings.place} is encoded in {encoding}; texts need one in UTF8: "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    if not read_only:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            _makeextension_version(connection, settings)
            _migrate(connection, settings)
    version = _version(connection, settings)
    if version is None:
        raise NotFound(
            f"no index in {settings.place}; build one with: coder-ir index 'ADDRESS' DOCS"
        )
    if version != SCHEMA_VERSION:
        older = "; open it once to write, which brings it up to date"
        raise StoreError(
            f"{settings.place} has schema version {version}; this coder-ir reads "
            f"{SCHEMA_VERSION}{older if version < SCHEMA_VERSION else ''}"
        )
    return _found(connection, settings)


def _makeextension_version(connection: "Connection", settings: Settings) -> None:
    from psycopg import errors

    if extension_version(connection):
        return
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the database of {settings.place} lacks the extension pgvector and this user may not "
            "add it; have an administrator run there: CREATE EXTENSION vector"
        ) from error
    except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
        raise StoreError(
            f"the server of {settings.place} has no pgvector; install it there (package "
            "postgresql-NN-pgvector, or github.com/pgvector/pgvector) and run the command again"
        ) from error


def extension_version(connection: "Connection") -> tuple[int, ...]:
    """Version of pgvector in this database; empty where it is not there."""
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return tuple(int(part) for part in row[0].split(".")) if row else ()


def _migrate(connection: "Connection", settings: Settings) -> None:
    tables = Tables(settings.table, "halfvec" if settings.halfvec else "vector", iterative=False)
    if settings.halfvec and extension_version(connection) < _HALFVEC_SINCE:
        raise StoreError(
            f"halfvec=true needs pgvector 0.7 or later on the server of {settings.place}; update "
            "the extension, or leave it out"
        )
    version = _version(connection, settings)
    if version is None:
        for name in (tables.table, tables.passages):
            if _exists(connection, name):
                raise StoreError(
                    f"{settings.place}: there is a table {name!r} that is not an index but another "
                    "program's; name a new table"
                )
    for step in _STEPS[version or 0 :]:
        for statement in step:
            connection.execute(tables.sql(statement))
    if version != SCHEMA_VERSION and (version or 0) < SCHEMA_VERSION:
        connection.execute(
            tables.sql(
                "INSERT INTO {meta} VALUES ('version', %s) "
                "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
            ),
            [str(SCHEMA_VERSION)],
        )


def _exists(connection: "Connection", name: str) -> bool:
    row = connection.execute("SELECT to_regclass(quote_ident(%s)) IS NOT NULL", [name]).fetchone()
    return bool(row and row[0])


def _version(connection: "Connection", settings: Settings) -> int | None:
    tables = Tables(settings.table, "vector", iterative=False)
    if not _exists(connection, tables.meta):
        return None
    row = connection.execute(
        tables.sql("SELECT value FROM {meta} WHERE key = 'version'")
    ).fetchone()
    return int(row[0]) if row else None


def _found(connection: "Connection", settings: Settings) -> Tables:
    """The tables as they are; an address that says otherwise is refused."""
    row = connection.execute(
        "SELECT t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE a.attrelid = to_regclass(quote_ident(%s)) AND a.attname = 'topical'",
        [f"{settings.table}_passages"],
    ).fetchone()
    vector = row[0] if row else "vector"
    if settings.halfvec is not None and settings.halfvec != (vector == "halfvec"):
        raise InvalidValue(
            f"{settings.place} says halfvec={str(settings.halfvec).lower()}, but its table was "
            f"made with {vector}; leave halfvec out, or name a new table"
        )
    iterative = extension_version(connection) >= ITERATIVE_SINCE
    return Tables(settings.table, vector, iterative=iterative)


def dimensions(connection: "Connection", tables: Tables) -> Dimensions | None:
    """Dimensions of the stored vectors; None before the first write."""
    found: dict[str, int] = dict(
        connection.execute(
            "SELECT attname, atttypmod FROM pg_attribute WHERE attname = ANY(%s) "
            "AND attrelid = to_regclass(quote_ident(%s))",
            [["topical", "compatibility"], tables.passages],
        ).fetchall()
    )
    if found.get("topical", -1) < 0:
        return None
    return Dimensions(found["topical"], found["compatibility"])


def settle_dimensions(connection: "Connection", tables: Tables, wanted: Dimensions) -> Dimensions:
    """The dimensions of the stored vectors, which the first write decides."""
    if found := dimensions(connection, tables):
        return found
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    if found := dimensions(connection, tables):  # another process was first
        return found
    connection.execute(
        tables.sql(
            "ALTER TABLE {passages} "
            f"ALTER topical TYPE {{vector}}({wanted.topical:d}), "
            f"ALTER compatibility TYPE {{vector}}({wanted.compatibility:d})"
        )
    )
    return wanted


def make_indexes(connection: "Connection", tables: Tables) -> None:
    """An HNSW index a space, both or none; readers go on, writers wait."""
    found = dimensions(connection, tables)
    if found is None or not found.indexable(tables.vector):
        return
    with connection.transaction():
        key = [_INDEX_LOCK, tables.table]
        connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", key)
        for space in ("topical", "compatibility"):
            statement = (
                "CREATE INDEX IF NOT EXISTS {index} ON {passages} "
                "USING hnsw ({space} {operators}) WITH (m = 16, ef_construction = 128)"
            )
            operators = f"{tables.vector}_ip_ops"
            names = {"index": tables.index(space), "space": space, "operators": operators}
            connection.execute(tables.sql(statement, **names))
        connection.execute(tables.sql("ANALYZE {passages}"))
