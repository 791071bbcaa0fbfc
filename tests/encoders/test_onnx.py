"""The built-in model on ONNX Runtime; nothing here pins its weights."""

import dataclasses
import random
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace, Runtime
from coder_ir.encoders.registry import built_in_folder
from coder_ir.errors import InvalidValue, ModelMismatch
from coder_ir.types import Floats, Kind, Space, VectorPair

SPACES: tuple[Space, ...] = ("topical", "compatibility")
KINDS: tuple[Kind, ...] = ("query", "document")
WORDS = "a quiet room by the sea with no music, late bars or traffic at night. Garden!".split()
# Of unlike lengths, so that a batch of them would pad.
TEXTS = [" ".join(random.Random(n).choices(WORDS, k=n)) for n in (3, 40, 1, 9, 70, 5, 22, 2, 14)]
PROSE = " ".join(f"Sentence {n} says that {' '.join(WORDS)}." for n in range(120))
NASTY = {
    "prose": PROSE,
    "one sentence without end": " ".join(WORDS * 120).replace(".", "").replace("!", ""),
    "no spaces": "a-b/c_d" * 400,
    "Chinese": "安静的房间，没有音乐。" * 200,
    "long words": "antidisestablishmentarianism" * 3 + " " + "floccinaucinihilipilification " * 300,
    "emoji and accents": "naïve café 🙂 déjà-vu … " * 200,
    "lines": "- item one\n- item two\n\n# Heading\n" * 150,
    "null bytes inside": "quiet\0 room. " * 400,
}


def closest(one: Floats, two: Floats) -> Floats:
    """Cosine of each row with its counterpart."""
    return (one * two).sum(axis=1)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    loaded = Tokenizer.from_file(str(built_in_folder() / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


@cache
def with_runtime(**values: int) -> OnnxEncoder:
    return OnnxEncoder(built_in_folder(), runtime=Runtime(**{"threads": 1, **values}))


def with_roles(folder: Path, **changes: object) -> OnnxEncoder:
    """The built-in model in another folder, both roles changed."""
    manifest = Manifest.load(built_in_folder())
    for name in manifest.sha256:
        shutil.copy(built_in_folder() / name, folder / name)
    dataclasses.replace(
        manifest,
        topical=dataclasses.replace(manifest.topical, **changes),
        compatibility=dataclasses.replace(manifest.compatibility, **changes),
    ).save(folder)
    return OnnxEncoder(folder, runtime=Runtime(threads=1))


@pytest.mark.parametrize("space", SPACES)
def test_rows_are_unit_float32_of_the_stated_size(built_in: OnnxEncoder, space: Space, kind: Kind):
    rows = built_in.encode(TEXTS, kind=kind).space(space)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), built_in.manifest.role(space).dimensions)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_built_in_model_has_the_published_sizes(built_in: OnnxEncoder):
    for space in SPACES:
        role = built_in.manifest.role(space)
        assert (role.dimensions, role.max_length) == (384, 512)
    assert built_in.manifest.topical.pooling == "cls"


@pytest.mark.parametrize("space", SPACES)
def test_different_texts_get_different_vectors(built_in: OnnxEncoder, space: Space):
    rows = built_in.encode(["a silent garden", "the price of copper"], kind="document").space(space)
    assert rows[0] @ rows[1] < 0.95


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(scope="module")
def alone(built_in: OnnxEncoder, kind: Kind) -> VectorPair:
    """Each of TEXTS encoded in a call of its own."""
    pairs = [built_in.encode([text], kind=kind) for text in TEXTS]
    return VectorPair(*(np.concatenate([pair.space(s) for pair in pairs]) for s in SPACES))


def assert_same_bytes(one: VectorPair, two: VectorPair) -> None:
    for space in SPACES:
        assert one.space(space).tobytes() == two.space(space).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_text_has_the_same_bytes_alone_and_among_others_on_any_number_of_threads(
    threads: int, kind: Kind, alone: VectorPair
):
    assert_same_bytes(with_runtime(threads=threads).encode(TEXTS, kind=kind), alone)


def test_a_text_has_the_same_bytes_in_another_order(
    built_in: OnnxEncoder, kind: Kind, alone: VectorPair
):
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    mixed = built_in.encode([TEXTS[i] for i in order], kind=kind)
    assert_same_bytes(mixed, VectorPair(alone.topical[order], alone.compatibility[order]))


