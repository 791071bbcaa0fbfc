"""Bytes a passage takes in PostgreSQL, measured with passages that are made up."""

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.stores.pgvector.address import Server, import_psycopg
from coder_ir.stores.pgvector.store import PgvectorStore
from coder_ir.types import Document, Record, Span, VectorPair
from coder_ir.vectors import unit_rows

_SENTENCE = "Back rooms look onto a garden that is silent after ten. "
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Footprint:
    """Sizes as PostgreSQL tells them."""

    passages: int  # that were stored, one a document
    dimensions: int  # of each of the two vectors
    characters: int  # of a passage's text
    table_bytes: float  # a passage: both tables, texts, vectors and keys
    index_bytes: float  # a passage: both HNSW indexes, which a search keeps in memory

    @classmethod
    def load(cls, path: Path) -> "Footprint":
        """From what `save` wrote."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise NotFound(f"there is no {path}; make it with --measure ADDRESS") from error
        except (ValueError, TypeError) as error:
            raise InvalidFile(f"{path} holds no footprint: {error}") from error

    def save(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def measure_footprint(
    address: str,
    *,
    passages: int = 20_000,
    dimensions: int = 384,
    sentences: int = 18,
    seed: int = 0,
) -> Footprint:
    """Fill a table of its own in the database of an address, index it, weigh it and drop it.

    Vectors are random, which no index can make use of; texts are `sentences` long.
    """
    server, _ = Server.reached_by(address, ("table", "exact", "halfvec"))
    base, _, query = address.partition("?")
    rest = [part for part in query.split("&") if part and not part.startswith(("table=", "exact="))]
    table = f"footprint_{secrets.token_hex(6)}"
    psycopg = import_psycopg()
    store = PgvectorStore(f"{base}?{'&'.join([f'table={table}', *rest])}")
    try:
        draw = np.random.default_rng(seed)
        text = _SENTENCE * sentences
        for start in range(0, passages, _BATCH):
            store.write(
                _records(range(start, min(start + _BATCH, passages)), text, dimensions, draw)
            )
        store.compact()
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            names = {"table": table, "passages": f"{table}_passages"}
            sizes = connection.execute(
                "SELECT pg_table_size(%(table)s::regclass) + pg_indexes_size(%(table)s::regclass)"
                " + pg_total_relation_size(%(passages)s::regclass), (SELECT sum(pg_relation_size("
                "indexrelid)) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid "
                "= %(passages)s::regclass AND c.relname LIKE '%%hnsw')",
                names,
            ).fetchone()
    finally:
        store.close()
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            for name in (f"{table}_passages", table, f"{table}_meta"):
                connection.execute(f"DROP TABLE IF EXISTS {name}")
    index = float(sizes[1])
    whole = float(sizes[0])
    return Footprint(passages, dimensions, len(text), (whole - index) / passages, index / passages)


def _records(numbers: range, text: str, dimensions: int, draw: np.random.Generator) -> list[Record]:
    rows = [unit_rows(draw.normal(size=(len(numbers), dimensions))) for _ in range(2)]
    return [
        Record(
            Document(f"made-up-{number:012}", text),
            secrets.token_hex(32),
            [Span(0, len(text))],
            VectorPair(rows[0][i : i + 1], rows[1][i : i + 1]),
        )
        for i, number in enumerate(numbers)
    ]
