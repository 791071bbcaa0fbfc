"""ONNX exports of sentence-transformers models, run without torch."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np

from coder_ir.encoders.conventions import Prefixes, Similarity, prefixes_of, similarity_of
from coder_ir.encoders.folder import SCHEME, Pooling, file_sha256
from coder_ir.encoders.onnx import Runtime, each_alone, pool, session, text_feed, text_inputs
from coder_ir.encoders.passages import split_at_sentences
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Floats, Kind, Progress, Span
from coder_ir.vectors import unit_rows

GRAPHS, TOKENIZER = ("model.onnx", "onnx/model.onnx"), "tokenizer.json"
_SENTENCE = "sentence_embedding"  # an output that has gone through all modules
_ENDLESS = 1_000_000  # tokenizers without a limit state a huge one


@dataclass(frozen=True, slots=True)
class Settings:
    """What the files beside a graph say of it."""

    modules: tuple[str, ...]  # class names in order, such as Transformer, Pooling, Normalize
    pooling: str
    max_length: int  # tokens, special ones included
    lower_case: bool
    prefixes: Prefixes
    similarity: Similarity

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Read what is there; a bare graph is pooled by the mean, as sentence-transformers do."""
        paths = _modules(folder / "modules.json")
        pooling = _json(folder / paths.get("Pooling", "1_Pooling") / "config.json", {})
        bert = _json(folder / "sentence_bert_config.json", {})
        stated = _json(folder / "config_sentence_transformers.json", {})
        return cls(
            modules=tuple(paths) or ("Transformer", "Pooling"),
            pooling=_pooling(pooling),
            max_length=_max_length(folder, bert),
            lower_case=bool(bert.get("do_lower_case")),
            prefixes=prefixes_of(str(folder.absolute()), stated.get("prompts") or {}),
            similarity=similarity_of(str(folder.absolute()), stated.get("similarity_fn_name")),
        )


