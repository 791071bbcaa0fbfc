"""What happens to a pool between the store and the hits: constraint, risk, filters, ranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from coder_ir.calibration import Calibration
from coder_ir.conditions import parse_condition
from coder_ir.errors import InvalidValue
from coder_ir.intake import check_text
from coder_ir.policies import policy_named
from coder_ir.search.reasons import decisive_sentence, reason_of
from coder_ir.search.verify import DEPTH, takes_readings
from coder_ir.types import (
    STATED,
    Candidates,
    Condition,
    Constraint,
    Document,
    Filtered,
    Floats,
    Hit,
    Order,
    Policy,
    Ranking,
    Scores,
    VectorPair,
    Verdict,
    Verifier,
)
from coder_ir.vectors import cosine

DEFAULT_POLICY = "auto"
Mode = Literal["soft", "hard"]
_UNRELATED = 0.5  # topical cosine of two texts that have nothing to do with each other
_SAID = 0.5  # probability from which a passage counts as saying so, in hard mode


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, apart from the query."""

    k: int = 10  # hits
    policy: str | Policy = DEFAULT_POLICY
    n: int = 100  # documents each space brings to the pool; raised to k and to verify
    where: Sequence[str | Condition] = ()
    exclude: Sequence[str] = ()  # what no hit should be about
    require: Sequence[str] = ()  # what every hit should be about
    mode: Mode = "soft"  # hard: drop what affirms an excluded or lacks a required phrase
    max_risk: float = 1.0  # drop hits whose risk is above this
    explain: bool = False  # name the sentence that decided each hit, read or not
    verify: int | None = None  # documents a verifier reads at most; None: 20; 0: none

    def __post_init__(self) -> None:
        """Refuse what cannot be searched for."""
        self._check_numbers()
        for name in ("where", "exclude", "require"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise InvalidValue(f"{name} takes a list, got the text {value!r}")
        for phrase in (*self.exclude, *self.require):
            if not isinstance(phrase, str) or not phrase.strip():
                raise InvalidValue(f"exclude and require take phrases, got {phrase!r}")
            check_text(phrase, "a phrase to exclude or require")
        if self.mode not in ("soft", "hard"):
            raise InvalidValue(f"mode must be soft or hard, got {self.mode!r}")
        if self.mode == "hard" and not (self.exclude or self.require):
            raise InvalidValue("mode hard needs something to exclude or require")
        if self.mode == "hard" and self.verify == 0:
            raise InvalidValue("mode hard has passages read, which verify=0 switches off")

    def _check_numbers(self) -> None:
        if self.k < 1:
            raise InvalidValue(f"k must be at least 1, got {self.k}")
        if self.n < 1:
            raise InvalidValue(f"the pool must hold at least 1 document, got {self.n}")
        if self.verify is not None and self.verify < 0:
            raise InvalidValue(f"verify must not be negative, got {self.verify}")
        if not 0 <= self.max_risk <= 1:
            raise InvalidValue(f"max_risk is a probability from 0 to 1, got {self.max_risk}")

    @property
    def conditions(self) -> list[Condition]:
        """`where` with texts parsed."""
        return [parse_condition(w) if isinstance(w, str) else w for w in self.where]

    @property
    def chosen_policy(self) -> Policy:
        """`policy` with a name looked up."""
        return policy_named(self.policy) if isinstance(self.policy, str) else self.policy

    @property
    def pool_size(self) -> int:
        """Documents each space has to bring."""
        return max(self.n, self.k, self.verify or 0)

    @property
    def depth(self) -> int:
        """Documents that a verifier reads, at most."""
        return DEPTH if self.verify is None else self.verify

    def worded(self, query: str) -> str:
        """The query with the explicit constraints put into words, for the compatibility encoder."""
        return query + "".join(
            f", {word} {phrase.strip()}"
            for word, phrases in (("without", self.exclude), ("with", self.require))
            for phrase in phrases
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A query on its way: read and encoded, not yet ranked."""

    query: str
    options: SearchOptions
    vectors: VectorPair  # one row each; explicit constraints are in the compatibility one
    constraint: Constraint
    said: Floats  # topical rows of `phrases`

    @property
    def phrases(self) -> list[str]:
        """What passages are compared with: what is ruled out, what options require, the topic."""
        held = [*self.constraint.excluded, *self.options.require]
        return [*held, *filter(None, [self.constraint.topic])] if held else []


def check_query(query: str, options: SearchOptions, place: str) -> None:
    """Refuse an empty query, an unknown policy and conditions that cannot be read."""
    if not query.strip():
        raise InvalidValue(f"{place} is empty; say what to look for")
    check_text(query, place)
    policy = options.chosen_policy  # an unknown name is refused
    if options.verify and not takes_readings(policy):
        raise InvalidValue(
            f"policy {policy.name} takes no account of a verifier's word; leave verify out, or use "
            "policy auto"
        )
    for condition in options.conditions:
        for part in (condition.field, *condition.values):
            if isinstance(part, str):
                check_text(part, f"a part of the condition on {condition.field!r}")


class Asks(Protocol):
    """What answers several queries under one set of options."""

    def search_many(self, queries: Sequence[str], options: SearchOptions) -> list[Ranking]:
        """One ranking a query."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A retriever that is always asked in one way."""

    retriever: Asks
    options: SearchOptions

    def search(self, query: str, k: int = 10) -> Ranking:
        """The ranking under those options."""
        return self.retriever.search_many([query], replace(self.options, k=k))[0]


def stated(parsed: Constraint, options: SearchOptions) -> Constraint:
    """What the query states, and what the options add to it for certain."""
    explicit = bool(options.exclude or options.require)
    return replace(
        parsed,
        probability=1.0 if explicit else parsed.probability,
        excluded=(*parsed.excluded, *options.exclude),
        required=(*parsed.required, *options.require),
    )


Texts = Callable[[Sequence[str]], list[Document]]
Parts = Callable[[str], list[str]]  # the id of a document to its text, cut to a model's limit


def breaches(excluded: Sequence[str], likeness: Scores, *, trust: Sequence[float] = ()) -> Scores:
    """How far each passage goes against the phrases, in [0, 1].

    It is how close its topical vector is to a phrase's (`likeness`, cosines; a row a text, a column
    an excluded, then a required phrase). An excluded phrase counts as much as it is trusted, by
    default wholly.
    """
    cut = len(excluded)
    if not likeness.size:
        return np.zeros(len(likeness))
    about = np.clip((likeness - _UNRELATED) / (1 - _UNRELATED), 0, 1)
    about[:, :cut] *= trust or 1.0
    about[:, cut:] = 1 - about[:, cut:]
    return np.asarray(about.max(axis=1))


def against(pool: Candidates, asked: Asked) -> Candidates:
    """The pool with what its vectors say of the constraint's phrases, if it has any."""
    excluded, required = asked.constraint.excluded, asked.options.require
    trust = asked.constraint.trust
    count = len(excluded) + len(required)
    if not count or not len(pool) or pool.rows is None:
        return pool
    likeness = np.stack([cosine(pool.rows, said) for said in asked.said[:count]], axis=1)
    breach = breaches(excluded, likeness, trust=trust)
    topic = None
    if asked.constraint.topic:
        most = max(trust, default=1.0)
        topic = most * cosine(pool.rows, asked.said[-1]) + (1 - most) * pool.topical
    return replace(pool, breach=breach, topic=topic)


def passage_texts(pool: Candidates, fetch: Texts) -> list[str]:
    """The words of each passage of the pool."""
    return [
        document.content[passage.span.start : passage.span.end]
        for document, passage in zip(fetch(pool.doc_ids), pool.passages, strict=True)
    ]


def hard_checked(
    order: Order, pool: Candidates, options: SearchOptions, verifier: Verifier, parts: Parts
) -> Order:
    """An order with only documents that keep to the explicit phrases, read from the top.

    A document is dropped if a part of it affirms an excluded phrase or no part affirms a required
    one. Reading stops at k documents that pass; what comes after them is left out, unread.
    """
    passed: dict[str, bool] = {}
    kept, dropped = [], list(order.dropped)
    for verdict in order.kept:
        doc_id = pool.doc_ids[verdict.position]
        if doc_id not in passed:
            if sum(passed.values()) == options.k:
                break
            passed[doc_id] = _passes(parts(doc_id), options, verifier)
        if passed[doc_id]:
            kept.append(verdict)
        else:
            reason = "Filtered, since it affirms an excluded phrase or lacks a required one."
            dropped.append(replace(verdict, reason=reason))
    return Order(kept, _best_first(dropped, pool))


def _passes(parts: Sequence[str], options: SearchOptions, verifier: Verifier) -> bool:
    """Whether no part affirms an excluded phrase and each required one is affirmed by a part."""
    for phrase in options.exclude:
        if any(said.violates >= _SAID for said in verifier.read(f"without {phrase}", parts)):
            return False
    return all(
        any(said.satisfies >= _SAID for said in verifier.read(f"with {phrase}", parts))
        for phrase in options.require
    )


def risks(pool: Candidates, calibration: Calibration | None) -> Scores | None:
    """Probability that each passage breaks the constraint; None for a model without calibration.

    Below STATED the query may well have no constraint to break, and the risk falls to 0 with it.
    """
    if calibration is None:
        return None
    stated = pool.constraint.probability if pool.constraint else 0.0
    certain = min(1.0, stated / STATED)
    breach = np.zeros(len(pool)) if pool.breach is None else pool.breach
    topical = pool.topical if pool.cosine is None else pool.cosine
    features = np.stack([topical, pool.compatibility, breach], axis=1)
    risk = calibration.risk.probability(features)
    for i, reading in enumerate(pool.readings):
        risk[i] = risk[i] if reading is None else reading.risk
    return np.asarray(certain * risk)


def decide(
    order: Order,
    pool: Candidates,
    *,
    risk: Scores | None,
    max_risk: float,
) -> Order:
    """A policy's order, less what the risk limit drops."""
    kept, dropped = [], list(order.dropped)
    for verdict in order.kept:
        i = verdict.position
        if risk is not None and risk[i] > max_risk:
            reason = f"Filtered, since its risk of {risk[i]:.2f} is above {max_risk:g}."
            dropped.append(replace(verdict, reason=reason))
        else:
            kept.append(verdict)
    return Order(kept, _best_first(dropped, pool))


def _best_first(verdicts: Sequence[Verdict], pool: Candidates) -> list[Verdict]:
    """By falling score, then by ascending id."""
    return sorted(verdicts, key=lambda one: (-one.score, pool.doc_ids[one.position]))


def assemble(
    query: str,
    policy: Policy,
    pool: Candidates,
    order: Order,
    *,
    k: int,
    risk: Scores | None,
    fetch: Texts,
) -> Ranking:
    """Hits and filtered documents, each by its best passage."""
    kept, dropped = _by_document(order, pool)
    kept = kept[:k]
    cosine = pool.topical if pool.cosine is None else pool.cosine
    documents = fetch([pool.doc_ids[verdict.position] for verdict in kept])

    def hit_of(rank: int, verdict: Verdict, document: Document) -> Hit:
        passage = pool.passages[verdict.position]
        reading = pool.readings[verdict.position] if pool.readings else None
        decisive = decisive_sentence(reading, document.content, passage.span)
        told = takes_readings(policy)
        return Hit(
            doc_id=document.doc_id,
            rank=rank,
            score=verdict.score,
            topical=float(cosine[verdict.position]),
            compatibility=float(pool.compatibility[verdict.position]),
            risk=risk_of(verdict),
            reason=reason_of(reading, pool.constraint, decisive) if told else verdict.reason,
            text=document.text,
            title=document.title,
            metadata=document.metadata,
            passage=passage,
            decisive=decisive,
            scoring=_scoring(verdict, pool),
            reading=reading,
        )

    def risk_of(verdict: Verdict) -> float | None:
        return None if risk is None else float(risk[verdict.position])

    hits = tuple(
        hit_of(rank, verdict, document)
        for rank, (verdict, document) in enumerate(zip(kept, documents, strict=True), 1)
    )
    filtered = tuple(
        Filtered(
            doc_id=pool.doc_ids[verdict.position],
            score=verdict.score,
            topical=float(cosine[verdict.position]),
            compatibility=float(pool.compatibility[verdict.position]),
            risk=risk_of(verdict),
            reason=_scoring(verdict, pool),
            passage=pool.passages[verdict.position],
        )
        for verdict in dropped
    )
    return Ranking(query, policy.name, hits, filtered, pool.constraint or Constraint(0.0))


def _scoring(verdict: Verdict, pool: Candidates) -> str:
    """The policy's reason, and where its topical score comes from if words had a part in it."""
    if pool.cosine is None:
        return verdict.reason
    true, used = pool.cosine[verdict.position], pool.topical[verdict.position]
    return (
        f"{verdict.reason} Topical: cosine {true:.3f}, taken as {used:.3f} after words and vectors."
    )


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
