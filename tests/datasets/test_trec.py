from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from coder_ir.datasets.trec import write_run
from coder_ir.errors import CoderError
from coder_ir.types import Constraint, Hit, Passage, Ranking, Span


def ranking(scores: Sequence[float], *, ids: Sequence[str] | None = None) -> Ranking:
    ids = ids or [f"d{i}" for i in range(len(scores))]
    hits = tuple(
        Hit(d, rank, score, score, score, None, "", "", "", {}, Passage(0, Span(0, 0)))
        for rank, (d, score) in enumerate(zip(ids, scores, strict=True), 1)
    )
    return Ranking("q", "seq", hits, (), Constraint(0.0))


def written_scores(path: Path) -> list[float]:
    return [float(line.split()[4]) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trec"


def test_a_line_holds_query_document_rank_score_and_tag(path: Path):
    write_run(path, [("q1", ranking([0.75, 0.5]))], tag="seq")
    assert path.read_text(encoding="utf-8") == (
        "q1 Q0 d0 1 0.750000 seq\nq1 Q0 d1 2 0.500000 seq\n"
    )


def test_queries_come_in_the_order_given(path: Path):
    write_run(path, [("q2", ranking([0.5])), ("q1", ranking([0.9]))], tag="seq")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["q2", "q1"]


@pytest.mark.parametrize(
    "scores",
    [
        [0.5] * 100,
        [0.5, 0.5, 0.4999995, 0.4999991, 0.499999],
        [0.0, 0.0, -0.5, -0.5],
        [0.3000004, 0.3000003, 0.3000002],
        [-1.0, -1.0, -1.0],
        [30.0, 30.0, 29.9999999],
        [0.1, 0.2, 0.9],
    ],
    ids=["all equal", "near ties", "zero", "past the decimals", "negative", "large", "rising"],
)
def test_scores_fall_strictly_as_written(path: Path, scores: list[float]):
    write_run(path, [("q", ranking(scores))], tag="seq")
    assert all(one > two for one, two in pairwise(written_scores(path)))


def test_scores_that_fall_anyway_are_written_as_they_are(path: Path):
    write_run(path, [("q", ranking([0.9, 0.5, -0.25]))], tag="seq")
    assert written_scores(path) == [0.9, 0.5, -0.25]


def test_each_query_starts_anew(path: Path):
    write_run(path, [("q1", ranking([0.1, 0.1])), ("q2", ranking([0.9]))], tag="seq")
    assert written_scores(path)[2] == 0.9


def test_pytrec_eval_reads_the_same_order_back(path: Path):
    rng = np.random.default_rng(2)
    runs = {}
    for number in range(30):
        scores = sorted(np.round(rng.uniform(-1, 1, 20), 1).tolist(), reverse=True)
        ids = [str(d) for d in rng.permutation([f"d{i}" for i in range(20)])]
        runs[f"q{number}"] = ranking(scores, ids=ids)
    write_run(path, runs.items(), tag="seq")
    with path.open(encoding="utf-8") as lines:
        parsed = pytrec_eval.parse_run(lines)
    # As trec_eval sorts: by falling score, then by falling document id.
    read_back = {q: sorted(found, key=lambda d: (found[d], d)) for q, found in parsed.items()}
    assert {q: order[::-1] for q, order in read_back.items()} == {
        q: [hit.doc_id for hit in hits] for q, hits in runs.items()
    }


def test_a_query_without_hits_has_no_line(path: Path):
    write_run(path, [("q1", ranking([])), ("q2", ranking([0.5]))], tag="seq")
    assert path.read_text(encoding="utf-8") == "q2 Q0 d0 1 0.500000 seq\n"


@pytest.mark.parametrize("space", [" ", "\t", "\n"], ids=["space", "tab", "line end"])
class TestIdsWithSpace:
    """A run file separates its columns by space, so no reader could tell such an id."""

    def test_a_document_id_with_space_in_it_is_refused_by_name(self, path: Path, space: str):
        found = ranking([0.5], ids=[f"my{space}notes.txt"])
        with pytest.raises(CoderError, match=r"notes\.txt"):
            write_run(path, [("q1", found)], tag="seq")

    def test_a_query_id_with_space_in_it_is_refused_by_name(self, path: Path, space: str):
        with pytest.raises(CoderError, match="first"):
            write_run(path, [(f"the{space}first", ranking([0.5]))], tag="seq")


def test_a_run_that_fails_half_way_leaves_the_old_file(path: Path):
    def failing() -> Iterator[tuple[str, Ranking]]:
        yield "q1", ranking([0.5])
        raise RuntimeError("disk")

    path.write_text("old", encoding="utf-8")
    with pytest.raises(RuntimeError, match="disk"):
        write_run(path, failing(), tag="seq")
    assert path.read_text(encoding="utf-8") == "old"


def test_a_finished_run_leaves_no_other_file(path: Path):
    write_run(path, [("q1", ranking([0.5]))], tag="seq")
    assert [file.name for file in path.parent.iterdir()] == ["run.trec"]


def test_large_equal_scores_stay_apart_in_32_bits(path: Path):
    write_run(path, [("q", ranking([30.0] * 5 + [29.999999]))], tag="bm25")
    scores = np.array(written_scores(path), dtype=np.float32)
    assert (np.diff(scores) < 0).all()
