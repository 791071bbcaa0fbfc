"""Development topics and detection on made-up data, every figure by hand."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from coder_ir.encoders import Runtime
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.experiments.detection import measure_detection
from coder_ir.experiments.development import measure_development
from coder_ir.experiments.runs import policy_runs, scored
from coder_ir.experiments.setup import Setup
from coder_ir.metrics import recall_at, violation_at
from coder_ir.policies import POLICIES, CompatibilityOnly, TopicalOnly
from coder_ir.training.parser import is_learnt
from coder_ir.types import Document, Qrels, Query
from tests.conftest import FakeEncoder
from tests.experiments.conftest import Loaded, said


def lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def judge(path: Path, *rows: tuple[str, str, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{query}\t{doc}\t{grade}\n" for query, doc, grade in rows)
    path.write_text("query-id\tcorpus-id\tscore\n" + text)


pytestmark = pytest.mark.usefixtures("loaded")


def means(figures: dict[str, Any]) -> dict[str, float]:
    return {metric: estimate["mean"] for metric, estimate in figures.items()}


HOTELS = [
    Document("a", "hotel noisy+"),
    Document("b", "hotel quiet+"),
    Document("c", "garden"),
]
ASKED = [Query("q", "hotel quiet+"), Query("r", "garden")]


class TestRuns:
    def test_a_run_holds_the_ids_of_each_query_under_each_policy(self, setup: Setup):
        policies = {"by topic": TopicalOnly(), "other": CompatibilityOnly()}
        assert policy_runs(setup, HOTELS, ASKED, policies, Runtime()) == {
            "by topic": {"q": ["a", "b", "c"], "r": ["c", "a", "b"]},
            "other": {"q": ["b", "a", "c"], "r": ["c", "a", "b"]},
        }

    def test_the_ten_best_are_kept(self, setup: Setup):
        documents = [Document(f"{n:02}", "hotel") for n in range(12)]
        (run,) = policy_runs(setup, documents, ASKED, {"t": TopicalOnly()}, Runtime()).values()
        assert run["q"] == [f"{n:02}" for n in range(10)]

    def test_the_model_and_its_runtime_are_those_asked_for(self, setup: Setup, loaded: Loaded):
        runtime = Runtime(max_length=64)
        policy_runs(setup, HOTELS, ASKED, {"t": TopicalOnly()}, runtime)
        assert loaded == [("fake", runtime)]

    def test_texts_are_not_split(self, setup: Setup, encoder: FakeEncoder):
        long = "hotel garden sea club quiet"
        policy_runs(setup, [Document("a", long)], ASKED, {"t": TopicalOnly()}, Runtime())
        assert encoder.encoded == [long]

    def test_scores_are_means_over_the_judged_queries(self):
        run = {"q": ["a", "b"], "r": ["b"], "unjudged": ["a"]}
        qrels = Qrels({"q": {"a": -1, "b": 2}, "r": {"c": 2}, "unanswered": {"a": 1}})
        found = scored(
            run,
            qrels,
            {
                "V@1": lambda ranked, grades: violation_at(ranked, grades, k=1),
                "R@2": lambda ranked, grades: recall_at(ranked, grades, k=2),
            },
        )
        assert {name: (e.mean, e.n) for name, e in found.items()} == {
            "V@1": (pytest.approx(1 / 3), 3),
            "R@2": (pytest.approx(1 / 3), 3),
        }


# Topic ties within each item and so puts `a` first. Compatibility puts the right one first for
# both queries of the first item and the wrong one for the query of the second.
OURS = {
    "id": "t-1",
    "source": "ours",
    "a": "hotel quiet+",
    "b": "hotel noisy+",
    "neutral": "garden club",
    "qa": "hotel quiet+",
    "qb": "hotel noisy+",
}
EDIT = {"id": "e-1", "source": "Wiki", "a": "sea quiet+", "b": "sea noisy+", "qa": "sea noisy+"}


class TestDevelopment:
    @pytest.fixture
    def measured(self, setup: Setup) -> Callable[..., dict[str, Any]]:
        def run(*items: dict[str, str]) -> dict[str, Any]:
            lines(setup.written / "contrast.development.jsonl", items)
            return measure_development(setup, said).figures

        return run

    def test_every_named_policy_is_measured(self, measured: Callable[..., dict[str, Any]]):
        assert list(measured(OURS, EDIT)) == list(POLICIES)

    def test_topic_alone_is_right_where_ids_happen_to_be(
        self, measured: Callable[..., dict[str, Any]]
    ):
        figures = means(measured(OURS, EDIT)["topical"])
        assert figures == pytest.approx(
            {
                "ours": 1 / 2,  # a is first for both queries
                "edits": 1,
                "V@1": 1 / 3,
                "FVR@10": (2 + 1 + 2) / 3,
                "R@5": 1,
            }
        )

    def test_compatibility_alone_is_right_where_its_words_are(
        self, measured: Callable[..., dict[str, Any]]
    ):
        figures = means(measured(OURS, EDIT)["compatibility"])
        # The violating passage of ours shares one of two words, as one of the edits does, whose
        # id comes before: it is third.
        assert figures == pytest.approx(
            {"ours": 1, "edits": 0, "V@1": 1 / 3, "FVR@10": (3 + 3 + 1) / 3, "R@5": 1}
        )

    def test_queries_are_counted_by_source(self, measured: Callable[..., dict[str, Any]]):
        figures = measured(OURS, EDIT)["auto"]
        assert [figures[name]["n"] for name in ("ours", "edits", "V@1")] == [2, 1, 3]

    def test_two_passages_that_are_both_dropped_are_a_tie(
        self, measured: Callable[..., dict[str, Any]]
    ):
        # seq keeps the neutral passage alone, for nothing else is compatible with the query.
        dropped = {
            "id": "e-2",
            "source": "Wiki",
            "a": "sea- noisy+",
            "b": "sea- noisy+ club+",
            "neutral": "quiet+",
            "qa": "sea- quiet+",
        }
        assert means(measured({**OURS, "a": "hotel club+"}, dropped)["seq"])["edits"] == 1 / 2

    def test_a_passage_of_two_items_is_one_document(self, setup: Setup):
        other = {**OURS, "id": "t-2", "b": "hotel club"}
        lines(setup.written / "contrast.development.jsonl", [OURS, EDIT, other])
        messages: list[str] = []
        table = measure_development(setup, messages.append)
        # three of ours, two of the edit, one more of the other
        assert messages == ["development: 6 passages, 5 queries"]
        assert "5 queries (4 on passages of our own" in table.notes[0]

    def test_ranks_are_shown_as_they_are_and_shares_in_percent(self, setup: Setup):
        lines(setup.written / "contrast.development.jsonl", [OURS, EDIT])
        table = measure_development(setup, said)
        row = next(row for row in table.rows if row[0] == "topical")
        assert [cell.split()[0] for cell in row] == [
            "topical",
            "50.0",
            "100.0",
            "33.3",
            "1.67",
            "100.0",
        ]
        assert len(table.columns) == len(row)

    def test_missing_items_are_named(self, setup: Setup):
        with pytest.raises(NotFound, match="contrast"):
            measure_development(setup, said)


class TestDetection:
    @pytest.fixture
    def data(self, setup: Setup) -> Path:
        asked = [
            ("Which clubs without Ajax won?", "Which clubs won?"),
            ("Sum up the plot without the end", "Why did he stay without pay?"),
            ("Name a river", "What else is there?"),
            ("Parks without benches", "Which park is largest?"),
        ]
        rows = [{"RQ_rewrite": one, "question0": two} for one, two in asked]
        lines(setup.data / "excluir" / "queries_open.jsonl", rows)
        wanted = ["Rome without the popes", "Rome and the popes"]
        texts = [{"_id": str(n), "text": text} for n, text in enumerate(wanted)]
        lines(setup.data / "negconstraint" / "queries.jsonl", texts)
        claims = ["Aspirin does not help mice.", "Aspirin helps mice.", "mice without aspirin"]
        for name in ("scifact", "nfcorpus"):
            texts = [{"_id": str(n), "text": text} for n, text in enumerate(claims)]
            lines(setup.data / name / "queries.jsonl", texts)
        judge(setup.data / "scifact" / "qrels" / "test.tsv", ("0", "d", 1), ("1", "d", 1))
        judge(setup.data / "nfcorpus" / "qrels" / "test.tsv", ("1", "d", 1), ("2", "d", 1))
        real = [
            {"set": "forum", "use": "Measure", "text": "a table without lines"},
            {"set": "forum", "use": "Measure", "text": "a table"},
        ]
        learnt = [text for text in map("query {}".format, range(40)) if is_learnt(text)]
        real += [{"set": "log", "use": "Train", "text": f"{text}"} for text in learnt]
        held = next(t for t in map("a tent without pegs {}".format, range(40)) if not is_learnt(t))
        real.append({"set": "log", "use": "Train", "text": held})
        lines(setup.data / "real-queries" / "open.jsonl", real)
        return setup.data

    @pytest.mark.usefixtures("data")
    def test_the_share_of_each_set_is_that_worked_out_by_hand(self, setup: Setup):
        figures = measure_detection(setup, said).figures
        assert {name: (f["n"], f["mean"]) for name, f in figures.items()} == {
            "ExcluIR, exclusion query (RQ_rewrite)": (4, 3 / 4),
            "ExcluIR, plain question (question0)": (4, 1 / 4),
            "NegConstraint": (2, 1 / 2),
            "SciFact, test": (2, 0),  # the third query is not judged
            "NFCorpus, test": (2, 1 / 2),
            "forum": (2, 1 / 2),
            "log (learnt)": (1, 1),  # what was learnt is not measured
        }

    @pytest.mark.usefixtures("data")
    def test_a_row_shows_how_many_queries_and_the_share_in_percent(self, setup: Setup):
        name, size, share = measure_detection(setup, said).rows[0]
        assert (name, size) == ("ExcluIR, exclusion query (RQ_rewrite)", "4")
        assert share.startswith("75.0 (")

    @pytest.mark.parametrize(
        "name",
        ["negconstraint/queries.jsonl", "excluir/queries_open.jsonl", "nfcorpus/qrels/test.tsv"],
    )
    def test_missing_data_is_named(self, setup: Setup, data: Path, name: str):
        (data / name).unlink()
        with pytest.raises(NotFound, match=re.escape(name)):
            measure_detection(setup, said)

    def test_a_set_without_queries_is_refused(self, setup: Setup, data: Path):
        judge(data / "scifact" / "qrels" / "test.tsv")
        with pytest.raises(InvalidFile, match=r"test\.tsv holds no judgements"):
            measure_detection(setup, said)
