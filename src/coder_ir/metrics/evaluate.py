"""Per-query values, their mean and a bootstrap interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coder_ir.errors import InvalidValue
from coder_ir.types import Qrels

Metric = Callable[[Sequence[str], Mapping[str, int]], float]
_RESAMPLES = 2000
_AT_ONCE = 50  # resamples drawn together
_FLIPS = 10_000
_FLIPS_AT_ONCE = 500


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
    draw = np.random.default_rng(seed)
    means = [
        data[draw.integers(0, len(data), (_AT_ONCE, len(data)))].mean(axis=1)
        for _ in range(0, _RESAMPLES, _AT_ONCE)
    ]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Estimate(float(data.mean()), float(low), float(high), len(data))


def over_pairs(
    values: Mapping[str, float], pairs: Sequence[tuple[str, str]], *, seed: int = 13
) -> Estimate:
    """Mean over queries, its interval over pairs of them, which share documents and luck.

    Without pairs every query stands for itself.
    """
    if not pairs:
        return mean_with_interval(list(values.values()), seed=seed)
    return replace(mean_with_interval(pair_means(values, pairs), seed=seed), n=len(values))


def pair_means(values: Mapping[str, float], pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Mean of each two queries that belong together."""
    return [(values[one] + values[two]) / 2 for one, two in pairs]


def difference(one: Sequence[float], two: Sequence[float], *, seed: int = 13) -> Estimate:
    """Mean of two minus one over the same queries, with the interval of the paired difference."""
    if len(one) != len(two):
        raise InvalidValue(
            f"a paired difference needs equal lengths, got {len(one)} and {len(two)}"
        )
    return mean_with_interval([b - a for a, b in zip(one, two, strict=True)], seed=seed)


def p_value(one: Sequence[float], two: Sequence[float], *, seed: int = 13) -> float:
    """Two-sided paired randomisation test: how often chance alone parts two runs as far.

    Signs of the per-query differences are flipped at random (Smucker et al., 2007); the observed
    assignment counts as one of them, so the value is never 0. In (0, 1]; 1 for equal runs.
    """
    if len(one) != len(two) or not one:
        raise InvalidValue(
            f"a paired test needs two equal, positive lengths, got {len(one)} and {len(two)}"
        )
    apart = np.asarray(two, dtype=np.float64) - np.asarray(one, dtype=np.float64)
    seen = abs(apart.sum())
    draw = np.random.default_rng(seed)
    as_far = 0
    for start in range(0, _FLIPS, _FLIPS_AT_ONCE):
        size = (min(_FLIPS_AT_ONCE, _FLIPS - start), len(apart))
        signs = draw.integers(0, 2, size, dtype=np.int8) * 2.0 - 1.0
        as_far += int((np.abs(signs @ apart) >= seen - 1e-9).sum())
    return (as_far + 1) / (_FLIPS + 1)