@pytest.mark.parametrize("beside", ["", "a", PROSE], ids=["nothing", "a word", "512 tokens"])
def test_a_text_has_the_same_bytes_beside_a_shorter_or_longer_one(
    built_in: OnnxEncoder, kind: Kind, alone: VectorPair, beside: str
):
    pair = built_in.encode([beside, TEXTS[1]], kind=kind)
    one = VectorPair(pair.topical[1:], pair.compatibility[1:])
    assert_same_bytes(one, VectorPair(alone.topical[1:2], alone.compatibility[1:2]))


def test_one_space_alone_has_the_same_bytes_as_its_side_of_the_pair(
    built_in: OnnxEncoder, kind: Kind, alone: VectorPair
):
    rows = [built_in.encode_space(TEXTS, space=space, kind=kind) for space in SPACES]
    assert_same_bytes(VectorPair(*rows), alone)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_spans_of_a_long_text_have_the_same_bytes_alone_and_together(threads: int):
    encoder = with_runtime(threads=threads, max_length=64)
    parts = [PROSE[span.start : span.end] for span in encoder.split(PROSE)][:6]
    together = encoder.encode([*parts, "a quiet room"], kind="document")
    for i, part in enumerate(parts):
        one = with_runtime(max_length=64).encode([part], kind="document")
        rows = slice(i, i + 1)
        assert_same_bytes(one, VectorPair(together.topical[rows], together.compatibility[rows]))


def test_progress_comes_once_for_each_text(built_in: OnnxEncoder):
    seen: list[int] = []
    built_in.encode(TEXTS, kind="document", progress=seen.append)
    assert seen == [1] * len(TEXTS)


def test_progress_adds_up_when_the_spaces_read_different_tokens(tmp_path: Path):
    encoder = with_roles(tmp_path)
    encoder.manifest = dataclasses.replace(
        encoder.manifest,
        compatibility=dataclasses.replace(encoder.manifest.compatibility, query_prefix="Other: "),
    )
    seen: list[int] = []
    encoder.encode(TEXTS, kind="query", progress=seen.append)
    assert sum(seen) == len(TEXTS)


@pytest.mark.parametrize("space", SPACES)
def test_a_query_is_read_behind_its_prefix(built_in: OnnxEncoder, space: Space):
    prefix = built_in.manifest.role(space).query_prefix
    assert prefix
    query = built_in.encode(["a quiet room"], kind="query").space(space)
    spelled_out = built_in.encode([prefix + "a quiet room"], kind="document").space(space)
    assert query == pytest.approx(spelled_out, abs=1e-6)


@pytest.mark.parametrize("space", SPACES)
def test_a_document_is_read_without_the_query_prefix(built_in: OnnxEncoder, space: Space):
    query = built_in.encode(["a quiet room"], kind="query").space(space)
    document = built_in.encode(["a quiet room"], kind="document").space(space)
    assert closest(query, document)[0] < 0.999


@pytest.mark.parametrize("space", SPACES)
def test_a_document_prefix_is_read_before_documents(
    tmp_path: Path, built_in: OnnxEncoder, space: Space
):
    prefixed = with_roles(tmp_path, document_prefix="Passage: ")
    rows = prefixed.encode(["a quiet room"], kind="document").space(space)
    spelled_out = built_in.encode(["Passage: a quiet room"], kind="document").space(space)
    assert rows == pytest.approx(spelled_out, abs=1e-6)


@pytest.mark.parametrize("space", SPACES)
def test_max_length_cuts_what_is_read(built_in: OnnxEncoder, space: Space):
    short = with_runtime(max_length=16)
    text = "the room faces a garden " * 20
    one, two = text + "and has no music", text + "above the night club"
    cut = short.encode([one, two], kind="document").space(space)
    whole = built_in.encode([one, two], kind="document").space(space)
    assert cut[0] == pytest.approx(cut[1], abs=1e-6)
    assert closest(whole[:1], whole[1:])[0] < 0.9999


def test_a_text_past_the_limit_keeps_its_closing_token(built_in: OnnxEncoder, tokenizer: Tokenizer):
    kept = tokenizer.encode(PROSE, add_special_tokens=False).offsets[16 - 3][1]
    cut = with_runtime(max_length=16).encode([PROSE], kind="document").topical
    assert cut == pytest.approx(built_in.encode([PROSE[:kept]], kind="document").topical, abs=1e-6)


def test_max_length_never_raises_the_models_own_limit():
    assert with_runtime(max_length=100_000).max_length("topical") == 512


def test_a_lowered_limit_changes_the_fingerprint(built_in: OnnxEncoder):
    assert with_runtime(max_length=16).fingerprint != built_in.fingerprint


