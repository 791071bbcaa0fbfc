"""A user's documents: jsonl (BEIR), CSV, TSV, folders of .txt and .md, standard input."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coder_ir.conditions import parse_value
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.types import Document, Json

STDIN = "-"
_TEXT_FILES = (".txt", ".md")
_TABLES = {".csv": ",", ".tsv": "\t"}
_ID_NAMES = ("_id", "id", "doc_id")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which fields of a row or JSON object hold what; all others become metadata."""

    doc_id: str | None = None  # None: _id, id or doc_id, the first present
    text: str = "text"
    title: str = "title"


def read_documents(sources: Iterable[str], columns: Columns | None = None) -> Iterator[Document]:
    """Documents of files, folders and `-` (jsonl on standard input), in the order given."""
    columns = columns or Columns()
    for source in sources:
        path = Path(source)
        if source == STDIN:
            yield from jsonl_documents(sys.stdin.buffer, "standard input", columns)
        elif path.is_dir():
            yield from _from_folder(path)
        elif path.suffix.lower() in _TABLES:
            yield from _from_table(path, columns)
        elif path.suffix.lower() in _TEXT_FILES:
            yield Document(path.name, _text(path))
        elif path.is_file():
            with path.open("rb") as lines:
                yield from jsonl_documents(lines, str(path), columns)
        else:
            raise NotFound(f"no file or folder {source}")


def count_documents(sources: Iterable[str]) -> int | None:
    """How many there will be at most, for a progress bar; None where it cannot be known."""
    total = 0
    for source in sources:
        path = Path(source)
        if path.is_dir():
            total += len(_text_files(path))
        elif path.is_file():
            total += 1 if path.suffix.lower() in _TEXT_FILES else _lines(path)
        else:
            return None
    return total


def json_lines(
    lines: Iterable[bytes], name: str, *, first: int = 1
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects; blank lines are passed over, a bad one names file and line."""
    for number, raw in enumerate(lines, first):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            if not line.strip():
                continue
            row = json.loads(line, parse_constant=_refused, parse_float=_finite)
            if "\\u" in line:  # an escape may hold half a surrogate pair, which no store can keep
                json.dumps(row, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise InvalidFile(
                f"{name}:{number} is not UTF-8 (byte {error.object[error.start]:#04x} at column "
                f"{error.start + 1}); save the file as UTF-8"
            ) from error
        except UnicodeEncodeError as error:
            raise InvalidFile(f"{name}:{number} holds half a surrogate pair: {error}") from error
        except ValueError as error:
            raise InvalidFile(f"{name}:{number} is not JSON: {error}") from error
        except RecursionError as error:
            raise InvalidFile(f"{name}:{number} is nested too deeply to be read") from error
        if not isinstance(row, dict):
            raise InvalidFile(f"{name}:{number} should hold a JSON object, got {line.strip()[:40]}")
        yield number, row


def _refused(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _refused(text)


def jsonl_documents(
    lines: Iterable[bytes], name: str, columns: Columns, *, first: int = 1
) -> Iterator[Document]:
    """Documents of jsonl; `name` and the line's number, counted from `first`, are in errors."""
    for number, row in json_lines(lines, name, first=first):
        metadata = row.pop("metadata", None) or {}
        if not isinstance(metadata, dict):
            raise InvalidFile(f"{name}:{number}: metadata should be an object, got {metadata!r}")
        document = _document(row, columns, f"{name}:{number}")
        yield Document(
            document.doc_id, document.text, document.title, {**document.metadata, **metadata}
        )


def _from_table(path: Path, columns: Columns) -> Iterator[Document]:
    if not path.is_file():
        raise NotFound(f"no file or folder {path}")
    csv.field_size_limit(2**31 - 1)  # the default refuses a cell over 128 KiB
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, delimiter=_TABLES[path.suffix.lower()])
        try:
            names = list(reader.fieldnames or ())
            if len(set(names)) != len(names):
                raise InvalidFile(f"{path}:1 names a column twice: {', '.join(names)}")
            for row in reader:
                place = f"{path}:{reader.line_num}"
                if None in row or None in row.values():
                    raise InvalidFile(f"{place} has another number of cells than the header")
                yield _document(_parsed(row, columns), columns, place)
        except UnicodeDecodeError as error:
            raise InvalidFile(
                f"{path} is not UTF-8 after line {reader.line_num} ({error.reason}); "
                "save it as UTF-8"
            ) from error
        except csv.Error as error:
            raise InvalidFile(f"{path}:{reader.line_num} is not a table row: {error}") from error


def _parsed(row: dict[str, str], columns: Columns) -> dict[str, Json]:
    """Cells that become metadata read as numbers where they are numbers."""
    texts = {columns.text, columns.title, columns.doc_id, *_ID_NAMES}
    return {name: cell if name in texts else parse_value(cell) for name, cell in row.items()}


def _document(row: dict[str, Any], columns: Columns, place: str) -> Document:
    name = columns.doc_id or next((name for name in _ID_NAMES if name in row), _ID_NAMES[0])
    for needed in (name, columns.text):
        if row.get(needed) is None:
            raise InvalidFile(
                f"{place} has no field {needed!r} (it has {', '.join(map(str, row)) or 'none'}); "
                "name the fields with --id and --text"
            )
    doc_id, text, title = row.pop(name), row.pop(columns.text), row.pop(columns.title, "") or ""
    if isinstance(doc_id, bool | float | list | dict) or doc_id == "":
        raise InvalidFile(f"{place}: an id is text or a whole number, got {doc_id!r}")
    for value in (text, title):
        if not isinstance(value, str):
            raise InvalidFile(f"{place}: text and title must be text, got {value!r}")
    return Document(str(doc_id), text, title, row)


def _from_folder(folder: Path) -> Iterator[Document]:
    files = _text_files(folder)
    if not files:
        raise NotFound(f"{folder} holds no .txt or .md file")
    for path in files:
        yield Document(path.relative_to(folder).as_posix(), _text(path))


def _text_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in _TEXT_FILES and p.is_file())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound(f"no file or folder {path}") from error
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{path} is not UTF-8 (byte {error.object[error.start]:#04x} at {error.start}); "
            "save it as UTF-8"
        ) from error


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def check_sources(sources: Iterable[str]) -> None:
    """Refuse what is not there before any work begins."""
    sources = list(sources)
    if not sources:
        raise InvalidValue("no documents were named; give files, folders or - for standard input")
    for source in sources:
        if source != STDIN and not Path(source).exists():
            raise NotFound(f"no file or folder {source}")
