"""Retriever = encoder + store + policy; the one class a newcomer meets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.registry import BUILT_IN, load_encoder
from coder_ir.errors import CoderError, DuplicateId, InvalidValue, ModelMismatch, NotFound
from coder_ir.intake import check_document, check_text, digest
from coder_ir.policies import policy_named
from coder_ir.stores import open_store
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    Encoder,
    Filtered,
    Hit,
    ModelStamp,
    Order,
    Policy,
    Ranking,
    Record,
    Span,
    Store,
    VectorPair,
    Verdict,
)

DEFAULT_POLICY = "seq"
_BATCH_DOCUMENTS = 128
_BATCH_CHARACTERS = 1_000_000
_ATTEMPTS = 5  # at a search that another process disturbs


@dataclass(frozen=True, slots=True)
class Added:
    """What a call to `add` did."""

    written: int = 0  # new or changed documents, encoded and committed
    unchanged: int = 0  # already there with the same content

    def __add__(self, other: Self) -> "Added":
        """Both counts summed."""
        return Added(self.written + other.written, self.unchanged + other.unchanged)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, apart from the query."""

    k: int = 10  # hits
    policy: str | Policy = DEFAULT_POLICY
    n: int = 100  # documents each space brings to the pool; raised to k where k is larger
    where: Sequence[str | Condition] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be searched for."""
        if self.k < 1:
            raise InvalidValue(f"k must be at least 1, got {self.k}")
        if self.n < 1:
            raise InvalidValue(f"the pool must hold at least 1 document, got {self.n}")
        if isinstance(self.where, str):
            raise InvalidValue(f"where takes a list of conditions, got the text {self.where!r}")

    @property
    def conditions(self) -> list[Condition]:
        """`where` with texts parsed."""
        return [Condition.parse(w) if isinstance(w, str) else w for w in self.where]

    @property
    def chosen_policy(self) -> Policy:
        """`policy` with a name looked up."""
        return policy_named(self.policy) if isinstance(self.policy, str) else self.policy


class Retriever:
    """Search that respects what a query rules out.

    Example:
        >>> retriever = Retriever.open("index")
        >>> retriever.add([Document("d1", "Back rooms are silent.")])
        >>> retriever.search("hotel without noise at night", k=5)
    """

    def __init__(self, encoder: Encoder, store: Store) -> None:
        """Join parts that were opened elsewhere; a store built with another model is refused."""
        self.encoder = encoder
        self.store = store
        self._fingerprint = encoder.fingerprint
        self._check_model()

    def _check_model(self) -> None:
        """Refuse vectors of another model; an index gets its model at the first write."""
        stamp = self.store.stamp()
        if stamp is not None and stamp.fingerprint != self._fingerprint:
            raise ModelMismatch(
                f"this index was built with model {stamp.spec!r} ({stamp.fingerprint[:12]}…), not "
                f"{self.encoder.spec!r} ({self._fingerprint[:12]}…); open it with that model, or "
                "build a new index"
            )

    @classmethod
    def open(
        cls,
        index: str | Path,
        *,
        model: str | None = None,
        read_only: bool = False,
        runtime: Runtime | None = None,
    ) -> Self:
        """Open an index, created if absent.

        Args:
            index: a folder.
            model: a model folder or `TOPICAL+COMPATIBILITY`; None takes the one the index was
                built with, or the built-in one for a new index.
            read_only: never write; an index that is not there is an error.
            runtime: threads, batch size and token limit.
        """
        store = open_store(index, read_only=read_only)
        try:
            stamp = store.stamp()
            spec = model or (stamp.spec if stamp else BUILT_IN)
            return cls(load_encoder(spec, runtime=runtime), store)
        except BaseException:
            store.close()
            raise

    def add(
        self,
        documents: Iterable[Document],
        *,
        split: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Added:
        """Add or update documents; those already there with the same content cost nothing.

        Documents are committed in batches as they come, so an interrupted call keeps what it
        finished and a second call with the same documents does the rest.

        Args:
            documents: read lazily; an id may come only once a call.
            split: cut texts past the model's limit into passages; False truncates them.
            progress: called with the number of documents done since the last call.
        """
        total = Added()
        for batch in _batches(_distinct(documents)):
            total += self._add_batch(batch, split=split)
            if progress:
                progress(len(batch))
        return total

    def _add_batch(self, batch: Sequence[Document], *, split: bool) -> Added:
        digests = [digest(document, split=split) for document in batch]
        known = self.store.digests([document.doc_id for document in batch])
        changed = [
            (document, fresh)
            for document, fresh in zip(batch, digests, strict=True)
            if known.get(document.doc_id) != fresh
        ]
        if changed:
            if self.store.stamp() is None:
                self.store.set_stamp(ModelStamp(self._fingerprint, self.encoder.spec))
            self._check_model()
            self.store.write(self._records(changed, split=split))
        return Added(len(changed), len(batch) - len(changed))

    def _records(self, changed: Sequence[tuple[Document, str]], *, split: bool) -> list[Record]:
        spans = [
            self.encoder.split(document.content) if split else [Span(0, len(document.content))]
            for document, _ in changed
        ]
        texts = [
            document.content[span.start : span.end]
            for (document, _), parts in zip(changed, spans, strict=True)
            for span in parts
        ]
        vectors = self.encoder.encode(texts, kind="document")
        records, row = [], 0
        for (document, fresh), parts in zip(changed, spans, strict=True):
            rows = slice(row, row := row + len(parts))
            pair = VectorPair(vectors.topical[rows], vectors.compatibility[rows])
            records.append(Record(document, fresh, parts, pair))
        return records

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        policy: str | Policy = DEFAULT_POLICY,
        n: int = 100,
        where: Sequence[str | Condition] = (),
    ) -> Ranking:
        """At most k hits, best first; fewer where the index or the filter leaves fewer.

        Args:
            query: what to look for, constraints included.
            k: number of hits.
            policy: `topical`, `compatibility`, `seq`, `union`, or your own object.
            n: documents each space brings to the pool.
            where: metadata conditions such as `year>2019`; all must hold.
        """
        return self.search_many([query], SearchOptions(k, policy, n, where))[0]

    def search_many(
        self,
        queries: Sequence[str],
        options: SearchOptions | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[Ranking]:
        """One ranking a query, the queries encoded together."""
        options = options or SearchOptions()
        policy, conditions = options.chosen_policy, options.conditions
        for number, query in enumerate(queries, 1):
            place = f"query {number}" if len(queries) > 1 else "the query"
            if not query.strip():
                raise InvalidValue(f"{place} is empty; say what to look for")
            check_text(query, place)
        self._check_model()
        vectors = self.encoder.encode(queries, kind="query")
        rankings = []
        for row, query in enumerate(queries):
            one = slice(row, row + 1)
            pair = VectorPair(vectors.topical[one], vectors.compatibility[one])
            rankings.append(self._rank(query, pair, options, policy, conditions))
            if progress:
                progress(1)
        return rankings

    def _rank(
        self,
        query: str,
        vectors: VectorPair,
        options: SearchOptions,
        policy: Policy,
        where: Sequence[Condition],
    ) -> Ranking:
        """One ranking; taken anew where another process deleted a hit in the middle of it."""
        for left in reversed(range(_ATTEMPTS)):
            pool = self.store.candidates(
                vectors, n=max(options.n, options.k), spaces=policy.spaces, where=where
            )
            try:
                return self._ranking(query, policy, pool, options.k)
            except NotFound:
                if not left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _ranking(self, query: str, policy: Policy, pool: Candidates, k: int) -> Ranking:
        order = policy.order(pool)
        kept, dropped = _by_document(order, pool)
        kept = kept[:k]
        documents = self.store.get([pool.doc_ids[verdict.position] for verdict in kept])
        hits = tuple(
            Hit(
                doc_id=document.doc_id,
                rank=rank,
                score=verdict.score,
                topical=float(pool.topical[verdict.position]),
                compatibility=float(pool.compatibility[verdict.position]),
                reason=verdict.reason,
                text=document.text,
                title=document.title,
                metadata=document.metadata,
                passage=pool.passages[verdict.position],
            )
            for rank, (verdict, document) in enumerate(zip(kept, documents, strict=True), 1)
        )
        filtered = tuple(
            Filtered(
                doc_id=pool.doc_ids[verdict.position],
                score=verdict.score,
                topical=float(pool.topical[verdict.position]),
                compatibility=float(pool.compatibility[verdict.position]),
                reason=verdict.reason,
                passage=pool.passages[verdict.position],
            )
            for verdict in dropped
        )
        return Ranking(query, policy.name, hits, filtered)

    def get(self, doc_id: str) -> Document:
        """One document by its id."""
        return self.store.get([doc_id])[0]

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove documents; returns how many of them were there."""
        if isinstance(doc_ids, str):
            raise InvalidValue(f"delete takes a list of ids, got the text {doc_ids!r}")
        return self.store.delete(doc_ids)

    def compact(self) -> None:
        """Give back the disk space of deleted and replaced documents."""
        self.store.compact()

    def __len__(self) -> int:
        """Number of documents."""
        return self.store.count()

    def close(self) -> None:
        """Release the store."""
        self.store.close()

    def __enter__(self) -> Self:
        """Close at the end of a `with` block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def _distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """Pass documents on; a bad or repeated id stops the call before it is stored."""
    seen: set[str] = set()
    for document in documents:
        check_document(document)
        if document.doc_id in seen:
            raise DuplicateId(
                f"document id {document.doc_id!r} comes twice; ids must be distinct within one "
                "call (documents before the second one are kept)"
            )
        seen.add(document.doc_id)
        yield document


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Groups bounded in number and size; an error in the source comes after what preceded it."""
    batch: list[Document] = []
    size = 0
    source = iter(documents)
    failure: CoderError | None = None
    while True:
        try:
            document = next(source)
        except StopIteration:
            break
        except CoderError as error:  # raised again once the documents before it are stored
            failure = error
            break
        batch.append(document)
        size += len(document.text)
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    if failure:
        raise failure


def _by_document(order: Order, pool: Candidates) -> tuple[list[Verdict], list[Verdict]]:
    """The first verdict of each document; one kept passage keeps its document."""
    seen: set[str] = set()

    def first(verdicts: Sequence[Verdict]) -> list[Verdict]:
        fresh = []
        for verdict in verdicts:
            doc_id = pool.doc_ids[verdict.position]
            if doc_id not in seen:
                seen.add(doc_id)
                fresh.append(verdict)
        return fresh

    return first(order.kept), first(order.dropped)
