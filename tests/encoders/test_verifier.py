"""The verifier of a model folder against torch's own scores, on a random BERT."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

from coder_ir import Document, Retriever
from coder_ir.encoders.folder import Manifest, Reading
from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.registry import load_encoder, load_verifier
from coder_ir.encoders.verifier import OnnxVerifier
from coder_ir.errors import InvalidValue, ModelMismatch
from coder_ir.searching import WORTH
from coder_ir.training.export import ExportPlan, export_model
from coder_ir.types import Scores
from tests.conftest import FakeEncoder
from tests.tiny_bert import save_tiny_bert, save_tiny_verifier, with_upper_layers_changed

if TYPE_CHECKING:
    from coder_ir.training.learners import VerifierLearner

ONE = Runtime(threads=1)
PREFIX = "not "
QUERY = "a loud room"
# Of unlike lengths, so that a batch of them would pad.
PASSAGES = [
    "the room is quiet",
    "quiet",
    "a very old house by the river, with a garden and a table, is not loud",
    "the room is loud",
    "the street is dark, the night is cold",
    "bright day",
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("base"), prompts={"query": PREFIX})


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> "VerifierLearner":
    """A verifier over two of the three layers, in the folder its config names."""
    folder = tmp_path_factory.mktemp("verifier")
    learner = save_tiny_verifier(base, folder, query_prefix=PREFIX)
    learner.tower.cache([PREFIX + QUERY, *PASSAGES], done=lambda _: None)
    return learner


@pytest.fixture(scope="module")
def plan(
    base: Path, trained: "VerifierLearner", tmp_path_factory: pytest.TempPathFactory
) -> ExportPlan:
    folder = tmp_path_factory.mktemp("plan")
    other = with_upper_layers_changed(base, folder / "compatibility")
    verifier = trained.config.output
    return ExportPlan(str(base), str(other), folder / "model", "toy", "none", verifier=verifier)


@pytest.fixture(scope="module")
def folder(plan: ExportPlan) -> Path:
    """The model folder as it ships; tests only look at it."""
    export_model(plan)
    return plan.output


@pytest.fixture
def unquantised(plan: ExportPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder with matrices in float32."""
    import onnx

    def save(graph: Any, path: Path) -> None:
        onnx.save(graph, str(path))

    monkeypatch.setattr("coder_ir.training.export.quantise", save)
    export_model(replace(plan, output=tmp_path / "whole"))
    return tmp_path / "whole"


def read(folder: Path, passages: list[str] = PASSAGES, runtime: Runtime = ONE) -> Scores:
    return OnnxVerifier(OnnxEncoder(folder, runtime=runtime)).read(QUERY, passages)


@pytest.fixture(scope="module")
def expected(trained: "VerifierLearner") -> Scores:
    """What torch gives each passage."""
    scores = trained.scores([(QUERY, passage) for passage in PASSAGES], train=False)
    return scores.numpy().astype(np.float64)


def test_torch_tells_the_passages_apart(expected: Scores):
    """Else it would prove little to agree with it."""
    assert np.ptp(expected) > 1


def test_unquantised_logits_are_those_of_torch(unquantised: Path, expected: Scores):
    # Words are int8 in the graph and activations half precision in torch's cache.
    assert read(unquantised) == pytest.approx(expected, abs=0.1)


def test_quantised_logits_keep_to_those_of_torch(folder: Path, expected: Scores):
    # Int8 is coarse for 32 dimensions: the query's own error moves all logits alike.
    found = read(folder)
    assert np.corrcoef(found, expected)[0, 1] > 0.98
    assert np.abs(found - expected).max() < 0.5 * np.ptp(expected)


def test_logits_are_doubles_one_a_passage(folder: Path):
    found = read(folder)
    assert (found.shape, found.dtype) == ((len(PASSAGES),), np.float64)


def test_no_passages_have_no_logits(folder: Path):
    assert read(folder, []).shape == (0,)


