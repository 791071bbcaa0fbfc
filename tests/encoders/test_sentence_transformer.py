"""The second runtime, on a random BERT of a few kilobytes."""

import socket
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.conventions import BGE_PREFIX
from coder_ir.encoders.onnx import Runtime
from coder_ir.encoders.registry import load_encoder
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import MissingExtra, ModelMismatch, NotFound
from coder_ir.retriever import Retriever
from coder_ir.types import Document

pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

from tests.tiny_bert import save_tiny_bert

ONE = Runtime(threads=1)
TEXTS = ["a quiet room", "the loud street is not dark", "river", "", "very " * 30]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"), prompts={"query": "not "})


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("other"), seed=2, pooling="cls")


@pytest.fixture(scope="session")
def encoder(tiny: Path) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(str(tiny), runtime=ONE)


def test_rows_are_unit_float32(encoder: SentenceTransformerEncoder):
    rows = encoder.encode(TEXTS, kind="document")
    assert (rows.dtype, rows.shape) == (np.float32, (len(TEXTS), 32))
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_rows_equal_what_the_library_gives(tiny: Path, encoder: SentenceTransformerEncoder):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tiny), device="cpu").encode(TEXTS, show_progress_bar=False)
    assert encoder.encode(TEXTS, kind="document") == pytest.approx(theirs, abs=1e-5)


def test_rows_keep_the_order_of_the_texts(tiny: Path, encoder: SentenceTransformerEncoder):
    small = SentenceTransformerEncoder(str(tiny), runtime=ONE, batch_size=2)
    rows = small.encode(TEXTS, kind="document")
    assert rows == pytest.approx(encoder.encode(TEXTS, kind="document"), abs=1e-5)


def test_progress_adds_up_to_the_number_of_texts(tiny: Path):
    seen: list[int] = []
    small = SentenceTransformerEncoder(str(tiny), runtime=ONE, batch_size=2)
    small.encode(TEXTS, kind="document", progress=seen.append)
    assert seen == [2, 2, 1]


def test_no_texts_give_no_rows(encoder: SentenceTransformerEncoder):
    assert encoder.encode([], kind="query").shape == (0, 32)


def test_a_query_is_read_behind_the_models_own_prompt(encoder: SentenceTransformerEncoder):
    assert encoder.query_prefix == "not "
    query = encoder.encode(["a quiet room"], kind="query")
    assert query == pytest.approx(encoder.encode(["not a quiet room"], kind="document"), abs=1e-6)


def test_a_document_is_read_without_the_prompt(encoder: SentenceTransformerEncoder):
    query = encoder.encode(["a quiet room"], kind="query")
    assert (query * encoder.encode(["a quiet room"], kind="document")).sum() < 0.999


def test_a_given_prefix_replaces_the_models_own(tiny: Path):
    encoder = SentenceTransformerEncoder(str(tiny), runtime=ONE, query_prefix="")
    rows = encoder.encode(["a quiet room"], kind="query")
    assert rows == pytest.approx(encoder.encode(["a quiet room"], kind="document"), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("bge-tiny-en-v1.5", BGE_PREFIX), ("bge-tiny-zh-v1.5", ""), ("tiny-en", "")],
)
def test_only_an_english_bge_model_without_a_prompt_gets_bges(
    other: Path, tmp_path: Path, name: str, prefix: str
):
    (tmp_path / name).symlink_to(other)
    encoder = SentenceTransformerEncoder(str(tmp_path / name), runtime=ONE)
    assert encoder.query_prefix == prefix


def test_an_e5_model_reads_documents_behind_a_prefix_too(other: Path, tmp_path: Path):
    (tmp_path / "e5-tiny").symlink_to(other)
    encoder = SentenceTransformerEncoder(str(tmp_path / "e5-tiny"), runtime=ONE)
    plain = SentenceTransformerEncoder(str(other), runtime=ONE)
    for kind, prefix in (("query", "query: "), ("document", "passage: ")):
        rows = encoder.encode(["a quiet room"], kind=kind)
        expected = plain.encode([f"{prefix}a quiet room"], kind="document")
        assert rows == pytest.approx(expected, abs=1e-6)
    assert encoder.fingerprint != plain.fingerprint


