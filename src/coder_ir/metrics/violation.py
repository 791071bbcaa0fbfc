"""How early a ranking shows what the query rules out."""

from collections.abc import Mapping, Sequence


def violation_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int) -> float:
    """V@k: 1 if any of the first k documents is violating (grade below 0), else 0.

    In {0, 1}, lower is better; 0 when nothing is retrieved.
    """
    return float(any(grades.get(doc_id, 0) < 0 for doc_id in ranked[:k]))


def first_violation_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int = 10) -> float:
    """FVR_k: rank of the first violating document within k, else k + 1.

    In [1, k + 1], higher is better; k + 1 when nothing is retrieved.
    """
    violating = (r for r, doc_id in enumerate(ranked[:k], 1) if grades.get(doc_id, 0) < 0)
    return float(next(violating, k + 1))


def pairwise_accuracy(
    margins: Mapping[str, float], pairs: Sequence[tuple[str, str]]
) -> list[float]:
    """NevIR's measure, one value a pair: 1 if both queries score their own document higher.

    `margins` maps a query id to score of its satisfying minus score of its violating document. A
    tie counts as wrong. In {0, 1}, higher is better; random scoring gives a mean of 0.25.
    """
    return [float(margins[one] > 0 and margins[two] > 0) for one, two in pairs]
