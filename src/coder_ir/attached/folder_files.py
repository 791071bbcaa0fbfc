"""What a folder of vectors holds: the user's own files, which are only read, and ours beside them.

Theirs are `vectors.npy`, `ids.txt` or `ids.json`, and texts by id in a jsonl file. Ours:

- `compatibility.npy`: row i belongs to row i of `vectors.npy`;
- `compatibility.progress.npy`: 48 bytes a row, 16 that tell the id and 32 the sha256 of the text
  whose vector is in that row; 32 zeros: not encoded yet. It is written after the vectors;
- `compatibility.json`: the model, and where the texts are.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.datasets.documents import Columns, jsonl_documents
from coder_ir.errors import DuplicateId, InvalidFile, NotFound, StoreError
from coder_ir.folders import write_json
from coder_ir.types import Document, ModelStamp

VECTORS, TEXTS = "vectors.npy", "texts.jsonl"
OURS, PROGRESS, MANIFEST = "compatibility.npy", "compatibility.progress.npy", "compatibility.json"
ID_BYTES = 16
ROW_BYTES = ID_BYTES + 32
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `compatibility.json` says."""

    model: ModelStamp
    texts: str  # relative to the folder where it is inside
    columns: Columns
    moving: bool = False  # files with `.next` in their names are about to take their places

    @classmethod
    def load(cls, folder: Path) -> "Manifest | None":
        """None where nothing was attached yet."""
        path = folder / MANIFEST
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            model, columns = ModelStamp(**found.pop("model")), Columns(**found.pop("columns"))
            return cls(model=model, columns=columns, **found)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidFile(
                f"{path} is not as coder-ir wrote it ({error}); delete it and the files "
                "compatibility*.npy, and attach again"
            ) from error

    def save(self, folder: Path) -> None:
        """Whole or not at all."""
        write_json(folder / MANIFEST, asdict(self))


def read_vectors(folder: Path) -> NDArray[np.floating]:
    """The user's vectors (n, dimensions), left on the disk."""
    found = _array(folder / VECTORS, kind="f")
    if not found.size:
        raise InvalidFile(f"{folder / VECTORS} holds nothing, its shape is {found.shape}")
    return found


def read_ours(path: Path, shape: tuple[int, ...] | None, *, write: bool) -> NDArray[Any]:
    """A file of ours, left on the disk; None takes any shape."""
    if not path.is_file():
        raise NotFound(
            f"{path} is gone; delete what is left of {OURS}, {PROGRESS} and {MANIFEST}, and attach "
            "again"
        )
    found = _array(path, kind="fu", mode="r+" if write else "r")
    if shape is not None and found.shape != shape:
        raise InvalidFile(
            f"{path} has shape {found.shape}, expected {shape}; delete it and {MANIFEST}, and "
            "attach again"
        )
    return found


def _array(path: Path, *, kind: str, mode: Any = "r") -> NDArray[Any]:
    try:
        found = np.load(path, mmap_mode=mode, allow_pickle=False)
    except FileNotFoundError as error:
        raise NotFound(f"there is no {path}; attach a folder with {VECTORS} and ids") from error
    except PermissionError as error:
        raise StoreError(f"cannot open {path}: {error}") from error
    except (ValueError, OSError, EOFError) as error:
        # Not numpy's own words: of a file that is no array it says how to unpickle it all the same.
        raise InvalidFile(
            f"{path} cannot be read as an array of numbers; write it with numpy.save"
        ) from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in kind:
        seen = getattr(found, "dtype", "several arrays"), getattr(found, "shape", ())
        raise InvalidFile(f"{path} should hold a row of numbers an item, got {seen[0]} {seen[1]}")
    return found


def read_ids(folder: Path, rows: int) -> list[str]:
    """An id for each row of the vectors."""
    found = [path for path in (folder / "ids.txt", folder / "ids.json") if path.is_file()]
    if len(found) != 1:
        seen = "neither" if not found else "both"
        raise InvalidFile(f"{folder} needs ids.txt (one a line) or ids.json (a list), has {seen}")
    path = found[0]
    try:
        text = path.read_text(encoding="utf-8-sig")
        ids = _listed(text) if path.suffix == ".json" else _lines(text)
    except ValueError as error:
        raise InvalidFile(f"{path} cannot be read: {error}") from error
    if len(ids) != rows:
        raise InvalidFile(f"{path} has {len(ids)} ids, {folder / VECTORS} {rows} rows")
    seen_ids: set[str] = set()
    for number, doc_id in enumerate(ids, 1):
        if not doc_id:
            raise InvalidFile(f"{path}: id {number} is empty")
        if doc_id in seen_ids:
            raise DuplicateId(f"{path}: id {doc_id!r} (number {number}) comes twice")
        seen_ids.add(doc_id)
    return ids


def _lines(text: str) -> list[str]:
    """Not `splitlines`, which also cuts at characters an id may hold."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _listed(text: str) -> list[str]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("it holds no list")
    for doc_id in found:
        if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
            raise ValueError(f"an id is text or a whole number, got {doc_id!r}")
    return [str(doc_id) for doc_id in found]


def id_bytes(ids: Sequence[str]) -> Bytes:
    """16 bytes that tell each id from all others, (n, 16)."""
    joined = b"".join(hashlib.blake2b(i.encode(), digest_size=ID_BYTES).digest() for i in ids)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(ids), ID_BYTES)


class Texts:
    """Texts by id in a jsonl file, of which only the places are held in memory."""

    def __init__(self, path: Path, ids: Sequence[str], columns: Columns) -> None:
        """Go through the file once; every id needs a text, texts of other ids are left aside."""
        self.path = path
        self._columns = columns
        self._ids = ids
        if not path.is_file():
            raise NotFound(f"there is no file of texts {path}; name one with --texts")
        rows = {doc_id: row for row, doc_id in enumerate(ids)}
        self._places = np.full(len(ids), -1, dtype=np.int64)  # byte of each row's line
        for place, document in self._documents():
            row = rows.get(document.doc_id)
            if row is not None and self._places[row] >= 0:
                raise DuplicateId(f"{path}: id {document.doc_id!r} comes twice")
            if row is not None:
                self._places[row] = place
        without = np.flatnonzero(self._places < 0)
        if len(without):
            raise InvalidFile(
                f"{path} has no text for id {ids[without[0]]!r} and {len(without) - 1} others"
            )

    def _documents(self) -> Iterator[tuple[int, Document]]:
        place = 0
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                found = jsonl_documents([line], str(self.path), self._columns, first=number)
                yield from ((place, document) for document in found)
                place += len(line)

    def of(self, rows: Sequence[int]) -> list[str]:
        """What is encoded of each row's item: title and text."""
        texts = []
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(int(self._places[row]))
                texts.append(self._text(file.readline(), self._ids[row]))
        return texts

    def _text(self, line: bytes, doc_id: str) -> str:
        try:
            found = list(jsonl_documents([line], str(self.path), self._columns, first=2))
        except InvalidFile:
            found = []
        if not found or found[0].doc_id != doc_id:
            if line.startswith(b"\xef\xbb\xbf"):
                return self._text(line[3:], doc_id)
            raise StoreError(f"{self.path} was changed while it was open; open it again")
        return found[0].content


def alone_in(folder: Path) -> int | None:
    """Take the folder's lock, which goes with the process; a second one is refused."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise NotFound(f"there is no folder {folder}: {error}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise StoreError(f"another process attaches to {folder}; wait for it to end") from error
    return handle
