"""What goes over the wire; the same words as `Ranking` and `SearchOptions`."""

import math
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from coder_ir.conditions import parse_condition
from coder_ir.errors import InvalidValue
from coder_ir.policies import policy_with
from coder_ir.searching import SearchOptions
from coder_ir.serve.batching import Answer, Question
from coder_ir.serve.limits import Limits
from coder_ir.types import (
    Condition,
    Constraint,
    Document,
    Filtered,
    Hit,
    Mark,
    Operator,
    Passage,
    Ranking,
    Reading,
    Role,
)

Scalar = str | int | float | bool | None
EXAMPLE: dict[str, Any] = {
    "query": "a quiet hotel, nothing near nightlife",
    "k": 5,
    "explain": True,
}
FILTERED: dict[str, Any] = {
    "query": "a hotel by the sea",
    "policy": "union",
    "alpha": 0.3,
    "p": 0.1,
    "exclude": ["nightlife"],
    "where": ["year>=2019", {"field": "stars", "operator": "in", "values": [4, 5]}],
}


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class WhereIn(_In):
    """A condition on a metadata field, taken apart."""

    field: str
    operator: Operator
    values: list[Scalar] = Field(min_length=1)


class PoolIn(_In):
    """What to look for, and among which documents."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"query": EXAMPLE["query"]}]},
    )

    query: str = Field(min_length=1, description="What to look for, constraints included.")
    n: int = Field(100, ge=1, description="Documents each space brings to the pool.")
    where: list[str | WhereIn] = Field([], description="Metadata conditions; all must hold.")
    exclude: list[str] = Field([], description="What no hit should be about.")
    require: list[str] = Field([], description="What every hit should be about.")

    def question(self, limits: Limits) -> Question:
        """The search, within the limits."""
        for name, seen, most in self._sizes(limits):
            if seen > most:
                raise InvalidValue(f"{name} is limited to {most} on this server, got {seen}")
        texts = [w for w in self.where if isinstance(w, str)]
        longest = max(map(len, (self.query, *self.exclude, *self.require, *texts)))
        if longest > limits.query_characters:
            raise InvalidValue(
                f"a query, phrase or condition may have {limits.query_characters} characters on "
                f"this server, got {longest}"
            )
        return Question(self.query, self._options(self._conditions(limits)))

    def _sizes(self, limits: Limits) -> list[tuple[str, int, int]]:
        return [
            ("n", self.n, limits.n),
            ("where", len(self.where), limits.phrases),
            ("exclude", len(self.exclude), limits.phrases),
            ("require", len(self.require), limits.phrases),
        ]

    def _conditions(self, limits: Limits) -> list[Condition]:
        where = [
            parse_condition(w)
            if isinstance(w, str)
            else Condition(w.field, w.operator, tuple(w.values))
            for w in self.where
        ]
        most = max((len(condition.values) for condition in where), default=0)
        if most > limits.values:
            raise InvalidValue(
                f"a condition may list {limits.values} values on this server, got {most}"
            )
        return where

    def _options(self, where: list[Condition]) -> SearchOptions:
        return SearchOptions(k=1, n=self.n, where=where, exclude=self.exclude, require=self.require)


class SearchIn(PoolIn):
    """A search: the query and how to answer it."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE, FILTERED]})

    k: int = Field(10, ge=1, description="Number of hits.")
    policy: Literal["auto", "topical", "compatibility", "seq", "union"] = "auto"
    alpha: float | None = Field(
        None, ge=0, le=1, description="Weight of the topical side (seq, union)."
    )
    tau: float | None = Field(None, ge=-1, le=1, description="Least compatibility (seq).")
    p: float | None = Field(None, ge=0, le=1, description="Quantile of the cut (union).")
    mode: Literal["soft", "hard"] = Field("soft", description="hard drops what breaks them.")
    max_risk: float = Field(1.0, ge=0, le=1, description="Drop hits whose risk is above this.")
    verify: int | None = Field(
        None, ge=0, description="First hits that the verifier reads at most; null: 20, 0: none."
    )
    explain: bool = Field(False, description="Name the sentence that decided each hit.")

    def _sizes(self, limits: Limits) -> list[tuple[str, int, int]]:
        more = [("k", self.k, limits.k), ("verify", self.verify or 0, limits.verify)]
        return [*more, *super()._sizes(limits)]

    def _options(self, where: list[Condition]) -> SearchOptions:
        return replace(
            super()._options(where),
            k=self.k,
            policy=policy_with(self.policy, alpha=self.alpha, tau=self.tau, p=self.p),
            mode=self.mode,
            max_risk=self.max_risk,
            explain=self.explain,
            verify=self.verify,
        )


class BatchIn(_In):
    """Several searches, each with settings of its own."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"searches": [EXAMPLE, FILTERED]}]}
    )

    searches: list[SearchIn] = Field(min_length=1)


class PassageOut(BaseModel):
    """The part of a document that earned its place, as characters of title and text."""

    number: int
    start: int
    end: int

    @classmethod
    def of(cls, passage: Passage) -> Self:
        """From the library's."""
        return cls(number=passage.number, start=passage.span.start, end=passage.span.end)


class SpanOut(BaseModel):
    """A part of a text, as characters."""

    start: int
    end: int


class ReadingOut(BaseModel):
    """What a passage says to the query, as probabilities that add up to 1."""

    satisfies: float
    violates: float
    silent: float
    risk: float
    decisive: Annotated[
        SpanOut | None, Field(description="The sentence of the passage that decided it.")
    ]

    @classmethod
    def of(cls, reading: Reading | None) -> Self | None:
        """From the library's."""
        return None if reading is None else cls(**asdict(reading))


