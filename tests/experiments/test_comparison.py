"""Systems side by side, as TOML describes them, over sets small enough to work out by hand."""

from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from math import log2
from pathlib import Path

import pytest

from coder_ir.datasets.registry import BENCHMARKS
from coder_ir.encoders import Runtime
from coder_ir.errors import InvalidFile
from coder_ir.experiments.comparison import (
    Comparison,
    comparing,
    load_comparison,
    measure_comparison,
    parse_comparison,
)
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.types import SATISFYING, Document, Qrels
from tests.conftest import FakeEncoder
from tests.experiments.conftest import STAY, Loaded, said

TOML = """
title = "Hotels"
data = ["stay", "fiqa"]
measures = ["R@1", "nDCG@5", "V@1", "FVR@10"]
note = "A note."
{more}
[[system]]
name = "topic"
policy = "topical"
{expected}

[[system]]
name = "compatible"
policy = "compatibility"
"""
SHIPPED = sorted(
    Path(path.name).stem
    for path in (resources.files("coder_ir.experiments") / "conditions").iterdir()
)
Measured = Callable[..., Table]


def parsed(*, more: str = "", expected: str = "", data: tuple[str, ...] = ("stay",)) -> Comparison:
    """What the TOML describes, asked of some of its data."""
    found = parse_comparison("hotels", TOML.format(more=more, expected=expected))
    return replace(found, data=data)


def lines(table: Table) -> dict[tuple[str, str], tuple[str, ...]]:
    """Cells without their intervals, by data and system."""
    return {row[:2]: tuple(cell.split(" (")[0] for cell in row[2:]) for row in table.rows}


@pytest.fixture
def measured(setup: Setup, sets: dict, loaded: Loaded) -> Measured:
    """Measures a comparison with STAY in place of the data it names."""
    sets["stay"] = STAY
    return lambda asked: measure_comparison(asked, setup, said)


class TestFigures:
    # By topic, q finds the violating a before b and r finds c; by compatibility, b stands first.
    @pytest.mark.parametrize(
        ("system", "expected"),
        [
            (
                "topic",
                {"R@1": 0.5 * (0 + 1), "V@1": 0.5 * (1 + 0), "FVR@10": 0.5 * (1 + 11)},
            ),
            (
                "compatible",
                {"R@1": 0.5 * (0.5 + 1), "V@1": 0, "FVR@10": 0.5 * (2 + 11)},
            ),
        ],
    )
    def test_figures_are_those_worked_out_by_hand(
        self, measured: Measured, system: str, expected: dict[str, float]
    ):
        found = measured(parsed()).figures["results"]["stay"][system]
        assert {name: found[name]["mean"] for name in expected} == pytest.approx(expected)
        assert {figure["n"] for figure in found.values()} == {2}

    def test_grades_are_gains(self, measured: Measured):
        # q: b (2) second and c (1) third, where b first and c second were best; r: c first.
        found = measured(parsed()).figures["results"]["stay"]["topic"]["nDCG@5"]["mean"]
        gained = (2 / log2(3) + 1 / log2(4)) / (2 / log2(2) + 1 / log2(3))
        assert found == pytest.approx((gained + 1) / 2)

    def test_rows_show_rates_in_percent_and_ranks_as_they_are(self, measured: Measured):
        table = measured(parsed())
        assert table.columns == ("data", "system", "R@1 ↑", "nDCG@5 ↑", "V@1 ↓", "FVR@10 ↑")
        assert lines(table)["stay", "topic"][::2] == ("50.0", "50.0")
        assert lines(table)["stay", "topic"][3] == "6.00"
        assert lines(table)["stay", "compatible"][::2] == ("75.0", "0.0")

    def test_the_note_gives_the_sizes(self, measured: Measured):
        (note,) = measured(parsed()).notes
        assert note.startswith("stay 2 queries, 3 documents; percent, ranks for FVR")
        assert note.endswith("drawn together. A note.")

    def test_a_measure_of_violations_is_a_dash_where_none_is_judged(
        self, measured: Measured, sets: dict
    ):
        sets["stay"] = replace(STAY, qrels=Qrels({"q": {"b": SATISFYING}, "r": {"c": SATISFYING}}))
        table = measured(parsed())
        assert lines(table)["stay", "compatible"] == ("100.0", "100.0", "–", "–")
        assert set(table.figures["results"]["stay"]["compatible"]) == {"R@1", "nDCG@5"}

    def test_settings_of_a_policy_count(self, measured: Measured):
        # seq drops what has half of the words: q finds b alone, so that c is missed, r finds c.
        more = '[[system]]\nname = "strict"\npolicy = "seq"\nsettings = { tau = 0.6 }'
        found = lines(measured(parsed(more=more)))
        gained = (2 / (2 + 1 / log2(3)) + 1) / 2
        assert found["stay", "strict"] == ("75.0", f"{100 * gained:.1f}", "0.0", "11.00")

    def test_a_query_that_is_not_answered_counts_as_a_miss(self, measured: Measured, sets: dict):
        grades = {**STAY.qrels.grades, "gone": {"a": SATISFYING}}
        sets["stay"] = replace(STAY, qrels=Qrels(grades))
        found = measured(parsed()).figures["results"]["stay"]["topic"]["R@1"]
        assert (found["mean"], found["n"]) == (pytest.approx(1 / 3), 3)


