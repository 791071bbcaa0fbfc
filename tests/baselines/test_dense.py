"""One vector a document: rankings by hand, what a folder keeps, and which encoder a name loads."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from coder_ir.baselines import Dense
from coder_ir.baselines.dense import load_dense_encoder
from coder_ir.encoders.conventions import BGE_PREFIX, Similarity, prefixes_of, similarity_of
from coder_ir.encoders.onnx import OnnxSpace, Runtime
from coder_ir.errors import DuplicateId, InvalidFile, InvalidValue, ModelMismatch, StoreError
from coder_ir.types import (
    UNSCORED,
    Constraint,
    Document,
    Floats,
    Kind,
    Passage,
    Progress,
    Span,
)

AXES = ["hotel", "garden", "noise"]
ONE = Runtime(threads=1)


class Counts:
    """A word is an axis and a text's row counts its words, so it is longer the more it says."""

    def __init__(self, similarity: Similarity = "cosine", *, name: str = "counts") -> None:
        self.similarity: Similarity = similarity
        self.fingerprint = name
        self.encoded: list[str] = []
        self.left = 10_000  # documents until it fails

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> Floats:
        if kind == "document":
            self.left -= len(texts)
            if self.left < 0:
                raise KeyboardInterrupt
            self.encoded += texts
        if progress:
            progress(len(texts))
        rows = [[text.lower().split().count(axis) for axis in AXES] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(AXES))


DOCUMENTS = [
    Document("long", "hotel hotel hotel garden garden garden garden"),  # (3, 4, 0)
    Document("pure", "hotel"),  # (1, 0, 0)
    Document("mixed", "hotel noise", title="Garden"),  # (1, 1, 1)
    Document("none", "zebra"),  # (0, 0, 0)
    Document("again", "the hotel", metadata={"stars": 4}),  # (1, 0, 0)
]


def test_a_cosine_forgets_how_long_a_row_is_and_a_dot_product_does_not():
    cosine = Dense(DOCUMENTS, Counts("cosine")).search("hotel")
    assert [hit.doc_id for hit in cosine] == ["again", "pure", "long", "mixed", "none"]
    assert [hit.score for hit in cosine] == [1.0, 1.0, 0.6, 0.57735, 0.0]
    dot = Dense(DOCUMENTS, Counts("dot")).search("hotel")
    assert [hit.doc_id for hit in dot] == ["long", "again", "mixed", "pure", "none"]
    assert [hit.score for hit in dot] == [3.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(("own", "asked"), [("dot", "cosine"), ("cosine", "dot")])
def test_a_similarity_that_is_asked_for_replaces_the_encoders(own: Similarity, asked: Similarity):
    dense = Dense(DOCUMENTS, Counts(own), similarity=asked)
    assert dense.search("hotel") == Dense(DOCUMENTS, Counts(asked)).search("hotel")


def test_a_dot_product_grows_with_the_query():
    dense = Dense(DOCUMENTS, Counts("dot"))
    assert [hit.score for hit in dense.search("garden garden hotel", 2)] == [11.0, 3.0]


def test_a_hit_has_a_topical_score_where_that_is_a_cosine():
    [cosine] = Dense(DOCUMENTS, Counts("cosine")).search("hotel", 1)
    [dot] = Dense(DOCUMENTS, Counts("dot")).search("hotel", 1)
    assert (cosine.topical, cosine.score) == (1.0, 1.0)
    assert dot.topical is cosine.compatibility is dot.compatibility is UNSCORED
    assert cosine.reason == "Cosine 1.000 with the query."
    assert dot.reason == "Dot product 3.000 with the query."


def test_a_hit_carries_its_document_whole():
    by_id = {hit.doc_id: hit for hit in Dense(DOCUMENTS, Counts()).search("hotel")}
    assert (by_id["mixed"].title, by_id["mixed"].text) == ("Garden", "hotel noise")
    assert by_id["mixed"].passage == Passage(0, Span(0, len("Garden hotel noise")))
    assert (by_id["again"].metadata, by_id["again"].risk) == ({"stars": 4}, None)


def test_the_ranking_names_its_method_and_no_constraint():
    ranking = Dense(DOCUMENTS, Counts()).search("hotel without noise", 2)
    assert (ranking.query, ranking.policy, len(ranking)) == ("hotel without noise", "dense", 2)
    assert (ranking.filtered, ranking.constraint) == ((), Constraint(0.0))


@pytest.mark.parametrize("folder", [None, "i"], ids=["memory", "folder"])
def test_no_documents_give_an_empty_ranking(tmp_path: Path, folder: str | None):
    dense = Dense([], Counts(), folder=tmp_path / folder if folder else None)
    assert dense.search("hotel").hits == ()


def test_what_cannot_be_searched_or_indexed_is_refused():
    dense = Dense(DOCUMENTS, Counts())
    with pytest.raises(InvalidValue, match="the query is empty; say what to look for"):
        dense.search("  ")
    with pytest.raises(InvalidValue, match="k must be at least 1, got 0"):
        dense.search("hotel", 0)
    with pytest.raises(DuplicateId, match="document id 'long' comes twice"):
        Dense([*DOCUMENTS, DOCUMENTS[0]], Counts())
    with pytest.raises(InvalidValue, match="similarity must be cosine or dot, got 'euclidean'"):
        Dense(DOCUMENTS, Counts(), similarity="euclidean")  # type: ignore[arg-type]


# What a folder keeps.


def opened(folder: Path, documents: Sequence[Document], **settings: object) -> list[str]:
    """Opens the folder, compares with vectors in memory and tells which texts were encoded."""
    encoder = Counts(**settings)
    found = Dense(documents, encoder, folder=folder).search("hotel garden")
    assert found == Dense(documents, Counts(**settings)).search("hotel garden")
    return encoder.encoded


def test_what_is_there_is_not_encoded_again(tmp_path: Path):
    assert len(opened(tmp_path / "i", DOCUMENTS)) == 5
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "i").iterdir()}
    assert opened(tmp_path / "i", DOCUMENTS) == []
    assert opened(tmp_path / "i", DOCUMENTS[::-1]) == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "i").iterdir()} == before
    assert {path.suffix for path in before} == {".npy", ".json"}


