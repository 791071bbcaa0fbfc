"""Files cut into parts that one worker reads, encodes and writes at a time.

Only the places of parts travel through Ray; a document is read where it is encoded.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from coder_ir.datasets.documents import Columns, jsonl_documents
from coder_ir.errors import InvalidFile, InvalidValue, MissingExtra, NotFound
from coder_ir.types import Document

PART_BYTES = 4_000_000
Kind = Literal["jsonl", "parquet"]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that begin in a range of bytes of a jsonl file, or row groups of a parquet file."""

    path: str  # or an fsspec URL
    kind: Kind
    start: int  # byte or row group
    end: int  # exclusive


def find_parts(sources: Sequence[str], *, size: int = PART_BYTES) -> list[Part]:
    """The parts of files, of the files of folders, and of what patterns with * match, in order."""
    if not sources:
        raise InvalidValue("no documents were named; give .jsonl or .parquet files or URLs")
    fsspec = _fsspec()
    parts: list[Part] = []
    for source in sources:
        try:
            files, path = fsspec.core.url_to_fs(source)
            for name in _files(files, path, source):
                url = files.unstrip_protocol(name)
                kind = _kind(name)
                if kind == "jsonl":
                    parts += _bytes(url, files.size(name), size)
                else:
                    with files.open(name, "rb") as file:
                        parts += _groups(url, file)
        except FileNotFoundError as error:
            raise NotFound(f"no file or folder {source}") from error
        except (OSError, ImportError, ValueError) as error:
            if isinstance(error, InvalidValue | InvalidFile):
                raise
            raise InvalidFile(f"{source} cannot be read: {error}") from error
    return parts


def _files(files: Any, path: str, source: str) -> list[str]:
    if "*" in path:
        found = sorted(files.glob(path))
    elif files.isdir(path):
        listed = (name for name in files.find(path) if _suffix(name) in _KINDS)
        found = sorted(listed)
    else:
        found = [path] if files.exists(path) else []
    if not found:
        raise NotFound(f"no .jsonl or .parquet file in {source}")
    return found


def _suffix(name: str) -> str:
    dot = name.rfind(".")
    return name[dot:].lower() if dot > name.rfind("/") else ""


def _kind(name: str) -> Kind:
    kind = _KINDS.get(_suffix(name))
    if kind is None:
        raise InvalidValue(
            f"with --ray documents come as {', '.join(_KINDS)} files, got {name}; index it without "
            "--ray, or convert it"
        )
    return kind


def _bytes(url: str, total: int, size: int) -> list[Part]:
    return [Part(url, "jsonl", at, min(at + size, total)) for at in range(0, total, size)]


def _groups(url: str, file: Any) -> list[Part]:
    groups = _parquet(file).metadata.num_row_groups
    return [Part(url, "parquet", group, group + 1) for group in range(groups)]


def read_part(part: Part, columns: Columns) -> Iterator[Document]:
    """The documents of a part, with the checks of `coder-ir index`."""
    with _fsspec().open(part.path, "rb").open() as file:
        if part.kind == "jsonl":
            lines = _lines(file, part)
            name = f"{part.path}, from byte {part.start}"
            yield from jsonl_documents(lines, name, columns, first=2 if part.start else 1)
        else:
            yield from _rows(file, part, columns)


def _lines(file: Any, part: Part) -> Iterator[bytes]:
    """A line belongs to the part that its first byte is in."""
    at = max(0, part.start - 1)
    file.seek(at)
    if part.start:
        at += len(file.readline())
    while at < part.end and (line := file.readline()):
        at += len(line)
        yield line


def _rows(file: Any, part: Part, columns: Columns) -> Iterator[Document]:
    table = _parquet(file)
    for group in range(part.start, part.end):
        name = f"{part.path}, row group {group}, row"
        number = 1
        for batch in table.iter_batches(batch_size=256, row_groups=[group]):
            rows = [json.dumps(row, default=str).encode() for row in batch.to_pylist()]
            yield from jsonl_documents(rows, name, columns, first=number)
            number += len(rows)


def _parquet(file: Any) -> Any:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(file)
    except ArrowInvalid as error:
        raise InvalidFile(f"not a parquet file: {error}") from error


def _fsspec() -> Any:
    """Comes with Ray Data, as pyarrow does; all of them are asked for before any work."""
    if not all(find_spec(name) for name in ("ray", "pyarrow", "fsspec")):
        raise MissingExtra("Indexing with Ray", extra="ray")
    import fsspec
    import fsspec.core

    return fsspec
