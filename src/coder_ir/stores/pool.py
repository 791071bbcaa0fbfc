"""From passages that a search found to the pool: which documents are in, and every tie at the cut.

All stores go through here, so that the same documents and the same query give the same pool.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coder_ir.types import Candidates, Passage, Scores, Span, VectorPair
from coder_ir.vectors import best_first, cosine

MARGIN = 1e-5
"""How far the float32 scores of a search may stray from the rounded ones."""


@dataclass(frozen=True, slots=True)
class PassageRow:
    """One passage as the store keeps it."""

    row_id: int
    doc_id: str
    document: int  # row id of its document
    passage: Passage


@dataclass(frozen=True, slots=True)
class Found:
    """The best passages of one space, as far as a search has looked."""

    rows: Sequence[PassageRow]
    scores: Scores  # cosine of each row, rounded
    floor: float  # what passages it has not seen score at most; -inf where it has seen all


def widths(n: int) -> Iterator[int]:
    """How many passages to look for, at first and then again, for n documents."""
    wanted = n + 16
    while True:
        yield wanted
        wanted *= 4


def best_documents(found: Found, n: int, *, margin: float = MARGIN) -> list[int] | None:
    """Position in `rows` of the best passage of each of the n best documents, best first.

    Ties go by ascending id, within a document to the earlier passage. None where passages that
    the search has not seen could change the answer: it has to look for more.
    """
    best = _best_passages(found.rows, found.scores.tolist())
    order = list(best)
    first = best_first(list(best.values()), [found.rows[i].doc_id for i in order], n)
    settled = found.floor == -float("inf") or (
        len(best) > n and found.floor < best[order[first[-1]]] - margin
    )
    return [order[i] for i in first] if settled else None


def _best_passages(rows: Sequence[PassageRow], scores: list[float]) -> dict[int, float]:
    """For each document its best passage's position and score; ties go to the earlier one."""
    best: dict[int, tuple[float, int, int]] = {}  # document: score, -number, position
    for position, (row, score) in enumerate(zip(rows, scores, strict=True)):
        entry = (score, -row.passage.number, position)
        if row.document not in best or entry > best[row.document]:
            best[row.document] = entry
    return {position: score for score, _, position in best.values()}


def as_candidates(rows: Sequence[PassageRow], vectors: VectorPair, query: VectorPair) -> Candidates:
    """Passages in any order, with their vectors in the same one, scored in both spaces."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i].doc_id, rows[i].passage.number))
    topical, compatibility = vectors.topical[order], vectors.compatibility[order]
    return Candidates(
        doc_ids=[rows[i].doc_id for i in order],
        passages=[rows[i].passage for i in order],
        topical=cosine(topical, query.topical[0]),
        compatibility=cosine(compatibility, query.compatibility[0]),
        rows=topical,
    )


def passage_row(row_id: int, doc_id: str, document: int, part: tuple[int, int, int]) -> PassageRow:
    """A row from the plain numbers a database returns: passage number, start, end."""
    number, start, end = part
    return PassageRow(row_id, doc_id, document, Passage(number, Span(start, end)))