def test_logits_come_in_the_order_of_the_passages(unquantised: Path):
    forward, backward = read(unquantised), read(unquantised, PASSAGES[::-1])
    assert backward[::-1] == pytest.approx(forward, abs=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_passage_is_read_the_same_alone_and_among_others(folder: Path, threads: int):
    alone = [read(folder, [passage])[0] for passage in PASSAGES]
    assert read(folder, runtime=Runtime(threads=threads)).tolist() == alone


def test_the_same_is_read_twice(folder: Path):
    assert read(folder).tolist() == read(folder).tolist()


def test_the_query_matters(folder: Path):
    verifier = load_verifier(OnnxEncoder(folder, runtime=ONE))
    one, two = verifier.read(QUERY, PASSAGES), verifier.read("a dark cold night", PASSAGES)
    assert np.abs(one - two).max() > 0.1


def test_a_passage_past_the_limit_is_cut(folder: Path):
    long = "quiet " * 200
    [found] = read(folder, [long])
    assert found == read(folder, ["quiet " * 62])[0]  # 64 tokens, two of them special


def test_the_verifier_of_a_folder_is_found(folder: Path):
    assert isinstance(load_verifier(load_encoder(str(folder), runtime=ONE)), OnnxVerifier)


@pytest.fixture(scope="module")
def without(plan: ExportPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, exported without a verifier."""
    output = tmp_path_factory.mktemp("without") / "model"
    export_model(replace(plan, output=output, verifier=None))
    return output


def test_a_folder_without_a_verifier_is_refused_with_advice(without: Path):
    encoder = load_encoder(str(without), runtime=ONE)
    said = rf"verify needs a model with a verifier, which '{without}' is not; .*train export"
    with pytest.raises(InvalidValue, match=said):
        load_verifier(encoder)
    with pytest.raises(InvalidValue, match="has no verifier"):
        OnnxVerifier(OnnxEncoder(without, runtime=ONE))


def test_an_encoder_of_another_kind_has_none():
    with pytest.raises(InvalidValue, match="verify needs a model with a verifier, which 'fake'"):
        load_verifier(FakeEncoder(["quiet"]))


def test_a_pair_of_folders_has_none(folder: Path):
    with pytest.raises(InvalidValue, match="verify needs a model with a verifier"):
        load_verifier(load_encoder(f"{folder}+{folder}", runtime=ONE))


def test_an_index_needs_no_rebuilding_for_a_verifier(folder: Path, without: Path):
    assert Manifest.load(folder).fingerprint == Manifest.load(without).fingerprint
    one, other = (OnnxEncoder(model, runtime=ONE) for model in (folder, without))
    assert one.fingerprint == other.fingerprint


def test_the_vectors_are_the_same_with_and_without_a_verifier(folder: Path, without: Path):
    one, other = (
        OnnxEncoder(model, runtime=ONE).encode(PASSAGES, kind="document")
        for model in (folder, without)
    )
    np.testing.assert_array_equal(one.topical, other.topical)
    np.testing.assert_array_equal(one.compatibility, other.compatibility)


def test_an_index_built_without_a_verifier_is_searched_with_one(
    folder: Path, without: Path, tmp_path: Path
):
    documents = [Document(str(number), text) for number, text in enumerate(PASSAGES)]
    with Retriever.open(tmp_path, model=str(without), runtime=ONE) as retriever:
        retriever.add(documents)
    with Retriever.open(tmp_path, model=str(folder), runtime=ONE) as retriever:
        plain = retriever.search(QUERY, policy="compatibility")
        hits = retriever.search(QUERY, policy="compatibility", verify=len(PASSAGES))
    cosines = {hit.doc_id: hit.compatibility for hit in plain}
    logits = read(folder)
    expected = np.array([cosines[str(i)] + WORTH * logit for i, logit in enumerate(logits)])
    found = {hit.doc_id: hit.compatibility for hit in hits}
    assert [hit.doc_id for hit in hits] == [str(i) for i in np.argsort(-expected)]
    assert [found[str(i)] for i in range(len(PASSAGES))] == pytest.approx(expected)


def test_the_description_of_a_verifier_is_read_back(folder: Path, tmp_path: Path):
    manifest = Manifest.load(folder)
    assert manifest.verifier == Reading("verifier.onnx", "score")
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest


def test_a_damaged_verifier_is_refused(folder: Path, tmp_path: Path):
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    graph = model / "verifier.onnx"
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(bytes(content))
    with pytest.raises(ModelMismatch, match=r"verifier\.onnx is damaged or was changed"):
        load_encoder(str(model))


def test_a_missing_verifier_is_refused(folder: Path, tmp_path: Path):
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    (model / "verifier.onnx").unlink()
    with pytest.raises(ModelMismatch, match=r"verifier\.onnx is missing"):
        load_encoder(str(model))


def test_a_verifier_without_a_digest_is_refused(folder: Path):
    manifest = Manifest.load(folder)
    digests = {name: value for name, value in manifest.sha256.items() if name != "verifier.onnx"}
    with pytest.raises(ModelMismatch, match=r"gives no sha256 for verifier\.onnx"):
        replace(manifest, sha256=digests).verify(folder)