PAPER = """
[[published]]
name = "BM25"
stay = [1, 2.5, nan, 4]

[[published]]
name = "Rival"
fiqa = [5, 6, 7, 8]
"""


AWAY = "FiQA-2018 is not at hand (coder-ir data get fiqa)"


class TestAbsent:
    def test_data_that_is_not_there_gets_a_row_that_says_so(self, measured: Measured):
        table = measured(replace(parsed(), data=("fiqa", "stay")))
        assert table.rows[0] == (
            "fiqa",
            f"not measured: {AWAY}",
            *"––––",
        )
        assert [row[:2] for row in table.rows[1:]] == [("stay", "topic"), ("stay", "compatible")]
        assert table.figures["absent"] == {
            "fiqa": "FiQA-2018 is not at hand (coder-ir data get fiqa)"
        }
        assert list(table.figures["results"]) == ["stay"]

    def test_the_note_of_a_table_without_data_begins_with_a_word(self, measured: Measured):
        assert measured(parsed(data=("fiqa",))).notes[0].startswith("percent, ranks for FVR")

    def test_the_papers_rows_follow_whether_the_data_is_there_or_not(self, measured: Measured):
        table = measured(replace(parsed(more=PAPER), data=("fiqa", "stay")))
        assert [row[:2] for row in table.rows] == [
            ("fiqa", f"not measured: {AWAY}"),
            ("fiqa", "*paper: Rival*"),
            ("stay", "topic"),
            ("stay", "compatible"),
            ("stay", "*paper: BM25*"),
        ]
        assert table.rows[1][2:] == ("5.00", "6.00", "7.00", "8.00")
        assert table.rows[-1][2:] == ("1.00", "2.50", "–", "4.00")

    def test_a_system_that_lacks_a_part_gets_a_row_and_the_others_are_measured(
        self, measured: Measured
    ):
        more = '[[system]]\nname = "reranked"\nrerank = 5'
        table = measured(parsed(more=more))
        lacking = "reranked: not measured, no cross-encoder; name its folder with --reranker"
        assert ("stay", lacking, *"––––") in table.rows
        assert list(table.figures["results"]["stay"]) == ["topic", "compatible"]


class TestExpected:
    @pytest.mark.parametrize("v1", ["50", "48.5", "51.5"], ids=["equal", "below", "above"])
    def test_figures_within_the_tolerance_are_expected(self, measured: Measured, v1: str):
        asked = parsed(expected=f"expected = {{ stay = [50, 83.5, {v1}, 6.1] }}")
        assert measured(asked).unexpected == ()

    def test_what_is_further_off_is_named_with_what_was_found(self, measured: Measured):
        asked = parsed(expected="expected = { stay = [50, 83, 48, 5.8] }")
        assert measured(asked).unexpected == (
            "hotels: V@1 of topic on stay is 50.00, expected 48.00 ± 1.5",
            "hotels: FVR@10 of topic on stay is 6.00, expected 5.80 ± 0.15",
        )

    def test_the_tolerance_can_be_given(self, measured: Measured):
        asked = parsed(
            more="tolerance = 2.5\nrank_tolerance = 0.05",
            expected="expected = { stay = [50, 83, 48, 5.9] }",
        )
        assert measured(asked).unexpected == (
            "hotels: FVR@10 of topic on stay is 6.00, expected 5.90 ± 0.05",
        )

    def test_nothing_is_expected_of_data_that_is_not_there(self, measured: Measured):
        asked = parsed(expected="expected = { fiqa = [0, 0, 0, 0] }", data=("fiqa",))
        assert measured(asked).unexpected == ()

    def test_nothing_is_expected_where_no_document_violates(self, measured: Measured, sets: dict):
        sets["stay"] = replace(STAY, qrels=Qrels({"r": {"c": SATISFYING}}))
        asked = parsed(expected="expected = { stay = [100, 100, 50, 6] }")
        assert measured(asked).unexpected == ()


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("expected = { sea = [1, 2, 3, 4] }", "figures for 'sea', which is not in data"),
            ("expected = { stay = [1, 2] }", "2 figures for 'stay', measures are 4"),
            ('[[system]]\nname = "topic"', "share a name"),
            ('[[published]]\nname = "X"\nstay = [1]', "published 'X' has 1 figures"),
        ],
        ids=["unknown data", "too few", "a name twice", "published"],
    )
    def test_rows_that_could_only_be_left_out_are_named(self, text: str, named: str):
        with pytest.raises(InvalidFile, match=named):
            parsed(expected=text)


