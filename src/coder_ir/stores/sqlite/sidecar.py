"""What lies beside `index.sqlite` so that a large index opens at once: vectors, columns, codes.

    ann/manifest.json            which generation counts, what it covers, and marks of its files
    ann/GENERATION.topical.f32   vectors as they are in SQLite, (rows, dimensions)
    ann/GENERATION.topical.codes short codes of them; both again for compatibility
    ann/GENERATION.rows          columns; ann/GENERATION.ids: the bytes of document ids

All of it can be made again from SQLite and may be deleted at any time. A generation is written
under names of its own and begins to count when the manifest is renamed into place, so a reader sees
the old one or the new one. Files that a reader has mapped outlive their names.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from coder_ir.stores.sqlite.approximate import ApproximateIndex
from coder_ir.stores.sqlite.columns import ROW, Columns
from coder_ir.types import Floats, Space

ANN = "ann"  # folder inside an index
MANIFEST = "manifest.json"
SPACES: tuple[Space, ...] = ("topical", "compatibility")
_FORMAT = 2
_ATTEMPTS = 5  # at files that a newer generation takes away
_WHOLE = 1 << 26  # bytes up to which a file's mark covers all of it
_BLOCK, _BLOCKS = 1 << 16, 256  # of a larger one


@dataclass(frozen=True, slots=True)
class Codes:
    """The approximate index of one space."""

    dimensions: int
    kind: str  # as FAISS names it
    width: int  # rows that codes bring for one that is wanted
    recall: float  # of the 100 best, as measured when it was built, in [0, 1]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation covers."""

    generation: str
    identity: str  # of the SQLite file it was made from
    model: str  # as the database names it; "": none yet
    rows: int  # passages
    last_row: int  # the highest row id among them
    codes: dict[str, Codes]  # by space
    marks: dict[str, str]  # of each file

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The manifest of an index folder; None where there is none that can be read."""
        try:
            said = json.loads((folder / ANN / MANIFEST).read_text(encoding="utf-8"))
            if said["format"] != _FORMAT or said["sha256"] != _digest(said["manifest"]):
                return None
            raw = said["manifest"]
            codes = {name: Codes(**value) for name, value in raw["codes"].items()}
            return cls(**{**raw, "codes": codes})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, folder: Path) -> None:
        """Make this generation the one that counts."""
        said = {"format": _FORMAT, "manifest": asdict(self), "sha256": _digest(asdict(self))}
        partial = folder / ANN / f"{MANIFEST}.partial"
        with partial.open("w", encoding="utf-8") as file:
            file.write(json.dumps(said, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / ANN / MANIFEST)
        sync_folder(folder / ANN)

    def path(self, folder: Path, part: str) -> Path:
        """One of its files."""
        return folder / ANN / f"{self.generation}.{part}"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A generation, mapped."""

    manifest: Manifest
    columns: Columns
    vectors: dict[Space, Floats]
    codes: dict[Space, ApproximateIndex]


def parts() -> list[str]:
    """Endings of a generation's files."""
    return [*(f"{space}.{kind}" for space in SPACES for kind in ("f32", "codes")), "rows", "ids"]


def open_sidecar(folder: Path) -> Sidecar | None:
    """Map the generation that counts; None where there is none, or it is torn."""
    for _ in range(_ATTEMPTS):
        manifest = Manifest.load(folder)
        if manifest is None:
            return None
        try:
            return _mapped(folder, manifest)
        except (OSError, ValueError, RuntimeError):  # FAISS raises the last
            if Manifest.load(folder) == manifest:
                return None
    return None


def _mapped(folder: Path, manifest: Manifest) -> Sidecar:
    for part in parts():
        if mark_of(manifest.path(folder, part)) != manifest.marks[part]:
            raise ValueError(f"{part} is not as it was written")
    rows = np.memmap(manifest.path(folder, "rows"), dtype=ROW, mode="r")
    ids = np.memmap(manifest.path(folder, "ids"), dtype=np.uint8, mode="r")
    vectors: dict[Space, Floats] = {}
    codes: dict[Space, ApproximateIndex] = {}
    for space in SPACES:
        shape = (manifest.rows, manifest.codes[space].dimensions)
        vectors[space] = mapped_rows(manifest.path(folder, f"{space}.f32"), shape)
        path = manifest.path(folder, f"{space}.codes")
        codes[space] = ApproximateIndex.open(path, manifest.codes[space].width)
    return Sidecar(manifest, Columns(np.asarray(rows), np.asarray(ids)), vectors, codes)


def mapped_rows(path: Path, shape: tuple[int, int]) -> Floats:
    """Vectors (rows, dimensions) of a file, read as they are looked at.

    The system counts what was looked at, and the pages around it, as this process's memory, and
    takes it back when it needs it.
    """
    return np.asarray(np.memmap(path, dtype=np.float32, mode="r", shape=shape))


def manifest_state(folder: Path) -> tuple[int, int] | None:
    """Changes when another generation counts; None where there is no manifest."""
    try:
        stat = (folder / ANN / MANIFEST).stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino


def remove_others(folder: Path, generation: str) -> None:
    """Delete every file of other generations, also of one that was not finished."""
    for path in (folder / ANN).iterdir():
        ours = path.name in (MANIFEST, "lock") or (
            generation and path.name.startswith(f"{generation}.")
        )
        if not ours:
            try:
                path.unlink()
            except OSError:  # a system that keeps files while they are open; the next build tries
                continue


def remove_sidecar(folder: Path) -> None:
    """Search exactly from now on; who has it mapped goes on with it."""
    (folder / ANN / MANIFEST).unlink(missing_ok=True)
    remove_others(folder, "")


def mark_of(path: Path) -> str:
    """Size and checksum of a file; of a large one, the checksum is over blocks spread over it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE:
            starts = list(range(0, size, _BLOCK))
        else:
            starts = np.linspace(0, size - _BLOCK, _BLOCKS).astype(int).tolist()
        checksum = 0
        for start in starts:
            file.seek(start)
            checksum = zlib.crc32(file.read(_BLOCK), checksum)
    return f"{size}-{checksum:08x}"


def bytes_of(folder: Path) -> int:
    """What all files of a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def only_builder(folder: Path) -> Iterator[bool]:
    """One process at a time builds; the value says whether it is this one.

    The lock goes with its process. Where the system has none, every process may build: each
    writes under names of its own.
    """
    (folder / ANN).mkdir(exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows
        yield True
        return
    descriptor = os.open(folder / ANN / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a power cut, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
