"""The review sheet: candidate pairs as a table that a person reads, edits and decides on."""

import csv
import io
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from coder_ir.errors import InvalidFile, NotFound

KINDS = ("antonym", "negation", "exclusion")
KEEP, DROP, OPEN = "keep", "drop", ""
_NEEDED = ("pair_id", "query_a", "query_b", "a1", "a2", "b1", "b2")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two opposite queries with the documents that satisfy one and violate the other."""

    pair_id: str
    kind: str  # antonym, negation or exclusion
    source: str  # ids of the source documents, with + between them
    changed: str  # what tells side b from side a, in words
    decision: str  # keep, drop or "": not reviewed yet
    note: str  # the reviewer's
    query_a: str
    query_b: str
    a1: str  # satisfies query a, violates query b
    a2: str
    b1: str  # satisfies query b, violates query a
    b2: str
    neutral1: str  # same topic, satisfies and violates neither; "": none
    neutral2: str
    also_a: str = ""  # passages of other pairs that violate query a, such as exclusion-072-b1
    also_b: str = ""


COLUMNS = tuple(field.name for field in fields(Pair))
_FIRST = tuple(column for column in COLUMNS if not column.startswith("also_"))


def write_sheet(pairs: Iterable[Pair], path: Path) -> None:
    """Write the table as CSV, packed where the name ends in .xz; same pairs, same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(pair, column) for column in COLUMNS] for pair in pairs)
    data = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)
    partial.replace(path)


def read_sheet(path: Path) -> list[Pair]:
    """The pairs of a sheet in its order; a row that cannot be read is named by file and line."""
    if not path.is_file():
        raise NotFound(f"no review sheet {path}")
    try:
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8-sig")
    except (UnicodeDecodeError, lzma.LZMAError) as error:
        raise InvalidFile(f"{path} is not a CSV sheet in UTF-8: {error}") from error
    pairs = list(_pairs(text, path))
    seen: set[str] = set()
    for pair in pairs:
        if pair.pair_id in seen:
            raise InvalidFile(f"{path} has the pair {pair.pair_id!r} twice")
        seen.add(pair.pair_id)
    return pairs


def _pairs(text: str, path: Path) -> Iterator[Pair]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(rows, [])
        if missing := [column for column in _FIRST if column not in header]:
            raise InvalidFile(f"{path}:1 lacks the columns {', '.join(missing)}")
        for row in rows:
            if any(cell.strip() for cell in row):
                yield _pair(header, row, f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise InvalidFile(f"{path}:{rows.line_num} is not a table row: {error}") from error


def _pair(header: list[str], row: list[str], place: str) -> Pair:
    if len(row) != len(header):
        raise InvalidFile(f"{place} has {len(row)} cells, the header has {len(header)}")
    cells = {name: " ".join(cell.split()) for name, cell in zip(header, row, strict=True)}
    pair = Pair(**{column: cells.get(column, "") for column in COLUMNS})
    if pair.kind not in KINDS:
        raise InvalidFile(f"{place}: a kind is one of {', '.join(KINDS)}, got {pair.kind!r}")
    if pair.decision not in (KEEP, DROP, OPEN):
        raise InvalidFile(f"{place}: a decision is keep, drop or nothing, got {pair.decision!r}")
    if pair.decision != DROP and (empty := [n for n in _NEEDED if not getattr(pair, n)]):
        raise InvalidFile(f"{place} has nothing in {', '.join(empty)}")
    return pair