class ExportedEncoder:
    """One space from a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.

    Pooling, prompts, limit and normalisation are read from the files that sentence-transformers
    keep beside the weights, where they are there.
    """

    def __init__(
        self, folder: Path, *, runtime: Runtime | None = None, normalise: bool = True
    ) -> None:
        """Load graph and tokenizer.

        Args:
            folder: its name tells English BGE, E5 and Contriever models apart, like a hub name.
            runtime: threads and token limit.
            normalise: give unit rows; False leaves them as long as the model makes them.
        """
        self._graph = _graph(folder)
        self.settings = Settings.from_folder(folder)
        self.runtime = runtime or Runtime()
        self.normalise = normalise
        limit = self.settings.max_length
        self.max_length = min(limit, self.runtime.max_length or limit)
        self._tokenizer = _tokenizer(folder / TOKENIZER, self.settings)
        self._cutting = _tokenizer(folder / TOKENIZER, self.settings)
        self._cutting.enable_truncation(self.max_length)
        self._session = session(self._graph)
        self._inputs = text_inputs(self._graph, self._session)
        self._output = _checked_output(self._graph, self._session, self.settings)
        # A graph need not state its width, so one short text is run to see it.
        self.dimensions = len(self._vector(self._cutting.encode("a").ids))
        self.fingerprint = self._digest()

    @property
    def similarity(self) -> Similarity:
        """What the model's vectors were trained to be compared by."""
        return self.settings.similarity

    def _digest(self) -> str:
        """Of the graph with its data, the tokenizer, the settings and how texts are fed."""
        parts: list[object] = [*astuple(self.settings), self.max_length, self.normalise, SCHEME]
        files = sorted(self._graph.parent.glob(f"{self._graph.name}*"))
        parts += [file_sha256(path) for path in files]
        parts.append(self._tokenizer.to_str())
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Rows in the order of `texts`; what lies past the limit is not read."""
        own = self.settings.prefixes
        prefix = own.query if kind == "query" else own.document
        encoded = self._cutting.encode_batch_fast([prefix + text for text in texts])
        tokens = [item.ids for item in encoded]
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        found = each_alone(tokens, self._vector, threads=self.runtime.threads)
        for i, vector in enumerate(found):
            rows[i] = vector
            if progress:
                progress(1)
        return rows

    def split(self, text: str) -> list[Span]:
        """Spans that cover the text and fit the limit."""
        prefix = self._tokenizer.encode(self.settings.prefixes.document).ids
        limit = self.max_length - len(prefix)  # special tokens included
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= limit:
            return [Span(0, len(text))]
        return split_at_sentences(text, offsets, max(1, limit - 4))

    def _vector(self, ids: Sequence[int]) -> Floats:
        feed = text_feed(ids)
        feed["token_type_ids"] = np.zeros_like(feed["input_ids"])
        (found,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        pooling: Pooling = "cls" if self.settings.pooling == "cls" else "mean"
        row = found[0] if self._output == _SENTENCE else pool(found[0], pooling)
        unit = self.normalise or "Normalize" in self.settings.modules
        return unit_rows(row[None])[0] if unit else np.asarray(row, dtype=np.float32)


def is_export(folder: Path) -> bool:
    """Whether a folder holds a graph where an export has it."""
    return any((folder / name).is_file() for name in GRAPHS)


def _graph(folder: Path) -> Path:
    for name in GRAPHS:
        if (folder / name).is_file() and (folder / TOKENIZER).is_file():
            return folder / name
    missing = TOKENIZER if is_export(folder) else " or ".join(GRAPHS)
    raise NotFound(f"{folder} is not an ONNX export: it has no {missing}")


def _tokenizer(path: Path, settings: Settings) -> Any:
    """Neither pads nor truncates."""
    from tokenizers import Tokenizer, normalizers

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if settings.lower_case:
        own = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
    return tokenizer


def _checked_output(path: Path, graph: Any, settings: Settings) -> str:
    """Name of the output to read, where it is one that can be finished here."""
    shapes = {item.name: item.shape for item in graph.get_outputs()}
    if _SENTENCE in shapes:
        return _SENTENCE
    by_token: list[str] = [name for name, shape in shapes.items() if len(shape) == 3]
    if not by_token:
        raise InvalidFile(
            f"{path} must have an output of shape (batch, tokens, dimensions), or one called "
            f"{_SENTENCE}; it has {shapes}"
        )
    others = sorted(set(settings.modules) - {"Transformer", "Pooling", "Normalize"})
    if others or settings.pooling not in get_args(Pooling):
        raise InvalidFile(
            f"{path} needs {', '.join(others) or settings.pooling + ' pooling'} after it, which "
            f"only torch runs; export the model with an output {_SENTENCE}"
        )
    return by_token[0]


def _pooling(config: Mapping[str, Any]) -> str:
    """The mode or modes of a pooling config, in its old or new form; mean where it names none."""
    stated = config.get("pooling_mode")
    if stated is None:
        old = {"cls_token": "cls", "mean_tokens": "mean"}
        on = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
        stated = [old.get(key, key) for key in on if f"pooling_mode_{key}" in config] or "mean"
    modes = [stated] if isinstance(stated, str) else list(stated)
    if config.get("include_prompt") is False:
        modes.append("prompt-free")
    return "+".join(modes)


def _max_length(folder: Path, bert: Mapping[str, Any]) -> int:
    if stated := bert.get("max_seq_length"):
        return int(stated)
    positions = _json(folder / "config.json", {}).get("max_position_embeddings")
    tokens = _json(folder / "tokenizer_config.json", {}).get("model_max_length")
    limits = [int(limit) for limit in (positions, tokens) if limit and 0 < limit < _ENDLESS]
    return min(limits, default=512)


def _modules(path: Path) -> dict[str, str]:
    """Class name to folder of each module, in order; empty where no file names them."""
    try:
        return {m["type"].rpartition(".")[2]: m["path"] for m in _json(path, [])}
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidFile(f"{path} must give each module a type and a path") from error


def _json(path: Path, absent: Any) -> Any:
    """What a file holds, where it is there and of the type of `absent`."""
    if not path.is_file():
        return absent
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidFile(f"{path} is not JSON: {error}") from error
    if not isinstance(value, type(absent)):
        raise InvalidFile(f"{path} must hold a JSON {type(absent).__name__}")
    return value
