"""Any sentence-transformers or Hugging Face encoder, by name or folder, in either role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.encoders.conventions import Similarity, prefixes_of, similarity_of
from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.passages import split_at_sentences
from coder_ir.errors import MissingExtra, NotFound
from coder_ir.types import Floats, Kind, Progress, Span
from coder_ir.vectors import unit_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformerEncoder:
    """One space on torch; pooling, prefixes and limit are the model's own."""

    def __init__(
        self,
        name: str,
        *,
        runtime: Runtime,
        batch_size: int = 32,
        query_prefix: str | None = None,
        normalise: bool = True,
    ) -> None:
        """Load a name (from the local cache or the hub) or a folder.

        Args:
            name: English BGE and E5 models, whose folders do not always carry their prompts, are
                known by it.
            runtime: threads and token limit.
            batch_size: texts that go through together, at most.
            query_prefix: in place of the model's own `query` prompt.
            normalise: give unit rows; False leaves them as long as the model makes them.
        """
        self.name = name
        self.model = load_sentence_transformer(name)
        if runtime.threads:
            import torch

            torch.set_num_threads(runtime.threads)
        if runtime.max_length:
            self.model.max_seq_length = min(runtime.max_length, self.max_length)
        self.batch_size = batch_size
        self.normalise = normalise
        own = prefixes_of(name, self.model.prompts or {})
        self.query_prefix = own.query if query_prefix is None else query_prefix
        self.document_prefix = own.document

    @property
    def max_length(self) -> int:
        """Tokens, special ones included."""
        return int(self.model.max_seq_length or 512)

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def similarity(self) -> Similarity:
        """What the model's vectors were trained to be compared by."""
        return similarity_of(self.name, self.model.similarity_fn_name)

    @property
    def fingerprint(self) -> str:
        """Digest of the weights, the prefixes, the limit, the modules and raw rows."""
        told = f"{self.query_prefix}|{self.max_length}|{[str(m) for m in self.model]}"
        told += f"|{self.document_prefix}" if self.document_prefix else ""
        digest = hashlib.sha256((told if self.normalise else f"{told}|raw").encode())
        for key, tensor in sorted(self.model.state_dict().items()):
            digest.update(key.encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).tobytes())
        return digest.hexdigest()

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Rows in the order of `texts`, of unit length unless told otherwise."""
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            rows[batch] = self.model.encode(
                [prefix + texts[i] for i in batch],
                batch_size=len(batch),
                prompt="",
                show_progress_bar=False,
            )
            if progress:
                progress(len(batch))
        return unit_rows(rows) if self.normalise else rows

    def split(self, text: str) -> list[Span]:
        """Spans that cover the text and fit this model's limit."""
        tokenizer: Any = self.model.tokenizer
        prefix = tokenizer(self.document_prefix)["input_ids"]  # special tokens included
        limit = self.max_length - len(prefix)
        offsets = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        if len(offsets) <= limit:
            return [Span(0, len(text))]
        return split_at_sentences(text, offsets, max(1, limit - 4))


def load_sentence_transformer(name: str) -> SentenceTransformer:
    """The model in float32 on the CPU; never runs code that comes with a model."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"Model {name!r}", extra="train") from error
    # A folder named without a slash would be looked up on the hub, for its card.
    place = str(Path(name).resolve()) if Path(name).is_dir() else name
    try:
        return SentenceTransformer(
            place, device="cpu", trust_remote_code=False, model_kwargs={"dtype": "float32"}
        )
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise NotFound(
            f"no model {name!r}: it is neither a folder nor in the local cache, and could not be "
            f"downloaded ({first})"
        ) from error
