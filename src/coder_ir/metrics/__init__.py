"""Judged rankings to numbers; pure functions, averages over all judged queries."""

from coder_ir.metrics.evaluate import (
    Estimate,
    difference,
    mean_with_interval,
    over_pairs,
    p_value,
    pair_means,
    per_query,
)
from coder_ir.metrics.measures import DEFAULT, Measure, measure_named
from coder_ir.metrics.ranked import average_precision_at, ndcg_at, recall_at, reciprocal_rank_at
from coder_ir.metrics.violation import (
    first_violation_at,
    over_exclusion,
    pairwise_accuracy,
    survival_at,
    violation_at,
)

__all__ = [
    "DEFAULT",
    "Estimate",
    "Measure",
    "average_precision_at",
    "difference",
    "first_violation_at",
    "mean_with_interval",
    "measure_named",
    "ndcg_at",
    "over_exclusion",
    "over_pairs",
    "p_value",
    "pair_means",
    "pairwise_accuracy",
    "per_query",
    "recall_at",
    "reciprocal_rank_at",
    "survival_at",
    "violation_at",
]