class TestParsing:
    @pytest.mark.parametrize(
        ("old", "new", "named"),
        [
            ("title =", "titel =", "titel"),
            ('policy = "topical"', 'polcy = "topical"', "polcy"),
            ('"R@1"', '"Recalled@1"', "no measure 'Recalled@1'"),
            ('"R@1"', '"R"', "no measure 'R'"),
            ("[[system]]", "[[systems]]", "system"),
            ('data = ["stay", "fiqa"]', "", "data"),
            ('data = ["stay", "fiqa"]', "data = 3", "int"),
            ('title = "Hotels"', "", "title"),
            ('title = "Hotels"', "title = Hotels", "line 2"),
            ('name = "topic"', "", "name"),
            ('note = "A note."', "[[published]]\nstay = [1, 2, 3, 4]", "name"),
        ],
    )
    def test_what_is_no_comparison_is_refused_by_name(self, old: str, new: str, named: str):
        text = TOML.format(more="", expected="").replace(old, new)
        with pytest.raises(InvalidFile, match=rf"hotels\.toml is not a comparison: .*{named}"):
            parse_comparison("hotels", text)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                'policy = "topical"',
                'policy = "seq"\nsettings = { theta = 1 }',
                "policy seq has other settings: .*theta",
            ),
            (
                'policy = "topical"',
                'policy = "seq"\nsettings = { tau = 7 }',
                "tau must be between -1 and 1, got 7",
            ),
            ('policy = "topical"', 'policy = "magic"', "magic"),
            ('policy = "topical"', 'rerank = "20"', "rerank is a number of hits, got '20'"),
            ('note = "A note."', "queries = 0", "queries must be at least 1, got 0"),
            ('"FVR@10"', '"FVR@20"', "FVR@20 looks deeper than the 10 hits that are kept"),
            ('policy = "topical"', 'model = "huge"', "a model is one of .*, got 'huge'"),
        ],
    )
    def test_what_could_not_run_is_refused_before_anything_does(
        self, old: str, new: str, message: str
    ):
        text = TOML.format(more="", expected="").replace(old, new)
        with pytest.raises(InvalidFile, match=message):
            parse_comparison("hotels", text)

    def test_at_most_so_many_queries_are_asked(self, measured: Measured):
        table = measured(parsed(more="queries = 1"))
        assert table.notes[0].startswith("stay 1 queries, 3 documents;")
        assert table.figures["results"]["stay"]["topic"]["V@1"] == {
            "mean": 1,
            "low": 1,
            "high": 1,
            "n": 1,
        }

    @pytest.mark.parametrize(
        ("more", "limit", "texts"),
        [
            ("tokens = 64", 64, ["hotel quiet+ sea garden club"]),
            ("", None, ["hotel quiet+ sea ", "garden club"]),
        ],
        ids=["64 tokens", "no limit"],
    )
    def test_documents_are_cut_to_the_tokens_or_else_split(
        self,
        measured: Measured,
        sets: dict,
        loaded: Loaded,
        encoder: FakeEncoder,
        more: str,
        limit: int | None,
        texts: list[str],
    ):
        sets["stay"] = replace(STAY, documents=(Document("b", "hotel quiet+ sea garden club"),))
        measured(parsed(more=more))
        assert set(loaded) == {("fake", Runtime(max_length=limit))}
        assert encoder.encoded == texts


class TestShipped:
    def test_there_are_some(self):
        assert {"beir", "benchmarks", "diagnostics", "negconstraint", "torch"} <= set(SHIPPED)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_it_parses_and_its_systems_can_be_made(self, name: str):
        asked = load_comparison(name)
        assert asked.name == name
        assert asked.title
        names = [system.name for system in asked.systems]
        assert len(set(names)) == len(names)
        for system in asked.systems:
            assert system.chosen_policy.name == system.policy
            assert {"built-in", "torch", "base", "minilm"} >= set(system.model.split("+"))

    @pytest.mark.parametrize("name", SHIPPED)
    def test_its_data_is_published_somewhere(self, name: str):
        assert set(load_comparison(name).data) <= set(BENCHMARKS)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_its_published_rows_fit_its_data_and_measures(self, name: str):
        asked = load_comparison(name)
        for row in asked.published:
            assert set(row.figures) <= set(asked.data), row.name
            assert {len(figures) for figures in row.figures.values()} == {len(asked.measures)}

    @pytest.mark.parametrize("name", SHIPPED)
    def test_what_it_expects_fits_its_data_and_measures(self, name: str):
        asked = load_comparison(name)
        for sets in asked.expected.values():
            assert set(sets) <= set(asked.data)
            assert {len(figures) for figures in sets.values()} == {len(asked.measures)}

    @pytest.mark.usefixtures("loaded")
    def test_it_is_measured_by_its_name(self, setup: Setup, sets: dict):
        sets["negconstraint"] = STAY
        messages: list[str] = []
        table = comparing("negconstraint")(setup, messages.append)
        assert (table.name, table.title) == ("negconstraint", "NegConstraint")
        assert table.figures["results"]["negconstraint"]["topical"]["R@5"]["mean"] == 1
        assert "negconstraint: negconstraint, auto" in messages
