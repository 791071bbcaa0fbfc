"""Classic measures of a ranked list; a grade of 0 or less gains nothing."""

import math
from collections.abc import Mapping, Sequence


def ndcg_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int = 10) -> float:
    """nDCG@k with linear gain: sum of gain / log2(rank + 1) over that of the ideal order.

    In [0, 1], higher is better; 0 when nothing relevant is retrieved or judged.
    """
    gains = [max(0, grades.get(doc_id, 0)) for doc_id in ranked[:k]]
    ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:k]
    best = _dcg(ideal)
    return _dcg(gains) / best if best else 0.0


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def average_precision_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int = 10) -> float:
    """AP@k: precision at each relevant rank within k, summed, over all relevant documents.

    In [0, 1], higher is better; 0 when nothing relevant is retrieved or judged.
    """
    relevant = sum(grade > 0 for grade in grades.values())
    found, total = 0, 0.0
    for rank, doc_id in enumerate(ranked[:k], 1):
        if grades.get(doc_id, 0) > 0:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def recall_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int = 5) -> float:
    """Recall@k: share of the relevant documents among the first k.

    In [0, 1], higher is better; 0 when nothing relevant is retrieved or judged.
    """
    relevant = {doc_id for doc_id, grade in grades.items() if grade > 0}
    return len(relevant & set(ranked[:k])) / len(relevant) if relevant else 0.0


def reciprocal_rank_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int = 10) -> float:
    """RR@k: one over the rank of the first relevant document within k.

    In [0, 1], higher is better; 0 when no relevant document is retrieved or judged.
    """
    relevant = (r for r, doc_id in enumerate(ranked[:k], 1) if grades.get(doc_id, 0) > 0)
    rank = next(relevant, None)
    return 1 / rank if rank else 0.0
