"""Vectors of documents in a folder, in parts that are committed as they come."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import ModelMismatch
from coder_ir.folders import (
    check_ours,
    check_sha256,
    damaged,
    locked,
    read_json,
    write_json,
    writing,
)
from coder_ir.types import Floats

_NAME = re.compile(r"rows-(\d{6})\.(json|npy)")
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of one document."""

    digest: str  # of the text that was encoded
    vector: Floats  # (dimensions,), as the encoder gave it


class RowParts:
    """A folder of parts, `rows-000000.npy` with its ids and digests in `rows-000000.json`.

    A part counts from the moment its json is there. Of two parts with the same document the later
    one holds.
    """

    def __init__(self, folder: Path, *, fingerprint: str) -> None:
        """Look at a folder, which may not be there yet; rows of another encoder are refused."""
        check_ours(folder, "rows-*", what="vectors of documents")
        self.folder = folder
        self.fingerprint = fingerprint

    def read(self) -> dict[str, Row]:
        """Every document's row, by id."""
        found: dict[str, Row] = {}
        for path in self._parts():
            found.update(self._part(path))
        return found

    def append(self, rows: Mapping[str, Row]) -> None:
        """Add a part; it is there as a whole or not at all."""
        with locked(self.folder), writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"rows-{self._next():06}.npy"
            np.save(path, np.stack([row.vector for row in rows.values()]), allow_pickle=False)
            record = {
                "format": _FORMAT,
                "fingerprint": self.fingerprint,
                "doc_ids": list(rows),
                "digests": [row.digest for row in rows.values()],
                "sha256": file_sha256(path),
            }
            write_json(path.with_suffix(".json"), record)

    def replace(self, rows: Mapping[str, Row]) -> None:
        """Put one part in the place of all that are there."""
        before = sorted(path for path in self.folder.glob("rows-*") if _NAME.match(path.name))
        self.append(rows)
        with writing(self.folder):
            for path in before:  # a part's json before its vectors
                path.unlink()

    def _parts(self) -> list[Path]:
        """The json file of each part, oldest first."""
        return sorted(path for path in self.folder.glob("rows-*.json") if _NAME.match(path.name))

    def _next(self) -> int:
        """The number after that of the last part; one that was never finished is written over."""
        parts = self._parts()
        return int(parts[-1].stem.removeprefix("rows-")) + 1 if parts else 0

    def _part(self, path: Path) -> dict[str, Row]:
        record = read_json(path)
        if record.get("format") != _FORMAT:
            raise damaged(path, f"format {record.get('format')!r}, this version reads {_FORMAT}")
        if (seen := record.get("fingerprint")) != self.fingerprint:
            raise ModelMismatch(
                f"{self.folder} holds vectors of another encoder ({str(seen)[:12]}…, not "
                f"{self.fingerprint[:12]}…); name another folder, or delete it to encode again"
            )
        check_sha256(path.with_suffix(".npy"), str(record.get("sha256")))
        vectors = np.load(path.with_suffix(".npy"), allow_pickle=False)
        ids, digests = record.get("doc_ids"), record.get("digests")
        if not isinstance(ids, list) or not isinstance(digests, list):
            raise damaged(path, "it names no documents")
        if not len(ids) == len(digests) == len(vectors):
            raise damaged(path, f"{len(ids)} ids, {len(digests)} digests, {len(vectors)} vectors")
        return _rows(ids, digests, vectors)


def _rows(ids: Sequence[str], digests: Sequence[str], vectors: Floats) -> dict[str, Row]:
    parts = zip(ids, digests, vectors, strict=True)
    return {doc_id: Row(digest, vector) for doc_id, digest, vector in parts}
