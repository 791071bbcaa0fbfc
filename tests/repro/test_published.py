"""Figures that the tables call published are those of the paper."""

import math
import tomllib
from pathlib import Path

import pytest

import coder_ir.experiments

CONDITIONS = Path(coder_ir.experiments.__file__).parent / "conditions"


def published(table: str) -> dict[str, list[float]]:
    """Every published figure of a table by system; a figure the paper lacks is left out."""
    text = (CONDITIONS / f"{table}.toml").read_text(encoding="utf-8")
    return {
        system.pop("name"): [x for row in system.values() for x in row if not math.isnan(x)]
        for system in tomllib.loads(text)["published"]
    }


@pytest.mark.parametrize(
    "table", ["beir", "benchmarks", "diagnostics", "negconstraint", "reranker"]
)
def test_every_published_figure_stands_in_the_paper(shared: Path, table: str):
    paper = "".join(file.read_text(encoding="utf-8") for file in shared.glob("paper/*.txt"))
    for system, figures in published(table).items():
        assert [f"{x:.2f}" for x in figures if f"{x:.2f}" not in paper] == [], system


@pytest.mark.parametrize(
    "table", ["beir", "benchmarks", "diagnostics", "negconstraint", "reranker"]
)
def test_no_two_published_systems_have_the_same_figures(table: str):
    rows = [tuple(figures) for figures in published(table).values()]
    assert len(set(rows)) == len(rows)
