"""The pool behind a ranking, with all that a policy needs to rank it elsewhere."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from coder_ir.mentions import EMPTY_WORDS, stem_of, words_of
from coder_ir.policies import Auto, Union
from coder_ir.retriever import Retriever
from coder_ir.searching import Asked, passage_texts, risks
from coder_ir.serve.schemas import ConstraintOut, PassageOut
from coder_ir.types import Candidates, Scores


@dataclass(frozen=True)
class _ForAny(Union):
    """Brings candidates for every policy, and reads near-copies as `auto` wants them read."""

    twin: float = Auto().twin


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
    apart: Annotated[
        float | None, Field(description="Compatibility of what a near-copy does not say, if read.")
    ]
    copies: Annotated[list[int], Field(description="Positions of its near-copies, and its own.")]


class PoolOut(BaseModel):
    """Candidates of both spaces, by ascending document id; a policy is yet to rank them."""

    candidates: list[CandidateOut]
    constraint: ConstraintOut
    words: Annotated[
        list[str], Field(description="Words of these passages that the constraint's phrases name.")
    ]


def pool_of(retriever: Retriever, asked: Asked) -> PoolOut:
    """The n best documents of each space for a query."""
    pool = retriever.pool(asked, _ForAny(), where=asked.options.conditions)
    documents = retriever.store.get(pool.doc_ids)
    texts = passage_texts(pool, lambda _: documents)
    risk = risks(pool, retriever.calibration)
    cosine = pool.topical if pool.cosine is None else pool.cosine
    copies = _near_copies(pool)
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
            apart=_at(pool.apart, i),
            copies=copies[i],
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
    return None if scores is None or np.isnan(scores[i]) else float(scores[i])


def _near_copies(pool: Candidates) -> list[list[int]]:
    """Positions of each passage's near-copies, and its own."""
    found = [[i] for i in range(len(pool))]
    for i, j in pool.copies:
        found[i].append(j)
        found[j].append(i)
    return found


def _named(phrases: tuple[str, ...], texts: list[str]) -> list[str]:
    """Words of the texts, in lower case, that are forms of a phrase's content words."""
    wanted = {stem_of(word) for phrase in phrases for word in words_of(phrase)} - EMPTY_WORDS
    return sorted({word for text in texts for word in words_of(text) if stem_of(word) in wanted})
