"""What happens to a pool between the store and the reader: constraint, policy, risk, hits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from coder_ir.calibration import Calibration
from coder_ir.conditions import parse_condition
from coder_ir.errors import InvalidValue
from coder_ir.intake import check_text
from coder_ir.mentions import mention
from coder_ir.policies import policy_named
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
)
from coder_ir.vectors import cosine

DEFAULT_POLICY = "auto"
Mode = Literal["soft", "hard"]
_UNRELATED = 0.5  # topical cosine of two texts that have nothing to do with each other
WORTH = 0.03  # cosine that one unit of a verifier's logit counts for
_HELD = 0.5  # share of a phrase's words that counts as holding it, in hard mode


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, apart from the query."""

    k: int = 10  # hits
    policy: str | Policy = DEFAULT_POLICY
    n: int = 100  # documents each space brings to the pool; raised to k where k is larger
    where: Sequence[str | Condition] = ()
    exclude: Sequence[str] = ()  # what no hit should be about
    require: Sequence[str] = ()  # what every hit should be about
    mode: Mode = "soft"  # hard: drop what affirms an excluded or lacks a required phrase
    max_risk: float = 1.0  # drop what breaks the constraint more probably than this
    explain: bool = False  # name the sentence that decided a hit's compatibility
    verify: int = 0  # documents, from the top, to read together with the query

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

    def _check_numbers(self) -> None:
        if self.k < 1:
            raise InvalidValue(f"k must be at least 1, got {self.k}")
        if self.n < 1:
            raise InvalidValue(f"the pool must hold at least 1 document, got {self.n}")
        if self.verify < 0:
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
        return max(self.n, self.k, self.verify)

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
    _ = options.chosen_policy  # an unknown name is refused
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
Read = Callable[[Sequence[int]], Scores]  # positions in a pool to verified compatibility


def affirmed(phrases: Sequence[str], texts: Sequence[str]) -> Scores:
    """How much of each phrase each text affirms in words, in [0, 1]; (texts, phrases)."""
    found = [[mention(phrase, text) for phrase in phrases] for text in texts]
    return np.array(found, dtype=np.float64).reshape(len(texts), len(phrases))


def breaches(
    excluded: Sequence[str],
    required: Sequence[str],
    texts: Sequence[str],
    likeness: Scores,
    *,
    trust: Sequence[float] = (),
) -> Scores:
    """How far each passage goes against the phrases, in [0, 1].

    Half of it is what a passage says in the words of a phrase, half how close its topical vector
    is to the phrase's (`likeness`, cosines; a row a text, a column an excluded, then a required
    phrase): a passage may be about a thing and never name it. An excluded phrase counts only as a
    whole, for half of a name is another name, and as much as it is trusted, by default wholly.
    """
    phrases = [*excluded, *required]
    if not phrases or not texts:
        return np.zeros(len(texts))
    near = np.clip((likeness - _UNRELATED) / (1 - _UNRELATED), 0, 1)
    said, cut = affirmed(phrases, texts), len(excluded)
    said[:, :cut] = np.floor(said[:, :cut])
    about = (said + near) / 2
    about[:, :cut] *= trust or 1.0
    about[:, cut:] = 1 - about[:, cut:]
    return np.asarray(about.max(axis=1))


def against(pool: Candidates, asked: Asked, fetch: Texts) -> Candidates:
    """The pool with what its words and vectors say of the constraint's phrases, if it has any."""
    excluded, required = asked.constraint.excluded, asked.options.require
    trust = asked.constraint.trust
    count = len(excluded) + len(required)
    if not count or not len(pool) or pool.rows is None:
        return pool
    likeness = np.stack([cosine(pool.rows, said) for said in asked.said[:count]], axis=1)
    texts = passage_texts(pool, fetch)
    breach = breaches(excluded, required, texts, likeness, trust=trust)
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


