"""One vector a document: any single-vector encoder, run the way it was published."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, get_args

import numpy as np

from coder_ir.baselines.row_parts import Row, RowParts
from coder_ir.baselines.whole import by_id, check_search, plain_ranking, whole_hit
from coder_ir.encoders.conventions import Similarity
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace, Runtime
from coder_ir.encoders.onnx_export import ExportedEncoder, is_export
from coder_ir.encoders.registry import model_folder
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.intake import batches
from coder_ir.types import UNSCORED, Document, Floats, Hit, Kind, Progress, Ranking
from coder_ir.vectors import best_of_many, inner_products, unit_rows


class DenseEncoder(Protocol):
    """Texts to one vector each, compared the way the model was trained for."""

    @property
    def similarity(self) -> Similarity:
        """What two vectors are compared by."""

    @property
    def fingerprint(self) -> str:
        """Equal exactly when two encoders give the same vectors."""

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Rows of any length in the order of `texts`, prefixes and pooling applied."""


class Dense:
    """Documents ranked by the likeness of their vector to the query's; nothing is approximated.

    A document has one vector. What of it lies past the encoder's limit is not read.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        encoder: DenseEncoder,
        *,
        folder: Path | None = None,
        similarity: Similarity | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Encode the documents that a folder does not hold yet.

        Batches are committed as they come, so an interrupted call keeps what it finished.

        Args:
            documents: an id may come only once.
            encoder: see `load_dense_encoder`.
            folder: where vectors are kept, for one encoder; a changed document is encoded anew,
                and one that is gone leaves when something new comes. None keeps them in memory.
            similarity: in place of the encoder's own.
            progress: called with the number of documents done since the last call.
        """
        self.similarity: Similarity = encoder.similarity if similarity is None else similarity
        if self.similarity not in get_args(Similarity):
            raise InvalidValue(f"similarity must be cosine or dot, got {self.similarity!r}")
        self._encoder = encoder
        self._documents = by_id(documents)
        self._ids = list(self._documents)
        rows = _encoded(self._documents, encoder, folder=folder, progress=progress)
        self._rows = self._scaled(rows)

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits by cosine or dot product, ties by ascending id."""
        check_search(query, k)
        if not self._ids:
            return plain_ranking(query, "dense", ())
        vector = self._scaled(self._encoder.encode([query], kind="query"))[0]
        scores = inner_products(self._rows, vector)
        order = best_of_many(scores, self._ids, k)
        hits = (self._hit(rank, i, float(scores[i])) for rank, i in enumerate(order, 1))
        return plain_ranking(query, "dense", hits)

    def _scaled(self, rows: Floats) -> Floats:
        return unit_rows(rows) if self.similarity == "cosine" else rows

    def _hit(self, rank: int, place: int, score: float) -> Hit:
        cosine = self.similarity == "cosine"
        return whole_hit(
            self._documents[self._ids[place]],
            rank=rank,
            score=score,
            reason=f"{'Cosine' if cosine else 'Dot product'} {score:.3f} with the query.",
            topical=score if cosine else UNSCORED,
        )


def load_dense_encoder(name: str, *, runtime: Runtime | None = None) -> DenseEncoder:
    """`built-in`, a folder, or a sentence-transformers or Hugging Face name (extra `train`).

    Of a coder-ir model folder, as of `built-in`, it is the topical side. A folder with an ONNX
    export needs no torch. Vectors are left as long as the model makes them.
    """
    runtime = runtime or Runtime()
    if (folder := model_folder(name)) is not None:
        return OnnxSpace(OnnxEncoder(folder, runtime=runtime, spec=name), "topical")
    if is_export(Path(name)):
        return ExportedEncoder(Path(name), runtime=runtime, normalise=False)
    return SentenceTransformerEncoder(name, runtime=runtime, normalise=False)


def _encoded(
    documents: Mapping[str, Document],
    encoder: DenseEncoder,
    *,
    folder: Path | None,
    progress: Progress | None,
) -> Floats:
    """A row a document, in their order, as the encoder gives it."""
    kept = None if folder is None else RowParts(folder, fingerprint=encoder.fingerprint)
    known = {} if kept is None else kept.read()
    digests = {doc_id: _digest(document) for doc_id, document in documents.items()}
    rows = {i: row for i, row in known.items() if digests.get(i) == row.digest}
    if progress and rows:
        progress(len(rows))
    missing = [document for doc_id, document in documents.items() if doc_id not in rows]
    for batch in batches(missing):
        texts = [document.content for document in batch]
        found = encoder.encode(texts, kind="document", progress=progress)
        vectors = np.asarray(found, dtype=np.float32)
        ids = [document.doc_id for document in batch]
        fresh = {i: Row(digests[i], vector) for i, vector in zip(ids, vectors, strict=True)}
        if kept is not None:
            kept.append(fresh)
        rows.update(fresh)
    if kept is not None and missing:
        kept.replace({doc_id: rows[doc_id] for doc_id in documents})
    if not rows:
        return np.zeros((0, 0), dtype=np.float32)
    return np.stack([rows[doc_id].vector for doc_id in documents])


def _digest(document: Document) -> str:
    return hashlib.sha256(document.content.encode()).hexdigest()
