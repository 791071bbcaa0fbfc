"""The encoder under training: frozen lower layers with cached activations, trained upper ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from coder_ir.encoders.sentence_transformer import load_sentence_transformer
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.training.rounding import rounded_layers

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer


def load_base(base: str, *, max_length: int, query_prefix: str) -> SentenceTransformer:
    """The base encoder in float32 with mean pooling and the prefix in place of its own."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    except ImportError as error:
        raise MissingExtra("Training", extra="train") from error
    loaded = load_sentence_transformer(base)
    transformer: Any = loaded[0]
    transformer.max_seq_length = min(max_length, loaded.max_seq_length or max_length)
    pooling = Pooling(loaded.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(
        modules=[transformer, pooling, Normalize()],
        prompts={"query": query_prefix, "document": ""},
        device="cpu",
    )


class Tower:
    """Texts to unit vectors, with gradients only through the layers above the frozen ones."""

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        frozen_layers: int,
        max_length: int,
        bfloat16: bool = False,
    ) -> None:
        """Freeze the lower layers; 0 trains everything, embeddings included."""
        self.network: Any = model[0].auto_model
        self.tokenizer: Any = model.tokenizer
        self.frozen_layers = frozen_layers
        self.bfloat16 = bfloat16
        self.max_length = min(max_length, int(model.max_seq_length or max_length))
        self._cache: dict[str, torch.Tensor] = {}
        self._first: dict[str, torch.Tensor] = {}
        self._rounded = False
        if frozen_layers < 0:
            raise InvalidValue(f"frozen_layers must be 0 or more, got {frozen_layers}")
        if frozen_layers:
            self._freeze(frozen_layers)
        base: Any = copy.deepcopy(self.network)
        self._base = base.eval().requires_grad_(requires_grad=False)

    def _freeze(self, frozen_layers: int) -> None:
        layers = getattr(getattr(self.network, "encoder", None), "layer", None)
        if layers is None or not hasattr(self.network, "embeddings"):
            raise InvalidValue(
                f"frozen_layers={frozen_layers} needs a BERT-like encoder, got "
                f"{type(self.network).__name__}; set frozen_layers = 0 to train all of it"
            )
        if frozen_layers >= len(layers):
            raise InvalidValue(
                f"frozen_layers must be below {len(layers)} (the encoder's layers), "
                f"got {frozen_layers}"
            )
        for module in (self.network.embeddings, *layers[:frozen_layers]):
            module.requires_grad_(requires_grad=False)

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Trained parameters with their names, in a fixed order."""
        return [
            (name, parameter)
            for name, parameter in self.network.named_parameters()
            if parameter.requires_grad and not name.startswith("pooler.")
        ]

    def cache(
        self, texts: Sequence[str], *, done: Callable[[int], None], rounded: bool = False
    ) -> None:
        """Run the frozen layers over texts once; a no-op when nothing is frozen.

        Rounded, they run as the exported model's do, so that the layers above learn from what they
        will read.
        """
        if not self.frozen_layers:
            return
        if rounded != self._rounded:
            self._rounded = rounded
            self._cache.clear()
            self._first.clear()
        todo = sorted({text for text in texts if text not in self._cache}, key=len)
        done(len(texts) - len(todo))
        for batch, rows in self._lower(list(chunks(todo, 64)), rounded=rounded):
            self._cache.update(zip(batch, rows, strict=True))
            done(len(batch))

    def embed(self, texts: Sequence[str], *, train: bool) -> torch.Tensor:
        """Unit vectors (n_texts, dim) in the order given.

        Texts of like length go through together, so that short ones carry little padding.
        """
        import torch

        self.network.train(train)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        with nullcontext() if train else torch.inference_mode():
            parts = [self._embed([texts[i] for i in part]) for part in chunks(order, 8)]
            back = sorted(range(len(order)), key=lambda i: order[i])
            return torch.cat(parts)[back]

    def at_first(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors of the base encoder, as they were before any training."""
        import torch

        new = list(dict.fromkeys(text for text in texts if text not in self._first))
        with torch.no_grad():
            for part in chunks(sorted(new, key=len), 8):
                self._first.update(zip(part, self._embed(part, self._base), strict=True))
        return torch.stack([self._first[text] for text in texts])

    def _embed(self, texts: Sequence[str], network: Any = None) -> torch.Tensor:
        import torch

        network = network or self.network
        if self.frozen_layers:
            hidden, mask = _padded([self._cache[text].float() for text in texts])
            hidden = self._upper(hidden, mask, network)
        else:
            hidden, mask = self._whole(texts, network)
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        return torch.nn.functional.normalize(pooled, dim=1)

    def _upper(self, hidden: torch.Tensor, mask: torch.Tensor, network: Any) -> torch.Tensor:
        bias = _attention_bias(mask)
        with products(self.bfloat16 and network.training):
            for layer in network.encoder.layer[self.frozen_layers :]:
                hidden = _first(layer(hidden, attention_mask=bias))
        return hidden.float()

    def _tokens(self, texts: Sequence[str]) -> Any:
        return self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        )

    def _whole(self, texts: Sequence[str], network: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = self._tokens(texts)
        return network(**tokens).last_hidden_state, tokens["attention_mask"]

    def _lower(
        self, batches: Sequence[Sequence[str]], *, rounded: bool
    ) -> Iterator[tuple[Sequence[str], list[torch.Tensor]]]:
        """Each batch and what the frozen layers make of its texts, a float16 row a token."""
        import torch

        self.network.eval()
        threads = torch.get_num_threads() if rounded else 1  # torch has threads of its own
        run = self._rounded_run() if rounded else self._run
        with ThreadPoolExecutor(threads) as pool:
            yield from zip(batches, pool.map(run, batches), strict=True)

    def _run(self, texts: Sequence[str]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            tokens = self._tokens(texts)
            hidden = self.network.embeddings(input_ids=tokens["input_ids"])
            bias = _attention_bias(tokens["attention_mask"])
            for layer in self.network.encoder.layer[: self.frozen_layers]:
                hidden = _first(layer(hidden, attention_mask=bias))
            return _token_rows(hidden, tokens["attention_mask"])

    def _rounded_run(self) -> Callable[[Sequence[str]], list[torch.Tensor]]:
        import torch

        layers = rounded_layers(self.network, self.frozen_layers)

        def run(texts: Sequence[str]) -> list[torch.Tensor]:
            tokens = self._tokens(texts)
            feed = {name: tokens[name].numpy() for name in ("input_ids", "attention_mask")}
            hidden = torch.from_numpy(layers.run(None, feed)[0])
            return _token_rows(hidden, tokens["attention_mask"])

        return run


def _token_rows(hidden: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
    """The rows of each text's own tokens, in half the bytes."""
    import torch

    lengths = mask.sum(1).tolist()
    return [rows[:n].to(torch.float16).clone() for rows, n in zip(hidden, lengths, strict=True)]


def products(bfloat16: bool) -> AbstractContextManager[Any]:
    """Matrix products in half the bits, where that is wanted and the processor does it itself."""
    import torch

    able = torch.cpu.get_capabilities()
    native = bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return torch.autocast("cpu", dtype=torch.bfloat16) if bfloat16 and native else nullcontext()


def _padded(rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts of different length as one batch, and its mask."""
    import torch

    hidden = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return hidden, (torch.arange(hidden.shape[1])[None] < lengths[:, None]).long()


def _attention_bias(mask: torch.Tensor) -> torch.Tensor:
    import torch

    bias = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
    return bias.expand(-1, 1, mask.shape[1], -1)


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Slices of at most `size` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
