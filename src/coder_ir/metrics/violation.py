"""How early a ranking shows what the query rules out."""

from collections.abc import Collection, Mapping, Sequence


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


def survival_at(ranked: Sequence[str], grades: Mapping[str, int], *, k: int) -> float:
    """Survival@k: 1 if the first violating document stands below rank k, or nowhere; 1 - V@k.

    In {0, 1}, higher is better; 1 when nothing is retrieved. Its mean over queries, drawn over k,
    is the violation survival curve.
    """
    return 1.0 - violation_at(ranked, grades, k=k)


def over_exclusion(filtered: Collection[str], grades: Mapping[str, int]) -> float:
    """Share of the satisfying documents (grade above 1) that a policy filtered.

    In [0, 1], lower is better; 0 when nothing is satisfying or nothing was filtered.
    """
    satisfying = {doc_id for doc_id, grade in grades.items() if grade > 1}
    return len(satisfying & set(filtered)) / len(satisfying) if satisfying else 0.0


def pairwise_accuracy(
    margins: Mapping[str, float], pairs: Sequence[tuple[str, str]]
) -> list[float]:
    """NevIR's measure, one value a pair: 1 if both queries score their own document higher.

    `margins` maps a query id to score of its satisfying minus score of its violating document. A
    tie counts as wrong. In {0, 1}, higher is better; random scoring gives a mean of 0.25.
    """
    return [float(margins[one] > 0 and margins[two] > 0) for one, two in pairs]
