"""Measurements run on small files, and the documentation shows what they wrote."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coder_ir.datasets.nevir import load_nevir
from coder_ir.errors import InvalidFile, InvalidValue, NotReproduced
from coder_ir.experiments.page import filled
from coder_ir.experiments.run import Setup, run_experiments
from coder_ir.experiments.tables import Table, percent, ranks
from coder_ir.metrics import Estimate

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
BEIR = ("scifact", "nfcorpus")
PAIR = {
    "id": "1-1",
    "q1": "Which pool was closed?",
    "q2": "Which pool was open?",
    "doc1": "The pool by the harbour was closed all summer.",
    "doc2": "The pool by the harbour was open all summer.",
}


def quiet(message: str) -> None:
    assert message


def setup(folder: Path) -> Setup:
    return Setup(folder / "data", folder / "out", "no-such-model", "built-in")


def test_a_table_is_saved_as_markdown_and_as_unrounded_figures(tmp_path: Path):
    table = Table("t", "A title", ("a", "b"), (("1", "2"),), ("A note.",), {"x": 0.123456})
    table.save(tmp_path)
    assert (tmp_path / "t.md").read_text() == (
        "## A title\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nA note.\n"
    )
    assert json.loads((tmp_path / "t.json").read_text()) == {"title": "A title", "x": 0.123456}


def test_a_rate_is_shown_in_percent_and_a_rank_as_it_is():
    estimate = Estimate(0.25, 0.2, 0.3, 10)
    assert percent(estimate) == "25.0 (20.0–30.0)"
    assert ranks(estimate) == "0.25 (0.20–0.30)"


def test_an_unknown_measurement_is_refused_before_any_runs(tmp_path: Path):
    with pytest.raises(InvalidValue, match="no measurement 'speed'; there are development"):
        list(run_experiments(["nevir", "speed"], setup(tmp_path), report=quiet))


def test_missing_data_is_named(tmp_path: Path):
    with pytest.raises(NotReproduced, match="NevIR, open half of the test set is not at hand"):
        list(run_experiments(["nevir"], setup(tmp_path), report=quiet))


def test_what_is_not_the_published_set_is_refused(tmp_path: Path):
    source = tmp_path / "data" / "nevir" / "test_open.jsonl"
    source.parent.mkdir(parents=True)
    source.write_text(json.dumps(PAIR) + "\n")
    with pytest.raises(InvalidFile, match=r"test_open\.jsonl is not the published file"):
        list(run_experiments(["nevir"], setup(tmp_path), report=quiet))


def test_nevir_is_measured_for_every_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "data" / "nevir" / "test_open.jsonl"
    source.parent.mkdir(parents=True)
    source.write_text(json.dumps(PAIR) + "\n")
    # One pair is not the published set, which is all that would be loaded otherwise.
    monkeypatch.setattr(
        "coder_ir.experiments.systems.load_benchmark", lambda name, root: load_nevir(source)
    )
    (table,) = run_experiments(["nevir"], setup(tmp_path), report=quiet)
    figures = json.loads((tmp_path / "out" / "nevir.json").read_text())
    assert figures["queries"] == 2
    assert list(figures["policies"]) == ["auto", "topical", "compatibility", "seq", "union"]
    # With two documents, each query's first two hits hold the violating one unless it is dropped.
    assert figures["policies"]["topical"]["V@2"]["mean"] == 1
    assert figures["policies"]["topical"]["R@5"]["mean"] == 1
    assert "2 queries in 1 pairs over 2 documents" in table


def test_the_readme_shows_the_tables_as_they_were_measured():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("<!-- table: ") == 5
    assert filled(readme, RESULTS) == readme, "run: coder-ir bench results --into README.md"


def ndcg_in(results: dict[str, Any], data: str, system: str) -> float:
    return results[data][system]["nDCG@10"]["mean"]


def test_the_sentences_of_the_readme_give_the_figures_that_were_measured():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("nevir", "development", "ordinary", "torch", "diagnostics")
    }
    auto, topical = (found["nevir"]["policies"][name] for name in ("auto", "topical"))
    change = {m: auto[m]["mean"] / topical[m]["mean"] - 1 for m in ("V@1", "FVR@10")}
    lost = 100 * (auto["R@5"]["mean"] - topical["R@5"]["mean"])
    first = {name: found["development"][name]["ours"]["mean"] for name in ("auto", "topical")}
    ndcg = {name: partial(ndcg_in, found[name]["results"]) for name in ("torch",)}
    gap = {d: ndcg["torch"](d, "built-in, int8") - ndcg["torch"](d, "torch float32") for d in BEIR}
    sets = [own for own in found["ordinary"].values() if isinstance(own, dict)]
    cost = [own["difference"]["mean"] for own in sets]
    rank = {
        data: "from {} to {}".format(
            *(f"{own[name]['FVR@10']['mean']:.2f}" for name in ("topical", "auto"))
        )
        for data, own in found["diagnostics"]["results"].items()
    }
    for sentence in (
        f"moves {rank['exclusion'].replace('from ', 'from rank ')} on exclusions",
        f"{rank['negation']} on negations and {rank['antonym']} on antonyms",
        f"has {-100 * change['V@1']:.0f}% fewer violating first hits",
        f"{100 * change['FVR@10']:.0f}% later, at {lost:.1f} points of recall",
        f"in {100 * first['auto']:.0f}% of the queries (topical: {100 * first['topical']:.0f}%)",
        f"{100 * gap['scifact']:.2f} points on SciFact and {100 * gap['nfcorpus']:.2f} on NFCorpus",
        f"`auto` up to {-100 * min(cost):.1f}.",
    ):
        assert sentence in readme, sentence


def test_the_command_reference_is_what_the_help_says(tmp_path: Path):
    made = tmp_path / "cli.md"
    command = ["utils", "docs", "--name", "coder-ir", "--title", "Command line"]
    subprocess.run(
        [Path(sys.executable).parent / "typer", "coder_ir.cli.app", *command, "--output", made],
        check=True,
        capture_output=True,
    )
    assert made.read_text() == (ROOT / "docs" / "cli.md").read_text(), "run: make docs"
