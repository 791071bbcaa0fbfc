"""A folder of vectors as a source; what is where is told in `folder_files`."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.attached.folder_files import (
    ID_BYTES,
    MANIFEST,
    OURS,
    PROGRESS,
    ROW_BYTES,
    TEXTS,
    VECTORS,
    Bytes,
    Manifest,
    Texts,
    alone_in,
    id_bytes,
    read_ids,
    read_ours,
    read_vectors,
)
from coder_ir.attached.source import BATCH, Held, Item, Row, digest_of, other_model
from coder_ir.datasets.documents import Columns
from coder_ir.errors import InvalidFile, InvalidValue, NotFound, StoreError
from coder_ir.folders import writing
from coder_ir.types import Floats, ModelStamp
from coder_ir.vectors import best_of_many, cosine, unit_rows

_BLOCK = 8192  # rows scored at a time
_COPIED = 65_536  # rows moved at a time


class FolderSource:
    """`vectors.npy`, ids and texts of a user; a search looks at every vector."""

    def __init__(
        self,
        folder: Path,
        *,
        texts: str | Path | None = None,
        columns: Columns | None = None,
        read_only: bool = False,
    ) -> None:
        """Read the ids and find every id's text."""
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}; a source holds {VECTORS}, ids and texts")
        self.folder = folder
        self.read_only = read_only
        self._lock: int | None = None
        self._manifest = Manifest.load(folder)
        self._vectors = read_vectors(folder)
        self.ids = read_ids(folder, len(self._vectors))
        self._rows = {doc_id: row for row, doc_id in enumerate(self.ids)}
        self._columns = columns or (self._manifest.columns if self._manifest else Columns())
        self._texts = Texts(self._texts_path(texts), self.ids, self._columns)
        self._removed = 0
        self._ours: NDArray[Any] | None = None
        self._progress: Bytes | None = None
        if self._manifest and not self._manifest.moving:
            self._open_ours(write=False)

    def _texts_path(self, texts: str | Path | None) -> Path:
        if texts is not None:
            return Path(texts)
        return self.folder / (self._manifest.texts if self._manifest else TEXTS)

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)

    def count(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def stamp(self) -> ModelStamp | None:
        """As the manifest says."""
        return self._manifest.model if self._manifest else None

    def prepare(self, stamp: ModelStamp, dimensions: int) -> None:
        """Lay the files out; where ids have moved, the vectors move with them."""
        if self.read_only:
            raise StoreError(f"{self.folder} was opened read-only")
        self._lock = self._lock or alone_in(self.folder)
        self._manifest = Manifest.load(self.folder)  # as the last one who held the lock left it
        self._check_ours(stamp)
        texts = self._texts.path.resolve()
        inside = texts.is_relative_to(self.folder.resolve())
        named = str(texts.relative_to(self.folder.resolve()) if inside else texts)
        manifest = Manifest(stamp, named, self._columns)
        with writing(self.folder):
            if self._manifest and self._manifest.moving:
                self._take_places()
            self._lay_out(manifest, dimensions)
            manifest.save(self.folder)
            self._manifest = manifest
            self._open_ours(write=True)

    def _check_ours(self, stamp: ModelStamp) -> None:
        if self._manifest is None:
            for name in (OURS, PROGRESS):
                if (self.folder / name).exists():
                    raise InvalidFile(
                        f"{self.folder / name} is there without a {MANIFEST}: it was not written "
                        "by coder-ir; move it away"
                    )
        elif self._manifest.model.fingerprint != stamp.fingerprint:
            undo = f"delete {MANIFEST}, {OURS} and {PROGRESS}"
            raise other_model(str(self.folder), self._manifest.model, stamp, undo=undo)

    def _lay_out(self, manifest: Manifest, dimensions: int) -> None:
        """Files with a row for every id, in the order of the ids, if they are not so already."""
        fresh = id_bytes(self.ids)
        old: Bytes = np.zeros((0, ROW_BYTES), dtype=np.uint8)
        vectors: NDArray[Any] = np.zeros((0, dimensions), dtype=np.float32)
        if (self.folder / PROGRESS).exists():
            old = read_ours(self.folder / PROGRESS, None, write=False)
            vectors = read_ours(self.folder / OURS, (len(old), dimensions), write=False)
            if np.array_equal(old[:, :ID_BYTES], fresh):
                return
        carried, rows = _matched(old, fresh)
        self._removed = int(old[:, ID_BYTES:].any(axis=1).sum()) - len(carried)
        made = _create(self.folder / _next(OURS), (len(fresh), dimensions), np.float32)
        progress = _create(self.folder / _next(PROGRESS), (len(fresh), ROW_BYTES), np.uint8)
        progress[:, :ID_BYTES] = fresh
        for start in range(0, len(rows), _COPIED):
            part = slice(start, start + _COPIED)
            made[rows[part]] = vectors[carried[part]]
            progress[rows[part]] = old[carried[part]]
        made.flush()
        progress.flush()
        # From here on a reader of the manifest finishes the move, whatever happens to this one.
        replace(manifest, moving=True).save(self.folder)
        self._take_places()

    def _take_places(self) -> None:
        for name in (OURS, PROGRESS):
            if (self.folder / _next(name)).exists():
                (self.folder / _next(name)).replace(self.folder / name)

    def _open_ours(self, *, write: bool) -> None:
        progress = read_ours(self.folder / PROGRESS, None, write=write)
        ours = read_ours(self.folder / OURS, None, write=write)
        if len(progress) != len(ours):
            raise InvalidFile(
                f"{self.folder / OURS} has {len(ours)} rows, {PROGRESS} {len(progress)}; delete "
                f"both and {MANIFEST}, and attach again"
            )
        self._ours, self._progress = ours, progress

    def items(self) -> Iterator[list[Item]]:
        """In the order of the ids."""
        for start in range(0, len(self.ids), BATCH):
            rows = range(start, min(start + BATCH, len(self.ids)))
            texts = self._texts.of(rows)
            yield [
                Item(self.ids[row], None if self._digest(row) == digest_of(text) else text)
                for row, text in zip(rows, texts, strict=True)
            ]

    def write(self, rows: Sequence[Row]) -> None:
        """Vectors first, then word of them, each as far as the disk."""
        if self._ours is None or self._progress is None:
            raise StoreError(f"{self.folder} has to be prepared before it is written to")
        positions = [self._rows[row.doc_id] for row in rows]
        with writing(self.folder):
            self._ours[positions] = np.stack([row.vector for row in rows])
            self._ours.flush()  # type: ignore[attr-defined] # a memmap
            digests = np.frombuffer(b"".join(bytes.fromhex(row.digest) for row in rows), np.uint8)
            self._progress[positions, ID_BYTES:] = digests.reshape(len(rows), -1)
            self._progress.flush()  # type: ignore[attr-defined]

    def _digest(self, row: int) -> str:
        """Of the text whose vector is in a row; "" where there is none."""
        if self._progress is None or row >= len(self._progress):
            return ""
        kept = bytes(self._progress[row])
        if kept[:ID_BYTES] != id_bytes([self.ids[row]]).tobytes() or not any(kept[ID_BYTES:]):
            return ""
        return kept[ID_BYTES:].hex()

    def remove_gone(self) -> int:
        """How many rows the last layout left out."""
        return self._removed

    def nearest(self, vector: Floats, n: int) -> dict[str, float]:
        """By cosine over all rows; rows that are not numbers are left out."""
        if vector.shape[0] != self._vectors.shape[1]:
            raise InvalidValue(
                f"the vectors of {self.folder} have {self._vectors.shape[1]} dimensions, the "
                f"query's has {vector.shape[0]}"
            )
        asked = unit_rows(vector[None])[0]
        starts = range(0, len(self._vectors), _BLOCK)
        blocks = (self._vectors[start : start + _BLOCK] for start in starts)
        scores = np.concatenate([np.zeros(0), *(cosine(unit_rows(b), asked) for b in blocks)])
        scores[~np.isfinite(scores)] = -np.inf
        best = best_of_many(scores, self.ids, n)
        return {self.ids[i]: float(scores[i]) for i in best if np.isfinite(scores[i])}

    def fetch(self, doc_ids: Sequence[str]) -> list[Held]:
        """Texts from their file, vectors as far as they were attached."""
        rows = [self._rows[doc_id] for doc_id in doc_ids if doc_id in self._rows]
        held = []
        for row, text in zip(rows, self._texts.of(rows), strict=True):
            digest = self._digest(row)
            kept = self._ours is not None and digest
            vector = np.array(self._ours[row]) if kept and self._ours is not None else None
            held.append(Held(self.ids[row], text, digest, vector))
        return held

    def close(self) -> None:
        """Let the files and the lock go."""
        self._ours = self._progress = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _next(name: str) -> str:
    return name.replace("compatibility", "compatibility.next", 1)


def _create(path: Path, shape: tuple[int, int], kind: Any) -> Any:
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)


def _matched(old: Bytes, fresh: Bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the old progress that were encoded and are still wanted, and where they go."""
    done = np.flatnonzero(old[:, ID_BYTES:].any(axis=1))
    kept = np.ascontiguousarray(old[done, :ID_BYTES]).view(f"S{ID_BYTES}").ravel()
    wanted = np.ascontiguousarray(fresh).view(f"S{ID_BYTES}").ravel()
    _, first, second = np.intersect1d(kept, wanted, assume_unique=True, return_indices=True)
    return done[first], second
