"""Per-query values, their mean and a bootstrap interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Qrels

Metric = Callable[[Sequence[str], Mapping[str, int]], float]
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% bootstrap interval."""

    mean: float
    low: float
    high: float
    n: int


def per_query(metric: Metric, run: Mapping[str, Sequence[str]], qrels: Qrels) -> dict[str, float]:
    """The metric of each judged query, in the order of the judgements.

    A query the run does not answer is scored as an empty ranking; one that is not judged is
    passed over.
    """
    return {
        query_id: metric(run.get(query_id, ()), grades) for query_id, grades in qrels.grades.items()
    }


def mean_with_interval(values: Sequence[float], *, seed: int = 13) -> Estimate:
    """Mean of the values and the 2.5 and 97.5 percentiles of resampled means."""
    if not values:
        raise InvalidValue("a mean needs at least one judged query, got none")
    data = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(0, len(data), (_RESAMPLES, len(data)))
    low, high = np.percentile(data[draws].mean(axis=1), [2.5, 97.5])
    return Estimate(float(data.mean()), float(low), float(high), len(data))


def difference(one: Sequence[float], two: Sequence[float], *, seed: int = 13) -> Estimate:
    """Mean of two minus one over the same queries, with the interval of the paired difference."""
    if len(one) != len(two):
        raise InvalidValue(
            f"a paired difference needs equal lengths, got {len(one)} and {len(two)}"
        )
    return mean_with_interval([b - a for a, b in zip(one, two, strict=True)], seed=seed)
