"""search and run with constraints beside the query: what they print and how they exit.

The fake encoder stands in for the model, so that every number shown can be worked out by hand.
"""

import json
from collections.abc import Sequence
from math import log
from pathlib import Path

import pytest

from coder_ir import Document, Retriever
from coder_ir.calibration import Calibration, Logistic
from coder_ir.stores import SqliteStore
from tests.conftest import Command, FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier

WORDS = ["hotel", "garden", "sea", "without", "with"]
HOTELS = [
    Document("loud", "hotel. The disco opens at ten.", "", {"stars": 4}),
    Document("calm", "hotel garden- without+ noise. No disco here.", "", {"stars": 4}),
    Document("car", "hotel sea- with+ parking. Near the ring road.", "", {"stars": 2}),
]
AFFIRMS = "Filtered, since it affirms an excluded phrase or lacks a required one."
RISKY = "Filtered, since its risk of 0.95 is above 0.5."


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three hotels, found by a model without calibration."""
    encoder = FakeEncoder(WORDS)
    monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda spec, runtime: encoder)
    monkeypatch.setattr("coder_ir.retriever.load_parser", lambda encoder: FakeParser())
    monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda name, *, threads: FakeVerifier())
    with Retriever(encoder, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as retriever:
        retriever.add(HOTELS)
    return tmp_path / "index"


@pytest.fixture
def calibrated(index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same index, by a model whose risk is 1/4 without a breach."""
    fitted = Calibration(Logistic((0.0, 0.0, 4 * log(3)), -log(3)))
    monkeypatch.setattr("coder_ir.retriever.load_calibration", lambda spec: fitted)
    return index


def scores(cli: Command, index: Path, *options: object) -> dict[str, float]:
    rows = cli("search", index, "hotel", *options, "--json").rows
    return {row["doc_id"]: row["score"] for row in rows}


