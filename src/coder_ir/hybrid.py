"""The words of a query beside its vector: what to look for, and how the two ranks become one."""

import re
from collections.abc import Sequence

import numpy as np

from coder_ir.text import stem_of, words_of
from coder_ir.types import Constraint, Scores
from coder_ir.vectors import best_first, ranks

_STEP = 1e-9  # keeps documents of equal cosines in their order
_SMOOTHING = 60  # of reciprocal rank fusion (Cormack et al., 2009)


def lexical_query(query: str, constraint: Constraint) -> str:
    """The words to match: the query without what it rules out, and what it must hold.

    An excluded phrase would find exactly the documents that should not come back. A single word
    goes in all its forms, a longer phrase as a whole, for its words may be asked for elsewhere.
    """
    text = constraint.topic or query
    for phrase in constraint.excluded:
        words = words_of(phrase)
        if len(words) == 1:
            text = _without_word(text, stem_of(words[0]))
        text = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join([text, *constraint.required]).strip()


def _without_word(text: str, stem: str) -> str:
    return re.sub(r"[\w'’]+", lambda m: "" if stem_of(m[0].lower()) == stem else m[0], text)


def fused_ranks(scores: Scores, doc_ids: Sequence[str], matched: Sequence[str]) -> Scores:
    """Scores of passages as their documents' reciprocal ranks in both lists put them.

    Args:
        scores: cosines of the passages.
        doc_ids: the document of each passage.
        matched: documents in order of their words, best first; one that is not there gets
            nothing from this side.

    The document that comes i-th gets the i-th highest cosine, so that a policy sees scores spread
    as always; another passage of a document stays as far below its best one as it was.
    """
    if not matched:
        return scores
    best: dict[str, float] = {}
    for doc_id, score in zip(doc_ids, scores.tolist(), strict=True):
        best[doc_id] = max(score, best.get(doc_id, -np.inf))
    documents = list(best)
    near = np.array(list(best.values()))
    there = (doc_id for doc_id in matched if doc_id in best)
    place = {doc_id: rank for rank, doc_id in enumerate(there, 1)}
    fused = 1 / (_SMOOTHING + ranks(near, documents))
    fused += [1 / (_SMOOTHING + place[d]) if d in place else 0.0 for d in documents]
    order = best_first(fused, documents, len(documents))
    values = np.sort(near)[::-1] - _STEP * np.arange(len(near))
    given = dict(zip((documents[i] for i in order), values, strict=True))
    return np.array([given[d] - best[d] for d in doc_ids]) + scores
