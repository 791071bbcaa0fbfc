"""Retriever = encoder + store + policy; the one class a newcomer meets."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from coder_ir.calibration import Calibration
from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.registry import BUILT_IN, load_calibration, load_encoder
from coder_ir.encoders.sparing import topical_rows
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound
from coder_ir.explaining import explained
from coder_ir.hybrid import fused_ranks, lexical_query
from coder_ir.intake import Added, batches, digest, distinct
from coder_ir.lexical import LEXICAL, StoredLexical
from coder_ir.query import OperatorParser, load_parser, read_queries
from coder_ir.search.near_duplicates import with_near_duplicates
from coder_ir.search.verify import read_first, takes_readings
from coder_ir.searching import (
    DEFAULT_POLICY,
    Asked,
    Mode,
    SearchOptions,
    against,
    assemble,
    check_query,
    decide,
    hard_checked,
    passage_texts,
    risks,
    stated,
)
from coder_ir.stores import index_folder, open_store, settle
from coder_ir.types import (
    Candidates,
    Condition,
    Constraint,
    Document,
    Encoder,
    Lexical,
    ModelStamp,
    Order,
    Policy,
    QueryParser,
    Ranking,
    Reading,
    Record,
    Scores,
    Span,
    Store,
    VectorPair,
    Verifier,
)
from coder_ir.verifier import load_verifier

_ATTEMPTS = 5  # at a search that another process disturbs


class Retriever:
    """Search that respects what a query rules out.

    Example:
        >>> retriever = Retriever.open("index")
        >>> retriever.add([Document("d1", "Back rooms are silent.")])
        >>> retriever.search("hotel without noise at night", k=5)
    """

    def __init__(
        self,
        encoder: Encoder,
        store: Store,
        *,
        calibration: Calibration | None = None,
        verifier: Verifier | None = None,
        lexical: Lexical | None = None,
        parser: QueryParser | None = None,
    ) -> None:
        """Join parts that were opened elsewhere; a store built with another model is refused.

        With a lexical part the topical order is that of hybrid search. Without a parser
        (`coder_ir.query.load_parser`) only operators such as `-word` state a constraint. Without a
        verifier (`coder_ir.verifier.load_verifier`) the built-in one reads, loaded on first use.
        """
        self.encoder = encoder
        self.store = store
        self.calibration = calibration
        self.verifier = verifier or load_verifier()
        self.lexical = lexical
        self.parser = parser or OperatorParser()
        self.settles = True  # `add` ends with what a large store then has to build
        self._fingerprint = encoder.fingerprint
        self._check_model()

    def _check_model(self) -> None:
        """Refuse vectors of another model; an index gets its model at the first write."""
        stamp = self.store.stamp()
        if stamp is None or stamp.fingerprint == self._fingerprint:
            return
        own = self.encoder.spec
        named = "" if own == BUILT_IN else f" --model {shlex.quote(own)}"
        anew = f"build it anew with: coder-ir index NEW_INDEX DOCS…{named}"
        if stamp.spec == own:
            raise ModelMismatch(
                f"this index was built by an earlier version of coder-ir, or of model {own!r}, "
                f"whose vectors differ; {anew}"
            )
        raise ModelMismatch(
            f"this index was built with model {stamp.spec!r} ({stamp.fingerprint[:12]}…), not "
            f"{own!r} ({self._fingerprint[:12]}…); open it with that model, or {anew}"
        )

    @classmethod
    def open(
        cls,
        index: str | Path,
        *,
        model: str | None = None,
        read_only: bool = False,
        runtime: Runtime | None = None,
        hybrid: bool = False,
        exact: bool = False,
        verifier: str | None = None,
    ) -> Self:
        """Open an index, created if absent.

        Args:
            index: a folder, or the address of a store (docs/stores.md).
            model: a model folder or `TOPICAL+COMPATIBILITY`; None takes the one the index was
                built with, or the built-in one for a new index.
            read_only: never write; an index that is not there is an error.
            runtime: threads and token limit.
            hybrid: find documents by their words (BM25) as well as by their vectors; behind an
                address, words are counted anew by every process.
            exact: look at every passage of a large index too, instead of an approximate index.
            verifier: a folder with a cross-encoder to read hits with; None: the built-in one.
        """
        store = open_store(index, read_only=read_only, exact=exact)
        try:
            stamp = store.stamp()
            spec = model or (stamp.spec if stamp else BUILT_IN)
            encoder = load_encoder(spec, runtime=runtime)
            folder = index_folder(index)
            kept = None if folder is None else folder / LEXICAL
            lexical = StoredLexical(store, kept, read_only=read_only) if hybrid else None
            settle(store)  # does nothing but where a large index has lost its sidecar
            return cls(
                encoder,
                store,
                calibration=load_calibration(spec),
                lexical=lexical,
                parser=load_parser(encoder),
                verifier=load_verifier(
                    verifier or BUILT_IN, threads=runtime.threads if runtime else 0
                ),
            )
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
        for batch in batches(distinct(documents)):
            total += self._add_batch(batch, split=split)
            if progress:
                progress(len(batch))
        if total.written and self.settles:
            settle(self.store)
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

    def search(  # noqa: PLR0913 - one keyword for each of SearchOptions
        self,
        query: str,
        k: int = 10,
        *,
        policy: str | Policy = DEFAULT_POLICY,
        n: int = 100,
        where: Sequence[str | Condition] = (),
        exclude: Sequence[str] = (),
        require: Sequence[str] = (),
        mode: Mode = "soft",
        max_risk: float = 1.0,
        explain: bool = False,
        verify: int | None = None,
    ) -> Ranking:
        """At most k hits, best first; fewer where the index or the filters leave fewer.

        Args:
            query: what to look for, constraints included.
            k: number of hits.
            policy: `auto`, `topical`, `compatibility`, `seq`, `union`, or your own object.
            n: documents each space brings to the pool.
            where: metadata conditions such as `year>2019`; all must hold.
            exclude: phrases no hit should be about, beside what the query says.
            require: phrases every hit should be about.
            mode: `soft` ranks by them, `hard` also drops what affirms an excluded phrase or lacks
                a required one.
            max_risk: drop hits whose risk is above this.
            explain: find the sentence that decided each hit, also of hits that were not read.
            verify: how many of the first hits the verifier reads at most: 20 for None, and none
                for 0. It reads them where the query states a constraint, and near-duplicates
                among them in any case.
        """
        options = SearchOptions(
            k, policy, n, where, exclude, require, mode, max_risk, explain, verify
        )
        return self.search_many([query], options)[0]

    def search_many(
        self,
        queries: Sequence[str],
        options: SearchOptions | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[Ranking]:
        """One ranking a query, the queries encoded together."""
        options = options or SearchOptions()
        rankings = []
        for asked in self.prepare(queries, [options] * len(queries)):
            rankings.append(self.answer(asked))
            if progress:
                progress(1)
        return rankings

    def check(self, query: str, options: SearchOptions, *, place: str = "the query") -> None:
        """Refuse what cannot be searched for; `place` names the query in the message."""
        check_query(query, options, place)
        if options.max_risk < 1 and self.calibration is None:
            raise InvalidValue(
                f"max_risk needs a calibrated model, which {self.encoder.spec!r} is not; leave it "
                "out, or calibrate the model with: coder-ir train calibrate"
            )

    def prepare(self, queries: Sequence[str], options: Sequence[SearchOptions]) -> list[Asked]:
        """Encode queries together, each with options of its own, for `answer`.

        The parser reads what the encoder's first layers make of a query anyway; the phrases of
        its constraint, if it states one, cost a second call. Explicit constraints enter the
        compatibility vector in words, the topical one not.
        """
        for number, (query, chosen) in enumerate(zip(queries, options, strict=True), 1):
            place = f"query {number}" if len(queries) > 1 else "the query"
            self.check(query, chosen, place=place)
        self._check_model()
        distinct_queries = list(dict.fromkeys(queries))
        vectors, parsed = read_queries(distinct_queries, self.encoder, self.parser)
        row = {query: number for number, query in enumerate(distinct_queries)}
        asked = []
        for query, chosen in zip(queries, options, strict=True):
            own = slice(row[query], row[query] + 1)
            asked.append(
                Asked(
                    query,
                    chosen,
                    VectorPair(vectors.topical[own], vectors.compatibility[own]),
                    stated(parsed[row[query]], chosen),
                    np.zeros((0, vectors.topical.shape[1]), dtype=np.float32),
                )
            )
        return self._with_phrases(self._with_worded(asked))

    def _with_worded(self, asked: Sequence[Asked]) -> list[Asked]:
        """Explicit constraints in the compatibility vector, where there are any."""
        worded = [one.options.worded(one.query) for one in asked]
        pairs = zip(worded, asked, strict=True)
        fresh = list(dict.fromkeys(text for text, one in pairs if text != one.query))
        if not fresh:
            return list(asked)
        found = self.encoder.encode(fresh, kind="query").compatibility
        row = dict(zip(fresh, found, strict=True))
        return [
            replace(one, vectors=VectorPair(one.vectors.topical, row[text][None]))
            if text in row
            else one
            for text, one in zip(worded, asked, strict=True)
        ]

    def _with_phrases(self, asked: Sequence[Asked]) -> list[Asked]:
        """Topical rows of what each constraint names and of the topic that is left."""
        phrases = list(dict.fromkeys(text for one in asked for text in one.phrases))
        if not phrases:
            return list(asked)
        rows = topical_rows(self.encoder, phrases)
        row = {text: number for number, text in enumerate(phrases)}
        return [replace(one, said=rows[[row[text] for text in one.phrases]]) for one in asked]

    def parse(self, query: str) -> Constraint:
        """How a query is understood: what it rules out and requires, and the topic left."""
        check_query(query, SearchOptions(), "the query")
        return self.parser.parse([query])[0]

    def answer(self, asked: Asked) -> Ranking:
        """One ranking; taken anew where another process deleted a hit in the middle of it."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                ranking = self._ranked(asked)
            except NotFound:
                if not left:
                    raise
            else:
                if not asked.options.explain:
                    return ranking
                return explained(ranking, asked.vectors.compatibility[0], self.encoder)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _ranked(self, asked: Asked) -> Ranking:
        options, policy = asked.options, asked.options.chosen_policy
        pool, order = self.verified(asked, self.pool(asked, policy, where=options.conditions))
        risk = risks(pool, self.calibration)
        order = decide(order, pool, risk=risk, max_risk=options.max_risk)
        if options.mode == "hard":
            order = hard_checked(order, pool, options, self.verifier, self._parts)
        return assemble(
            asked.query, policy, pool, order, k=options.k, risk=risk, fetch=self.store.get
        )

    def verified(self, asked: Asked, pool: Candidates) -> tuple[Candidates, Order]:
        """The pool with what the verifier read of it, and the order that the policy then gives."""
        policy = asked.options.chosen_policy

        def read(positions: Sequence[int]) -> list[Reading]:
            texts = passage_texts(pool.part(positions), self.store.get)
            return self.verifier.read(asked.options.worded(asked.query), texts)

        return read_first(pool, policy.order(pool), policy, read, depth=asked.options.depth)

    def _parts(self, doc_id: str) -> list[str]:
        """A document's text, cut to the model's limit."""
        content = self.get(doc_id).content
        return [content[span.start : span.end] for span in self.encoder.split(content)]

    def pool(self, asked: Asked, policy: Policy, *, where: Sequence[Condition] = ()) -> Candidates:
        """What a policy is given for a query: candidates, their scores, the constraint's words."""
        constraint, n = asked.constraint, asked.options.pool_size
        words = lexical_query(asked.query, constraint)
        # Conditions come before any cut, and only the store can tell what meets them.
        most = self.store.count() if where else n
        matched = self.lexical.best(words, most) if self.lexical and most else []
        found = self.store.candidates(
            asked.vectors, n=n, spaces=policy.spaces, where=where, also=matched
        )

        def both(scores: Scores) -> Scores:
            return fused_ranks(scores, found.doc_ids, matched)

        pool = against(replace(found, constraint=constraint), asked)
        if self.lexical:
            topic = None if pool.topic is None else both(pool.topic)
            pool = replace(pool, topical=both(pool.topical), cosine=pool.topical, topic=topic)
        if not takes_readings(policy) or not asked.options.depth:
            return pool
        return with_near_duplicates(pool, lambda part: passage_texts(part, self.store.get))

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

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
