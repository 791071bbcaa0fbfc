"""The values that cross files, all frozen, and the protocols at the seams."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, get_args, overload

import numpy as np
from numpy.typing import NDArray

from coder_ir.errors import InvalidValue

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
Kind = Literal["query", "document"]
Space = Literal["topical", "compatibility"]
Progress = Callable[[int], None]  # called with the number of texts done since the last call
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
UNSCORED = math.nan
"""Score that a searcher does not have; not a number, so no comparison with it holds."""


@dataclass(frozen=True, slots=True)
class Document:
    """One thing to find; `content` is what gets encoded."""

    doc_id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Title and text joined by a space, as BEIR does."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a batch."""

    query_id: str
    text: str


SATISFYING, NEUTRAL, VIOLATING = 2, 1, -1
"""Grades of the evidence labels in one qrels file; BEIR grades stand as they are."""


@dataclass(frozen=True, slots=True)
class Qrels:
    """Judgements: query id to document id to grade."""

    grades: Mapping[str, Mapping[str, int]]

    def __len__(self) -> int:
        """Number of judged queries."""
        return len(self.grades)


@dataclass(frozen=True, slots=True)
class Triplet:
    """A query with a passage that satisfies it and one that violates it."""

    query: str
    satisfying: str
    violating: str
    group: str  # triplets of one group share passages or topic; they never straddle a split
    source: str
    licence: str


