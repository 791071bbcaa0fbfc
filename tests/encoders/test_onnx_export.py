"""ONNX exports without torch: against sentence-transformers, on a random BERT."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coder_ir.baselines.dense import load_dense_encoder
from coder_ir.encoders.combined import CombinedEncoder, SpaceEncoder
from coder_ir.encoders.conventions import BGE_PREFIX
from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.onnx_export import ExportedEncoder, Settings, is_export
from coder_ir.errors import InvalidFile, NotFound

pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")

from tests.tiny_bert import save_tiny_bert

ONE = Runtime(threads=1)
TEXTS = ["a quiet room", "the loud street is not dark", "  River ", "", "very " * 80 + "dark"]


def on_the_grid(folder: Path) -> dict[str, Any]:
    """Moves word rows onto the int8 grid the graph stores them on, and gives all weights."""
    import torch
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    words = state["embeddings.word_embeddings.weight"]
    scales = words.abs().amax(dim=1, keepdim=True).clamp_min(1e-8) / 127
    state["embeddings.word_embeddings.weight"] = torch.round(words / scales) * scales
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return {name: tensor.numpy() for name, tensor in state.items()}


def save_export(folder: Path, **settings: Any) -> Path:
    """A sentence-transformers folder with its graph beside the weights."""
    import onnx
    from transformers import BertConfig

    from coder_ir.training.bert_graph import Shape, build

    save_tiny_bert(folder, **settings)
    weights = on_the_grid(folder)
    shape = Shape.from_config(BertConfig.from_pretrained(folder))
    graph = build(weights, shape, range(shape.layers), output="last_hidden_state")
    onnx.save(graph, folder / "model.onnx")
    shutil.rmtree(folder / "transformers")
    return folder


def changed(folder: Path, name: str, change: Any) -> None:
    """One of the folder's json files with some fields changed, or replaced by a list."""
    path = folder / name
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(change if isinstance(change, list) else {**old, **change}))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("exports")
    return {
        pooling: save_export(root / pooling, pooling=pooling, prompts={"query": "not "})
        for pooling in ("mean", "cls")
    }


@pytest.fixture
def folder(exports: dict[str, Path], tmp_path: Path) -> Path:
    """A copy to change; weights left out, for the graph must do."""
    ignore = shutil.ignore_patterns("model.safetensors")
    return shutil.copytree(exports["mean"], tmp_path / "copy", ignore=ignore)


