"""Model folders on ONNX Runtime: tokens in, two unit vectors a text out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
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

T = TypeVar("T")
_READ = {"input_ids", "attention_mask"}  # what every graph over texts reads


@dataclass(frozen=True, slots=True)
class Runtime:
    """How to run a model on this machine; changes speed, and max_length what is read."""

    threads: int = 0  # 0: one for each core this process may use
    batch_size: int = 32  # texts, at most
    batch_tokens: int = 256  # padded tokens, at most; what fits a core's cache is fastest
    max_length: int | None = None  # tokens; None: the model's own limit

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        if self.threads < 0 or self.batch_size < 1 or self.batch_tokens < 1:
            raise InvalidValue(f"threads, batch_size and batch_tokens must be positive, got {self}")
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

        def run(batch: list[int]) -> tuple[list[Floats], Floats]:
            hidden, mask = self.lower([tokens[i] for i in batch])
            upper = self._upper(hidden, mask, roles)
            return self._pooled(upper, roles), hidden[0]

        rows = [np.zeros((len(texts), role.dimensions), dtype=np.float32) for role in roles]
        states: list[Floats] = []
        for batch, (vectors, hidden) in each_batch(tokens, run, kind="query", runtime=self.runtime):
            for out, part in zip(rows, vectors, strict=True):
                out[batch] = part
            states.append(hidden)
        return VectorPair(*rows), self._own_tokens(encoded, states)

    def query_tokens(self, texts: Sequence[str]) -> list[QueryTokens]:
        """The tokens of each query after the shared layers, without its vectors."""
        encoded, tokens = self._encoded_queries(texts)

        def run(batch: list[int]) -> Floats:
            hidden, _ = self.lower([tokens[i] for i in batch])
            return np.asarray(hidden[0])

        found = each_batch(tokens, run, kind="query", runtime=self.runtime)
        return self._own_tokens(encoded, [states for _, states in found])

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
        tokens = self.tokens(texts, role, "document")
        found: dict[int, TokenVectors] = {}

        def read(batch: list[int]) -> None:
            ((hidden, mask),) = self._hidden([tokens[i] for i in batch], [role])
            pooled = unit_rows(pool(hidden, mask, role.pooling))
            for row, i in enumerate(batch):
                words = tuple(str(self._tokenizer.id_to_token(token)) for token in tokens[i])
                found[i] = TokenVectors(words, hidden[row, : len(words)], pooled[row])

        for _ in each_batch(tokens, read, kind="document", runtime=self.runtime):
            pass
        return [found[i] for i in range(len(texts))]

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

    def lower(self, tokens: Sequence[Sequence[int]]) -> tuple[Floats, NDArray[np.int64]]:
        """What the trunk makes of a batch (texts, tokens, dimensions), and its mask."""
        if self.manifest.trunk is None:
            raise InvalidValue(f"{self.spec!r} has no layers that its roles share")
        ids, mask = padded(tokens)
        feed = {"input_ids": ids, "attention_mask": mask}
        (hidden,) = self._sessions[self.manifest.trunk].run(["hidden"], feed)
        return hidden, mask

    def _run(
        self, texts: Sequence[str], kind: Kind, roles: Sequence[Role], progress: Progress | None
    ) -> list[Floats]:
        tokens = self.tokens(texts, roles[0], kind)
        rows = [np.zeros((len(texts), role.dimensions), dtype=np.float32) for role in roles]

        def run(batch: list[int]) -> list[Floats]:
            return self._vectors([tokens[i] for i in batch], roles)

        for batch, vectors in each_batch(tokens, run, kind=kind, runtime=self.runtime):
            for out, part in zip(rows, vectors, strict=True):
                out[batch] = part
            if progress:
                progress(len(batch))
        return rows

    def _vectors(self, tokens: Sequence[Sequence[int]], roles: Sequence[Role]) -> list[Floats]:
        """Unit rows of one batch, in each role."""
        return self._pooled(self._hidden(tokens, roles), roles)

    def _pooled(
        self, hidden: Iterable[tuple[Floats, NDArray[np.int64]]], roles: Sequence[Role]
    ) -> list[Floats]:
        found = zip(roles, hidden, strict=True)
        return [unit_rows(pool(rows, mask, role.pooling)) for role, (rows, mask) in found]

    def _hidden(
        self, tokens: Sequence[Sequence[int]], roles: Sequence[Role]
    ) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """Last layer of one batch in each role (texts, tokens, dimensions), and the mask."""
        if self.manifest.trunk:
            yield from self._upper(*self.lower(tokens), roles)
            return
        ids, mask = padded(tokens)
        feed = {"input_ids": ids, "attention_mask": mask}
        for role in roles:
            (found,) = self._sessions[role.graph].run([role.output], feed)
            yield found, mask

    def _upper(
        self, hidden: Floats, mask: NDArray[np.int64], roles: Sequence[Role]
    ) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """Each role's own layers over what the trunk made, and the mask."""
        feed: dict[str, Any] = {"hidden": hidden, "attention_mask": mask}
        for role in roles:
            (found,) = self._sessions[role.graph].run([role.output], feed)
            yield found, mask

    def batches(self, tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Positions grouped by like length within the runtime's limits."""
        return by_length(tokens, self.runtime)


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


def by_length(tokens: Sequence[Sequence[int]], runtime: Runtime) -> Iterator[list[int]]:
    """Positions grouped by like length, longest first, within the token budget."""
    batch: list[int] = []
    widest = 0
    for i in sorted(range(len(tokens)), key=lambda i: -len(tokens[i])):
        full = len(batch) >= runtime.batch_size
        if batch and (full or (len(batch) + 1) * widest > runtime.batch_tokens):
            yield batch
            batch = []
        widest = widest if batch else len(tokens[i])
        batch.append(i)
    if batch:
        yield batch


def each_batch(
    tokens: Sequence[Sequence[int]], run: Callable[[list[int]], T], *, kind: Kind, runtime: Runtime
) -> Iterator[tuple[list[int], T]]:
    """Positions of each batch with what `run` makes of it, all threads at work.

    int8 scales follow the batch, so a query goes alone: its vector, and with it a ranking, is the
    same whether it is asked by itself or among others.
    """
    alone = [[i] for i in range(len(tokens))]
    batches = alone if kind == "query" else list(by_length(tokens, runtime))
    threads = min(runtime.threads or cores(), len(batches))
    if threads <= 1:
        yield from ((batch, run(batch)) for batch in batches)
        return
    # A batch a core is faster than a batch on all cores: nothing waits inside an operator.
    with ThreadPoolExecutor(threads) as workers:
        yield from zip(batches, workers.map(run, batches), strict=True)


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


def padded(tokens: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids as one array, filled up on the right with zeros, and its attention mask."""
    ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, item in enumerate(tokens):
        ids[row, : len(item)] = item
        mask[row, : len(item)] = 1
    return ids, mask


def pool(hidden: Floats, mask: NDArray[np.int64], pooling: Pooling) -> Floats:
    """One row a text (texts, dimensions) of any length from its tokens' rows."""
    if pooling == "cls":
        return hidden[:, 0]
    weights = mask[:, :, None].astype(np.float32)  # (batch, tokens, 1)
    return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)
