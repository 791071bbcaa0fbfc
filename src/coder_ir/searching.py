"""What happens to a pool between the store and the reader: constraint, policy, risk, hits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from coder_ir.calibration import Calibration
from coder_ir.constraints import detect, mention
from coder_ir.errors import InvalidValue
from coder_ir.intake import check_text
from coder_ir.policies import policy_named
from coder_ir.types import (
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
    Verdict,
)

DEFAULT_POLICY = "auto"
Mode = Literal["soft", "hard"]
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

    def __post_init__(self) -> None:
        """Refuse what cannot be searched for."""
        if self.k < 1:
            raise InvalidValue(f"k must be at least 1, got {self.k}")
        if self.n < 1:
            raise InvalidValue(f"the pool must hold at least 1 document, got {self.n}")
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
        if not 0 <= self.max_risk <= 1:
            raise InvalidValue(f"max_risk is a probability from 0 to 1, got {self.max_risk}")

    @property
    def conditions(self) -> list[Condition]:
        """`where` with texts parsed."""
        return [Condition.parse(w) if isinstance(w, str) else w for w in self.where]

    @property
    def chosen_policy(self) -> Policy:
        """`policy` with a name looked up."""
        return policy_named(self.policy) if isinstance(self.policy, str) else self.policy

    def worded(self, query: str) -> str:
        """The query with the explicit constraints put into words, for the compatibility encoder."""
        return query + "".join(
            f", {word} {phrase.strip()}"
            for word, phrases in (("without", self.exclude), ("with", self.require))
            for phrase in phrases
        )


def stated(
    query: str, vector: Floats, calibration: Calibration | None, options: SearchOptions
) -> Constraint:
    """What the query states, and what the options add; `vector` is its topical one."""
    found = detect(query, vector, calibration.detector if calibration else None)
    if not (options.exclude or options.require):
        return replace(found, required=()) if found.required else found
    return Constraint(
        probability=1.0,
        cues=found.cues,
        excluded=(*found.excluded, *options.exclude),
        required=tuple(options.require),
    )


Texts = Callable[[Sequence[str]], list[Document]]


def judged_texts(pool: Candidates, fetch: Texts, mode: Mode) -> list[str]:
    """What a constraint's words are looked for in: each passage, or in hard mode its document."""
    return [
        document.content[passage.span.start : passage.span.end]
        if mode == "soft"
        else document.content
        for document, passage in zip(fetch(pool.doc_ids), pool.passages, strict=True)
    ]


def breaches(constraint: Constraint, texts: Sequence[str]) -> Scores:
    """How far each text goes against the constraint's words, in [0, 1]."""
    return np.array(
        [
            max(
                (
                    *(mention(phrase, text) for phrase in constraint.excluded),
                    *(1 - mention(phrase, text) for phrase in constraint.required),
                ),
                default=0.0,
            )
            for text in texts
        ],
        dtype=np.float64,
    )


def risks(pool: Candidates, calibration: Calibration | None) -> Scores | None:
    """Probability that each passage breaks the constraint; None for a model without calibration."""
    if calibration is None:
        return None
    stated = pool.constraint.probability if pool.constraint else 0.0
    breach = np.zeros(len(pool)) if pool.breach is None else pool.breach
    features = np.stack([pool.topical, pool.compatibility, breach], axis=1)
    return np.asarray(stated * calibration.risk.probability(features))


def decide(policy: Policy, pool: Candidates, options: SearchOptions, risk: Scores | None) -> Order:
    """The policy's order, less what hard mode or the risk limit drops."""
    order = policy.order(pool)
    kept, dropped = [], list(order.dropped)
    for verdict in order.kept:
        if (reason := _objection(verdict.position, pool, options, risk)) is None:
            kept.append(verdict)
        else:
            dropped.append(replace(verdict, reason=reason))
    dropped.sort(key=lambda verdict: (-verdict.score, pool.doc_ids[verdict.position]))
    return Order(kept, dropped)


def _objection(i: int, pool: Candidates, options: SearchOptions, risk: Scores | None) -> str | None:
    if options.mode == "hard" and pool.breach is not None and pool.breach[i] >= _HELD:
        return "Filtered, since it affirms an excluded phrase or lacks a required one."
    if risk is not None and risk[i] > options.max_risk:
        return f"Filtered, since its risk of {risk[i]:.2f} is above {options.max_risk:g}."
    return None


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
    documents = fetch([pool.doc_ids[verdict.position] for verdict in kept])

    def risk_of(verdict: Verdict) -> float | None:
        return None if risk is None else float(risk[verdict.position])

    hits = tuple(
        Hit(
            doc_id=document.doc_id,
            rank=rank,
            score=verdict.score,
            topical=float(pool.topical[verdict.position]),
            compatibility=float(pool.compatibility[verdict.position]),
            risk=risk_of(verdict),
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
            risk=risk_of(verdict),
            reason=verdict.reason,
            passage=pool.passages[verdict.position],
        )
        for verdict in dropped
    )
    return Ranking(query, policy.name, hits, filtered, pool.constraint or Constraint(0.0))


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