def test_rows_are_kept_raw_so_the_similarity_may_change(tmp_path: Path):
    opened(tmp_path / "i", DOCUMENTS)
    assert opened(tmp_path / "i", DOCUMENTS, similarity="dot") == []


def test_only_new_and_changed_documents_are_encoded(tmp_path: Path):
    opened(tmp_path / "i", DOCUMENTS)
    changed = [
        Document("pure", "garden"),
        Document("mixed", "hotel noise", title="Hotel"),
        Document("again", "the hotel", metadata={"stars": 5}),
        Document("new", "noise"),
    ]
    assert opened(tmp_path / "i", changed) == ["garden", "Hotel hotel noise", "noise"]
    assert opened(tmp_path / "i", changed) == []


def test_a_document_that_is_gone_is_not_found_and_leaves_with_the_next_one_that_comes(
    tmp_path: Path,
):
    folder = tmp_path / "i"
    opened(folder, DOCUMENTS)
    assert opened(folder, DOCUMENTS[1:]) == []
    assert opened(folder, []) == []
    assert opened(folder, DOCUMENTS) == []
    assert opened(folder, [*DOCUMENTS[2:], Document("new", "noise")]) == ["noise"]
    [record] = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert record["doc_ids"] == ["mixed", "none", "again", "new"]
    assert len(list(folder.iterdir())) == 2


MANY = [Document(f"d{number:04}", f"hotel {'garden ' * (number % 7)}") for number in range(300)]


def test_an_interrupted_build_goes_on_where_it_stopped(tmp_path: Path):
    encoder = Counts()
    encoder.left = 260  # two batches of 128
    with pytest.raises(KeyboardInterrupt):
        Dense(MANY, encoder, folder=tmp_path / "i")
    seen: list[int] = []
    again = Counts()
    found = Dense(MANY, again, folder=tmp_path / "i", progress=seen.append).search("garden", 300)
    assert again.encoded == [document.content for document in MANY[256:]]
    assert seen == [256, 44]
    assert found == Dense(MANY, Counts()).search("garden", 300)
    assert len(list((tmp_path / "i").iterdir())) == 2


def test_vectors_whose_ids_were_never_written_do_not_count(tmp_path: Path):
    folder = tmp_path / "i"
    opened(folder, DOCUMENTS)
    np.save(folder / "rows-000002.npy", np.ones((3, 3)))
    (folder / "rows-000002.json.partial").write_text('{"format"')
    assert opened(folder, DOCUMENTS) == []
    assert opened(folder, MANY) == [document.content for document in MANY]


def test_progress_adds_up_to_the_number_of_documents():
    seen: list[int] = []
    Dense(MANY, Counts(), progress=seen.append)
    assert seen == [128, 128, 44]