def test_spans_leave_room_for_a_document_prefix(other: Path, tmp_path: Path):
    (tmp_path / "e5-tiny").symlink_to(other)
    encoder = SentenceTransformerEncoder(str(tmp_path / "e5-tiny"), runtime=ONE)
    text = "The quiet room is not dark. A loud street, without garden! " * 20
    pieces = [text[span.start : span.end] for span in encoder.split(text)]
    tokens = encoder.model.tokenizer([f"passage: {piece}" for piece in pieces])
    assert max(map(len, tokens["input_ids"])) <= encoder.max_length


def test_rows_that_are_not_normalised_are_those_of_the_model(tiny: Path):
    from sentence_transformers import SentenceTransformer

    plain = str(tiny / "transformers")  # mean pooling and nothing after it
    raw = SentenceTransformerEncoder(plain, runtime=ONE, normalise=False)
    rows = raw.encode(TEXTS, kind="document")
    theirs = SentenceTransformer(plain, device="cpu").encode(TEXTS, show_progress_bar=False)
    assert rows == pytest.approx(theirs, abs=1e-5)
    assert abs(np.linalg.norm(rows, axis=1) - 1).min() > 0.1
    assert raw.fingerprint != SentenceTransformerEncoder(plain, runtime=ONE).fingerprint


@pytest.mark.parametrize(("name", "similarity"), [("contriever-x", "dot"), ("plain", "cosine")])
def test_the_similarity_is_the_models_own(tiny: Path, tmp_path: Path, name: str, similarity: str):
    (tmp_path / name).symlink_to(tiny)
    encoder = SentenceTransformerEncoder(str(tmp_path / name), runtime=ONE)
    assert encoder.similarity == similarity
    encoder.model.similarity_fn_name = "dot"
    assert encoder.similarity == "dot"


def test_a_plain_transformers_folder_loads_with_mean_pooling(
    tiny: Path, encoder: SentenceTransformerEncoder
):
    plain = SentenceTransformerEncoder(str(tiny / "transformers"), runtime=ONE)
    rows = plain.encode(TEXTS, kind="document")
    assert rows == pytest.approx(encoder.encode(TEXTS, kind="document"), abs=1e-5)


def test_max_length_cuts_what_is_read(tiny: Path):
    short = SentenceTransformerEncoder(str(tiny), runtime=Runtime(threads=1, max_length=8))
    one, two = short.encode(["very " * 10 + "dark", "very " * 10 + "bright"], kind="document")
    assert short.max_length == 8
    assert one == pytest.approx(two, abs=1e-6)


def test_max_length_never_raises_the_models_own_limit(tiny: Path):
    long = SentenceTransformerEncoder(str(tiny), runtime=Runtime(threads=1, max_length=500))
    assert long.max_length == 64


def test_spans_cover_a_long_text_and_fit_the_limit(encoder: SentenceTransformerEncoder):
    text = "The quiet room is not dark. A loud street, without garden! " * 20
    spans = encoder.split(text)
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    assert all(after.start <= before.end for before, after in pairwise(spans))
    tokens = encoder.model.tokenizer([text[span.start : span.end] for span in spans])
    assert max(map(len, tokens["input_ids"])) <= encoder.max_length


def test_a_short_text_is_one_span(encoder: SentenceTransformerEncoder):
    assert [(s.start, s.end) for s in encoder.split("a quiet room")] == [(0, 12)]


def test_the_same_folder_has_the_same_fingerprint(tiny: Path, encoder: SentenceTransformerEncoder):
    assert SentenceTransformerEncoder(str(tiny), runtime=ONE).fingerprint == encoder.fingerprint


@pytest.mark.parametrize(
    "changes",
    [{"seed": 3}, {"pooling": "cls"}, {"prompts": {"query": "no "}}],
    ids=["weights", "pooling", "prefix"],
)
def test_the_fingerprint_changes_with_what_decides_a_vector(
    tmp_path: Path, encoder: SentenceTransformerEncoder, changes: dict[str, object]
):
    folder = save_tiny_bert(tmp_path, **{"prompts": {"query": "not "}, **changes})
    changed = SentenceTransformerEncoder(str(folder), runtime=ONE)
    assert changed.fingerprint != encoder.fingerprint


