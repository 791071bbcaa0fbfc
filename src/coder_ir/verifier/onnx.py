"""A cross-encoder folder on ONNX Runtime, as a verifier."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.encoders.onnx import cores, session
from coder_ir.errors import InvalidFile, InvalidValue
from coder_ir.text import sentence_spans
from coder_ir.types import Reading, Scores, Span
from coder_ir.verifier.folder import CLASSES, GRAPH, TOKENIZER, VerifierManifest

if TYPE_CHECKING:
    from tokenizers import Encoding

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_QUERY_SHARE = 0.5  # of a pair's tokens that a long query may take


class OnnxVerifier:
    """Reads each pair by itself, so that what it says depends on nothing else."""

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        """Check every file's sha256, then load.

        Args:
            folder: `model.onnx`, `tokenizer.json` and, if it is one of ours, `verifier.json`.
            threads: pairs that are read at once; None: one for each core this process may use.
        """
        from tokenizers import Tokenizer

        if threads is not None and threads < 1:
            raise InvalidValue(f"threads must be at least 1, or None for all cores, got {threads}")
        self.manifest = VerifierManifest.load(folder)
        self.manifest.verify(folder)
        self._threads = threads or cores()
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._session = session(folder / GRAPH)
        self._inputs = [item.name for item in self._session.get_inputs()]
        self._outputs = self._checked_outputs(folder / GRAPH)

    def _checked_outputs(self, path: Path) -> list[str]:
        """The logits first, then the attention where the graph gives it."""
        if not {"input_ids"} <= set(self._inputs) <= _INPUTS:
            raise InvalidFile(
                f"{path} must read input_ids and nothing beyond {', '.join(sorted(_INPUTS))}; it "
                f"reads {', '.join(self._inputs) or 'nothing'}"
            )
        shapes = {item.name: item.shape for item in self._session.get_outputs()}
        logits = next(iter(shapes))
        width, expected = shapes[logits][-1], len(self.manifest.classes) or 1
        if isinstance(width, int) and width != expected:
            raise InvalidFile(f"{path} gives {width} logits a pair; {expected} were expected")
        return [logits, *(["attention"] if "attention" in shapes else [])]

    def read(self, query: str, passages: Sequence[str]) -> list[Reading]:
        """What each passage says to the query; equal passages are read once.

        A query past half of the limit is cut to it, a passage to what the query leaves.
        """
        special = self._tokenizer.num_special_tokens_to_add(is_pair=True)
        room = self.manifest.max_length - special
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        asked.truncate(int(room * _QUERY_SHARE))
        room -= len(asked.ids)
        distinct = list(dict.fromkeys(passages))
        with ThreadPoolExecutor(self._threads) as workers:
            found = list(workers.map(lambda text: self._read(asked, text, room), distinct))
        place = dict(zip(distinct, found, strict=True))
        return [place[passage] for passage in passages]

    def _read(self, asked: Encoding, passage: str, room: int) -> Reading:
        text = self._tokenizer.encode(passage, add_special_tokens=False)
        text.truncate(room)
        first = self.manifest.passage_first
        parts = (text, asked) if first else (asked, text)
        pair = self._tokenizer.post_process(*parts)
        feed = {
            "input_ids": pair.ids,
            "attention_mask": [1] * len(pair.ids),
            "token_type_ids": pair.type_ids,
        }
        rows = {name: np.array([feed[name]], dtype=np.int64) for name in self._inputs}
        logits, *looks = self._session.run(self._outputs, rows)
        own = [i for i, added in enumerate(pair.special_tokens_mask) if not added]
        own = own[: len(text.ids)] if first else own[len(asked.ids) :]
        offsets = [pair.offsets[i] for i in own]
        decisive = _decisive(passage, offsets, looks[0][0][own]) if looks else None
        return self._reading(np.asarray(logits[0], dtype=np.float64), decisive)

    def _reading(self, logits: Scores, decisive: Span | None) -> Reading:
        classes = self.manifest.classes
        if not classes:
            yes = float(1 / (1 + np.exp(-np.clip(logits[0], -500, 500))))
            return Reading(yes, 1 - yes, 0.0, 1 - yes, decisive)
        logs = logits - logits.max()
        logs -= np.log(np.exp(logs).sum())
        said = dict(zip(classes, logs.tolist(), strict=True))
        odds = [said["violates"] - said["satisfies"], said["silent"] - said["satisfies"]]
        satisfies, violates, silent = (float(np.exp(said[name])) for name in CLASSES)
        fitted = self.manifest.risk
        risk = float(fitted.probability(np.array([odds]))[0]) if fitted else violates
        return Reading(satisfies, violates, silent, risk, decisive)


def _decisive(passage: str, offsets: Sequence[tuple[int, int]], looks: Any) -> Span | None:
    """The sentence that the classifying token looks at most, by the token.

    Args:
        passage: the text.
        offsets: where each of its tokens stands in it.
        looks: how much each of them is looked at.
    """
    sentences = sentence_spans(passage)
    if len(sentences) < 2:
        return sentences[0] if sentences else None
    starts = np.array([sentence.start for sentence in sentences])
    total, count = np.zeros(len(sentences)), np.zeros(len(sentences))
    for look, (start, end) in zip(looks, offsets, strict=True):
        if end > start:
            place = int(np.searchsorted(starts, start, side="right")) - 1
            total[max(place, 0)] += look
            count[max(place, 0)] += 1
    return sentences[int(np.argmax(total / np.maximum(count, 1)))]
