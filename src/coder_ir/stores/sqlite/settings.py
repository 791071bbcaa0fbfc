"""When the embedded store searches approximately, and what it says of itself."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from coder_ir.stores.sqlite.current import Beside


@dataclass(frozen=True, slots=True)
class Scale:
    """From when on an index has a sidecar, and when that is built anew."""

    least: int = 50_000  # passages; with fewer, looking at all of them takes a few milliseconds
    tail: int = 25_000  # passages, new or deleted, that are searched beside a sidecar in any case
    share: float = 0.1  # of what the sidecar covers; the larger of the two counts

    def due(self, beside: Beside) -> bool:
        """Whether a sidecar has to be built, or taken away."""
        if beside.manifest is None:
            return beside.passages >= self.least
        return beside.tail + beside.deleted > max(self.tail, self.share * beside.manifest.rows)


@runtime_checkable
class Settling(Protocol):
    """A store that keeps something beside its documents to search a large index with."""

    def due(self) -> bool:
        """Whether `settle` has something to build."""

    def settle(self) -> bool:
        """Build it where it is due, which may take minutes; returns whether it did."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index in a folder, for people."""

    documents: int
    passages: int
    model: str | None  # what to pass as `model=`; None before the first document
    fingerprint: str | None
    bytes: int  # on disk, everything in the folder
    search: str  # "exact" or "approximate"
    kind: str | None  # of the approximate index, as FAISS names it
    recall: dict[str, float] | None  # of the 100 best in each space, measured when it was built
    width: dict[str, int] | None  # rows that codes bring in each space for one that is wanted
    tail: int  # passages that are searched exactly beside the approximate index
    deleted: int  # passages that the approximate index passes over