class FilteredOut(BaseModel):
    """A candidate that was dropped, and why."""

    doc_id: str
    score: float | None
    topical: float | None
    compatibility: float | None
    risk: float | None
    reason: str
    passage: PassageOut

    @classmethod
    def of(cls, gone: Filtered) -> Self:
        """From the library's."""
        return cls(**_scores(gone), reason=gone.reason, passage=PassageOut.of(gone.passage))


class HitOut(FilteredOut):
    """One document of a ranking; missing scores are null."""

    rank: int
    text: str
    title: str
    metadata: dict[str, Any]
    decisive: Annotated[str, Field(description="The sentence that decided it, where one is known.")]
    scoring: Annotated[str, Field(description="How the score came about.")]
    reading: Annotated[
        ReadingOut | None, Field(description="What the verifier read; null: it was not read.")
    ]

    @classmethod
    def of(cls, hit: Hit) -> Self:  # type: ignore[override]
        """From the library's."""
        return cls(
            **_scores(hit),
            rank=hit.rank,
            reason=hit.reason,
            passage=PassageOut.of(hit.passage),
            text=hit.text,
            title=hit.title,
            metadata=dict(hit.metadata),
            decisive=hit.decisive,
            scoring=hit.scoring,
            reading=ReadingOut.of(hit.reading),
        )


def _scores(one: Hit | Filtered) -> dict[str, Any]:
    """What both lists tell of a document; JSON has no NaN."""
    names = ("score", "topical", "compatibility", "risk")
    found = {name: getattr(one, name) for name in names}
    real = {k: v if v is not None and math.isfinite(v) else None for k, v in found.items()}
    return {"doc_id": one.doc_id, **real}


class MarkOut(BaseModel):
    """A part of the query that says something of its constraint."""

    start: int
    end: int
    role: Role
    text: str
    names: Annotated[list[str], Field(description="What an implied mark rules out.")]
    probability: float

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """From the library's."""
        return cls(
            start=mark.span.start,
            end=mark.span.end,
            role=mark.role,
            text=mark.text,
            names=list(mark.names),
            probability=mark.probability,
        )


class ConstraintOut(BaseModel):
    """What the query was understood to rule out or insist on."""

    probability: float
    excluded: list[str]
    required: list[str]
    topic: Annotated[str, Field(description="The query less what it rules out; may be empty.")]
    spans: Annotated[list[MarkOut], Field(description="Parts of the query, in order.")]

    @classmethod
    def of(cls, stated: Constraint) -> Self:
        """From the library's."""
        return cls(
            probability=stated.probability,
            excluded=list(stated.excluded),
            required=list(stated.required),
            topic=stated.topic,
            spans=[MarkOut.of(mark) for mark in stated.marks],
        )


class TimingOut(BaseModel):
    """Where the time went, in milliseconds."""

    queued: float
    encode: float
    search: float
    total: float


class SearchOut(BaseModel):
    """What a search found."""

    hits: list[HitOut]
    filtered: list[FilteredOut]
    constraint: ConstraintOut
    timing: TimingOut

    @classmethod
    def of(cls, answer: Answer[Ranking]) -> Self:
        """From the library's."""
        ranking = answer.value
        return cls(
            hits=[HitOut.of(hit) for hit in ranking],
            filtered=[FilteredOut.of(gone) for gone in ranking.filtered],
            constraint=ConstraintOut.of(ranking.constraint),
            timing=TimingOut(**{k: round(v, 3) for k, v in asdict(answer.timing).items()}),
        )


class BatchOut(BaseModel):
    """One answer a search, in the order asked."""

    results: list[SearchOut]


class DocumentOut(BaseModel):
    """A document as it was written."""

    doc_id: str
    text: str
    title: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, document: Document) -> Self:
        """From the library's."""
        return cls(
            doc_id=document.doc_id,
            text=document.text,
            title=document.title,
            metadata=dict(document.metadata),
        )


class AddedOut(BaseModel):
    """What an upload did; all of it is committed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"written": 2, "unchanged": 0}]})

    written: int
    unchanged: int


class DeletedOut(BaseModel):
    """How many documents a removal removed."""

    deleted: int


class StatusOut(BaseModel):
    """How the server is."""

    status: str


class ModelOut(BaseModel):
    """The model that queries are encoded with."""

    spec: str
    fingerprint: str


class SettingsOut(BaseModel):
    """How this server answers."""

    policy: str
    policies: Annotated[
        dict[str, dict[str, Any]], Field(description="Every policy with its default settings.")
    ]
    stated: Annotated[float, Field(description="Probability from which a constraint counts.")]
    examples: Annotated[list[str], Field(description="Queries that this index can answer well.")]
    hybrid: bool
    calibrated: bool
    read_only: bool
    reason: str
    limits: dict[str, float]


class IndexOut(BaseModel):
    """The index behind this server."""

    documents: int
    version: str
    model: ModelOut
    settings: SettingsOut


class ErrorBody(BaseModel):
    """What went wrong and what to do."""

    code: str
    message: str
    advice: str
    request_id: str
    details: Annotated[
        dict[str, int] | None,
        Field(description="Of an upload that stopped: line, written, unchanged."),
    ] = None


class ErrorOut(BaseModel):
    """The one shape of every error."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "invalid_value",
                        "message": "k is limited to 100 on this server, got 5000",
                        "advice": "Compare the request with the description at /openapi.json.",
                        "request_id": "0c1f7f3e5bb84e7c9d6a2b1f",
                    }
                }
            ]
        }
    )

    error: ErrorBody
