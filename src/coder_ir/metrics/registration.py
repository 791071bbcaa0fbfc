"""V, FVR and Survival as measures of ir_measures, beside its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coder_ir.errors import MissingExtra
from coder_ir.metrics.measures import KINDS

_OURS = {
    "V": ("Violation at k", 0.0),
    "FVR": ("First violation rank", None),  # k + 1
    "Survival": ("Violation survival at k", 1.0),
}


def register_measures() -> None:
    """Make ir_measures parse and compute `V@2`, `FVR@10` and `Survival@5`; twice is as once.

    Example:
        >>> register_measures()
        >>> measures = [ir_measures.parse_measure(name) for name in ("V@2", "FVR@10", "nDCG@10")]
        >>> ir_measures.calc_aggregate(measures, qrels, run)
    """
    try:
        import ir_measures
    except ImportError as error:
        raise MissingExtra("Measures in ir_measures", extra="bench") from error
    measures: Any = ir_measures.measures
    if "FVR" in measures.registry:
        return
    made = [_measure(ir_measures, name)() for name in _OURS]
    for measure in made:
        measures.register(measure)
    ir_measures.DefaultPipeline.providers.append(_provider(ir_measures, made))


def _measure(ir_measures: Any, name: str) -> Any:
    """A class of ir_measures for one of our kinds."""
    pretty, default = _OURS[name]
    cutoff = ir_measures.ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold")

    def empty(self: Any) -> float:
        return float(self["cutoff"] + 1) if default is None else default

    return type(
        f"_{name}",
        (ir_measures.Measure,),
        {
            "__name__": name,
            "NAME": name,
            "PRETTY_NAME": pretty,
            "SHORT_DESC": (KINDS[name].at.__doc__ or "").splitlines()[0],
            "SUPPORTED_PARAMS": {"cutoff": cutoff},
            "DEFAULT": property(empty),
        },
    )


def _provider(ir_measures: Any, made: list[Any]) -> Any:
    convert: Any = ir_measures.util

    class Evaluator(ir_measures.Evaluator):  # type: ignore[misc]
        def __init__(self, measures: Any, qrels: Any) -> None:
            self._grades = convert.QrelsConverter(qrels).as_dict_of_dict()
            super().__init__(list(measures), self._grades.keys())

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            for query_id, scores in convert.RunConverter(run).as_dict_of_dict().items():
                if query_id not in self._grades:
                    continue
                ranked = [d for d, _ in sorted(scores.items(), key=_trec_order, reverse=True)]
                for measure in self.measures:
                    at = KINDS[measure.NAME].at
                    value = at(ranked, self._grades[query_id], k=measure["cutoff"])
                    yield ir_measures.Metric(query_id, measure, value)

    class Provider(ir_measures.Provider):  # type: ignore[misc]
        NAME = "coder_ir"
        SUPPORTED_MEASURES = made

        def _evaluator(self, measures: Any, qrels: Any) -> Evaluator:
            return Evaluator(measures, qrels)

    return Provider()


def _trec_order(item: tuple[str, float]) -> tuple[float, str]:
    """Score in trec_eval's single precision, then document id: reversed, its order."""
    return float(np.float32(item[1])), item[0]