def test_a_limit_that_lowers_nothing_keeps_the_fingerprint(built_in: OnnxEncoder):
    assert with_runtime(max_length=512).fingerprint == built_in.fingerprint


@pytest.mark.parametrize("space", SPACES)
def test_a_role_on_its_own_gives_that_space(built_in: OnnxEncoder, space: Space):
    rows = OnnxSpace(built_in, space).encode(TEXTS, kind="query")
    assert rows == pytest.approx(built_in.encode(TEXTS, kind="query").space(space), abs=1e-6)


def test_the_two_roles_of_a_folder_have_different_fingerprints(built_in: OnnxEncoder):
    one, two = (OnnxSpace(built_in, space) for space in SPACES)
    assert one.fingerprint != two.fingerprint


@pytest.mark.parametrize("space", SPACES)
def test_no_texts_give_no_rows_of_the_right_width(built_in: OnnxEncoder, space: Space):
    assert built_in.encode([], kind="document").space(space).shape == (0, 384)


@pytest.mark.parametrize(
    "text",
    ["", "   \n", "\0\0", "a\0b", "\ud7ff\U0010ffff", "x" * 1_000_000, "a b " * 250_000],
    ids=["empty", "blank", "null bytes", "null inside", "odd code points", "1 MB word", "1 MB"],
)
def test_an_odd_text_has_unit_vectors(built_in: OnnxEncoder, text: str, kind: Kind):
    pair = built_in.encode([text, "a quiet room"], kind=kind)
    for space in SPACES:
        assert np.linalg.norm(pair.space(space), axis=1) == pytest.approx(1, abs=1e-5)


def test_a_short_text_is_one_span(built_in: OnnxEncoder):
    assert [(s.start, s.end) for s in built_in.split("A quiet room.")] == [(0, 13)]


def test_an_empty_text_is_one_span(built_in: OnnxEncoder):
    assert [(s.start, s.end) for s in built_in.split("")] == [(0, 0)]


def test_a_text_that_just_fits_stays_whole(built_in: OnnxEncoder):
    assert len(built_in.split("a " * 510)) == 1
    assert len(built_in.split("a " * 511)) == 2


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("max_length", [8, 64, 512])
def test_spans_cover_the_text_in_order(text: str, max_length: int):
    spans = with_runtime(max_length=max_length).split(text)
    assert len(spans) > 1
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    for before, after in pairwise(spans):
        assert before.start < after.start <= before.end < after.end


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("max_length", [8, 64, 512])
def test_each_passage_fits_the_limit_when_read_anew(
    text: str, max_length: int, tokenizer: Tokenizer
):
    spans = with_runtime(max_length=max_length).split(text)
    longest = max(len(tokenizer.encode(text[span.start : span.end]).ids) for span in spans)
    assert longest <= max_length


def test_a_megabyte_is_split_without_loss(built_in: OnnxEncoder):
    text = (PROSE + " ") * (1_000_000 // len(PROSE))
    spans = built_in.split(text)
    assert len(spans) > 100
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    assert all(b.start <= a.end for a, b in pairwise(spans))


def test_fewer_threads_than_none_are_refused():
    with pytest.raises(InvalidValue, match=r"threads must be 0 .* or more, got -1"):
        Runtime(threads=-1)


@pytest.mark.parametrize("max_length", [0, 7, -5])
def test_a_token_limit_too_low_to_read_anything_is_refused(max_length: int):
    with pytest.raises(
        InvalidValue, match=f"max_length must be at least 8 tokens, got {max_length}"
    ):
        Runtime(max_length=max_length)


def test_a_damaged_folder_is_refused_before_it_is_loaded(tmp_path: Path):
    folder = tmp_path / "model"
    shutil.copytree(built_in_folder(), folder)
    with (folder / "topical.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff\x00\xff")
    with pytest.raises(ModelMismatch, match=r"topical\.onnx is damaged or was changed"):
        OnnxEncoder(folder)


def test_topical_vectors_agree_with_torch(shared: Path, built_in: OnnxEncoder):
    pytest.importorskip("torch", reason="compares with torch, which is not installed")
    model = shared / "models" / "bge-small-en-v1.5"
    if not model.is_dir():
        pytest.skip("needs bge-small-en-v1.5, which is not on this machine")
    from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder

    torch_model = SentenceTransformerEncoder(str(model), runtime=Runtime(threads=1))
    for kind in KINDS:
        rows = torch_model.encode(TEXTS, kind=kind)
        assert closest(rows, built_in.encode(TEXTS, kind=kind).topical).mean() >= 0.99