def refused(pool: Candidates, options: SearchOptions, fetch: Texts) -> NDArray[np.bool_]:
    """In hard mode, passages whose document affirms an excluded or lacks a required phrase."""
    if options.mode == "soft":
        return np.zeros(len(pool), dtype=np.bool_)
    texts = [document.content for document in fetch(pool.doc_ids)]
    said, asked = affirmed(options.exclude, texts), affirmed(options.require, texts)
    return np.asarray((said >= _HELD).any(axis=1) | (asked < _HELD).any(axis=1))


def verified(
    pool: Candidates, order: Order, policy: Policy, *, first: int, read: Read
) -> tuple[Candidates, Order]:
    """The first documents of an order, ranked anew by compatibility as a verifier reads it.

    Each is read by its best passage, and these passages are the pool the policy then sees; the
    rest follow as they were.
    """
    best, _ = _by_document(order, pool)
    chosen = sorted(verdict.position for verdict in best[:first])
    if not chosen:
        return pool, order
    compatibility = pool.compatibility.copy()
    compatibility[chosen] = read(chosen)
    known = np.zeros(len(pool), dtype=np.bool_)
    known[chosen] = True
    pool = replace(pool, compatibility=compatibility, verified=known)
    again = policy.order(pool.part(chosen))
    kept, dropped = (
        [replace(verdict, position=chosen[verdict.position]) for verdict in verdicts]
        for verdicts in (again.kept, again.dropped)
    )
    seen = {pool.doc_ids[position] for position in chosen}
    rest = [verdict for verdict in order.kept if pool.doc_ids[verdict.position] not in seen]
    if kept and rest:  # scores fall from the last one read to the first one not
        step = max(0.0, rest[0].score - kept[-1].score)
        rest = [replace(verdict, score=verdict.score - step) for verdict in rest]
    return pool, Order([*kept, *rest], [*dropped, *order.dropped])


def reading(compatibility: Scores, logits: Scores) -> Scores:
    """Compatibility as a verifier sees it, in [-1, 1]: cosines, raised or lowered by its logits."""
    return np.asarray(np.clip(compatibility + WORTH * logits, -1, 1))


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
    if pool.verified is not None:
        fitted = calibration.read_risk
        read = fitted.probability(features) if fitted else risk
        risk = np.where(pool.verified, read, risk)
    return np.asarray(certain * risk)


def decide(
    order: Order,
    pool: Candidates,
    *,
    refused: NDArray[np.bool_],
    risk: Scores | None,
    max_risk: float,
) -> Order:
    """A policy's order, less what hard mode refuses or the risk limit drops."""
    kept, dropped = [], list(order.dropped)
    for verdict in order.kept:
        i = verdict.position
        if refused[i]:
            reason = "Filtered, since it affirms an excluded phrase or lacks a required one."
        elif risk is not None and risk[i] > max_risk:
            reason = f"Filtered, since its risk of {risk[i]:.2f} is above {max_risk:g}."
        else:
            kept.append(verdict)
            continue
        dropped.append(replace(verdict, reason=reason))
    dropped.sort(key=lambda verdict: (-verdict.score, pool.doc_ids[verdict.position]))
    return Order(kept, dropped)


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

    def risk_of(verdict: Verdict) -> float | None:
        return None if risk is None else float(risk[verdict.position])

    hits = tuple(
        Hit(
            doc_id=document.doc_id,
            rank=rank,
            score=verdict.score,
            topical=float(cosine[verdict.position]),
            compatibility=float(pool.compatibility[verdict.position]),
            risk=risk_of(verdict),
            reason=_reason(verdict, pool),
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
            topical=float(cosine[verdict.position]),
            compatibility=float(pool.compatibility[verdict.position]),
            risk=risk_of(verdict),
            reason=_reason(verdict, pool),
            passage=pool.passages[verdict.position],
        )
        for verdict in dropped
    )
    return Ranking(query, policy.name, hits, filtered, pool.constraint or Constraint(0.0))


def _reason(verdict: Verdict, pool: Candidates) -> str:
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