def test_a_folder_by_its_bare_name_is_not_looked_up_on_the_hub(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = []

    def refuse(host, *_, **__):
        asked.append(host)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.chdir(tiny.parent)
    SentenceTransformerEncoder(tiny.name, runtime=Runtime())
    assert asked == []


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match=r"no model .*gone"):
        SentenceTransformerEncoder(str(tmp_path / "gone"), runtime=ONE)


@pytest.mark.parametrize("module", ["sentence_transformers", "torch"])
def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, module: str
):
    for name in [n for n in sys.modules if n.split(".")[0] == "sentence_transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'coder-ir\[train\]'"):
        SentenceTransformerEncoder(str(tiny), runtime=ONE)


@pytest.mark.parametrize("sides", ["{tiny}+built-in", "built-in+{tiny}", "{tiny}+{other}"])
def test_an_encoder_serves_in_either_role(tiny: Path, other: Path, sides: str):
    spec = sides.format(tiny=tiny, other=other)
    pair = load_encoder(spec, runtime=ONE)
    rows = pair.encode(["a quiet room"], kind="query")
    for space, side in zip(("topical", "compatibility"), spec.split("+"), strict=True):
        if side == "built-in":
            alone = load_encoder(side, runtime=ONE).encode(["a quiet room"], kind="query")
            expected = alone.space(space)
        else:
            expected = SentenceTransformerEncoder(side, runtime=ONE).encode(
                ["a quiet room"], kind="query"
            )
        assert rows.space(space) == pytest.approx(expected, abs=1e-5)


def test_swapping_the_roles_changes_the_fingerprint(tiny: Path, other: Path):
    one, two = (load_encoder(f"{a}+{b}", runtime=ONE) for a, b in ((tiny, other), (other, tiny)))
    assert one.fingerprint != two.fingerprint


def test_a_pair_splits_by_the_shorter_limit(tiny: Path):
    text = "The quiet room is not dark. " * 40
    pair = load_encoder(f"built-in+{tiny}", runtime=ONE)
    assert isinstance(pair, CombinedEncoder)
    assert pair.split(text) == pair.compatibility.split(text)
    assert len(pair.split(text)) > 1


def test_a_pair_reports_each_text_once(tiny: Path, other: Path):
    seen: list[int] = []
    pair = load_encoder(f"{tiny}+{other}", runtime=ONE)
    pair.encode(TEXTS, kind="document", progress=seen.append)
    assert sum(seen) == len(TEXTS)


@pytest.fixture
def index(tmp_path: Path, tiny: Path) -> Path:
    folder = tmp_path / "index"
    documents = [Document("q", "a quiet room"), Document("l", "the loud street")]
    with Retriever.open(folder, model=f"built-in+{tiny}", runtime=ONE) as retriever:
        retriever.add(documents)
    return folder


def test_an_index_of_a_pair_answers_with_both_scores(index: Path, tiny: Path):
    with Retriever.open(index, model=f"built-in+{tiny}", runtime=ONE) as retriever:
        [best] = retriever.search("the loud street", k=1, policy="compatibility")
        expected = retriever.encoder.encode(["the loud street"], kind="query").compatibility[0]
        stored = retriever.encoder.encode([best.text], kind="document").compatibility[0]
    assert best.compatibility == pytest.approx(float(expected @ stored), abs=1e-4)


def test_an_index_of_a_pair_opens_again_without_naming_it(index: Path, tiny: Path):
    with Retriever.open(index, runtime=ONE) as retriever:
        assert retriever.encoder.spec == f"built-in+{tiny}"
        assert {hit.doc_id for hit in retriever.search("a quiet room")} == {"q", "l"}


def test_an_index_of_a_relative_folder_opens_from_elsewhere(
    tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tiny.parent)
    with Retriever.open(tmp_path / "i", model=f"built-in+{tiny.name}", runtime=ONE) as retriever:
        retriever.add([Document("q", "a quiet room")])
    monkeypatch.chdir(tmp_path)
    with Retriever.open(tmp_path / "i", runtime=ONE) as retriever:
        assert len(retriever.search("a quiet room")) == 1


@pytest.mark.parametrize("model", ["built-in", "built-in+{other}", "{tiny}+built-in"])
def test_an_index_of_a_pair_refuses_another_model(index: Path, tiny: Path, other: Path, model: str):
    with pytest.raises(ModelMismatch, match="this index was built with model 'built-in"):
        Retriever.open(index, model=model.format(tiny=tiny, other=other), runtime=ONE)
