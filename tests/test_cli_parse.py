"""parse: what it prints, how it exits; and a query that an option parser would eat."""

import json
from pathlib import Path

import pytest

from tests.conftest import Command, FakeParser


@pytest.fixture(autouse=True)
def _parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that knows `without`, in place of the trained one."""
    monkeypatch.setattr("coder_ir.encoders.registry.load_encoder", lambda spec: None)
    monkeypatch.setattr("coder_ir.query.load_parser", lambda encoder: FakeParser(0.9))


def test_json_has_one_object_a_query_with_every_field(cli: Command):
    done = cli("parse", "--json", "hotel without pool", "hotel")
    assert (done.code, done.err) == (0, "")
    stated, plain = done.rows
    assert stated == {
        "query": "hotel without pool",
        "probability": 0.9,
        "excluded": ["pool"],
        "required": [],
        "topic": "hotel",
        "spans": [
            {
                "start": 6,
                "end": 13,
                "role": "cue",
                "text": "without",
                "names": [],
                "probability": 1.0,
            },
            {
                "start": 14,
                "end": 18,
                "role": "excluded",
                "text": "pool",
                "names": [],
                "probability": 1.0,
            },
        ],
    }
    assert (plain["probability"], plain["excluded"], plain["topic"]) == (0.0, [], "hotel")


def test_a_dash_reads_queries_from_stdin_and_passes_empty_lines(cli: Command):
    done = cli("parse", "--json", "-", stdin=b"hotel without pool\n\nhotel\n")
    assert [row["query"] for row in done.rows] == ["hotel without pool", "hotel"]


def test_people_are_told_in_words(cli: Command):
    done = cli("parse", "hotel without pool", "hotel")
    assert done.out.splitlines() == [
        "hotel without pool",
        "  constraint 0.90; not: pool; look for: hotel",
        "hotel",
        "  no constraint (0.00)",
    ]


@pytest.mark.parametrize("query", ["", "  "])
def test_an_empty_query_exits_2(cli: Command, query: str):
    done = cli("parse", query)
    assert (done.code, done.err) == (2, "coder-ir: the query is empty; say what to look for\n")


def test_a_query_may_start_with_an_operator_behind_two_dashes(cli: Command):
    done = cli("parse", "--json", "--", "-pool hotel")
    assert json.loads(done.out)["query"] == "-pool hotel"


@pytest.mark.parametrize("command", [("search", "index"), ("parse",)], ids=lambda c: c[0])
@pytest.mark.parametrize("query", ["-pool hotel", '-"a pool"', "-x"])
def test_an_operator_that_was_read_as_an_option_is_named(
    cli: Command, tmp_path: Path, command: tuple[str, ...], query: str
):
    done = cli(*command, query)
    assert done.code == 2
    named = len(query) > 2
    assert (f"{query!r} was read as an option" in done.err) is named
    assert (f"coder-ir {command[0]} … -- {query!r}" in done.err) is named


def test_another_misuse_says_nothing_of_operators(cli: Command):
    done = cli("search", "--nonsense")
    assert done.code == 2
    assert "behind --" not in done.err
