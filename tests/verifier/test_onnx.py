"""Cross-encoders on ONNX Runtime: a graph that counts, and a tiny random BERT against torch."""

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx: the extra train")

from coder_ir.calibration import Logistic
from coder_ir.datasets.sample import SampleQuery
from coder_ir.errors import InvalidFile, InvalidValue, ModelMismatch, NotFound
from coder_ir.text import sentence_spans
from coder_ir.types import Document, Reading, Span
from coder_ir.verifier import OnnxVerifier, VerifierManifest
from coder_ir.verifier.folder import CLASSES, GRAPH, TOKENIZER
from tests.tiny_bert import vocabulary
from tests.verifier.graphs import counted, counting, save_counting

QUERY = "a quiet room"
PASSAGES = [
    "the room is dark and quiet. the street is loud",
    "river",
    "the garden is not quiet. no table without a warm room. night",
    "river",
    "clean house with a warm room",
]


def said(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span.start : span.end]


class TestCounting:
    """Each reading follows from the tokens of [CLS] query [SEP] passage [SEP]."""

    def test_a_pair_is_the_query_and_then_the_passage(self, tmp_path: Path):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()))
        (reading,) = verifier.read(QUERY, ["the garden is dark"])
        assert counted(reading) == (3 + 4 + 3, 4 + 1)

    def test_a_passage_may_come_first(self, tmp_path: Path):
        manifest = counting(passage_first=True)
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=manifest))
        (reading,) = verifier.read(QUERY, ["the garden is dark"])
        assert counted(reading) == (3 + 4 + 3, 3 + 1)

    @pytest.mark.parametrize(
        ("query", "passage", "tokens", "second"),
        [
            ("a quiet room", "river " * 50, 16, 16 - 5),
            ("quiet " * 50, "river " * 50, 16, 7 + 1),
            ("quiet " * 50, "river", 6 + 1 + 3, 1 + 1),
            ("quiet " * 6, "river " * 7, 16, 7 + 1),
        ],
        ids=["long passage", "both long", "long query", "just fits"],
    )
    def test_a_query_is_cut_to_half_of_the_limit_and_a_passage_to_the_rest(
        self, tmp_path: Path, query: str, passage: str, tokens: int, second: int
    ):
        # 16 less three special tokens leave 13, of which a query may take six.
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting(max_length=16)))
        (reading,) = verifier.read(query, [passage])
        assert counted(reading) == (tokens, second)

    def test_three_logits_are_probabilities_in_the_order_of_the_classes(self, tmp_path: Path):
        manifest = replace(counting(), classes=("silent", "satisfies", "violates"))
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=manifest))
        (reading,) = verifier.read(QUERY, ["loud loud"])  # 8 tokens, 3 of the second, 2 loud
        odds = {"silent": exp(0.8), "satisfies": exp(0.3), "violates": exp(0.2)}
        expected = [odds[name] / sum(odds.values()) for name in CLASSES]
        found = [reading.satisfies, reading.violates, reading.silent]
        assert found == pytest.approx(expected, abs=1e-6)

    def test_without_a_fit_the_risk_is_the_probability_of_violates(self, tmp_path: Path):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()))
        (reading,) = verifier.read(QUERY, ["river"])
        assert reading.risk == reading.violates

    def test_the_risk_is_fitted_on_both_log_ratios_to_satisfies(self, tmp_path: Path):
        manifest = counting(risk=Logistic((2.0, -1.0), 0.5))
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=manifest))
        (reading,) = verifier.read(QUERY, ["loud loud"])  # logits 0.8, 0.3 and 0.2
        logit = 0.5 + 2 * (0.3 - 0.8) - (0.2 - 0.8)
        assert reading.risk == pytest.approx(1 / (1 + exp(-logit)), abs=1e-6)

    def test_the_sentence_is_named_that_is_looked_at_most_by_the_token(self, tmp_path: Path):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()))
        text = "the street is loud and the river is loud. loud night. the garden is dark"
        (reading,) = verifier.read(QUERY, [text])
        assert said(text, reading.decisive) == "loud night."  # 1 of 3 tokens, before 2 of 10

    @pytest.mark.parametrize("first", [False, True], ids=["query first", "passage first"])
    def test_what_a_query_says_names_no_sentence(self, tmp_path: Path, first: bool):
        manifest = counting(passage_first=first)
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=manifest))
        text = "the garden is dark. a loud street"
        (reading,) = verifier.read("loud loud loud", [text])
        assert said(text, reading.decisive) == "a loud street"

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [("a quiet room", "a quiet room"), (" a room ", "a room"), ("", None), (" \n", None)],
    )
    def test_the_only_sentence_decides(self, tmp_path: Path, text: str, sentence: str | None):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()))
        (reading,) = verifier.read(QUERY, [text])
        assert said(text, reading.decisive) == sentence

    def test_a_graph_that_tells_no_attention_names_no_sentence(self, tmp_path: Path):
        folder = save_counting(tmp_path, manifest=counting(), attention=False)
        (reading,) = OnnxVerifier(folder).read(QUERY, ["a quiet room. a loud street"])
        assert reading.decisive is None

    def test_a_strangers_classes_are_those_its_config_names(self, tmp_path: Path):
        labels = ("contradiction", "entailment", "neutral")
        verifier = OnnxVerifier(save_counting(tmp_path, labels=labels))
        (reading,) = verifier.read(QUERY, ["river river"])  # logits 0.8, 0.3 and 0
        assert reading.violates > reading.satisfies > reading.silent

    def test_one_logit_is_the_log_odds_of_satisfies(self, tmp_path: Path):
        verifier = OnnxVerifier(save_counting(tmp_path, width=1, attention=False))
        (reading,) = verifier.read(QUERY, ["river"])  # 7 tokens
        yes = 1 / (1 + exp(-0.7))
        assert reading == Reading(
            pytest.approx(yes), pytest.approx(1 - yes), 0.0, pytest.approx(1 - yes)
        )

    def test_no_passages_have_no_readings(self, tmp_path: Path):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()))
        assert verifier.read(QUERY, []) == []

    def test_equal_passages_are_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        verifier = OnnxVerifier(save_counting(tmp_path, manifest=counting()), threads=1)
        seen: list[str] = []
        one = verifier._read

        def noted(asked: Any, passage: str, room: int) -> Reading:
            seen.append(passage)
            return one(asked, passage, room)

        monkeypatch.setattr(verifier, "_read", noted)
        found = verifier.read(QUERY, PASSAGES)
        assert seen == list(dict.fromkeys(PASSAGES))
        assert found[1] == found[3]


