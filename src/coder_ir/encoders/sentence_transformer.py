"""Any sentence-transformers or Hugging Face encoder, by name or folder, in either role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.passages import split_at_sentences
from coder_ir.errors import MissingExtra, NotFound
from coder_ir.types import Floats, Kind, Progress, Span
from coder_ir.vectors import unit_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BGE_PREFIX = "Represent this sentence for searching relevant passages: "


class SentenceTransformerEncoder:
    """One space on torch; pooling, prefixes and limit are the model's own."""

    def __init__(self, name: str, *, runtime: Runtime, query_prefix: str | None = None) -> None:
        """Load a name (from the local cache or the hub) or a folder.

        Without `query_prefix` the model's own `query` prompt is used; English BGE models, whose
        folders do not always carry theirs, get BGE's.
        """
        self.name = name
        self.model = load_sentence_transformer(name)
        if runtime.threads:
            import torch

            torch.set_num_threads(runtime.threads)
        if runtime.max_length:
            self.model.max_seq_length = min(runtime.max_length, self.max_length)
        self.runtime = runtime
        self.query_prefix = self._own_prefix() if query_prefix is None else query_prefix

    @property
    def max_length(self) -> int:
        """Tokens, special ones included."""
        return int(self.model.max_seq_length or 512)

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def fingerprint(self) -> str:
        """Digest of the weights, the prefix, the limit and the modules."""
        digest = hashlib.sha256(
            f"{self.query_prefix}|{self.max_length}|{[str(m) for m in self.model]}".encode()
        )
        for key, tensor in sorted(self.model.state_dict().items()):
            digest.update(key.encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).tobytes())
        return digest.hexdigest()

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Unit rows in the order of `texts`."""
        prefix = self.query_prefix if kind == "query" else ""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), self.runtime.batch_size):
            batch = order[start : start + self.runtime.batch_size]
            rows[batch] = self.model.encode(
                [prefix + texts[i] for i in batch],
                batch_size=len(batch),
                prompt="",
                show_progress_bar=False,
            )
            if progress:
                progress(len(batch))
        return unit_rows(rows)

    def split(self, text: str) -> list[Span]:
        """Spans that cover the text and fit this model's limit."""
        tokenizer: Any = self.model.tokenizer
        limit = self.max_length - tokenizer.num_special_tokens_to_add()
        offsets = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        if len(offsets) <= limit:
            return [Span(0, len(text))]
        return split_at_sentences(text, offsets, max(1, limit - 4))

    def _own_prefix(self) -> str:
        prompt = (self.model.prompts or {}).get("query") or ""
        name = Path(self.name).name.lower()
        if not prompt and name.startswith("bge-") and "-en" in name:
            return BGE_PREFIX
        return prompt


def load_sentence_transformer(name: str) -> SentenceTransformer:
    """The model in float32 on the CPU; never runs code that comes with a model."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"Model {name!r}", extra="train") from error
    try:
        return SentenceTransformer(
            name, device="cpu", trust_remote_code=False, model_kwargs={"dtype": "float32"}
        )
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise NotFound(
            f"no model {name!r}: it is neither a folder nor in the local cache, and could not be "
            f"downloaded ({first})"
        ) from error
