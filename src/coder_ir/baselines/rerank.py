"""A cross-encoder over another searcher's first hits: it reads query and passage together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from coder_ir.encoders.onnx import each_alone, session, text_inputs
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.types import Hit, Ranking, Scores, Searcher
from coder_ir.vectors import best_first

GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"


class Scorer(Protocol):
    """Reads a query and a passage together."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """One number a passage, higher where it answers the query better."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Tokens of a query and a passage with all special ones."""

    ids: tuple[int, ...]
    types: tuple[int, ...]  # 0 for the query's tokens, 1 for the passage's


class CrossEncoder:
    """A model with one logit a pair, from a folder with `model.onnx` and `tokenizer.json`."""

    def __init__(self, folder: Path, *, threads: int | None = None, max_length: int = 256) -> None:
        """Load graph and tokenizer.

        Args:
            folder: where both files are.
            threads: pairs that are read at once; None: one for each core this process may use.
            max_length: tokens of a pair, special ones included; the passage is cut to fit, and a
                query past one half of it.
        """
        from tokenizers import Tokenizer

        for name in (GRAPH, TOKENIZER):
            if not (folder / name).is_file():
                raise NotFound(f"{folder} is not a cross-encoder folder: it has no {name}")
        if threads is not None and threads < 1:
            raise InvalidValue(f"threads must be at least 1, or None for all cores, got {threads}")
        self._threads = threads or 0
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._max_length = _checked_length(max_length, self._tokenizer.truncation)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._session = session(folder / GRAPH)
        self._inputs = _checked_inputs(folder / GRAPH, self._session)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """A logit for each passage, whichever others are in the call."""
        pairs = self._pairs(query, passages)
        found = each_alone(pairs, self._logit, threads=self._threads)
        return np.array(list(found), dtype=np.float64)

    def _pairs(self, query: str, passages: Sequence[str]) -> list[_Pair]:
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        special = self._tokenizer.num_special_tokens_to_add(is_pair=True)
        asked.truncate((self._max_length - special) // 2)  # a long query leaves half to passages
        room = self._max_length - special - len(asked.ids)
        pairs = []
        for passage in self._tokenizer.encode_batch(passages, add_special_tokens=False):
            passage.truncate(room)
            both = self._tokenizer.post_process(asked, passage)
            pairs.append(_Pair(tuple(both.ids), tuple(both.type_ids)))
        return pairs

    def _logit(self, pair: _Pair) -> float:
        feed = {
            "input_ids": np.array([pair.ids], dtype=np.int64),
            "attention_mask": np.ones((1, len(pair.ids)), dtype=np.int64),
            "token_type_ids": np.array([pair.types], dtype=np.int64),
        }
        (logits,) = self._session.run(None, {name: feed[name] for name in self._inputs})
        return float(logits[0, 0])


class Reranked:
    """Another searcher, whose first hits a cross-encoder puts in an order of its own."""

    def __init__(self, searcher: Searcher, cross_encoder: Scorer, *, depth: int = 20) -> None:
        """Join the two; `depth` is the number of hits that are read."""
        if depth < 1:
            raise InvalidValue(f"depth must be at least 1, got {depth}")
        self._searcher = searcher
        self._cross_encoder = cross_encoder
        self._depth = depth

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits: those read by descending logit, ties by ascending id, then the rest.

        A score is the logit; the rest keep their distances and start 1 below the last logit.
        """
        if k < 1:
            raise InvalidValue(f"k must be at least 1, got {k}")
        found = self._searcher.search(query, max(self._depth, k))
        if not found.hits:
            return found
        head, rest = found[: self._depth], found[self._depth :]
        logits = self._cross_encoder.score(query, [read_text(hit) for hit in head])
        order = best_first(logits, [hit.doc_id for hit in head], len(head))
        read = [_moved(head[i], rank, float(logits[i])) for rank, i in enumerate(order, 1)]
        hits = (*read, *_unread(rest, below=read[-1].score, depth=self._depth))
        return replace(found, hits=hits[:k])


def read_text(hit: Hit) -> str:
    """What a cross-encoder reads of a hit: title and passage; a first passage holds the title."""
    later = hit.passage.span.start > len(hit.title)
    return f"{hit.title} {hit.passage_text}" if hit.title and later else hit.passage_text


def _moved(hit: Hit, rank: int, logit: float) -> Hit:
    if rank == hit.rank:
        reason = f"The cross-encoder's logit {logit:.3f} leaves it at rank {rank}."
    else:
        reason = f"The cross-encoder's logit {logit:.3f} moves it from rank {hit.rank} to {rank}."
    return replace(hit, rank=rank, score=logit, reason=reason)


def _unread(rest: Sequence[Hit], *, below: float, depth: int) -> Iterator[Hit]:
    reason = f"Not among the first {depth}, which the cross-encoder reads, so its rank stands."
    for hit in rest:
        score = below - 1 - (rest[0].score - hit.score)
        yield replace(hit, score=score, reason=reason)


def _checked_length(asked: int, truncation: dict[str, Any] | None) -> int:
    """`asked`, where the model can read that many tokens."""
    limit = truncation["max_length"] if truncation else None
    if asked < 8 or (limit is not None and asked > limit):
        most = f"between 8 and {limit} tokens" if limit is not None else "at least 8 tokens"
        raise InvalidValue(f"max_length must be {most}, got {asked}")
    return asked


def _checked_inputs(path: Path, graph: Any) -> list[str]:
    """Names of a graph's inputs, where it reads pairs and gives one logit."""
    inputs = text_inputs(path, graph)
    shapes = {item.name: item.shape for item in graph.get_outputs()}
    if [shape[1:] for shape in shapes.values()] != [[1]]:
        raise InvalidFile(
            f"{path} must have one output of shape (batch, 1), a logit a pair; it has {shapes}"
        )
    return inputs