class TestRefused:
    @pytest.mark.parametrize("threads", [0, -1])
    def test_fewer_than_one_thread(self, tmp_path: Path, threads: int):
        with pytest.raises(InvalidValue, match=f"threads must be at least 1, .* got {threads}"):
            OnnxVerifier(save_counting(tmp_path, manifest=counting()), threads=threads)

    @pytest.mark.parametrize(
        ("manifest", "width", "message"),
        [
            (counting(), 2, "gives 2 logits a pair; 3 were"),
            (None, 3, "gives 3 logits a pair; 1 were"),
        ],
        ids=["two for three classes", "three for none"],
    )
    def test_a_graph_with_other_logits(
        self, tmp_path: Path, manifest: VerifierManifest | None, width: int, message: str
    ):
        with pytest.raises(InvalidFile, match=message):
            OnnxVerifier(save_counting(tmp_path, manifest=manifest, width=width))

    def test_a_graph_that_reads_something_else(self, tmp_path: Path):
        folder = save_counting(tmp_path, manifest=counting(), inputs=("input_ids", "pixels"))
        with pytest.raises(InvalidFile, match="must read input_ids and nothing beyond"):
            OnnxVerifier(folder)

    def test_a_graph_that_was_changed(self, tmp_path: Path):
        folder = save_counting(tmp_path, manifest=counting(sha256={GRAPH: "0" * 64}))
        with pytest.raises(ModelMismatch, match=rf"{GRAPH} is damaged or was changed"):
            OnnxVerifier(folder)

    def test_a_graph_without_types_is_not(self, tmp_path: Path):
        folder = save_counting(tmp_path, manifest=counting(), inputs=("input_ids",))
        assert len(OnnxVerifier(folder).read(QUERY, PASSAGES)) == len(PASSAGES)