class TestExclude:
    def test_the_topic_alone_decides_without_it(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--json").rows
        assert [row["doc_id"] for row in rows] == ["loud", "calm", "car"]

    def test_it_lowers_what_affirms_the_phrase(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--exclude", "disco", "--json")
        assert (done.code, done.err) == (0, "")
        found = {row["doc_id"]: row["score"] for row in done.rows}
        unheard = scores(cli, index, "--exclude", "sauna")  # which no hotel has
        assert found["loud"] < unheard["loud"]
        assert found["calm"] > unheard["calm"]

    def test_the_table_has_all_three(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--exclude", "disco")
        assert done.code == 0
        assert "hits by auto" in done.out
        assert done.out.index("calm") < done.out.index("loud") < done.out.index("car")
        assert "filtered" not in done.out

    def test_the_table_says_what_was_read_of_each_hit(self, cli: Command, index: Path):
        words = cli("search", index, "hotel", "--exclude", "disco").words
        assert "Fits “no disco”: “No disco here.”" in words
        assert "Goes against “no disco”: “The disco opens at ten.”" in words
        assert "Says nothing about “disco”." in words

    def test_with_verify_0_nothing_is_read(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--verify", 0)
        rows = cli("search", index, "hotel", *options, "--json").rows
        assert [row["reading"] for row in rows] == [None] * 3
        words = cli("search", index, "hotel", *options).words
        assert words.count("On the topic; not read for “no disco”.") == 3

    def test_json_tells_what_was_read(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--exclude", "disco", "--json").rows
        loud = next(row for row in rows if row["doc_id"] == "loud")
        assert loud["reading"] == {
            **{"satisfies": 0.06, "violates": 0.9, "silent": 0.04, "risk": 0.95},
            "decisive": {"start": 7, "end": 30},
        }
        assert loud["scoring"].startswith("Topic 1.000, now ")

    def test_another_verifier_may_be_named(
        self, cli: Command, index: Path, monkeypatch: pytest.MonkeyPatch
    ):
        asked: list[tuple[str, int]] = []

        def load(name: str, *, threads: int) -> FakeVerifier:
            asked.append((name, threads))
            return FakeVerifier()

        monkeypatch.setattr("coder_ir.retriever.load_verifier", load)
        cli("search", index, "hotel", "--verifier", "mine", "--threads", 2)
        cli("search", index, "hotel")
        assert asked == [("mine", 2), ("built-in", 0)]

    def test_it_may_be_said_again(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--exclude", "ring road", "--hard", "--json")
        rows = cli("search", index, "hotel", *options).rows
        assert [row["doc_id"] for row in rows] == ["calm"]


class TestRequire:
    def test_it_raises_what_has_the_phrase(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--require", "parking", "--json").rows
        assert [row["doc_id"] for row in rows] == ["loud", "car", "calm"]
        unheard = scores(cli, index, "--require", "sauna")  # which no hotel has
        found = {row["doc_id"]: row["score"] for row in rows}
        assert found["car"] - found["loud"] > unheard["car"] - unheard["loud"]

    def test_hard_drops_what_lacks_it(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--require", "parking", "--hard", "--json").rows
        assert [row["doc_id"] for row in rows] == ["car"]


class TestHard:
    def test_the_table_counts_what_was_dropped(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--exclude", "disco", "--hard")
        assert done.code == 0
        assert "loud" not in done.out
        assert "Filtered: 1; --explain says why." in done.words
        assert AFFIRMS not in done.words

    def test_explain_lists_it_with_the_reason(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--exclude", "disco", "--hard", "--explain")
        assert "loud" in done.out
        assert AFFIRMS in done.words

    def test_json_lists_it_only_with_explain(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--hard", "--json")
        rows = cli("search", index, "hotel", *options).rows
        assert [row["doc_id"] for row in rows] == ["calm", "car"]
        [*_, gone] = cli("search", index, "hotel", *options, "--explain").rows
        assert (gone["doc_id"], gone["filtered"], gone["reason"]) == ("loud", True, AFFIRMS)
        assert gone["risk"] is None

    def test_where_all_were_dropped_the_table_counts_them(self, cli: Command, index: Path):
        options = ("--exclude", "hotel", "--hard")
        done = cli("search", index, "hotel", *options)
        assert (done.code, done.err) == (0, "")
        assert "Filtered: 3; --explain says why." in done.words
        assert "loud" not in done.out
        assert cli("search", index, "hotel", *options, "--explain").words.count(AFFIRMS) == 3
        assert cli("search", index, "hotel", *options, "--json").rows == []

    def test_it_keeps_to_a_condition_too(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--hard", "--where", "stars=4", "--json")
        assert [row["doc_id"] for row in cli("search", index, "hotel", *options).rows] == ["calm"]


class TestRisk:
    def test_a_model_without_calibration_shows_null(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--exclude", "disco", "--json").rows
        assert [row["risk"] for row in rows] == [None, None, None]

    def test_a_calibrated_model_shows_the_probability(self, cli: Command, calibrated: Path):
        rows = cli("search", calibrated, "hotel", "--exclude", "disco", "--json").rows
        risk = {row["doc_id"]: row["risk"] for row in rows}
        assert risk == pytest.approx({"calm": 0.05, "loud": 0.95, "car": 0.25})

    def test_the_table_has_a_column_for_it(self, cli: Command, calibrated: Path):
        head, calm, *_ = (
            line.split()
            for line in cli("search", calibrated, "hotel", "--exclude", "disco").out.splitlines()
        )
        assert head[:4] == ["score", "topical", "compat.", "risk"]
        assert calm[4:6] == ["0.05", "calm"]

    def test_the_column_is_empty_without_calibration(self, cli: Command, index: Path):
        _, calm, *_ = cli("search", index, "hotel", "--exclude", "disco").out.splitlines()
        assert calm.split()[4] == "calm"

    def test_max_risk_drops_what_is_riskier(self, cli: Command, calibrated: Path):
        options = ("--exclude", "disco", "--max-risk", 0.5)
        done = cli("search", calibrated, "hotel", *options, "--explain", "--json")
        assert done.code == 0
        _, *hits, gone = done.rows
        assert [row["doc_id"] for row in hits] == ["calm", "car"]
        assert gone["doc_id"] == "loud"
        assert (gone["filtered"], gone["reason"]) == (True, RISKY)
        assert gone["risk"] == pytest.approx(0.95)
        assert RISKY in cli("search", calibrated, "hotel", *options, "--explain").words

    def test_max_risk_without_calibration_exits_2_with_advice(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--max-risk", 0.5)
        assert (done.code, done.out) == (2, "")
        assert "max_risk needs a calibrated model, which 'fake' is not" in done.err


class TestExplain:
    QUERY = "hotel without disco"

    def test_the_table_says_what_the_query_was_understood_to_state(self, cli: Command, index: Path):
        done = cli("search", index, self.QUERY, "--explain")
        assert done.code == 0
        query, understood = (line.rstrip() for line in done.out.splitlines()[:2])
        assert query == self.QUERY
        assert understood == "constraint 1.00; not: disco; look for: hotel"

    def test_phrases_given_beside_the_query_are_said_too(self, cli: Command, index: Path):
        options = ("--exclude", "stairs", "--require", "parking", "--explain")
        words = cli("search", index, self.QUERY, *options).words
        assert "not: disco, stairs; required: parking; look for: hotel" in words

    def test_a_query_without_a_constraint_is_said_to_have_none(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--explain")
        assert done.out.startswith("hotel\nno constraint (0.00)\n")

    def test_square_brackets_in_a_phrase_are_shown_as_they_are(self, cli: Command, index: Path):
        done = cli("search", index, "hotel", "--exclude", "the [bold] disco", "--explain")
        assert "not: the [bold] disco" in done.words

    def test_each_hit_says_how_its_score_came_about(self, cli: Command, index: Path):
        rows = cli("search", index, "hotel", "--exclude", "disco", "--json").rows
        words = cli("search", index, "hotel", "--exclude", "disco", "--explain").words
        assert all(words.count(row["scoring"]) == 1 for row in rows)

    def test_a_reason_that_is_the_score_is_said_once(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--policy", "compatibility")
        rows = cli("search", index, "hotel", *options, "--json").rows
        words = cli("search", index, "hotel", *options, "--explain").words
        assert [row["reason"] for row in rows] == [row["scoring"] for row in rows]
        assert len({row["reason"] for row in rows}) == 3
        assert all(words.count(row["reason"]) == 1 for row in rows)

    def test_each_unread_hit_names_the_sentence_that_decided(self, cli: Command, index: Path):
        options = ("--exclude", "disco", "--verify", 0, "--explain")
        words = cli("search", index, "hotel", *options).words
        assert "Decided by: “hotel garden- without+ noise.”" in words
        assert "Decided by: “hotel.”" in words

    def test_json_names_it_too(self, cli: Command, index: Path):
        _, *rows = cli("search", index, "hotel", "--exclude", "disco", "--explain", "--json").rows
        assert {row["doc_id"]: row["decisive"] for row in rows} == {
            "calm": "No disco here.",
            "loud": "The disco opens at ten.",
            "car": "hotel sea- with+ parking.",
        }

    def test_json_begins_with_what_the_query_was_understood_to_state(
        self, cli: Command, index: Path
    ):
        options = ("--exclude", "stairs", "--require", "parking", "--explain", "--json")
        first, *hits = cli("search", index, "hotel near the sea without disco", *options).rows
        assert first == {
            "constraint": {
                "query": "hotel near the sea without disco",
                "probability": 1.0,
                "excluded": ["disco", "stairs"],
                "required": ["parking"],
                "topic": "hotel near the sea",
                "spans": [
                    {
                        "start": start,
                        "end": end,
                        "role": role,
                        "text": text,
                        "names": [],
                        "probability": 1.0,
                    }
                    for start, end, role, text in (
                        (19, 26, "cue", "without"),
                        (27, 32, "excluded", "disco"),
                    )
                ],
            }
        }
        assert [hit["rank"] for hit in hits] == [1, 2, 3]

    def test_without_explain_neither_is_shown(self, cli: Command, index: Path):
        done = cli("search", index, self.QUERY)
        assert self.QUERY not in done.out
        assert "constraint 1.00" not in done.out
        assert "Decided by" not in done.out
        assert all("decisive" not in row for row in cli("search", index, "hotel", "--json").rows)


@pytest.mark.parametrize("command", ["search", "run"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--hard",), "mode hard needs something to exclude or require"),
        (("--exclude", " "), "exclude and require take phrases, got '"),
        (("--require", ""), "exclude and require take phrases, got '"),
        (("--verify", -1), "verify must not be negative, got -1"),
        (("--verify", 5, "--policy", "seq"), "takes no account of a verifier's word"),
        (("--verify", 0, "--hard", "--exclude", "x"), "mode hard has passages read"),
        (("--max-risk", 1.5), "max_risk is a probability from 0 to 1, got 1.5"),
        (("--max-risk", -1), "max_risk is a probability from 0 to 1, got -1"),
        (("--max-risk", 0.5), "max_risk needs a calibrated model"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_misuse_exits_2_and_says_why(
    cli: Command, index: Path, command: str, options: Sequence[object], said: str
):
    asked = index.with_name("queries.jsonl")
    asked.write_text('{"_id": "q", "text": "hotel"}\n')
    output = index.with_name("run.trec")
    rest = ("hotel",) if command == "search" else (asked, "-o", output)
    done = cli(command, index, *rest, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not output.exists()


class TestRun:
    @pytest.fixture
    def queries(self, tmp_path: Path) -> Path:
        path = tmp_path / "queries.jsonl"
        rows = [{"_id": "q1", "text": "hotel"}, {"_id": "q2", "text": "hotel sea"}]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def ranked(self, cli: Command, index: Path, queries: Path, *options: object) -> list[str]:
        """Query and document of each line of the run."""
        output = index.with_name("run.trec")
        done = cli("run", index, queries, "-o", output, *options)
        assert (done.code, done.out) == (0, ""), done.err
        return [" ".join(line.split()[0:3:2]) for line in output.read_text().splitlines()]

    def test_a_phrase_counts_for_every_query(self, cli: Command, index: Path, queries: Path):
        lines = self.ranked(cli, index, queries, "--exclude", "disco", "--hard")
        assert lines == ["q1 calm", "q1 car", "q2 car", "q2 calm"]

    def test_it_orders_as_search_does(self, cli: Command, index: Path, queries: Path):
        options = ("--exclude", "disco", "--require", "parking")
        lines = self.ranked(cli, index, queries, *options)
        rows = cli("search", index, "hotel", *options, "--json").rows
        assert lines[:3] == [f"q1 {row['doc_id']}" for row in rows]

    def test_max_risk_limits_it(self, cli: Command, calibrated: Path, queries: Path):
        lines = self.ranked(cli, calibrated, queries, "--exclude", "disco", "--max-risk", 0.5)
        assert lines == ["q1 calm", "q1 car", "q2 car", "q2 calm"]
