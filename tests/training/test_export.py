"""From two torch encoders to a model folder."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

from safetensors.torch import load_file

from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.training.export import ExportPlan, ExportReport, SpaceReport, export_model
from coder_ir.types import Floats, Kind, Triplet
from tests.tiny_bert import save_tiny_bert, with_upper_layers_changed

Opposites = Callable[[Sequence[str]], list[Triplet]]
ONE = Runtime(threads=1)


@dataclasses.dataclass(frozen=True)
class Exported:
    """An export that is done; tests only look at it."""

    plan: ExportPlan
    report: ExportReport
    triplets: Sequence[Triplet]

    @property
    def manifest(self) -> Manifest:
        return Manifest.load(self.plan.output)

    @property
    def passages(self) -> list[str]:
        return list(dict.fromkeys(p for t in self.triplets for p in (t.satisfying, t.violating)))

    @property
    def queries(self) -> list[str]:
        return list(dict.fromkeys(t.query for t in self.triplets))


@pytest.fixture(scope="module")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_upper_layers_changed(tiny, tmp_path_factory.mktemp("trained") / "model")


@pytest.fixture(scope="module")
def unrelated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(
        tmp_path_factory.mktemp("unrelated"), seed=9, pooling="cls", prompts={"query": "not "}
    )


@pytest.fixture(scope="module")
def export(
    tiny: Path, opposites: Opposites, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Exported]:
    """Exports the tiny model as topical with a compatibility encoder."""

    def run(compatibility: Path) -> Exported:
        folder = tmp_path_factory.mktemp("export")
        triplets = opposites(["room", "house"])
        lines = (json.dumps(dataclasses.asdict(t)) + "\n" for t in triplets)
        (folder / "check.jsonl").write_text("".join(lines))
        plan = ExportPlan(
            topical=str(tiny),
            compatibility=str(compatibility),
            output=folder / "model",
            name="toy",
            licence="none",
            check=folder / "check.jsonl",
        )
        return Exported(plan, export_model(plan), triplets)

    return run


@pytest.fixture(scope="module")
def shared_pair(export: Callable[[Path], Exported], trained: Path) -> Exported:
    return export(trained)


@pytest.fixture(scope="module")
def unrelated_pair(export: Callable[[Path], Exported], unrelated: Path) -> Exported:
    return export(unrelated)


@pytest.fixture(params=["shared_pair", "unrelated_pair"])
def pair(request: pytest.FixtureRequest) -> Exported:
    return request.getfixturevalue(request.param)


def plan_for(topical: Path, compatibility: Path, output: Path) -> ExportPlan:
    return ExportPlan(str(topical), str(compatibility), output, "toy", "none")


def test_layers_that_two_encoders_share_are_a_graph_of_their_own(shared_pair: Exported):
    manifest = shared_pair.manifest
    assert shared_pair.report.shared_layers == 2
    graphs = {"shared.onnx", "topical.onnx", "compatibility.onnx"}
    assert set(manifest.sha256) == {*graphs, "tokenizer.json"}
    assert manifest.trunk == "shared.onnx"
    assert (manifest.topical.output, manifest.compatibility.output) == ("topical", "compatibility")


def test_unrelated_encoders_become_two_graphs(unrelated_pair: Exported):
    manifest = unrelated_pair.manifest
    assert unrelated_pair.report.shared_layers == 0
    assert set(manifest.sha256) == {"topical.onnx", "compatibility.onnx", "tokenizer.json"}
    assert manifest.topical.graph == "topical.onnx"
    assert manifest.compatibility.graph == "compatibility.onnx"


def test_the_folder_says_how_each_space_is_read(unrelated_pair: Exported):
    topical, compatibility = unrelated_pair.manifest.topical, unrelated_pair.manifest.compatibility
    assert (topical.pooling, topical.query_prefix) == ("mean", "")
    assert (compatibility.pooling, compatibility.query_prefix) == ("cls", "not ")
    assert (topical.dimensions, topical.max_length) == (32, 64)


def test_the_folder_carries_name_and_licence(shared_pair: Exported):
    assert (shared_pair.manifest.name, shared_pair.manifest.licence) == ("toy", "none")


def test_the_folder_holds_what_its_description_pins_and_the_card(pair: Exported):
    names = {path.name for path in pair.plan.output.iterdir()}
    assert names == {*pair.manifest.sha256, "model.json", "README.md"}


def test_the_card_is_the_trained_encoders(pair: Exported):
    card = Path(pair.plan.compatibility) / "README.md"
    assert (pair.plan.output / "README.md").read_bytes() == card.read_bytes()


def test_the_exported_folder_loads(pair: Exported):
    rows = OnnxEncoder(pair.plan.output, runtime=ONE).encode(["a quiet room"], kind="query")
    assert rows.topical.shape == rows.compatibility.shape == (1, 32)


def vectors(encoder: Any, exported: Exported) -> dict[Kind, Any]:
    return {
        "document": encoder.encode(exported.passages, kind="document"),
        "query": encoder.encode(exported.queries, kind="query"),
    }


def side(exported: Exported, space: str) -> tuple[dict[Kind, Floats], dict[Kind, Floats]]:
    """Passages and queries in one space: torch's vectors, the exported model's."""
    name = getattr(exported.plan, space)
    before = vectors(SentenceTransformerEncoder(name, runtime=ONE), exported)
    after = vectors(OnnxEncoder(exported.plan.output, runtime=ONE), exported)
    return before, {kind: rows.space(space) for kind, rows in after.items()}


@pytest.mark.parametrize("number", [0, 1], ids=["topical", "compatibility"])
def test_the_reported_cosines_are_those_of_the_vectors(pair: Exported, number: int):
    reported = pair.report.spaces[number]
    before, after = side(pair, ("topical", "compatibility")[number])
    cosines = np.concatenate([(before[k] * after[k]).sum(axis=1) for k in ("document", "query")])
    assert reported.space == ("topical", "compatibility")[number]
    assert reported.mean_cosine == pytest.approx(float(cosines.mean()), abs=1e-3)
    assert reported.least_cosine == pytest.approx(float(cosines.min()), abs=1e-3)


@pytest.mark.parametrize("number", [0, 1], ids=["topical", "compatibility"])
def test_the_exported_vectors_point_where_torchs_do(pair: Exported, number: int):
    # Int8 is coarse for 32 dimensions; that the built-in model keeps 0.99 is tested elsewhere.
    assert pair.report.spaces[number].mean_cosine > 0.95


@pytest.mark.parametrize("number", [0, 1], ids=["topical", "compatibility"])
def test_the_reported_accuracies_are_those_of_the_rankings(pair: Exported, number: int):
    def accuracy(rows: dict[Kind, Floats]) -> float:
        document = dict(zip(pair.passages, rows["document"], strict=True))
        query = dict(zip(pair.queries, rows["query"], strict=True))
        return sum(
            query[t.query] @ document[t.satisfying] > query[t.query] @ document[t.violating]
            for t in pair.triplets
        ) / len(pair.triplets)

    before, after = side(pair, ("topical", "compatibility")[number])
    reported = pair.report.spaces[number]
    assert reported.accuracy_before == pytest.approx(accuracy(before))
    assert reported.accuracy_after == pytest.approx(accuracy(after), abs=1 / len(pair.triplets))


def test_the_report_counts_texts_and_triplets(pair: Exported):
    assert pair.report.texts == len(pair.passages) + len(pair.queries)
    assert pair.report.triplets == len(pair.triplets)


def test_without_a_check_file_five_hundred_passages_are_compared(
    tiny: Path, trained: Path, tmp_path: Path
):
    report = export_model(plan_for(tiny, trained, tmp_path / "model"))
    assert report.texts >= 500
    assert report.triplets > 50


def report_with(*cosines: float) -> ExportReport:
    topical, compatibility = (
        SpaceReport(space, cosine, cosine - 0.01, 0.75, 0.5)
        for space, cosine in zip(("topical", "compatibility"), cosines, strict=True)
    )
    return ExportReport(texts=500, triplets=40, shared_layers=8, spaces=(topical, compatibility))


@pytest.mark.parametrize(
    ("cosines", "passed"),
    [((0.99, 0.995), True), ((0.989, 0.999), False), ((0.999, 0.989), False)],
    ids=["both reach", "topical short", "compatibility short"],
)
def test_an_export_passes_when_both_spaces_reach_the_cosine(
    cosines: tuple[float, float], passed: bool
):
    assert report_with(*cosines).passed is passed


def test_the_table_shows_cosines_and_metrics_before_and_after():
    head, titles, topical, compatibility = report_with(0.9951, 0.9912).table().splitlines()
    assert head == "8 layers shared; 500 texts, 40 triplets"
    assert titles.split()[-2:] == ["torch", "exported"]
    assert topical.split() == ["topical", "0.9951", "0.9851", "75.0%", "50.0%"]
    assert compatibility.split() == ["compatibility", "0.9912", "0.9812", "75.0%", "50.0%"]


def test_an_existing_model_is_not_overwritten(pair: Exported):
    before = (pair.plan.output / "model.json").read_bytes()
    with pytest.raises(InvalidValue, match="already holds a model; choose another folder"):
        export_model(pair.plan)
    assert (pair.plan.output / "model.json").read_bytes() == before


def test_encoders_with_different_vocabularies_are_refused(tiny: Path, tmp_path: Path):
    other = save_tiny_bert(tmp_path / "other", extra_words=("zebra",))
    with pytest.raises(InvalidValue, match="different vocabularies; a model folder holds one"):
        export_model(plan_for(tiny, other, tmp_path / "model"))


def test_a_refused_export_leaves_no_model_behind(tiny: Path, tmp_path: Path):
    other = save_tiny_bert(tmp_path / "other", extra_words=("zebra",))
    with pytest.raises(InvalidValue, match="different vocabularies"):
        export_model(plan_for(tiny, other, tmp_path / "model"))
    assert not (tmp_path / "model" / "model.json").exists()


def test_a_pooling_a_folder_does_not_know_is_refused(tiny: Path, tmp_path: Path):
    other = save_tiny_bert(tmp_path / "other", pooling="max")
    with pytest.raises(InvalidValue, match="pools by 'max'; a model folder knows cls and mean"):
        export_model(plan_for(tiny, other, tmp_path / "model"))


def saved(folder: Path, tiny: Path, network: Any, *modules: Any) -> Path:
    """A sentence-transformers folder of another network with the tiny model's tokenizer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer

    network.save_pretrained(folder / "transformers")
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder / "transformers")
    first = Transformer(str(folder / "transformers"), max_seq_length=64)
    stack = [first, Pooling(32, pooling_mode="mean"), *modules]
    SentenceTransformer(modules=stack, device="cpu").save(str(folder))
    return folder


