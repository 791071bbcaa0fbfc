"""The pool behind a ranking, with all that a policy needs to rank it elsewhere."""

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field

from coder_ir.policies import Auto, Union
from coder_ir.retriever import Retriever
from coder_ir.searching import Asked, passage_texts, risks
from coder_ir.serve.schemas import ConstraintOut, PassageOut, ReadingOut
from coder_ir.text import EMPTY_WORDS, stem_of, words_of
from coder_ir.types import Candidates, Reading, Scores


class CandidateOut(BaseModel):
    """One passage of the pool."""

    doc_id: str
    title: str
    text: Annotated[str, Field(description="The passage, not the whole document.")]
    passage: PassageOut
    topical: float
    compatibility: float
    cosine: Annotated[
        float, Field(description="The true topical one, where `topical` is fused with words.")
    ]
    topic: Annotated[
        float | None, Field(description="Topical score of the query less what it rules out.")
    ]
    breach: Annotated[
        float | None, Field(description="How far it goes against the words ruled out, in [0, 1].")
    ]
    risk: float | None
    unread_risk: Annotated[
        float | None, Field(description="The risk for policies that use no readings.")
    ]
    reading: Annotated[
        ReadingOut | None, Field(description="What the verifier read; null: it was not read.")
    ]
    near_duplicates: Annotated[list[int], Field(description="Positions of its near-duplicates.")]


class PoolOut(BaseModel):
    """Candidates of both spaces, by ascending document id; a policy is yet to rank them."""

    candidates: list[CandidateOut]
    constraint: ConstraintOut
    words: Annotated[
        list[str], Field(description="Words of these passages that the constraint's phrases name.")
    ]


def pool_of(retriever: Retriever, asked: Asked) -> PoolOut:
    """The n best documents of each space for a query, those read that `auto` has read."""
    pool = _read_as_auto(retriever, asked)
    documents = retriever.store.get(pool.doc_ids)
    texts = passage_texts(pool, lambda _: documents)
    risk = risks(pool, retriever.calibration)
    unread_risk = risks(replace(pool, readings=()), retriever.calibration)
    cosine = pool.topical if pool.cosine is None else pool.cosine
    doubles = _near_duplicates(pool)
    candidates = [
        CandidateOut(
            doc_id=document.doc_id,
            title=document.title,
            text=texts[i],
            passage=PassageOut.of(pool.passages[i]),
            topical=float(pool.topical[i]),
            compatibility=float(pool.compatibility[i]),
            cosine=float(cosine[i]),
            topic=_at(pool.topic, i),
            breach=_at(pool.breach, i),
            risk=_at(risk, i),
            unread_risk=_at(unread_risk, i),
            reading=ReadingOut.of(pool.readings[i] if pool.readings else None),
            near_duplicates=doubles[i],
        )
        for i, document in enumerate(documents)
    ]
    constraint = ConstraintOut.of(asked.constraint)
    return PoolOut(
        candidates=candidates,
        constraint=constraint,
        words=_named(asked.constraint.excluded, texts),
    )


def _at(scores: Scores | None, i: int) -> float | None:
    return None if scores is None else float(scores[i])


def _read_as_auto(retriever: Retriever, asked: Asked) -> Candidates:
    """Candidates for every policy, with near-duplicates and readings as `auto` finds them."""
    where = asked.options.conditions
    asked = replace(asked, options=replace(asked.options, policy=Auto()))
    read, _ = retriever.verified(asked, retriever.pool(asked, Auto(), where=where))
    pool = retriever.pool(asked, Union(), where=where)
    place = {key: i for i, key in enumerate(_keys(pool))}
    readings: list[Reading | None] = [None] * len(pool)
    known = _keys(read)
    for key, reading in zip(known, read.readings, strict=False):
        readings[place[key]] = reading
    pairs = tuple((place[known[i]], place[known[j]]) for i, j in read.near_duplicates)
    return replace(pool, readings=readings, near_duplicates=pairs)


def _keys(pool: Candidates) -> list[tuple[str, int]]:
    numbers = (passage.number for passage in pool.passages)
    return list(zip(pool.doc_ids, numbers, strict=True))


def _near_duplicates(pool: Candidates) -> list[list[int]]:
    """Positions of each passage's near-duplicates."""
    found: list[list[int]] = [[] for _ in range(len(pool))]
    for i, j in pool.near_duplicates:
        found[i].append(j)
        found[j].append(i)
    return found


def _named(phrases: tuple[str, ...], texts: list[str]) -> list[str]:
    """Words of the texts, in lower case, that are forms of a phrase's content words."""
    wanted = {stem_of(word) for phrase in phrases for word in words_of(phrase)} - EMPTY_WORDS
    return sorted({word for text in texts for word in words_of(text) if stem_of(word) in wanted})
