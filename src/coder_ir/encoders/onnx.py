"""Model folders on ONNX Runtime: tokens in, two unit vectors a text out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from coder_ir.encoders.conventions import Similarity
from coder_ir.encoders.folder import Manifest, Pooling, Role
from coder_ir.encoders.passages import split_at_sentences
from coder_ir.encoders.tokens import QueryTokens, TokenVectors
from coder_ir.errors import InvalidFile, InvalidValue
from coder_ir.types import Floats, Kind, Progress, Space, Span, VectorPair
from coder_ir.vectors import unit_rows

if TYPE_CHECKING:
    from tokenizers import Encoding

S = TypeVar("S")
T = TypeVar("T")
_READ = {"input_ids", "attention_mask"}  # what every graph over texts reads


@dataclass(frozen=True, slots=True)
class Runtime:
    """How to run a model on this machine; changes speed, and max_length what is read."""

    threads: int = 0  # 0: one for each core this process may use
    max_length: int | None = None  # tokens; None: the model's own limit

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        if self.threads < 0:
            raise InvalidValue(f"threads must be 0 (one for each core) or more, got {self.threads}")
        if self.max_length is not None and self.max_length < 8:
            raise InvalidValue(f"max_length must be at least 8 tokens, got {self.max_length}")


class OnnxEncoder:
    """The topical and compatibility pair that a model folder describes."""

    def __init__(self, folder: Path, *, runtime: Runtime | None = None, spec: str = "") -> None:
        """Check every file's sha256, then load."""
        from tokenizers import Tokenizer

        self.runtime = runtime or Runtime()
        self.manifest = Manifest.load(folder)
        self.manifest.verify(folder)
        self.spec = spec or str(folder)
        self.folder = folder
        self._sessions = {name: session(folder / name) for name in self.manifest.graphs}
        self._tokenizer = Tokenizer.from_file(str(folder / self.manifest.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._limit = min(self.max_length("topical"), self.max_length("compatibility"))

    @property
    def fingerprint(self) -> str:
        """The manifest's, and the token limits where they were lowered."""
        roles = (self.manifest.topical, self.manifest.compatibility)
        limits = [self._max_length(role) for role in roles]
        lowered = limits != [role.max_length for role in roles]
        return self.manifest.fingerprint + (f":{limits}" if lowered else "")

    def max_length(self, space: Space) -> int:
        """Tokens read of a text, special ones included."""
        return self._max_length(self.manifest.role(space))

    def _max_length(self, role: Role) -> int:
        return min(role.max_length, self.runtime.max_length or role.max_length)

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        """Unit rows in the order of `texts`; what the roles share runs once."""
        topical, compatibility = self.manifest.topical, self.manifest.compatibility
        if self._reads(topical, kind) == self._reads(compatibility, kind):
            both = self._run(texts, kind, [topical, compatibility], progress)
            return VectorPair(*both)
        first = self._run(texts, kind, [topical], None)
        second = self._run(texts, kind, [compatibility], progress)
        return VectorPair(first[0], second[0])

    def encode_space(
        self, texts: Sequence[str], *, space: Space, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Unit rows of one space alone, skipping the layers only the other one needs."""
        return self._run(texts, kind, [self.manifest.role(space)], progress)[0]

    @property
    def reads_queries_once(self) -> bool:
        """Whether both roles read a query alike, so that the shared layers run once."""
        one, other = self.manifest.topical, self.manifest.compatibility
        return self._reads(one, "query") == self._reads(other, "query")

    def encode_queries(self, texts: Sequence[str]) -> tuple[VectorPair, list[QueryTokens]]:
        """Both vectors of each query, and its tokens after the shared layers; they run once."""
        roles = [self.manifest.topical, self.manifest.compatibility]
        if not self.reads_queries_once:
            raise InvalidValue(f"the roles of {self.spec!r} read queries in different ways")
        encoded, tokens = self._encoded_queries(texts)

        def run(ids: list[int]) -> tuple[list[Floats], Floats]:
            hidden = self.lower(ids)
            return self._pooled(self._upper(hidden, roles), roles), hidden[0]

        rows, states = _room(len(texts), roles), []
        for i, (vectors, hidden) in enumerate(self._alone(tokens, run)):
            _put(rows, i, vectors)
            states.append(hidden)
        return VectorPair(*rows), self._own_tokens(encoded, states)

    def query_tokens(self, texts: Sequence[str]) -> list[QueryTokens]:
        """The tokens of each query after the shared layers, without its vectors."""
        encoded, tokens = self._encoded_queries(texts)

        def run(ids: list[int]) -> Floats:
            return np.asarray(self.lower(ids)[0])

        return self._own_tokens(encoded, list(self._alone(tokens, run)))

    def _encoded_queries(self, texts: Sequence[str]) -> tuple[list[Encoding], list[list[int]]]:
        """Each query behind its prefix, and the ids of the tokens that are read."""
        role = self.manifest.topical
        encoded = self._tokenizer.encode_batch([role.query_prefix + text for text in texts])
        return encoded, [_truncated(item.ids, self._max_length(role)) for item in encoded]

    def _own_tokens(
        self, encoded: Sequence[Encoding], states: Sequence[Floats]
    ) -> list[QueryTokens]:
        """Which rows are a query's own, and where their characters are."""
        ends = len(self.manifest.topical.query_prefix)
        found = []
        for item, rows in zip(encoded, states, strict=True):
            closing = len(rows) - 1
            own = [
                (row, (start - ends, end - ends))
                for row, (start, end) in enumerate(item.offsets[:closing])
                if end > start >= ends
            ]
            states_of_own = rows[[row for row, _ in own]]
            found.append(QueryTokens(states_of_own, tuple(offsets for _, offsets in own)))
        return found

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The last topical layer over each text, read as a document."""
        role = self.manifest.topical

        def read(ids: list[int]) -> TokenVectors:
            ((hidden,),) = self._hidden(ids, [role])  # (tokens, dimensions)
            words = tuple(str(self._tokenizer.id_to_token(token)) for token in ids)
            return TokenVectors(words, hidden, unit_rows(pool(hidden, role.pooling)[None])[0])

        return list(self._alone(self.tokens(texts, role, "document"), read))

    def _reads(self, role: Role, kind: Kind) -> tuple[str, int]:
        return _prefix(role, kind), self._max_length(role)

    def split(self, text: str) -> list[Span]:
        """Spans that cover the text and fit both roles' limits."""
        roles = (self.manifest.topical, self.manifest.compatibility)
        prefix = max(
            len(self._tokenizer.encode(_prefix(role, "document")).ids) for role in roles
        )  # special tokens included
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        if len(encoded.ids) + prefix <= self._limit:
            return [Span(0, len(text))]
        # A piece is tokenised anew; leave it a little room, for a cut may fall inside a word.
        return split_at_sentences(text, encoded.offsets, max(1, self._limit - prefix - 4))

    def tokens(self, texts: Sequence[str], role: Role, kind: Kind) -> list[list[int]]:
        """Token ids of each text with the role's prefix, cut to its limit."""
        prefix = _prefix(role, kind)
        encoded = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        return [_truncated(item.ids, self._max_length(role)) for item in encoded]

    def lower(self, ids: Sequence[int]) -> Floats:
        """What the trunk makes of one text (1, tokens, dimensions)."""
        if self.manifest.trunk is None:
            raise InvalidValue(f"{self.spec!r} has no layers that its roles share")
        (hidden,) = self._sessions[self.manifest.trunk].run(["hidden"], text_feed(ids))
        return np.asarray(hidden)

    def _run(
        self, texts: Sequence[str], kind: Kind, roles: Sequence[Role], progress: Progress | None
    ) -> list[Floats]:
        def run(ids: list[int]) -> list[Floats]:
            return self._pooled(self._hidden(ids, roles), roles)

        tokens, rows = self.tokens(texts, roles[0], kind), _room(len(texts), roles)
        for i, vectors in enumerate(self._alone(tokens, run)):
            _put(rows, i, vectors)
            if progress:
                progress(1)
        return rows

    def _alone(self, tokens: Sequence[list[int]], run: Callable[[list[int]], T]) -> Iterator[T]:
        return each_alone(tokens, run, threads=self.runtime.threads)

    def _pooled(self, hidden: Iterator[Floats], roles: Sequence[Role]) -> list[Floats]:
        """One text's unit vector in each role (dimensions,)."""
        found = zip(roles, hidden, strict=True)
        return [unit_rows(pool(rows[0], role.pooling)[None])[0] for role, rows in found]

    def _hidden(self, ids: Sequence[int], roles: Sequence[Role]) -> Iterator[Floats]:
        """Last layer over one text in each role (1, tokens, dimensions)."""
        if self.manifest.trunk:
            yield from self._upper(self.lower(ids), roles)
            return
        feed = text_feed(ids)
        for role in roles:
            (found,) = self._sessions[role.graph].run([role.output], feed)
            yield found

    def _upper(self, hidden: Floats, roles: Sequence[Role]) -> Iterator[Floats]:
        """Each role's own layers over what the trunk made of one text."""
        feed = {"hidden": hidden, "attention_mask": np.ones(hidden.shape[:2], dtype=np.int64)}
        for role in roles:
            (found,) = self._sessions[role.graph].run([role.output], feed)
            yield found


class OnnxSpace:
    """One role of a model folder on its own."""

    similarity: Similarity = "cosine"

    def __init__(self, pair: OnnxEncoder, space: Space) -> None:
        """The other role's own layers are loaded but never run."""
        self.pair = pair
        self._space: Space = space
        self.max_length = pair.max_length(space)
        self.fingerprint = f"{pair.fingerprint}:{space}"

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        """Unit rows in the order of `texts`."""
        return self.pair.encode_space(texts, space=self._space, kind=kind, progress=progress)

    def split(self, text: str) -> list[Span]:
        """Spans that fit both of the folder's roles."""
        return self.pair.split(text)


def session(path: Path) -> Any:
    """A graph ready to run, on one thread a call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # the fused kernel is the slower one
    )


def text_inputs(path: Path, graph: Any) -> list[str]:
    """Names of a loaded graph's inputs, where it reads the tokens of texts."""
    inputs = {item.name for item in graph.get_inputs()}
    if not _READ <= inputs <= _READ | {"token_type_ids"}:
        raise InvalidFile(
            f"{path} must read input_ids, attention_mask and, if it likes, token_type_ids; it "
            f"reads {', '.join(sorted(inputs)) or 'nothing'}"
        )
    return sorted(inputs)


def each_alone(items: Sequence[S], run: Callable[[S], T], *, threads: int) -> Iterator[T]:
    """What `run` makes of each item, in their order, on so many threads; 0: one for each core.

    `run` takes one text through the graphs by itself. An int8 graph scales what flows through it by
    all that it is given at once, so other texts or padding beside it would change the result.
    """
    workers = min(threads or cores(), len(items))
    if workers <= 1:
        yield from map(run, items)
        return
    # A text a core is faster than a text on all cores: nothing waits inside an operator.
    with ThreadPoolExecutor(workers) as executor:
        yield from executor.map(run, items)


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prefix(role: Role, kind: Kind) -> str:
    return role.query_prefix if kind == "query" else role.document_prefix


def _truncated(ids: list[int], limit: int) -> list[int]:
    """Cut to the limit, keeping the closing special token."""
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


def text_feed(ids: Sequence[int]) -> dict[str, NDArray[Any]]:
    """What a graph reads of one text; nothing in it is masked."""
    row = np.array([ids], dtype=np.int64)
    return {"input_ids": row, "attention_mask": np.ones_like(row)}


def pool(hidden: Floats, pooling: Pooling) -> Floats:
    """One row of any length (dimensions,) from those of a text's tokens (tokens, dimensions)."""
    return hidden[0] if pooling == "cls" else np.asarray(hidden.mean(axis=0), dtype=np.float32)


def _room(texts: int, roles: Sequence[Role]) -> list[Floats]:
    """A row for each text in each role, still zero."""
    return [np.zeros((texts, role.dimensions), dtype=np.float32) for role in roles]


def _put(rows: Sequence[Floats], text: int, vectors: Sequence[Floats]) -> None:
    for out, vector in zip(rows, vectors, strict=True):
        out[text] = vector
