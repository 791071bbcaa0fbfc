"""Cross-encoders by name: which runtime is chosen, and a tiny random BERT in torch."""

import sys
from pathlib import Path

import numpy as np
import pytest

from coder_ir.baselines import CrossEncoder, TorchCrossEncoder, load_cross_encoder
from coder_ir.errors import InvalidValue, MissingExtra, NotFound
from tests.tiny_bert import vocabulary

QUERY = "a quiet room"
PASSAGES = [
    *("the room is dark and quiet", "a loud street", "river", "the garden is not quiet"),
    *("very cold night", "no table", "a quiet room", "clean house with a warm room"),
]


def save_tiny_reranker(folder: Path, *, labels: int = 1, scale: float = 1.0) -> Path:
    """Write a BERT that reads pairs; its logits are `scale` times as far apart as they would be."""
    torch = pytest.importorskip("torch", reason="needs torch: the extra train")
    pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = vocabulary()
    BertTokenizerFast(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
        num_labels=labels,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = BertForSequenceClassification(config)
    model.classifier.weight.data *= scale
    model.save_pretrained(folder)
    return folder


def raw_logits(folder: Path) -> np.ndarray:
    """The same pairs without sentence-transformers, one at a time."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        pairs = [tokenizer(QUERY, passage, return_tensors="pt") for passage in PASSAGES]
        return np.array([float(model(**pair).logits[0, 0]) for pair in pairs])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_reranker(tmp_path_factory.mktemp("reranker"))


class TestTorch:
    def test_scores_are_the_models_own_logits(self, folder: Path):
        scores = TorchCrossEncoder(str(folder), batch_size=3).score(QUERY, PASSAGES)
        expected = raw_logits(folder)
        assert scores == pytest.approx(expected, abs=1e-4)
        assert list(np.argsort(scores)) == list(np.argsort(expected))

    def test_high_logits_do_not_become_equal(self, tmp_path: Path):
        wide = save_tiny_reranker(tmp_path, scale=200.0)
        scores = TorchCrossEncoder(str(wide)).score(QUERY, PASSAGES)
        assert (np.abs(scores) > 20).sum() > 1  # where a sigmoid gives 0 or 1
        assert list(np.argsort(scores)) == list(np.argsort(raw_logits(wide)))

    def test_the_query_counts(self, folder: Path):
        model = TorchCrossEncoder(str(folder))
        assert not np.allclose(model.score("a dirty street", PASSAGES), raw_logits(folder))

    def test_no_passages_have_no_scores(self, folder: Path):
        assert TorchCrossEncoder(str(folder)).score(QUERY, []).shape == (0,)

    def test_a_model_with_two_numbers_a_pair_is_refused(self, tmp_path: Path):
        two = save_tiny_reranker(tmp_path, labels=2)
        with pytest.raises(InvalidValue, match="gives 2 numbers a pair; a reranker gives one"):
            TorchCrossEncoder(str(two))

    @pytest.mark.parametrize("name", ["{folder}/gone", "nobody/no-such-model"])
    def test_a_name_that_is_nowhere_is_not_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ):
        pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # no network
        name = name.format(folder=tmp_path)
        with pytest.raises(NotFound, match=f"no cross-encoder '{name}': it is neither a folder"):
            TorchCrossEncoder(name)


def test_without_the_extra_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    says = r"Cross-encoder 'some/model' needs .*pip install 'coder-ir\[train\]'"
    with pytest.raises(MissingExtra, match=says):
        load_cross_encoder("some/model")


class TestLoad:
    def test_a_folder_with_a_graph_needs_no_torch(
        self, shared: Path, monkeypatch: pytest.MonkeyPatch
    ):
        path = shared / "models" / "ms-marco-MiniLM-L12-int8-onnx"
        if not path.is_dir():
            pytest.skip("needs the MS MARCO cross-encoder, which is not on this machine")
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        assert isinstance(load_cross_encoder(str(path)), CrossEncoder)

    def test_any_other_folder_is_for_sentence_transformers(self, folder: Path):
        assert isinstance(load_cross_encoder(str(folder)), TorchCrossEncoder)
