"""The seam: what a user's collection has to be able to do, and the values that cross it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from coder_ir.errors import ModelMismatch
from coder_ir.types import Floats, ModelStamp

BATCH = 256  # items read, encoded and committed together


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of the user's collection, as it is read for encoding."""

    doc_id: str
    text: str | None  # None: as it was when it was encoded


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept beside one item."""

    doc_id: str
    digest: str  # of the text that was encoded
    vector: Floats  # (dimensions,), of length 1


@dataclass(frozen=True, slots=True)
class Held:
    """An item with what is kept beside it."""

    doc_id: str
    text: str
    digest: str  # of the text that was encoded; "": none was
    vector: Floats | None  # (dimensions,); None: none is kept


def digest_of(text: str) -> str:
    """sha256 in hexadecimal; PostgreSQL computes the same."""
    return hashlib.sha256(text.encode()).hexdigest()


def other_model(place: str, kept: ModelStamp, given: ModelStamp, *, undo: str) -> ModelMismatch:
    """The refusal to mix two models' vectors; `undo` says what removes those that are there."""
    anew = f"{undo} and attach it anew with: coder-ir attach SOURCE"
    if kept.spec == given.spec:
        return ModelMismatch(
            f"{place} was attached by an earlier version of coder-ir, or of model {kept.spec!r}, "
            f"whose vectors differ; {anew}"
        )
    return ModelMismatch(
        f"{place} was attached with model {kept.spec!r}, not {given.spec!r}; use that one, or "
        f"{anew}"
    )


class Source(Protocol):
    """A collection of ids, texts and topical vectors, which is only ever read.

    What coder-ir adds lies beside it. One more kind of collection is one more class like this,
    named in `opening.SOURCES`.
    """

    @property
    def place(self) -> str:
        """The collection as messages name it, without a password."""

    def count(self) -> int:
        """Number of items."""

    def stamp(self) -> ModelStamp | None:
        """The model of the compatibility vectors; None where nothing was attached yet."""

    def prepare(self, stamp: ModelStamp, dimensions: int) -> None:
        """Make room beside the collection, once; vectors of another model are refused."""

    def items(self) -> Iterator[Sequence[Item]]:
        """Every item once, in batches of at most BATCH."""

    def write(self, rows: Sequence[Row]) -> None:
        """Keep vectors, replacing those there; a kill afterwards loses none of them."""

    def remove_gone(self) -> int:
        """Drop what is kept for items that are no longer there; returns how many."""

    def nearest(self, vector: Floats, n: int) -> dict[str, float]:
        """Ids of the n nearest items and their cosines with a topical vector of any length."""

    def fetch(self, doc_ids: Sequence[str]) -> list[Held]:
        """Those of these items that are there, in any order."""

    def close(self) -> None:
        """Release files and connections."""
