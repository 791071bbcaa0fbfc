"""Random runs, from file to value, against pytrec_eval and a second implementation."""

from dataclasses import dataclass

import numpy as np
import pytest
import pytrec_eval

from coder_ir.datasets.runs import load_run
from coder_ir.metrics import measure_named, per_query
from coder_ir.types import Qrels

DOCS = [f"d{i}" for i in range(40)]
CUTS = (1, 2, 3, 5, 10, 20)
Judged = list[tuple[list[str], dict[str, int]]]


@dataclass(frozen=True)
class Case:
    """1,000 judged queries, and a run that ties scores, lacks queries and has others."""

    run: dict[str, dict[str, float]]
    ranked: dict[str, list[str]]  # the run, written with its lines shuffled and loaded
    qrels: Qrels  # grades -1 to 3

    def values(self, name: str) -> dict[str, float]:
        """As `coder-ir eval` computes them."""
        return per_query(measure_named(name).function, self.ranked, self.qrels)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rng = np.random.default_rng(5)
    ids = [f"q{i}" for i in range(1000)]
    grades = {
        query_id: {
            str(d): int(rng.integers(-1, 4)) for d in rng.permutation(DOCS)[: rng.integers(1, 25)]
        }
        for query_id in ids
    }
    run = {}
    for query_id in [*ids[60:], *(f"x{i}" for i in range(40))]:
        docs = rng.permutation(DOCS)[: rng.integers(1, 40)]
        # Tenths tie often; the rest differ, some by less than single precision holds.
        steps = rng.choice([0.1, 1e-3, 1e-7]) * rng.integers(-10, 10, len(docs))
        run[query_id] = {str(d): float(score) for d, score in zip(docs, 5 + steps, strict=True)}
    lines = [f"{q} Q0 {d} 1 {s!r} x\n" for q, own in run.items() for d, s in own.items()]
    path = tmp_path_factory.mktemp("random") / "run.trec"
    path.write_text("".join(rng.permutation(lines)), encoding="utf-8")
    return Case(run, load_run(path, depth=20), Qrels(grades))


def trec_order(scores: dict[str, float]) -> list[str]:
    """Documents by falling score, then by falling id; trec_eval keeps a score in 32 bits."""
    order = sorted(scores, reverse=True)
    return sorted(order, key=lambda d: np.float32(scores[d]), reverse=True)


@pytest.mark.parametrize(
    ("kind", "theirs"), [("nDCG", "ndcg_cut"), ("AP", "map_cut"), ("R", "recall")]
)
def test_values_equal_those_of_pytrec_eval(case: Case, kind: str, theirs: str):
    judged = {q: {d: max(0, g) for d, g in own.items()} for q, own in case.qrels.grades.items()}
    asked = {f"{theirs}.{','.join(map(str, CUTS))}"}
    found = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(case.run)
    assert len(found) == 940
    for k in CUTS:
        # pytrec_eval passes over a judged query that the run lacks.
        expected = {q: found[q][f"{theirs}_{k}"] if q in found else 0.0 for q in judged}
        assert case.values(f"{kind}@{k}") == pytest.approx(expected, abs=1e-9)


def test_reciprocal_rank_equals_that_of_pytrec_eval(case: Case):
    # It has no cut-off there, so a first relevant document below rank k counts as none.
    judged = {q: {d: max(0, g) for d, g in own.items()} for q, own in case.qrels.grades.items()}
    found = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(case.run)
    for k in CUTS:
        values = {q: own["recip_rank"] for q, own in found.items()}
        expected = {q: v if (v := values.get(q, 0.0)) > 1 / (k + 0.5) else 0.0 for q in judged}
        assert case.values(f"RR@{k}") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", CUTS)
def test_violations_equal_a_second_implementation(case: Case, k: int):
    first = {}
    for query_id, grades in case.qrels.grades.items():
        order = trec_order(case.run.get(query_id, {}))
        ranks = [order.index(d) + 1 for d, grade in grades.items() if grade == -1 and d in order]
        first[query_id] = min(ranks, default=10**6)
    assert case.values(f"V@{k}") == {q: float(rank <= k) for q, rank in first.items()}
    assert case.values(f"FVR@{k}") == {q: float(min(rank, k + 1)) for q, rank in first.items()}


@pytest.fixture(scope="module")
def rankings(case: Case) -> Judged:
    """300 of the rankings, each with the grades of its query."""
    grades = case.qrels.grades
    return [(case.ranked[q], dict(grades[q])) for q in list(grades)[60:360]]


class TestProperties:
    """What must hold for any ranking."""

    def test_a_violating_document_put_above_never_raises_the_first_violation_rank(
        self, rankings: Judged
    ):
        fvr = measure_named("FVR@10").function
        rng = np.random.default_rng(1)
        for ranked, grades in rankings:
            place = int(rng.integers(0, len(ranked) + 1))
            worse = [*ranked[:place], "violating", *ranked[place:]]
            assert fvr(worse, grades | {"violating": -1}) <= fvr(ranked, grades)

    def test_a_deeper_look_never_sees_fewer_violations(self, rankings: Judged):
        for ranked, grades in rankings:
            values = [measure_named(f"V@{k}").function(ranked, grades) for k in range(1, 30)]
            assert values == sorted(values)

    def test_survival_is_what_violation_leaves(self, rankings: Judged):
        for ranked, grades in rankings:
            for k in CUTS:
                survival, violation = (
                    measure_named(f"{kind}@{k}").function(ranked, grades)
                    for kind in ("Survival", "V")
                )
                assert survival == 1 - violation

    def test_the_first_violation_rank_lies_between_one_and_k_plus_one(self, rankings: Judged):
        for ranked, grades in rankings:
            for k in CUTS:
                assert 1 <= measure_named(f"FVR@{k}").function(ranked, grades) <= k + 1

    @pytest.mark.parametrize("kind", ["V", "FVR", "Survival", "nDCG", "AP", "R", "RR"])
    def test_unjudged_documents_at_the_bottom_change_nothing(self, rankings: Judged, kind: str):
        function = measure_named(f"{kind}@5").function
        for ranked, grades in rankings:
            longer = [*ranked, "unjudged1", "unjudged2"]
            assert function(longer, grades) == function(ranked, grades)