def save_tiny(folder: Path, *, labels: int = 3, seed: int = 1) -> Path:
    """A random BERT that reads pairs, as transformers writes it."""
    torch = pytest.importorskip("torch", reason="needs torch: the extra train")
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = vocabulary()
    BertTokenizerFast(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
        num_labels=labels,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertForSequenceClassification(config).save_pretrained(folder)
    return folder


DOCUMENTS = [Document(str(i), text) for i, text in enumerate(dict.fromkeys(PASSAGES))]
SAMPLE = (DOCUMENTS, [SampleQuery(QUERY, "rooms", frozenset("01"), frozenset("23"))])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder and the report."""
    from coder_ir.training.export_verifier import export_verifier

    folder = tmp_path_factory.mktemp("exported") / "verifier"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coder_ir.training.export_verifier.load_sample", lambda: SAMPLE)
        return folder, export_verifier(trained, folder, name="tiny", licence="none")


class TestExported:
    """A tiny BERT as `train export-verifier` writes it."""

    def test_the_folder_describes_itself(self, exported: tuple[Path, Any]):
        folder, _ = exported
        manifest = VerifierManifest.load(folder)
        assert (manifest.name, manifest.licence) == ("tiny", "none")
        assert (manifest.classes, manifest.max_length) == (CLASSES, 64)
        assert set(manifest.sha256) == {GRAPH, TOKENIZER}
        manifest.verify(folder)

    def test_the_report_compares_it_with_torch(self, exported: tuple[Path, Any]):
        _, report = exported
        assert (report.pairs, report.passed) == (4, True)
        assert report.table().startswith("4 pairs, mean difference of probabilities from torch's")

    def test_probabilities_are_those_of_torch_but_for_rounding(
        self, trained: Path, exported: tuple[Path, Any]
    ):
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(trained)
        network = AutoModelForSequenceClassification.from_pretrained(trained).eval()
        readings = OnnxVerifier(exported[0]).read(QUERY, PASSAGES)
        for passage, reading in zip(PASSAGES, readings, strict=True):
            with torch.no_grad():
                pair = tokenizer(QUERY, passage, return_tensors="pt")
                expected = network(**pair).logits.softmax(-1)[0].numpy()
            found = np.array([reading.satisfies, reading.violates, reading.silent])
            assert np.abs(found - expected).max() < 0.1
            assert found.sum() == pytest.approx(1)

    @pytest.mark.parametrize("threads", [1, 2, 3, None])
    def test_a_reading_is_the_same_alone_and_among_others(
        self, exported: tuple[Path, Any], threads: int | None
    ):
        alone = OnnxVerifier(exported[0], threads=1)
        together = OnnxVerifier(exported[0], threads=threads).read(QUERY, PASSAGES)
        assert together == [alone.read(QUERY, [passage])[0] for passage in PASSAGES]

    def test_what_decided_is_a_sentence_of_the_passage(self, exported: tuple[Path, Any]):
        readings = OnnxVerifier(exported[0]).read(QUERY, PASSAGES)
        for passage, reading in zip(PASSAGES, readings, strict=True):
            assert reading.decisive in sentence_spans(passage)

    def test_a_passage_past_the_limit_is_read_as_far_as_it_fits(self, exported: tuple[Path, Any]):
        verifier = OnnxVerifier(exported[0])
        fits = "river " * (64 - 3 - 3)
        whole, cut, more = verifier.read(QUERY, [fits, fits + "loud", fits + "night " * 500])
        assert probabilities(whole) == probabilities(cut) == probabilities(more)

    def test_a_folder_that_holds_a_verifier_is_not_written_over(
        self, trained: Path, exported: tuple[Path, Any]
    ):
        from coder_ir.training.export_verifier import export_verifier

        with pytest.raises(InvalidValue, match="already holds a verifier; choose another folder"):
            export_verifier(trained, exported[0], name="again", licence="none")

    def test_a_model_of_other_classes_is_refused(self, tmp_path: Path):
        from coder_ir.training.export_verifier import export_verifier

        two = save_tiny(tmp_path / "two", labels=2)
        with pytest.raises(InvalidValue, match="has 2 classes; a verifier has 3"):
            export_verifier(two, tmp_path / "out", name="two", licence="none")
        assert not (tmp_path / "out").exists()

    def test_a_folder_that_was_not_trained_is_refused(self, tmp_path: Path):
        from coder_ir.training.export_verifier import export_verifier

        with pytest.raises(NotFound, match=rf"is no trained verifier: it has no {TOKENIZER}"):
            export_verifier(tmp_path, tmp_path / "out", name="none", licence="none")


def probabilities(reading: Reading) -> tuple[float, float, float]:
    return reading.satisfies, reading.violates, reading.silent