@pytest.mark.parametrize("kind", ["electra", "distilbert"])
def test_an_architecture_other_than_bert_is_refused(tiny: Path, tmp_path: Path, kind: str):
    import transformers

    size = len(load_file(tiny / "model.safetensors")["embeddings.word_embeddings.weight"])
    if kind == "electra":
        network = transformers.ElectraModel(
            transformers.ElectraConfig(
                vocab_size=size,
                embedding_size=32,
                hidden_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
            )
        )
    else:
        network = transformers.DistilBertModel(
            transformers.DistilBertConfig(
                vocab_size=size, dim=32, n_layers=1, n_heads=2, hidden_dim=32
            )
        )
    other = saved(tmp_path / "other", tiny, network)
    with pytest.raises(InvalidValue, match=f"export writes BERT encoders with gelu, got '{kind}'"):
        export_model(plan_for(tiny, other, tmp_path / "model"))


def test_a_layer_after_the_pooling_is_refused(tiny: Path, tmp_path: Path):
    """The graph ends at the token vectors, so a projection would be dropped unseen."""
    from sentence_transformers.sentence_transformer.modules import Dense
    from transformers import BertModel

    network = BertModel.from_pretrained(tiny)
    other = saved(tmp_path / "other", tiny, network, Dense(32, 16))
    with pytest.raises(InvalidValue, match="Dense"):
        export_model(plan_for(tiny, other, tmp_path / "model"))


def test_no_space_reads_more_tokens_than_its_encoder_can(tiny: Path, tmp_path: Path):
    short = save_tiny_bert(tmp_path / "short", seed=9, positions=32)
    export_model(plan_for(tiny, short, tmp_path / "model"))
    assert Manifest.load(tmp_path / "model").compatibility.max_length <= 32
