"""BM25 over whole documents."""

from collections.abc import Iterable
from pathlib import Path

from coder_ir.baselines.whole import by_id, check_search, plain_ranking, whole_hit
from coder_ir.lexical import LexicalIndex, saved_stamp, stamp_of
from coder_ir.types import Document, Hit, Ranking


class BM25:
    """Documents ranked by the words they share with a query; see `LexicalIndex` for the formula."""

    def __init__(self, documents: Iterable[Document], *, folder: Path | None = None) -> None:
        """Count the words, or load the counts from a folder.

        Args:
            documents: an id may come only once.
            folder: where the counts are kept; those of other documents or another order of them
                are replaced. None keeps them in memory.
        """
        self._documents = by_id(documents)
        self._sorted_ids = sorted(self._documents)
        self._index = _opened(self._documents, folder)

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits by score, ties by ascending id.

        Documents without a word of the query follow with score 0, by ascending id.
        """
        check_search(query, k)
        found = self._index.scores(query, k)
        words = self._index.matched(query, [doc_id for doc_id, _ in found])
        hits = [
            self._hit(rank, doc_id, score, held)
            for rank, ((doc_id, score), held) in enumerate(zip(found, words, strict=True), 1)
        ]
        seen = {hit.doc_id for hit in hits}
        rest = (doc_id for doc_id in self._sorted_ids if doc_id not in seen)
        for rank, doc_id in zip(range(len(hits) + 1, k + 1), rest, strict=False):
            hits.append(self._hit(rank, doc_id, 0.0, ()))
        return plain_ranking(query, "bm25", hits)

    def _hit(self, rank: int, doc_id: str, score: float, words: tuple[str, ...]) -> Hit:
        if words:
            reason = f"BM25 score {score:.3f} for {', '.join(words)}."
        else:
            reason = "BM25 score 0: it has none of the query's words."
        return whole_hit(self._documents[doc_id], rank=rank, score=score, reason=reason)


def _opened(documents: dict[str, Document], folder: Path | None) -> LexicalIndex:
    doc_ids = list(documents)
    texts = [document.content for document in documents.values()]
    stamp = stamp_of(doc_ids, texts)
    if folder is not None and saved_stamp(folder) == stamp:
        return LexicalIndex.load(folder)
    index = LexicalIndex.build(doc_ids, texts, stamp=stamp)
    if folder is not None:
        index.save(folder)
    return index
