"""Measures by name: what `coder-ir eval` and the tables understand."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coder_ir.errors import InvalidValue
from coder_ir.metrics.ranked import average_precision_at, ndcg_at, recall_at, reciprocal_rank_at
from coder_ir.metrics.violation import first_violation_at, survival_at, violation_at

Function = Callable[[Sequence[str], Mapping[str, int]], float]


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of measures, one a cut-off."""

    at: Callable[..., float]
    higher_is_better: bool
    rate: bool  # shown in percent; else in ranks
    of_violations: bool = False  # says nothing where no document is judged violating


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure at one cut-off."""

    name: str  # such as V@1
    k: int
    function: Function
    higher_is_better: bool
    rate: bool
    of_violations: bool = False


KINDS = {
    "V": Kind(violation_at, higher_is_better=False, rate=True, of_violations=True),
    "FVR": Kind(first_violation_at, higher_is_better=True, rate=False, of_violations=True),
    "Survival": Kind(survival_at, higher_is_better=True, rate=True, of_violations=True),
    "nDCG": Kind(ndcg_at, higher_is_better=True, rate=True),
    "AP": Kind(average_precision_at, higher_is_better=True, rate=True),
    "R": Kind(recall_at, higher_is_better=True, rate=True),
    "RR": Kind(reciprocal_rank_at, higher_is_better=True, rate=True),
}
ALIASES = {"MAP": "AP", "Recall": "R", "MRR": "RR", "NDCG": "nDCG"}
DEFAULT = ("V@1", "V@2", "V@10", "FVR@10", "nDCG@5", "nDCG@10", "AP@10", "R@5", "R@10", "RR@10")
_NAME = re.compile(r"(?P<kind>\w+)@(?P<k>[1-9]\d*)")


def measure_named(name: str) -> Measure:
    """`V@2`, `FVR@10`, `nDCG@10`, ...; a measure is a kind and a cut-off."""
    match = _NAME.fullmatch(name.strip())
    kind = ALIASES.get(match["kind"], match["kind"]) if match else ""
    if match is None or kind not in KINDS:
        known = ", ".join(f"{kind}@k" for kind in KINDS)
        raise InvalidValue(f"no measure {name!r}; there are {known}, with k from 1 up")
    found, k = KINDS[kind], int(match["k"])
    return Measure(
        f"{kind}@{k}",
        k,
        partial(found.at, k=k),
        found.higher_is_better,
        found.rate,
        found.of_violations,
    )
