"""The page of all results, put together from hand-made tables."""

from pathlib import Path

import pytest

from coder_ir.errors import NotFound
from coder_ir.experiments.page import compose_results, filled
from coder_ir.experiments.run import EXPERIMENTS, run_experiments
from coder_ir.experiments.setup import Setup
from tests.experiments.conftest import said

TABLES = [name for name in EXPERIMENTS if name not in ("card", "results")]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Tables of two measurements."""
    made = Setup(tmp_path / "data", tmp_path / "docs" / "results", "none", "fake")
    made.out.mkdir(parents=True)
    survival = "## Survival\n\n| a |\n\nNote. ![Curve](survival.png) ![Far](img/far.png)\n"
    (made.out / "survival.md").write_text(survival)
    (made.out / "beir.md").write_text("## Quality (BEIR)\n\n| b |\n\nSee [here](notes.md).\n")
    return made


def composed(setup: Setup) -> str:
    return compose_results(setup, said).markdown()


def test_a_measured_table_stands_one_level_below_its_section(setup: Setup):
    lines = composed(setup).splitlines()
    titles = [line for line in lines if line.startswith("#")]
    assert titles[:2] == ["# Results", "## Constraint queries"]
    assert titles.index("### Survival") < titles.index("## Ordinary queries")
    assert titles.index("## Ordinary queries") < titles.index("### Quality (BEIR)")
    assert "| b |" in lines


def test_a_table_that_was_not_measured_is_named_with_its_command(setup: Setup):
    text = composed(setup)
    for name in TABLES:
        words = f"### {name}\n\nNot measured; run: `coder-ir bench {name}`.\n"
        assert (words in text) == (name not in ("survival", "beir")), name


def test_pictures_are_found_from_where_the_page_is(setup: Setup):
    text = composed(setup)
    assert "![Curve](results/survival.png)" in text
    assert "![Far](img/far.png)" in text
    assert "[here](notes.md)" in text


def test_it_says_how_the_papers_figures_differ(setup: Setup):
    text = composed(setup)
    before = text[: text.index("## Constraint queries")]
    for words in ("BGE-large (335M", "bge-small (33M)", "800 queries each", "691 pairs"):
        assert words in before


def test_it_is_written_above_the_tables(setup: Setup, tmp_path: Path):
    (text,) = run_experiments(["results"], setup, report=said)
    assert (tmp_path / "docs" / "results.md").read_text(encoding="utf-8") == text


def test_what_was_measured_since_is_in_the_next_one(setup: Setup):
    before = composed(setup)
    (setup.out / "nevir.md").write_text("## NevIR\n")
    assert "### NevIR" not in before
    assert "### NevIR" in composed(setup)


class TestFilled:
    def test_a_marked_table_is_replaced_by_the_measured_rows(self, tmp_path: Path):
        (tmp_path / "t.md").write_text(
            "## T\n\n| a | b |\n| --- | --- |\n| x | 1 |\n| *paper: y* | 2 |\n"
            "| z | not measured: gone |\n| x − topical | 3 |\n\nNote.\n"
        )
        page = "Before\n\n<!-- table: t -->\n\n| old | row |\n\nAfter | as it was\n"
        rows = "| a | b |\n| --- | --- |\n| x | 1 |\n"
        expected = f"Before\n\n<!-- table: t -->\n\n{rows}\nAfter | as it was\n"
        assert filled(page, tmp_path) == expected
        assert filled(expected, tmp_path) == expected

    def test_a_table_that_was_not_measured_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match="run first: coder-ir bench t"):
            filled("<!-- table: t -->\n", tmp_path)
