import pytest

from coder_ir.metrics import Measure, measure_named
from coder_ir.metrics.report import RunReport, best_of, report_runs
from coder_ir.types import Qrels

IDS = [f"q{i}" for i in range(20)]
QRELS = Qrels({query_id: {"good": 2, "bad": -1} for query_id in IDS})
V1, RR, FVR = (measure_named(name) for name in ("V@1", "RR@10", "FVR@10"))
GOOD = {query_id: ["good", "bad"] for query_id in IDS}
BAD = {query_id: ["bad", "good"] for query_id in IDS}


def reported(**runs: dict[str, list[str]]) -> list[RunReport]:
    return report_runs(runs, QRELS, [V1, RR, FVR])


def test_runs_come_in_the_order_given():
    assert [report.name for report in reported(b=BAD, a=GOOD)] == ["b", "a"]


def test_every_measure_is_averaged_over_the_judged_queries():
    (report,) = reported(half={query_id: BAD[query_id] for query_id in IDS[:10]})
    means = {name: estimate.mean for name, estimate in report.estimates.items()}
    assert means == {"V@1": 0.5, "RR@10": 0.25, "FVR@10": (1 + 11) / 2}
    assert {estimate.n for estimate in report.estimates.values()} == {20}


def test_values_are_kept_query_by_query():
    (report,) = reported(run={**GOOD, "q3": ["bad"]})
    assert report.values["V@1"] == {query_id: float(query_id == "q3") for query_id in IDS}


def test_the_first_run_is_the_one_the_others_are_tested_against():
    first, same, other = reported(first=BAD, same=BAD, other=GOOD)
    assert first.p_values == {}
    assert same.p_values == {"V@1": 1.0, "RR@10": 1.0, "FVR@10": 1.0}
    assert all(p < 0.001 for p in other.p_values.values())


def test_queries_with_documents_count_as_answered():
    (report,) = reported(run={"q1": ["good"], "q2": [], "q3": ["other"]})
    assert (report.answered, report.surplus) == (2, 0)


def test_queries_that_are_not_judged_are_counted_and_left_out():
    plain, surplus = reported(plain=GOOD, surplus={**GOOD, "x1": ["bad"], "x2": ["bad"]})
    assert (plain.surplus, surplus.surplus) == (0, 2)
    assert surplus.values == plain.values


def test_the_seed_moves_intervals_and_not_means():
    runs = {"run": {q: [*map(str, range(i)), "good"] for i, q in enumerate(IDS)}}
    one, two = (report_runs(runs, QRELS, [RR], seed=seed)[0].estimates["RR@10"] for seed in (1, 2))
    assert one.mean == two.mean
    assert (one.low, one.high) != (two.low, two.high)


@pytest.mark.parametrize("measure", [V1, FVR], ids=["lower is better", "higher is better"])
class TestBest:
    def test_it_is_the_run_with_the_better_mean(self, measure: Measure):
        assert best_of(reported(bad=BAD, good=GOOD), measure) == {"good"}

    def test_ties_are_all_best(self, measure: Measure):
        runs = reported(one=GOOD, bad=BAD, two=GOOD)
        assert best_of(runs, measure) == {"one", "two"}

    def test_a_run_alone_is_best(self, measure: Measure):
        assert best_of(reported(bad=BAD), measure) == {"bad"}