Role = Literal["cue", "excluded", "required", "implied"]
"""A word that announces a constraint, what it rules out, what it asks for, and a word that rules
out what it does not name (`coeliac`)."""
_ARTICLE = re.compile(r"(?:an?|the)\s+(?=\S)", re.IGNORECASE)
STATED = 0.5  # probability from which a query is taken for one with a constraint
SentenceKind = Literal["constraint", "plain", "claim", "narration"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, as character positions."""

    start: int
    end: int  # exclusive


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a query that says something of its constraint."""

    span: Span
    role: Role
    text: str
    names: tuple[str, ...] = ()  # what an implied mark rules out
    probability: float = 1.0  # that the words have this role, in [0, 1]

    @property
    def excluded(self) -> tuple[str, ...]:
        """What it rules out, without an article in front, which says nothing of it."""
        bare = self.text[match.end() :] if (match := _ARTICLE.match(self.text)) else self.text
        return (bare,) if self.role == "excluded" else self.names


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a query and what it does."""

    span: Span
    kind: SentenceKind
    probability: float  # that it asks under a constraint, in [0, 1]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a query rules out or insists on."""

    probability: float  # that it states a constraint at all, in [0, 1]
    excluded: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    topic: str = ""  # the query without the words that rule something out; "": the query itself
    marks: tuple[Mark, ...] = ()  # parts of the query, in order; phrases of options have none
    sentences: tuple[Sentence, ...] = ()

    @property
    def stated(self) -> bool:
        """Whether the query is taken for one with a constraint."""
        return self.probability >= STATED

    @property
    def cues(self) -> tuple[str, ...]:
        """The words that announce the constraint."""
        return tuple(mark.text for mark in self.marks if mark.role == "cue")

    @property
    def trust(self) -> tuple[float, ...]:
        """How much each excluded phrase counts, in [0, 1]; one of an option counts wholly.

        Of marks with probability p about 2p - 1 were right on held-out queries.
        """
        surest: dict[str, float] = {}
        for mark in self.marks:
            for phrase in mark.excluded:
                surest[phrase] = max(surest.get(phrase, 0.0), 2 * mark.probability - 1)
        return tuple(surest.get(phrase, 1.0) for phrase in self.excluded)


@dataclass(frozen=True, slots=True)
class VectorPair:
    """The same texts in both spaces; rows are unit vectors."""

    topical: Floats  # (n_texts, topical dimensions)
    compatibility: Floats  # (n_texts, compatibility dimensions)

    def space(self, name: Space) -> Floats:
        """The rows of one space."""
        return self.topical if name == "topical" else self.compatibility


@dataclass(frozen=True, slots=True)
class Record:
    """What a store keeps of one document."""

    document: Document
    digest: str  # changes when the document or the way it is split changes
    spans: Sequence[Span]  # at least one
    vectors: VectorPair  # one row a span


@dataclass(frozen=True, slots=True)
class ModelStamp:
    """The model an index was built with."""

    fingerprint: str
    spec: str  # what to pass as `model=` to load it again


@dataclass(frozen=True, slots=True)
class Passage:
    """The part of a document that earned its place."""

    number: int  # 0 is the first passage of its document
    span: Span


@dataclass(frozen=True, slots=True)
class Reading:
    """What a passage says to a query, as a verifier reads it; the first three add up to 1."""

    satisfies: float  # probability, in [0, 1]
    violates: float  # probability, in [0, 1]
    silent: float  # probability, in [0, 1]
    risk: float  # calibrated probability that it breaks the query's constraint, in [0, 1]
    decisive: Span | None = None  # the sentence of the passage that decided it


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pool a policy ranks, sorted by ascending document id, then passage number."""

    doc_ids: Sequence[str]
    passages: Sequence[Passage]
    topical: Scores  # cosine, in [-1, 1]
    compatibility: Scores  # cosine, in [-1, 1]
    constraint: Constraint | None = None  # what the query states; None: nobody looked
    topic: Scores | None = None  # cosine with the query less what it rules out, in [-1, 1]
    breach: Scores | None = None  # in [0, 1]: how far a passage goes against the words ruled out
    rows: Floats | None = None  # (n, dimensions) topical vectors of the passages
    cosine: Scores | None = None  # the true topical ones, where `topical` is fused with words
    near_duplicates: tuple[tuple[int, int], ...] = ()  # positions, in pairs
    readings: Sequence[Reading | None] = ()  # what a verifier read of each; empty: of none

    def __len__(self) -> int:
        """Number of passages in the pool."""
        return len(self.doc_ids)

    def part(self, positions: Sequence[int]) -> Self:
        """The passages at some positions, in that order."""
        new = {old: number for number, old in enumerate(positions)}

        def at(values: NDArray[Any] | None) -> Any:
            return None if values is None else values[list(positions)]

        pairs = ((new.get(i), new.get(j)) for i, j in self.near_duplicates)
        arrays = ("topical", "compatibility", "topic", "breach", "rows", "cosine")
        return replace(
            self,
            doc_ids=[self.doc_ids[i] for i in positions],
            passages=[self.passages[i] for i in positions],
            near_duplicates=tuple((i, j) for i, j in pairs if i is not None and j is not None),
            readings=[self.readings[i] for i in positions] if self.readings else (),
            **{name: at(getattr(self, name)) for name in arrays},
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of one candidate."""

    position: int  # in the pool
    score: float  # higher is better
    reason: str  # one sentence a reader can check against the two scores


@dataclass(frozen=True, slots=True)
class Order:
    """A policy's answer: every position of the pool once, in one of the two lists."""

    kept: Sequence[Verdict]  # best first
    dropped: Sequence[Verdict] = ()  # best first


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a ranking."""

    doc_id: str
    rank: int  # 1 is best
    score: float  # the policy's score, higher is better
    topical: float  # cosine with what the query asks for, in [-1, 1], or UNSCORED
    compatibility: float  # cosine with what the query permits, in [-1, 1], or UNSCORED
    risk: float | None  # probability that it breaks the constraint; None: model not calibrated
    reason: str  # one sentence for people, which quotes what decided
    text: str
    title: str
    metadata: Mapping[str, Json]
    passage: Passage
    decisive: str = ""  # the sentence that decided, where a verifier read it or it was asked for
    scoring: str = ""  # how its score came about, to be checked against the two scores
    reading: Reading | None = None  # None: no verifier has read it

    @property
    def passage_text(self) -> str:
        """The words of the passage that earned the rank."""
        content = Document(self.doc_id, self.text, self.title).content
        return content[self.passage.span.start : self.passage.span.end]


@dataclass(frozen=True, slots=True)
class Filtered:
    """A candidate that the policy dropped."""

    doc_id: str
    score: float  # what the policy's ranking would have used
    topical: float  # cosine, in [-1, 1]
    compatibility: float  # cosine, in [-1, 1]
    risk: float | None
    reason: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Ranking(Sequence[Hit]):
    """Hits in order; reads like a list of them. `filtered` is what the policy dropped."""

    query: str
    policy: str
    hits: tuple[Hit, ...]
    filtered: tuple[Filtered, ...]
    constraint: Constraint

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        """The hit at a position (0 is the best), or a slice of hits."""
        return self.hits[index]

    def __len__(self) -> int:
        """Number of hits."""
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        """Hits, best first."""
        return iter(self.hits)


Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one metadata field; a list-valued field passes when one of its items does."""

    field: str
    operator: Operator
    values: tuple[Json, ...]  # exactly one, but for `in`

    def __post_init__(self) -> None:
        """Refuse what no store could answer."""
        if self.operator not in get_args(Operator):
            known = ", ".join(get_args(Operator))
            raise InvalidValue(f"a condition's operator is one of {known}, got {self.operator!r}")
        if not self.field or '"' in self.field or "\0" in self.field:
            raise InvalidValue(f"a metadata field needs a name without quotes, got {self.field!r}")
        if not self.values or (self.operator != "in" and len(self.values) != 1):
            raise InvalidValue(f"{self.field} {self.operator} needs a value, got {self.values!r}")
        if self.operator in ("<", "<=", ">", ">="):
            for value in self.values:
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise InvalidValue(
                        f"{self.field} {self.operator} compares numbers, got {value!r}"
                    )


class QueryParser(Protocol):
    """Queries to what they rule out and require."""

    def parse(self, queries: Sequence[str]) -> list[Constraint]:
        """The constraint that each query states."""


class Encoder(Protocol):
    """Texts to their two unit vectors."""

    @property
    def fingerprint(self) -> str:
        """Equal for two encoders exactly when their vectors may share an index."""

    @property
    def spec(self) -> str:
        """What to pass as `model=` to get this encoder again."""

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        """Unit rows in the order of `texts`; texts past the model's limit are truncated."""

    def split(self, text: str) -> list[Span]:
        """Spans that together cover the text and that each fit the model's limit."""


class Verifier(Protocol):
    """Reads a query and a passage together; slower than two vectors."""

    def read(self, query: str, passages: Sequence[str]) -> list[Reading]:
        """What each passage says to the query."""


class Lexical(Protocol):
    """Documents by the words they share with a query."""

    def best(self, query: str, n: int) -> list[str]:
        """Ids of the n documents that share most, best first; those that share nothing are out."""

    def refresh(self) -> None:
        """Take in what has changed now rather than at the next search."""


class Store(Protocol):
    """Documents with two vectors a passage; knows no encoder."""

    def write(self, records: Sequence[Record]) -> None:
        """Insert or replace, all or nothing."""

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove those present; returns how many were."""

    def get(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; an unknown id is an error."""

    def digests(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """Digest of each of these documents that is present."""

    def count(self) -> int:
        """Number of documents."""

    def candidates(
        self,
        query: VectorPair,
        *,
        n: int,
        spaces: Sequence[Space],
        where: Sequence[Condition] = (),
        also: Sequence[str] = (),
    ) -> Candidates:
        """The best passages of the n best documents of each space, scored in both.

        `where` limits the documents considered, before any cut. Ties go by ascending id. `also`
        names documents, best first; the first n of them that meet `where` join, each by its best
        topical passage.
        """

    def documents(self) -> Iterator[Document]:
        """All documents, in ascending order of id."""

    def state(self) -> str:
        """Differs from every earlier one as soon as a document was written or removed."""

    def stamp(self) -> ModelStamp | None:
        """The model the vectors come from; None before the first `set_stamp`."""

    def set_stamp(self, stamp: ModelStamp) -> None:
        """Record the model, once, before the first write."""

    def compact(self) -> None:
        """Give back the space that deleted documents took."""

    def close(self) -> None:
        """Release files; further calls fail."""


class Policy(Protocol):
    """Two score vectors to an order with reasons."""

    @property
    def name(self) -> str:
        """What rankings and tables call it."""

    @property
    def spaces(self) -> Sequence[Space]:
        """The spaces whose best documents form the pool."""

    def order(self, pool: Candidates) -> Order:
        """Keep or drop each candidate and sort what is kept, best first."""


class Searcher(Protocol):
    """Anything that answers a query with a ranking."""

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits, best first."""
