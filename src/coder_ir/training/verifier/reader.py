"""Pairs of query and passage through a network: tokens, padding, logits in the order given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coder_ir.training.tower import chunks, products
from coder_ir.training.verifier.groups import Pair

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class PairReader:
    """How a network reads a query and a passage; a passage that is too long is cut."""

    tokenizer: Any  # of the package tokenizers
    length: int  # tokens of a pair, at most
    passage_first: bool
    types: bool  # whether the network tells the two texts apart by token types
    bfloat16: bool = False  # multiply in half the bits, where the processor has it

    def __post_init__(self) -> None:
        """Set the tokeniser up."""
        self.tokenizer.no_padding()
        side = "only_first" if self.passage_first else "only_second"
        self.tokenizer.enable_truncation(self.length, strategy=side)

    def encode(self, pairs: Sequence[Pair]) -> list[Any]:
        """Tokens of each pair, not padded."""
        texts = [pair[::-1] for pair in pairs] if self.passage_first else list(pairs)
        return list(self.tokenizer.encode_batch(texts))

    def feed(self, encodings: Sequence[Any]) -> dict[str, torch.Tensor]:
        """What the network takes, padded with zeros to the longest pair."""
        names = {"input_ids": "ids", "attention_mask": "attention_mask"}
        if self.types:
            names["token_type_ids"] = "type_ids"
        return {
            name: _padded([getattr(encoding, source) for encoding in encodings])
            for name, source in names.items()
        }

    def products(self) -> AbstractContextManager[Any]:
        """The precision of the network's matrix products."""
        return products(self.bfloat16)

    def logits(
        self,
        network: Any,
        pairs: Sequence[Pair],
        *,
        together: int,
        around: AbstractContextManager[Any] | None = None,
    ) -> torch.Tensor:
        """Logits (pairs, classes) in the order given.

        Args:
            network: a classifier.
            pairs: what it reads.
            together: pairs of like length that go through it at once.
            around: entered once for all of them.
        """
        import torch

        encodings = self.encode(pairs)
        order = sorted(range(len(encodings)), key=lambda i: len(encodings[i].ids))
        parts = []
        with around or nullcontext():
            for part in chunks(order, together):
                with self.products():
                    parts.append(network(**self.feed([encodings[i] for i in part])).logits)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat([part.float() for part in parts])[back]


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    import torch

    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
