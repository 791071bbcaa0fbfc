"""Rankings of whole documents, for searchers that know no passages."""

from collections.abc import Iterable

from coder_ir.errors import DuplicateId, InvalidValue
from coder_ir.intake import check_document, check_text
from coder_ir.types import UNSCORED, Constraint, Document, Hit, Passage, Ranking, Span


def by_id(documents: Iterable[Document]) -> dict[str, Document]:
    """Documents in the order given; a bad or repeated one is an error."""
    found: dict[str, Document] = {}
    for document in documents:
        check_document(document)
        if document.doc_id in found:
            raise DuplicateId(
                f"document id {document.doc_id!r} comes twice; give each document an id of its own"
            )
        found[document.doc_id] = document
    return found


def check_search(query: str, k: int) -> None:
    """Refuse what cannot be searched for."""
    if k < 1:
        raise InvalidValue(f"k must be at least 1, got {k}")
    if not query.strip():
        raise InvalidValue("the query is empty; say what to look for")
    check_text(query, "the query")


def whole_hit(
    document: Document, *, rank: int, score: float, reason: str, topical: float = UNSCORED
) -> Hit:
    """A hit whose passage is all of its document."""
    return Hit(
        doc_id=document.doc_id,
        rank=rank,
        score=score,
        topical=topical,
        compatibility=UNSCORED,
        risk=None,
        reason=reason,
        text=document.text,
        title=document.title,
        metadata=document.metadata,
        passage=Passage(0, Span(0, len(document.content))),
    )


def plain_ranking(query: str, name: str, hits: Iterable[Hit]) -> Ranking:
    """Hits of a searcher that drops nothing and looks for no constraint."""
    return Ranking(query, name, tuple(hits), (), Constraint(0.0))
