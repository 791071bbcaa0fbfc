"""Attaching: every item of a collection gets its compatibility vector, and keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from coder_ir.attached.source import Item, Row, Source, digest_of
from coder_ir.encoders.combined import SpaceEncoder
from coder_ir.types import ModelStamp, Progress


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a call to `attach` did, in items."""

    encoded: int = 0  # new, or with another text than before
    unchanged: int = 0
    removed: int = 0  # were attached, and are no longer in the collection
    cut: int = 0  # of those encoded, longer than the model reads: only their beginning counts

    def __add__(self, other: Self) -> "Attachment":
        """All counts summed."""
        return Attachment(
            self.encoded + other.encoded,
            self.unchanged + other.unchanged,
            self.removed + other.removed,
            self.cut + other.cut,
        )


def attach(
    source: Source,
    encoder: SpaceEncoder,
    *,
    spec: str,
    progress: Progress | None = None,
) -> Attachment:
    """Encode what is new or changed, drop what is gone; the collection itself is only read.

    Each batch is committed, so an interrupted call keeps what it finished and the next one does
    the rest.

    Args:
        source: from `open_source`.
        encoder: the compatibility encoder, from `load_space`.
        spec: what to pass as `model=` to get the encoder again; kept beside the vectors.
        progress: called with the number of items done since the last call.
    """
    dimensions = encoder.encode(["text"], kind="document").shape[1]
    source.prepare(ModelStamp(encoder.fingerprint, spec), dimensions)
    total = Attachment()
    for batch in source.items():
        total += _batch(source, encoder, batch)
        if progress:
            progress(len(batch))
    return total + Attachment(removed=source.remove_gone())


def _batch(source: Source, encoder: SpaceEncoder, batch: Sequence[Item]) -> Attachment:
    changed = [(item.doc_id, item.text) for item in batch if item.text is not None]
    if changed:
        texts = [text for _, text in changed]
        vectors = encoder.encode(texts, kind="document")
        source.write(
            [
                Row(doc_id, digest_of(text), vector)
                for (doc_id, text), vector in zip(changed, vectors, strict=True)
            ]
        )
    cut = sum(len(encoder.split(text)) > 1 for _, text in changed)
    return Attachment(len(changed), len(batch) - len(changed), cut=cut)