def test_vectors_of_another_encoder_are_refused_and_kept(tmp_path: Path):
    opened(tmp_path / "i", DOCUMENTS)
    with pytest.raises(ModelMismatch, match=r"vectors of another encoder \(counts…, not other…\)"):
        Dense(DOCUMENTS, Counts(name="other"), folder=tmp_path / "i")
    assert opened(tmp_path / "i", DOCUMENTS) == []


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidFile, match=r"holds 'letter.txt'\); name a new folder"):
        Dense(DOCUMENTS, Counts(), folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("rows-000001.npy", lambda data: data[:-4]),
        ("rows-000001.npy", lambda data: data[:-1] + b"?"),
        ("rows-000001.json", lambda data: data[:20]),
        ("rows-000001.json", lambda data: b"[]"),
        ("rows-000001.json", lambda data: data.replace(b'"format": 1', b'"format": 2')),
        ("rows-000001.json", lambda data: data.replace(b'"long", ', b"")),
        ("rows-000001.json", lambda data: data.replace(b"doc_ids", b"ids")),
    ],
    ids=["cut", "changed", "half json", "list", "format", "an id less", "no ids"],
)
def test_a_damaged_folder_is_refused_with_what_to_do(tmp_path: Path, name: str, harm):
    opened(tmp_path / "i", DOCUMENTS)
    path = tmp_path / "i" / name
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(InvalidFile, match=r"delete .*i to have it built again"):
        Dense(DOCUMENTS, Counts(), folder=tmp_path / "i")


def test_a_disk_that_refuses_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(StoreError, match=r"cannot write to .*No space left"):
        Dense(DOCUMENTS, Counts(), folder=tmp_path / "i")


# What a name says, and what it loads.


@pytest.mark.parametrize(
    ("name", "prompts", "query", "document"),
    [
        ("BAAI/bge-small-en-v1.5", {}, BGE_PREFIX, ""),
        ("BAAI/bge-small-en-v1.5", {"query": "", "document": ""}, BGE_PREFIX, ""),
        ("BAAI/bge-small-zh-v1.5", {}, "", ""),
        ("intfloat/e5-small-v2", {}, "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", {}, "query: ", "passage: "),
        ("intfloat/e5-mistral-7b-instruct", {}, "", ""),
        ("some/home5-model", {}, "", ""),
        ("intfloat/e5-small-v2", {"query": "q: "}, "q: ", ""),
        ("facebook/contriever", {}, "", ""),
        ("mine", {"query": "q: ", "passage": "p: "}, "q: ", "p: "),
        ("mine", {"query": None, "document": "d: "}, "", "d: "),
    ],
)
def test_prefixes_are_the_models_own_or_those_its_name_stands_for(
    name: str, prompts: dict[str, str | None], query: str, document: str
):
    found = prefixes_of(name, prompts)
    assert (found.query, found.document) == (query, document)


@pytest.mark.parametrize(
    ("name", "stated", "similarity"),
    [
        ("facebook/contriever-msmarco", None, "dot"),
        ("facebook/contriever", "cosine", "dot"),
        ("/runs/contriever/bge-small-en", "cosine", "cosine"),
        ("mine", "dot", "dot"),
        ("mine", "euclidean", "cosine"),
        ("mine", None, "cosine"),
    ],
)
def test_a_dot_product_is_for_models_that_state_it_and_for_contriever(
    name: str, stated: str | None, similarity: str
):
    assert similarity_of(name, stated) == similarity


def test_the_built_in_model_serves_with_its_topical_side():
    encoder = load_dense_encoder("built-in", runtime=ONE)
    assert isinstance(encoder, OnnxSpace)
    assert encoder.similarity == "cosine"
    texts = ["Bees fly home by the sun.", "The stock exchange opened lower."]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    [best, other] = Dense(documents, encoder).search("how do bees find their way")
    assert best.doc_id == "0"
    assert -1 <= other.topical < best.topical <= 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
    from tests.tiny_bert import save_tiny_bert

    return save_tiny_bert(tmp_path_factory.mktemp("tiny"), pooling="mean")


TEXTS = ["a quiet room", "the loud street is not dark", "river"]


@pytest.mark.parametrize(
    ("name", "similarity", "prefix"),
    [("contriever", "dot", ""), ("e5-tiny", "cosine", "passage: "), ("plain", "cosine", "")],
)
def test_a_folder_of_weights_is_read_as_its_name_says(
    tiny: Path, tmp_path: Path, name: str, similarity: str, prefix: str
):
    from sentence_transformers import SentenceTransformer

    (tmp_path / name).symlink_to(tiny / "transformers")  # plain weights: mean pooling, no unit rows
    encoder = load_dense_encoder(str(tmp_path / name), runtime=ONE)
    rows = encoder.encode(TEXTS, kind="document")
    theirs = SentenceTransformer(str(tiny / "transformers"), device="cpu")
    read = [prefix + text for text in TEXTS]
    assert rows == pytest.approx(theirs.encode(read, show_progress_bar=False), abs=1e-5)
    assert abs(np.linalg.norm(rows, axis=1) - 1).min() > 0.1
    assert encoder.similarity == similarity
