"""The sidecar of an index, made from its SQLite file."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coder_ir.stores.sqlite.approximate import build_codes, kind_of, tuned
from coder_ir.stores.sqlite.columns import packed
from coder_ir.stores.sqlite.exact import import_faiss
from coder_ir.stores.sqlite.sidecar import (
    ANN,
    SPACES,
    Codes,
    Manifest,
    mapped_rows,
    mark_of,
    parts,
    remove_others,
)
from coder_ir.types import Space

PASSAGES = (
    "SELECT p.id, d.doc_id, d.id, p.number, p.start, p.stop, p.topical, p.compatibility "
    "FROM passages p JOIN documents d ON d.id = p.document WHERE p.id > ? ORDER BY p.id"
)
_FETCH = 4096  # passages a read
Row = tuple[int, str, int, int, int, int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Written:
    """How much went into the files."""

    rows: int
    last_row: int
    dimensions: dict[Space, int]


def build_sidecar(database: Path, *, identity: str, model: str) -> Manifest:
    """Write a new generation from one view of the database and make it count.

    Vectors go from SQLite to the file in blocks, and only one space's codes are in memory.
    """
    folder = database.parent
    generation = secrets.token_hex(8)
    base = folder / ANN / generation
    try:
        written = _write_rows(database, base)
        codes: dict[str, Codes] = {s: _write_codes(base, s, written) for s in SPACES}
        marks = {}
        for part in parts():
            path = base.with_name(f"{generation}.{part}")
            _sync(path)
            marks[part] = mark_of(path)
        manifest = Manifest(
            *(generation, identity, model, written.rows, written.last_row),
            codes=codes,
            marks=marks,
        )
        manifest.save(folder)
    except BaseException:
        for part in parts():
            base.with_name(f"{generation}.{part}").unlink(missing_ok=True)
        raise
    remove_others(folder, generation)
    return manifest


def fetched(connection: sqlite3.Connection, after: int) -> Iterator[list[Row]]:
    """Passages with a higher row id than `after`, in blocks."""
    cursor = connection.execute(PASSAGES, (after,))
    while rows := cursor.fetchmany(_FETCH):
        yield rows


def _write_rows(database: Path, base: Path) -> _Written:
    names = {part: base.with_name(f"{base.name}.{part}") for part in parts()}
    uri = f"{database.resolve().as_uri()}?mode=ro"
    rows, last, size = 0, 0, 0
    dimensions: dict[Space, int] = {}
    with (
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection,
        names["topical.f32"].open("wb") as topical,
        names["compatibility.f32"].open("wb") as compatibility,
        names["rows"].open("wb") as columns,
        names["ids"].open("wb") as ids,
    ):
        connection.execute("PRAGMA busy_timeout = 10000")
        for block in fetched(connection, 0):
            topical.write(b"".join(row[6] for row in block))
            compatibility.write(b"".join(row[7] for row in block))
            made, text = packed([row[:6] for row in block], start=size)
            columns.write(made.tobytes())
            ids.write(text)
            rows, last, size = rows + len(block), block[-1][0], size + len(text)
            dimensions = {"topical": len(block[0][6]) // 4, "compatibility": len(block[0][7]) // 4}
    return _Written(rows, last, dimensions)


def _write_codes(base: Path, space: Space, written: _Written) -> Codes:
    shape = (written.rows, written.dimensions[space])
    vectors = mapped_rows(base.with_name(f"{base.name}.{space}.f32"), shape)
    index = build_codes(vectors)
    found = tuned(index, vectors)
    import_faiss().write_index(index, str(base.with_name(f"{base.name}.{space}.codes")))
    return Codes(shape[1], kind_of(index), found.width, found.recall)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
