"""Three passages, one with a bar, one that denies it and one about something else."""

from collections.abc import Sequence

import numpy as np

from coder_ir.types import Candidates, Constraint, Document, Passage, Span

DOCUMENTS = {
    "bar": Document("bar", "There is a bar below.", "Old Bar", {"stars": 3}),
    "calm": Document("calm", "No bar is near."),
    "far": Document("far", "The bus takes an hour."),
}
WHOLE = Passage(0, Span(0, 1000))
BARRED = Constraint(1.0, ("bar",))


def fetch(doc_ids: Sequence[str]) -> list[Document]:
    return [DOCUMENTS[doc_id] for doc_id in doc_ids]


def pool_of(
    *doc_ids: str,
    topical: Sequence[float] = (0.9, 0.8, 0.7),
    breach: Sequence[float] | None = None,
    constraint: Constraint | None = BARRED,
) -> Candidates:
    """By default bar, calm and far, in this topical order, all of compatibility 0.5."""
    ids = doc_ids or ("bar", "calm", "far")
    return Candidates(
        ids,
        [WHOLE] * len(ids),
        np.array(topical),
        np.full(len(ids), 0.5),
        constraint,
        breach=None if breach is None else np.array(breach),
    )
