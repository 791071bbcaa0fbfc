"""The probe: a scripted model answers with its evidence and judges by comparing texts."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from coder_ir.datasets import testset
from coder_ir.errors import NotFound
from coder_ir.experiments.probe import Step, measure_probe
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.systems import System
from coder_ir.experiments.tables import Table
from coder_ir.types import SATISFYING, VIOLATING, Document, Qrels, Query
from tests.experiments.conftest import STAY, said
from tests.language_server import Desk, LanguageServer, Reply, Request

pytest.importorskip("openai", reason="needs the extra llm")

SYSTEMS = (System("topical", policy="topical"), System("by choice", policy="compatibility"))
JUDGED = re.compile(r"Passage A: (.*)\nPassage B: (.*)\nAnswer: (.*)\n")
# Ten queries with a satisfying and a violating passage each.
MANY = testset.TestSet(
    documents=tuple(Document(f"{side}{n}", f"{side} {n} sea") for n in range(10) for side in "gb"),
    queries=tuple(Query(f"q{n}", "sea") for n in range(10)),
    qrels=Qrels({f"q{n}": {f"g{n}": SATISFYING, f"b{n}": VIOLATING} for n in range(10)}),
)


def verdict(letter: str) -> Reply:
    return Reply(json.dumps({"agrees_with": letter}))


def honest(request: Request) -> Reply:
    """Answers with the passage it was given; judges an answer by the passage it equals."""
    prompt = request["messages"][0]["content"]
    judged = JUDGED.search(prompt)
    if judged is None:
        return Reply(prompt.split("Retrieved passage:\n")[1].split("\n\nRules:")[0] or "unknown")
    a, b, answer = judged.groups()
    return verdict("A" if answer == a else "B" if answer == b else "neither")


def undecided(request: Request) -> Reply:
    return verdict("neither") if JUDGED.search(request["messages"][0]["content"]) else Reply("It.")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Desk("sk-probe-0123456789", monkeypatch) as opened:
        yield opened


Probe = Callable[..., Table]


@pytest.fixture
def probe(
    setup: Setup,
    sets: dict,
    loaded: list,
    desk: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Probe:
    """Measures two systems over a test set with a server that follows a script."""
    monkeypatch.setattr(
        "coder_ir.experiments.probe.load_comparison", lambda name: SimpleNamespace(systems=SYSTEMS)
    )
    monkeypatch.setattr("coder_ir.experiments.probe._SYSTEMS", [one.name for one in SYSTEMS])

    def measured(
        script: Callable[[Request], Reply] = honest, test: testset.TestSet = STAY
    ) -> Table:
        sets["nevir-open"] = test
        probe_setup = replace(setup, llm=endpoint(tmp_path, desk.server(script=script)))
        return measure_probe(probe_setup, said)

    return measured


def endpoint(folder: Path, server: LanguageServer) -> Path:
    path = folder / "model.toml"
    path.write_text(f'model = "small"\nbase_url = "{server.url}"\nretries = 0\n')
    return path


def steps(setup: Setup) -> list[dict[str, Any]]:
    text = (setup.out / "probe-log.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


class TestAccuracy:
    def test_it_is_the_share_of_answers_in_the_satisfying_direction(self, probe: Probe):
        figures = probe().figures
        # By topic q meets the violating a first; by compatibility b. Both find c for r.
        assert figures["topical"]["accuracy"]["mean"] == 0.5
        assert figures["by choice"]["accuracy"]["mean"] == 1.0
        assert figures["topical"]["accuracy"]["n"] == 2

    def test_the_first_violating_rank_stands_beside_it(self, probe: Probe):
        figures = probe().figures
        assert figures["topical"]["FVR@10"]["mean"] == (1 + 11) / 2
        assert figures["by choice"]["FVR@10"]["mean"] == (2 + 11) / 2

    def test_an_answer_that_agrees_with_neither_passage_is_wrong(self, probe: Probe, setup: Setup):
        assert probe(undecided).figures["by choice"]["accuracy"]["mean"] == 0
        assert {(step["judged"], step["correct"]) for step in steps(setup)} == {("neither", False)}

    def test_pairs_of_queries_are_drawn_together(self, probe: Probe):
        # One pair alone has one mean, so its interval has no width.
        found = probe(test=replace(STAY, pairs=(("q", "r"),))).figures["topical"]["accuracy"]
        assert (found["low"], found["mean"], found["high"], found["n"]) == (0.5, 0.5, 0.5, 2)

    def test_a_row_a_system_in_percent_and_ranks(self, probe: Probe):
        table = probe()
        assert [row[0] for row in table.rows] == [system.name for system in SYSTEMS]
        assert table.rows[1][1:] == ("100.0 (100.0–100.0)", "6.50 (2.00–11.00)")

    def test_the_note_counts_what_was_asked(self, probe: Probe):
        note = probe().notes[0]
        assert note.startswith("2 queries of nevir-open, evenly spread; small answers from")
        # For r both find the same passage, and the same is not asked twice.
        assert "6 calls of the language model, 2 answers from the cache, 90 tokens" in note


class TestLog:
    def test_it_has_an_object_a_step_with_every_field(self, probe: Probe, setup: Setup):
        probe()
        rows = steps(setup)
        assert [(row["system"], row["query_id"]) for row in rows] == [
            (system.name, query) for system in SYSTEMS for query in "qr"
        ]
        assert all(list(row) == [field.name for field in fields(Step)] for row in rows)

    def test_a_step_goes_from_evidence_to_verdict(self, probe: Probe, setup: Setup):
        probe()
        first = steps(setup)[0]
        assert (first["query"], first["doc_id"]) == ("hotel quiet+", "a")
        assert first["answer"] == "hotel noisy+"
        assert first["judged"] != first["satisfying"]
        assert first["correct"] is False

    def test_a_second_measurement_writes_it_anew(self, probe: Probe, setup: Setup):
        probe()
        before = steps(setup)
        probe()
        assert steps(setup) == before


class TestOrder:
    def test_it_follows_from_the_seed_and_the_query(self, probe: Probe, setup: Setup):
        probe(test=MANY)
        letters = {row["query_id"]: row["satisfying"] for row in steps(setup)}
        assert letters == {
            query.query_id: "A" if Random(f"13 {query.query_id}").random() < 0.5 else "B"
            for query in MANY.queries
        }
        assert set(letters.values()) == {"A", "B"}

    def test_every_system_is_judged_in_the_same_order(self, probe: Probe, setup: Setup):
        probe(test=MANY)
        letters = [row["satisfying"] for row in steps(setup)]
        assert letters[:10] == letters[10:]

    def test_the_letter_is_that_of_the_satisfying_passage(self, probe: Probe, setup: Setup):
        shown: list[tuple[str, str]] = []

        def watched(request: Request) -> Reply:
            if judged := JUDGED.search(request["messages"][0]["content"]):
                shown.append((judged[1], judged[2]))
            return honest(request)

        probe(watched, MANY)
        for row in steps(setup):
            number = row["query_id"][1:]
            good, bad = f"g {number} sea", f"b {number} sea"
            assert ((good, bad) if row["satisfying"] == "A" else (bad, good)) in shown


def test_a_query_without_a_hit_is_answered_from_nothing(
    probe: Probe, setup: Setup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coder_ir.experiments.probe.answered", lambda *_: {})
    assert probe().figures["topical"]["accuracy"]["mean"] == 0
    assert {(row["doc_id"], row["answer"]) for row in steps(setup)} == {("", "unknown")}


def test_without_a_language_model_nothing_is_written(
    setup: Setup, sets: dict, monkeypatch: pytest.MonkeyPatch
):
    sets["nevir-open"] = STAY
    monkeypatch.setattr("coder_ir.experiments.local_model.find_spec", lambda name: None)
    with pytest.raises(NotFound, match="no language model; name one with --llm"):
        measure_probe(setup, said)
    assert not (setup.out / "probe-log.jsonl").exists()
