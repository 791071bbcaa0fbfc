"""The model card: put together from hand-made tables."""

from pathlib import Path

import pytest

from coder_ir.encoders.folder import Manifest, Role
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments.card import compose_card
from coder_ir.experiments.run import run_experiments
from coder_ir.experiments.setup import Setup

TABLES = (
    *("goals", "development", "nevir", "negconstraint", "beir", "diagnostics"),
    *("reading", "reading-cost", "ordinary", "parsing", "detection", "risk", "encoding"),
)
MADE = "# tiny\n\nTrained on toys."


def said(message: str) -> None:
    assert message


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """A model folder and a table of every name."""
    made = Setup(tmp_path / "data", tmp_path / "docs" / "results", "none", str(tmp_path / "model"))
    made.out.mkdir(parents=True)
    for name in TABLES:
        (made.out / f"{name}.md").write_text(f"## The table {name}\n\n| a |\n", encoding="utf-8")
    (tmp_path / "model").mkdir()
    role = Role("graph.onnx", "out", "cls", "", "", 8, 2)
    Manifest("tiny", "none", "tokenizer.json", role, role, {}).save(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text(f"{MADE}\n", encoding="utf-8")
    return made


def composed(setup: Setup) -> str:
    return compose_card(setup, said).markdown()


def test_what_training_wrote_comes_first_then_the_tables_then_the_limits(setup: Setup):
    titles = [line for line in composed(setup).splitlines() if line.startswith("#")]
    assert titles == ["# tiny", *(f"## The table {name}" for name in TABLES), "## Limits"]


def test_it_is_written_above_the_tables_and_into_the_model_folder(setup: Setup, tmp_path: Path):
    (text,) = run_experiments(["card"], setup, report=said)
    assert (tmp_path / "docs" / "model-card.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "model" / "README.md").read_text(encoding="utf-8") == text


def test_composed_again_it_is_the_same(setup: Setup):
    card = compose_card(setup, said)
    card.save(setup.out)
    assert composed(setup) == card.markdown()


def test_new_figures_replace_the_old_ones(setup: Setup):
    compose_card(setup, said).save(setup.out)
    (setup.out / "nevir.md").write_text("## Measured again\n")
    text = composed(setup)
    assert text.startswith(MADE)
    assert "## Measured again" in text
    assert "The table nevir" not in text


def test_nothing_is_written_before_it_is_saved(setup: Setup, tmp_path: Path):
    composed(setup)
    assert (tmp_path / "model" / "README.md").read_text() == f"{MADE}\n"
    assert not (tmp_path / "docs" / "model-card.md").exists()


def test_pictures_stay_with_the_tables(setup: Setup):
    (setup.out / "risk.md").write_text("## Risk\n\n![curve](risk.png)\n")
    assert "risk.png" not in composed(setup)


def test_a_model_without_a_card_of_its_own_has_figures_alone(setup: Setup, tmp_path: Path):
    (tmp_path / "model" / "README.md").unlink()
    assert composed(setup).startswith("<!-- figures -->\n\n## The table goals")


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_table_is_named_with_its_command(setup: Setup, name: str):
    (setup.out / f"{name}.md").unlink()
    with pytest.raises(NotFound, match=rf"no .*{name}\.md; run first: coder-ir bench {name}$"):
        composed(setup)


def test_a_model_that_is_no_folder_is_refused(tmp_path: Path):
    setup = Setup(tmp_path, tmp_path, "none", "one+two")
    with pytest.raises(InvalidValue, match=r"a card belongs to a model folder, got 'one\+two'"):
        composed(setup)
