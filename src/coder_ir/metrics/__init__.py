"""Judged rankings to numbers; pure functions, averages over all judged queries."""

from coder_ir.metrics.evaluate import Estimate, difference, mean_with_interval, per_query
from coder_ir.metrics.ranked import average_precision_at, ndcg_at, recall_at
from coder_ir.metrics.violation import first_violation_at, pairwise_accuracy, violation_at

__all__ = [
    "Estimate",
    "average_precision_at",
    "difference",
    "first_violation_at",
    "mean_with_interval",
    "ndcg_at",
    "pairwise_accuracy",
    "per_query",
    "recall_at",
    "violation_at",
]