def theirs(folder: Path, *, modules: int, prompt: str = "") -> np.ndarray:
    """Rows of the library after the first modules."""
    from sentence_transformers import SentenceTransformer

    whole = SentenceTransformer(str(folder), device="cpu")
    part = SentenceTransformer(modules=list(whole)[:modules], device="cpu")
    return part.encode([prompt + text for text in TEXTS], show_progress_bar=False)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_unit_rows_equal_what_the_library_gives(exports: dict[str, Path], pooling: str):
    encoder = ExportedEncoder(exports[pooling], runtime=ONE)
    rows = encoder.encode(TEXTS, kind="document")
    assert (rows.dtype, rows.shape, encoder.settings.pooling) == (np.float32, (5, 32), pooling)
    assert rows == pytest.approx(theirs(exports[pooling], modules=3), abs=1e-4)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_raw_rows_equal_those_of_the_pooling(
    exports: dict[str, Path], tmp_path: Path, pooling: str
):
    folder = shutil.copytree(exports[pooling], tmp_path / "raw")
    changed(folder, "modules.json", json.loads((folder / "modules.json").read_text())[:2])
    raw = ExportedEncoder(folder, runtime=ONE, normalise=False).encode(TEXTS, kind="document")
    assert raw == pytest.approx(theirs(folder, modules=2), abs=1e-4)
    assert abs(np.linalg.norm(raw, axis=1) - 1).min() > 0.1
    unit = ExportedEncoder(folder, runtime=ONE).encode(TEXTS, kind="document")
    assert np.linalg.norm(unit, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_model_that_ends_with_unit_rows_gives_them_raw_too(exports: dict[str, Path]):
    rows = ExportedEncoder(exports["mean"], runtime=ONE, normalise=False).encode(
        TEXTS, kind="document"
    )
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_query_is_read_behind_the_models_own_prompt(exports: dict[str, Path]):
    encoder = ExportedEncoder(exports["mean"], runtime=ONE)
    expected = theirs(exports["mean"], modules=3, prompt="not ")
    assert encoder.encode(TEXTS, kind="query") == pytest.approx(expected, abs=1e-4)


def test_a_document_prompt_and_dot_product_are_read_too(folder: Path):
    stated = {"prompts": {"query": "", "document": "the "}, "similarity_fn_name": "dot"}
    changed(folder, "config_sentence_transformers.json", stated)
    encoder = ExportedEncoder(folder, runtime=ONE)
    prompted = encoder.encode(["river"], kind="document")
    assert prompted == pytest.approx(encoder.encode(["the river"], kind="query"), abs=1e-6)
    assert encoder.similarity == "dot"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_text_has_the_same_bytes_alone_and_among_others(exports: dict[str, Path], threads: int):
    one = ExportedEncoder(exports["cls"], runtime=ONE)
    alone = [one.encode([text], kind="document")[0] for text in TEXTS]
    seen: list[int] = []
    encoder = ExportedEncoder(exports["cls"], runtime=Runtime(threads=threads))
    rows = encoder.encode(TEXTS, kind="document", progress=seen.append)
    assert rows.tobytes() == np.stack(alone).tobytes()
    assert sum(seen) == len(TEXTS)


def test_no_texts_give_no_rows(exports: dict[str, Path]):
    assert ExportedEncoder(exports["cls"], runtime=ONE).encode([], kind="query").shape == (0, 32)


def test_a_graph_in_a_folder_of_its_own_is_found(folder: Path):
    (folder / "onnx").mkdir()
    before = ExportedEncoder(folder, runtime=ONE)
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    after = ExportedEncoder(folder, runtime=ONE)
    assert after.fingerprint == before.fingerprint
    assert is_export(folder)


def test_a_bare_graph_is_pooled_by_the_mean_and_not_normalised(folder: Path):
    for path in folder.iterdir():
        if path.name not in ("model.onnx", "tokenizer.json", "config.json"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    bare = ExportedEncoder(folder, runtime=ONE, normalise=False)
    assert (bare.settings.pooling, bare.max_length, bare.similarity) == ("mean", 64, "cosine")
    assert abs(np.linalg.norm(bare.encode(TEXTS, kind="query"), axis=1) - 1).min() > 0.1


@pytest.mark.parametrize(
    ("name", "change", "limit"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 20}, 20),
        ("tokenizer_config.json", {"model_max_length": 30}, 30),
        ("tokenizer_config.json", {"model_max_length": 10**30}, 64),
        ("config.json", {"max_position_embeddings": 40}, 40),
        ("config.json", {}, 64),
    ],
    ids=["stated", "tokenizer", "endless tokenizer", "positions", "as saved"],
)
def test_the_limit_is_the_models_own(folder: Path, name: str, change: dict[str, int], limit: int):
    changed(folder, name, change)
    encoder = ExportedEncoder(folder, runtime=ONE)
    assert encoder.max_length == limit
    lowered = ExportedEncoder(folder, runtime=Runtime(threads=1, max_length=10))
    one, two = lowered.encode(["very " * 9 + "dark", "very " * 9 + "bright"], kind="document")
    assert lowered.max_length == 10
    assert one == pytest.approx(two, abs=1e-6)


def test_a_model_of_lower_case_words_reads_them_so(folder: Path):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    cased = ExportedEncoder(folder, runtime=ONE).encode(["Quiet", "quiet"], kind="document")
    changed(folder, "sentence_bert_config.json", {"do_lower_case": True})
    lower = ExportedEncoder(folder, runtime=ONE).encode(["Quiet", "quiet"], kind="document")
    assert np.abs(cased[0] - cased[1]).max() > 0.01
    assert lower[0] == pytest.approx(lower[1], abs=1e-6)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"word_embedding_dimension": 32}, "mean"),
        ({"pooling_mode": ["cls"]}, "cls"),
    ],
    ids=["old cls", "old mean", "nothing", "a list of one"],
)
def test_old_and_new_pooling_configs_are_understood(
    folder: Path, config: dict[str, Any], pooling: str
):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert Settings.from_folder(folder).pooling == pooling
    ExportedEncoder(folder, runtime=ONE)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pooling_mode": "max"}, "needs max pooling after it"),
        ({"pooling_mode": ["cls", "mean"]}, r"needs cls\+mean pooling"),
        ({"pooling_mode_max_tokens": True}, "needs max_tokens pooling"),
        ({"pooling_mode": "mean", "include_prompt": False}, r"needs mean\+prompt-free pooling"),
    ],
    ids=["max", "two", "old max", "without the prompt"],
)
def test_pooling_that_this_runtime_does_not_know_is_refused(
    folder: Path, config: dict[str, Any], message: str
):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidFile, match=message):
        ExportedEncoder(folder, runtime=ONE)


