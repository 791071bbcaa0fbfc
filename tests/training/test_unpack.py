"""From a model folder back to a sentence-transformers folder."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

from onnxruntime import InferenceSession
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.onnx import OnnxEncoder, pool
from coder_ir.encoders.registry import built_in_folder
from coder_ir.errors import InvalidFile, InvalidValue
from coder_ir.training.bert_graph import build
from coder_ir.training.export import ExportPlan, export_model
from coder_ir.training.unpack import UnpackReport, read_graphs, unpack
from coder_ir.vectors import unit_rows
from tests.conftest import Command
from tests.tiny_bert import save_tiny_bert, with_upper_layers_changed


@pytest.fixture(scope="module")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_upper_layers_changed(tiny, tmp_path_factory.mktemp("trained") / "model")


@pytest.fixture(scope="module")
def exported(tiny: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder whose two encoders share their first two layers."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    export_model(ExportPlan(str(tiny), str(trained), folder, "toy", "none"))
    return folder


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, UnpackReport]:
    """The compatibility encoder inside the package, unpacked."""
    folder = tmp_path_factory.mktemp("built-in") / "encoder"
    return folder, unpack(built_in_folder(), folder)


def test_weights_are_the_trained_ones_but_for_rounding(exported: Path, trained: Path):
    weights, shape = read_graphs([exported / "shared.onnx", exported / "compatibility.onnx"])
    before = load_file(trained / "model.safetensors")
    assert (shape.layers, shape.heads, shape.epsilon) == (3, 2, 1e-12)
    assert set(weights) == set(before)
    for name in before:
        if name.startswith("encoder."):
            step = np.abs(before[name]).max() / 63  # seven bits and a sign
            np.testing.assert_allclose(weights[name], before[name], atol=step)


def test_the_built_in_encoder_keeps_its_vectors(built_in: tuple[Path, UnpackReport]):
    folder, report = built_in
    model = SentenceTransformer(str(folder), device="cpu")
    documents, queries = load_sample()
    own = OnnxEncoder(built_in_folder())
    passages, asked = [d.content for d in documents[:20]], [q.text for q in queries]
    for texts, kind, rows in (
        (passages, "document", model.encode_document(passages)),
        (asked, "query", model.encode_query(asked)),
    ):
        cosines = (own.encode_space(texts, space="compatibility", kind=kind) * rows).sum(axis=1)
        assert cosines.mean() >= 0.99
        assert (
            cosines.min() >= 0.98
        )  # the graphs round what flows through them; the test below does not
    assert report.texts == len(documents) + len(queries)
    assert report.passed


def test_torch_computes_what_the_unpacked_weights_say(built_in: tuple[Path, UnpackReport]):
    folder, source = built_in[0], built_in_folder()
    weights, shape = read_graphs([source / "shared.onnx", source / "compatibility.onnx"])
    graph = build(weights, shape, range(shape.layers), output="hidden_out")
    running = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    text = "A hotel near the nightlife: the club downstairs plays until four."
    own = OnnxEncoder(source)
    ids = np.array(own.tokens([text], own.manifest.compatibility, "document"))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    (hidden,) = running.run(["hidden_out"], feed)
    [row] = unit_rows(pool(hidden[0], "mean")[None])
    model = SentenceTransformer(str(folder), device="cpu")
    assert row @ model.encode_document(text) > 0.99999


def test_the_folder_carries_limit_prompts_and_card(built_in: tuple[Path, UnpackReport]):
    folder, _ = built_in
    role = Manifest.load(built_in_folder()).compatibility
    model = SentenceTransformer(str(folder), device="cpu")
    assert model.prompts == {"query": role.query_prefix, "document": role.document_prefix}
    assert model.max_seq_length == role.max_length
    assert model.similarity_fn_name == "cosine"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "unpacked by coder-ir from int8" in card
    assert "# Compatibility encoder" in card
    assert "Verifier" not in card


def test_an_encoder_without_shared_layers_and_with_cls_pooling_is_unpacked(
    tiny: Path, tmp_path: Path
):
    other = save_tiny_bert(tmp_path / "other", seed=9, pooling="cls", prompts={"query": "not "})
    model = tmp_path / "model"
    export_model(ExportPlan(str(other), str(tiny), model, "toy", "none"))
    assert Manifest.load(model).trunk is None
    report = unpack(model, tmp_path / "unpacked", space="topical")
    pooling = json.loads((tmp_path / "unpacked" / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode"] == "cls"
    assert report.space == "topical"
    assert report.mean_cosine > 0.9  # seven bits are few for a network of 32 dimensions


def test_a_folder_with_something_in_it_is_not_written_to(exported: Path, tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InvalidValue, match="is not empty"):
        unpack(exported, tmp_path)


def test_a_graph_from_elsewhere_is_refused(exported: Path):
    with pytest.raises(InvalidFile, match="no encoder that `coder-ir train export` wrote"):
        read_graphs([exported / "compatibility.onnx"])  # without the layers below


def test_the_command_says_how_close_it_is(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    report = UnpackReport("topical", 132, 0.998, 0.981)
    monkeypatch.setattr("coder_ir.training.unpack.unpack", lambda *_, **__: report)
    done = cli("model", "export", tmp_path / "encoder", "--topical")
    assert done.code == 0
    assert "132 texts" in done.out
    assert "0.9810 at least" in done.out


def test_the_command_fails_where_vectors_stray(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    report = UnpackReport("compatibility", 132, 0.98, 0.97)
    monkeypatch.setattr("coder_ir.training.unpack.unpack", lambda *_, **__: report)
    done = cli("model", "export", tmp_path / "encoder")
    assert done.code == 1
    assert "stray too far" in done.err
