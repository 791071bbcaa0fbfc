import json
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.training.config import BGE_PREFIX, Config, Stage, load_config

LEAST = """\
base = "some/model"
output = "out"

[[stage]]
name = "words"
triplets = "words.jsonl"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "training.toml"
    path.write_text(text, encoding="utf-8")
    return path


class TestDefaults:
    def test_a_stage_follows_the_recipe_of_the_paper(self, tmp_path: Path):
        stage = load_config(written(tmp_path, LEAST)).stages[0]
        recipe = stage.epochs, stage.batch_size, stage.learning_rate
        assert recipe == (1, 16, 2e-5)
        assert stage.development is None

    def test_a_run_follows_the_recipe_of_the_paper(self, tmp_path: Path):
        config = load_config(written(tmp_path, LEAST))
        assert (config.max_length, config.scale, config.frozen_layers) == (128, 20.0, 0)
        assert config.query_prefix == BGE_PREFIX

    def test_the_prefix_is_the_one_of_bge(self):
        assert BGE_PREFIX == "Represent this sentence for searching relevant passages: "


class TestReading:
    def test_every_setting_is_read(self, tmp_path: Path):
        text = """\
base = "some/model"
output = "out"
seed = 7
frozen_layers = 6
max_length = 64
query_prefix = "query: "
scale = 10.0
threads = 1
checkpoint_steps = 5

[[stage]]
name = "words"
triplets = "words.jsonl"
development = "dev.jsonl"
epochs = 2
batch_size = 8
learning_rate = 1e-4
warmup = 0.2
"""
        stage = Stage(
            "words",
            tmp_path / "words.jsonl",
            development=tmp_path / "dev.jsonl",
            epochs=2,
            batch_size=8,
            learning_rate=1e-4,
            warmup=0.2,
        )
        assert load_config(written(tmp_path, text)) == Config(
            "some/model",
            tmp_path / "out",
            (stage,),
            seed=7,
            frozen_layers=6,
            max_length=64,
            query_prefix="query: ",
            scale=10.0,
            threads=1,
            checkpoint_steps=5,
        )

    def test_stages_come_in_the_order_of_the_file(self, tmp_path: Path):
        text = LEAST + '\n[[stage]]\nname = "sentences"\ntriplets = "s.jsonl"\n'
        stages = load_config(written(tmp_path, text)).stages
        assert [stage.name for stage in stages] == ["words", "sentences"]

    def test_relative_paths_start_at_the_folder_of_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        folder = tmp_path / "configs"
        folder.mkdir()
        text = LEAST.replace('"words.jsonl"', '"../data/words.jsonl"')
        written(folder, text)
        monkeypatch.chdir(tmp_path)
        config = load_config(Path("configs/training.toml"))
        assert config.output == folder / "out"
        assert config.stages[0].triplets == tmp_path / "data" / "words.jsonl"

    def test_absolute_paths_stay_as_they_are(self, tmp_path: Path):
        text = LEAST.replace('"out"', f'"{tmp_path.parent / "elsewhere"}"')
        assert load_config(written(tmp_path, text)).output == tmp_path.parent / "elsewhere"

    def test_a_base_beside_the_file_becomes_a_whole_path(self, tmp_path: Path):
        (tmp_path / "some" / "model").mkdir(parents=True)
        assert load_config(written(tmp_path, LEAST)).base == str(tmp_path / "some" / "model")

    def test_a_base_that_is_no_folder_stays_a_name(self, tmp_path: Path):
        assert load_config(written(tmp_path, LEAST)).base == "some/model"

    def test_as_json_holds_every_setting_as_a_plain_value(self, tmp_path: Path):
        config = load_config(written(tmp_path, LEAST))
        plain = json.loads(json.dumps(config.as_json()))
        assert plain["output"] == str(tmp_path / "out")
        assert plain["stages"][0]["triplets"] == str(tmp_path / "words.jsonl")
        assert plain["stages"][0]["development"] is None
        assert plain["seed"] == config.seed


class TestBadFiles:
    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no training config .*none\.toml"):
            load_config(tmp_path / "none.toml")

    def test_broken_toml_is_named_with_the_reason(self, tmp_path: Path):
        with pytest.raises(InvalidFile, match=r"training\.toml is not TOML: .*line 1"):
            load_config(written(tmp_path, "base = \n"))

    def test_a_file_that_is_not_utf8_is_named(self, tmp_path: Path):
        path = tmp_path / "training.toml"
        path.write_bytes(b'base = "caf\xe9"\n')
        with pytest.raises(InvalidFile, match=r"training\.toml"):
            load_config(path)

    @pytest.mark.parametrize(
        "text", ['base = "m"\noutput = "o"\n', "stage = []\n", ""], ids=["none", "empty", "nothing"]
    )
    def test_a_file_without_a_stage_is_refused(self, tmp_path: Path, text: str):
        with pytest.raises(InvalidValue, match=r"has no \[\[stage\]\]"):
            load_config(written(tmp_path, text))

    def test_one_stage_table_without_double_brackets_is_explained(self, tmp_path: Path):
        text = LEAST.replace("[[stage]]", "[stage]")
        with pytest.raises(InvalidValue, match=r"\[\[stage\]\]"):
            load_config(written(tmp_path, text))

    @pytest.mark.parametrize(
        ("text", "key"),
        [
            (f"sead = 1\n{LEAST}", "sead"),
            (f"{LEAST}epoch = 2\n", "epoch"),
            (f"stages = 1\n{LEAST}", "stages"),
        ],
        ids=["of the run", "of a stage", "almost stage"],
    )
    def test_an_unknown_key_is_refused_by_name(self, tmp_path: Path, text: str, key: str):
        with pytest.raises(InvalidValue, match=f"sets '{key}', which is none of"):
            load_config(written(tmp_path, text))

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ('base = "some/model"\n', "base"),
            ('output = "out"\n', "output"),
            ('name = "words"\n', "name"),
            ('triplets = "words.jsonl"\n', "triplets"),
        ],
        ids=["base", "output", "name", "triplets"],
    )
    def test_a_missing_setting_is_named(self, tmp_path: Path, line: str, name: str):
        with pytest.raises(InvalidValue, match=f"is incomplete: .*'{name}'"):
            load_config(written(tmp_path, LEAST.replace(line, "")))

    def test_two_stages_of_one_name_are_refused(self, tmp_path: Path):
        text = LEAST + '\n[[stage]]\nname = "words"\ntriplets = "other.jsonl"\n'
        with pytest.raises(InvalidValue, match="has two stages of one name"):
            load_config(written(tmp_path, text))

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("batch_size = 0", "batch_size"),
            ("epochs = -1", "epochs"),
            ('batch_size = "many"', "batch_size"),
            ("triplets = 3", "triplets"),
        ],
        ids=["batch of none", "negative epochs", "text for a number", "number for a path"],
    )
    def test_a_value_that_cannot_work_is_refused_by_name(
        self, tmp_path: Path, line: str, name: str
    ):
        text = LEAST.replace('triplets = "words.jsonl"\n', "") if name == "triplets" else LEAST
        with pytest.raises(InvalidValue, match=name):
            load_config(written(tmp_path, f"{text}{line}\n"))