def test_further_modules_need_a_graph_that_holds_them(folder: Path):
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(2, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"})
    changed(folder, "modules.json", modules)
    with pytest.raises(InvalidFile, match="needs Dense after it, which only torch runs"):
        ExportedEncoder(folder, runtime=ONE)
    save_sums(folder, output="sentence_embedding", width=3)
    rows = ExportedEncoder(folder, runtime=ONE, normalise=False).encode(["a a"], kind="document")
    assert rows == pytest.approx(np.full((1, 3), 3**-0.5), abs=1e-6)  # it ends with Normalize


def save_sums(folder: Path, *, output: str, width: int, read: str = "attention_mask") -> None:
    """A graph that counts attended tokens, `width` times a text."""
    import onnx

    make, number = onnx.helper, onnx.TensorProto
    inputs = [make.make_tensor_value_info(n, number.INT64, ["n", "t"]) for n in ("input_ids", read)]
    axis = make.make_tensor("axis", number.INT64, [1], [1])
    nodes = [
        make.make_node("Cast", [read], ["real"], to=number.FLOAT),
        make.make_node("ReduceSum", ["real", "axis"], ["sum"], keepdims=1),
        make.make_node("Concat", ["sum"] * width, [output], axis=1),
    ]
    made = make.make_tensor_value_info(output, number.FLOAT, ["n", width])
    graph = make.make_graph(nodes, "count", inputs, [made], initializer=[axis])
    opset = [make.make_opsetid("", 13)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=8), folder / "model.onnx")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output": "logits", "width": 1}, "must have an output of shape"),
        ({"output": "logits", "width": 1, "read": "position_ids"}, "it reads input_ids, position"),
    ],
    ids=["a cross-encoder", "other inputs"],
)
def test_a_graph_of_another_kind_is_refused(folder: Path, settings: dict[str, Any], message: str):
    save_sums(folder, **settings)
    with pytest.raises(InvalidFile, match=message):
        ExportedEncoder(folder, runtime=ONE)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("modules.json", "{}", "must hold a JSON list"),
        ("modules.json", "[1]", "must give each module a type and a path"),
        ("config_sentence_transformers.json", "{", "is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(folder: Path, name: str, text: str, message: str):
    (folder / name).write_text(text)
    with pytest.raises(InvalidFile, match=f"{name} {message}"):
        ExportedEncoder(folder, runtime=ONE)


@pytest.mark.parametrize(
    ("gone", "message"),
    [("model.onnx", "it has no model.onnx or onnx/model.onnx"), ("tokenizer.json", "no tokenizer")],
)
def test_a_folder_without_its_files_is_not_found(folder: Path, gone: str, message: str):
    (folder / gone).unlink()
    with pytest.raises(NotFound, match=message):
        ExportedEncoder(folder, runtime=ONE)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config_sentence_transformers.json", {"prompts": {"query": "no "}}),
        ("1_Pooling/config.json", {"pooling_mode": "cls"}),
        ("config.json", {"max_position_embeddings": 40}),
    ],
    ids=["prompt", "pooling", "limit"],
)
def test_the_fingerprint_changes_with_what_decides_a_vector(
    folder: Path, name: str, change: dict[str, Any]
):
    before = ExportedEncoder(folder, runtime=ONE).fingerprint
    assert ExportedEncoder(folder, runtime=Runtime(threads=2)).fingerprint == before
    assert ExportedEncoder(folder, runtime=ONE, normalise=False).fingerprint != before
    changed(folder, name, change)
    assert ExportedEncoder(folder, runtime=ONE).fingerprint != before


def test_the_fingerprint_changes_with_the_graph(exports: dict[str, Path], folder: Path):
    before = ExportedEncoder(folder, runtime=ONE).fingerprint
    save_sums(folder, output="sentence_embedding", width=32)
    assert ExportedEncoder(folder, runtime=ONE).fingerprint != before


def test_spans_cover_a_long_text_and_fit_the_limit(exports: dict[str, Path]):
    encoder = ExportedEncoder(exports["mean"], runtime=ONE)
    text = "The quiet room is not dark. A loud street, without garden! " * 20
    spans = encoder.split(text)
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    assert all(after.start <= before.end for before, after in pairwise(spans))
    pieces = [text[span.start : span.end] for span in spans]
    short = [encoder.encode([piece], kind="document") for piece in pieces]
    longer = [encoder.encode([piece + "."], kind="document") for piece in pieces]
    # Each piece is read to its end: one more token changes its vector.
    assert all(np.abs(a - b).max() > 1e-4 for a, b in zip(short, longer, strict=True))
    assert [(span.start, span.end) for span in encoder.split("a quiet room")] == [(0, 12)]


def test_it_serves_as_one_side_of_a_pair(exports: dict[str, Path]):
    sides: list[SpaceEncoder] = [ExportedEncoder(exports[p], runtime=ONE) for p in ("mean", "cls")]
    pair = CombinedEncoder(*sides, spec="exports")
    rows = pair.encode(TEXTS, kind="document")
    assert rows.topical == pytest.approx(sides[0].encode(TEXTS, kind="document"), abs=1e-6)


def test_a_name_that_is_a_folder_with_a_graph_is_run_without_torch(
    exports: dict[str, Path], tmp_path: Path
):
    shutil.copytree(exports["cls"], tmp_path / "bge-tiny-en")
    changed(tmp_path / "bge-tiny-en", "config_sentence_transformers.json", {"prompts": {}})
    encoder = load_dense_encoder(str(tmp_path / "bge-tiny-en"), runtime=ONE)
    assert isinstance(encoder, ExportedEncoder)
    assert (encoder.normalise, encoder.settings.prefixes.query) == (False, BGE_PREFIX)
