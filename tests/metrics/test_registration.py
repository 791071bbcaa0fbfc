import sys

import ir_measures
import numpy as np
import pytest

from coder_ir.errors import MissingExtra
from coder_ir.metrics import measure_named
from coder_ir.metrics.registration import register_measures

NAMES = ("V@2", "FVR@10", "Survival@3", "nDCG@10")
QRELS = {"q1": {"a": 2, "b": -1}, "q2": {"a": 1, "z": -1}}


@pytest.fixture(autouse=True)
def registered() -> None:
    register_measures()


def computed(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]] = QRELS
) -> dict[str, dict[str, float]]:
    """Measure to query to value."""
    measures = [ir_measures.parse_measure(name) for name in NAMES]
    found: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for metric in ir_measures.iter_calc(measures, qrels, run):
        found[str(metric.measure)][metric.query_id] = metric.value
    return found


def test_ours_and_theirs_are_averaged_in_one_call():
    measures = [ir_measures.parse_measure(name) for name in NAMES]
    run = {"q1": {"a": 0.9, "b": 0.8}, "q2": {"a": 0.9, "y": 0.8, "z": 0.7}}
    means = ir_measures.calc_aggregate(measures, QRELS, run)
    assert {str(measure): mean for measure, mean in means.items()} == {
        "V@2": 0.5,
        "FVR@10": 2.5,
        "Survival@3": 0.0,
        "nDCG@10": 1.0,
    }


def test_values_are_ours_and_ties_break_as_in_trec_eval():
    rng = np.random.default_rng(4)
    docs = [f"d{i}" for i in range(15)]
    qrels, run = {}, {}
    for number in range(100):
        judged = rng.permutation(docs)[:6]
        qrels[f"q{number}"] = {str(d): int(rng.integers(-1, 3)) for d in judged}
        run[f"q{number}"] = {d: float(rng.integers(0, 5)) for d in docs}
    ranked = {q: sorted(own, key=lambda d: (own[d], d), reverse=True) for q, own in run.items()}
    found = computed(run, qrels)
    for name in ("V@2", "FVR@10", "Survival@3"):
        ours = measure_named(name).function
        assert found[name] == {q: ours(ranked[q], qrels[q]) for q in qrels}


def test_a_query_without_documents_gets_the_default_of_each_measure():
    found = computed({"q1": {"b": 1.0}})
    assert {name: values["q2"] for name, values in found.items()} == {
        "V@2": 0.0,
        "FVR@10": 11.0,
        "Survival@3": 1.0,
        "nDCG@10": 0.0,
    }


def test_a_query_that_is_not_judged_is_left_out():
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}, "x": {"b": 1.0}}
    assert set(computed(run)["V@2"]) == {"q1", "q2"}


def test_registering_twice_is_harmless():
    before = len(ir_measures.DefaultPipeline.providers), computed({"q1": {"b": 1.0}})
    register_measures()
    assert (len(ir_measures.DefaultPipeline.providers), computed({"q1": {"b": 1.0}})) == before


def test_without_ir_measures_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtra, match=r"pip install 'coder-ir\[bench\]'"):
        register_measures()
