"""A cross-encoder over another searcher's hits: worked by hand, then with a real model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coder_ir.baselines import CrossEncoder, Reranked
from coder_ir.baselines.rerank import read_text
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.types import Constraint, Filtered, Hit, Passage, Ranking, Scores, Span

CONSTRAINT = Constraint(0.9, ("without",), ("noise",))
FILTERED = (Filtered("z", 0.1, 0.2, 0.3, None, "Too loud.", Passage(0, Span(0, 1))),)
NAMES = "dbeac"  # the inner searcher's order


def hit(doc_id: str, rank: int, *, title: str = "", text: str = "", start: int = 0) -> Hit:
    text = text or f"about {doc_id}"
    end = len(f"{title} {text}" if title else text)
    return Hit(
        doc_id=doc_id,
        rank=rank,
        score=1 - rank / 10,
        topical=rank / 100,
        compatibility=rank / 50,
        risk=0.25,
        reason="As the inner searcher has it.",
        text=text,
        title=title,
        metadata={"rank": rank},
        passage=Passage(0, Span(start, end)),
    )


@dataclass
class Fixed:
    """A searcher with one answer."""

    names: str = NAMES
    asked: list[tuple[str, int]] = field(default_factory=list)

    def search(self, query: str, k: int = 10) -> Ranking:
        self.asked.append((query, k))
        hits = tuple(hit(name, rank) for rank, name in enumerate(self.names, 1))
        return Ranking(query, "union", hits[:k], FILTERED, CONSTRAINT)


@dataclass
class Stub:
    """A cross-encoder that looks its logits up."""

    logits: Mapping[str, float]  # by the passage's last letter
    read: list[str] = field(default_factory=list)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        assert query == "q"
        self.read += passages
        return np.array([self.logits[passage[-1]] for passage in passages])


@pytest.fixture
def stub() -> Stub:
    return Stub({"a": 2.0, "b": 2.0, "c": 9.0, "d": -1.5, "e": 3.25})


def test_the_hits_read_stand_by_logit_and_ties_by_id(stub: Stub):
    ranking = Reranked(Fixed(), stub).search("q")
    assert [found.doc_id for found in ranking] == ["c", "e", "a", "b", "d"]
    assert [found.rank for found in ranking] == [1, 2, 3, 4, 5]
    assert [found.score for found in ranking] == [9.0, 3.25, 2.0, 2.0, -1.5]


def test_hits_past_the_depth_follow_in_their_order_below_the_last_logit(stub: Stub):
    ranking = Reranked(Fixed(), stub, depth=3).search("q")
    assert [found.doc_id for found in ranking] == ["e", "b", "d", "a", "c"]
    assert [found.rank for found in ranking] == [1, 2, 3, 4, 5]
    assert [found.score for found in ranking] == pytest.approx([3.25, 2.0, -1.5, -2.5, -2.6])


def test_only_the_first_hits_are_read_whatever_k_is(stub: Stub):
    for k in (1, 2, 5):
        Reranked(Fixed(), stub, depth=2).search("q", k)
    assert stub.read == ["about d", "about b"] * 3


@pytest.mark.parametrize(("k", "asked"), [(2, 4), (4, 4), (9, 9)])
def test_the_inner_searcher_is_asked_for_as_much_as_is_read_or_wanted(
    stub: Stub, k: int, asked: int
):
    inner = Fixed()
    ranking = Reranked(inner, stub, depth=4).search("q", k)
    assert inner.asked == [("q", asked)]
    assert len(ranking) == min(k, len(NAMES))


def test_a_hit_says_what_moved_it(stub: Stub):
    reasons = {found.doc_id: found.reason for found in Reranked(Fixed(), stub, depth=3).search("q")}
    assert reasons == {
        "e": "The cross-encoder's logit 3.250 moves it from rank 3 to 1.",
        "b": "The cross-encoder's logit 2.000 leaves it at rank 2.",
        "d": "The cross-encoder's logit -1.500 moves it from rank 1 to 3.",
        "a": "Not among the first 3, which the cross-encoder reads, so its rank stands.",
        "c": "Not among the first 3, which the cross-encoder reads, so its rank stands.",
    }


def test_all_else_of_a_hit_and_of_the_ranking_is_kept(stub: Stub):
    before, after = Fixed().search("q"), Reranked(Fixed(), stub, depth=3).search("q")
    assert (after.query, after.policy) == ("q", "union")
    assert (after.filtered, after.constraint) == (FILTERED, CONSTRAINT)

    def kept(found: Hit) -> tuple[object, ...]:
        scores = (found.topical, found.compatibility, found.risk)
        return (found.doc_id, *scores, found.text, found.metadata["rank"], found.passage)

    assert sorted(map(kept, after)) == sorted(map(kept, before))


def test_a_ranking_without_hits_stays_empty(stub: Stub):
    ranking = Reranked(Fixed(""), stub).search("q")
    assert (ranking.hits, ranking.filtered, stub.read) == ((), FILTERED, [])


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (hit("d", 1, text="One. Two."), "One. Two."),
        (hit("d", 1, text="One. Two.", start=5), "Two."),
        (hit("d", 1, title="Top", text="One. Two."), "Top One. Two."),
        (hit("d", 1, title="Top", text="One. Two.", start=4), "Top One. Two."),
        (hit("d", 1, title="Top", text="One. Two.", start=9), "Top Two."),
    ],
    ids=["whole", "later", "title and whole", "from the text on", "title and later"],
)
def test_title_and_passage_are_read_each_once(found: Hit, text: str):
    assert read_text(found) == text


def test_settings_that_cannot_work_are_refused(stub: Stub):
    with pytest.raises(InvalidValue, match="depth must be at least 1, got 0"):
        Reranked(Fixed(), stub, depth=0)
    with pytest.raises(InvalidValue, match="k must be at least 1, got 0"):
        Reranked(Fixed(), stub).search("q", 0)


# The real model.

QUERY = "how do bees find their way home"
PASSAGES = [
    "The stock exchange opened two points lower.",
    "Honey bees return to the hive by the position of the sun and by landmarks they remember.",
    "Bees.",
    "Honey is made of nectar. " * 20,
    "A bee that was carried away in a box still flies back to its home, guided by the sun.",
    "Paint the fence in spring, when the wood is dry and the days are warm but not yet hot.",
]


@pytest.fixture(scope="module")
def folder() -> Path:
    path = Path(__file__).parents[3] / "shared" / "models" / "ms-marco-MiniLM-L12-int8-onnx"
    if not path.is_dir():
        pytest.skip("needs the MS MARCO cross-encoder, which is not on this machine")
    return path


@pytest.fixture(scope="module")
def cross_encoder(folder: Path) -> CrossEncoder:
    return CrossEncoder(folder, threads=1)


def one_by_one(folder: Path, *, limit: int) -> Scores:
    """The same logits without our code: the tokenizer's own pairs, a run each."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # The same kernels as ours, for what they round differently would hide what we do differently.
    run = onnxruntime.InferenceSession(
        folder / "model.onnx", options, disabled_optimizers=["SkipLayerNormFusion"]
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit, strategy="only_second")
    logits = []
    for passage in PASSAGES:
        pair = tokenizer.encode(QUERY, passage)
        feed = {
            "input_ids": [pair.ids],
            "attention_mask": [pair.attention_mask],
            "token_type_ids": [pair.type_ids],
        }
        arrays = {name: np.array(value, dtype=np.int64) for name, value in feed.items()}
        logits.append(float(run.run(["logits"], arrays)[0][0, 0]))
    return np.array(logits)


def test_a_passage_that_answers_scores_above_one_that_does_not(cross_encoder: CrossEncoder):
    scores = cross_encoder.score(QUERY, PASSAGES)
    assert scores.dtype == np.float64
    assert min(scores[1], scores[4]) > max(scores[[0, 2, 3, 5]]) + 1


def test_which_passage_answers_depends_on_the_query(cross_encoder: CrossEncoder):
    painting, bees = cross_encoder.score("when to paint a fence", [PASSAGES[5], PASSAGES[1]])
    assert painting > bees


@pytest.mark.parametrize("limit", [256, 24], ids=["whole passages", "cut passages"])
def test_logits_are_those_of_one_pair_at_a_time(folder: Path, limit: int):
    scores = CrossEncoder(folder, threads=1, max_length=limit).score(QUERY, PASSAGES)
    expected = one_by_one(folder, limit=limit)
    assert scores == pytest.approx(expected, abs=1e-4)
    assert np.ptp(expected) > 3


def test_a_passage_has_the_same_logit_alone_and_among_others(cross_encoder: CrossEncoder):
    alone = [float(cross_encoder.score(QUERY, [passage])[0]) for passage in PASSAGES]
    assert cross_encoder.score(QUERY, PASSAGES).tolist() == alone


def test_the_order_of_the_passages_does_not_change_their_logits(cross_encoder: CrossEncoder):
    order = [3, 0, 5, 1, 4, 2]
    scores = cross_encoder.score(QUERY, PASSAGES)
    moved = cross_encoder.score(QUERY, [PASSAGES[i] for i in order])
    assert moved.tolist() == scores[order].tolist()


def test_equal_passages_get_equal_logits_and_threads_change_nothing(
    folder: Path, cross_encoder: CrossEncoder
):
    passages = [PASSAGES[1], *PASSAGES, PASSAGES[1]]
    scores = cross_encoder.score(QUERY, passages)
    assert scores[0] == scores[2] == scores[-1]
    assert CrossEncoder(folder, threads=2).score(QUERY, passages).tolist() == scores.tolist()


def test_what_is_past_the_limit_is_not_read(folder: Path):
    short = CrossEncoder(folder, threads=1, max_length=24)
    head = " ".join(["honey"] * 40)
    cut, longer = (short.score(QUERY, [f"{head} {end}"])[0] for end in ("sun", "stock exchange"))
    assert cut == longer


def test_no_passage_gives_no_logit_and_an_empty_one_gives_one(cross_encoder: CrossEncoder):
    assert cross_encoder.score(QUERY, []).shape == (0,)
    assert math.isfinite(cross_encoder.score(QUERY, [""])[0])


def test_a_query_past_half_the_length_is_cut_to_it(folder: Path):
    short = CrossEncoder(folder, threads=1, max_length=11)  # three of them special
    long = " ".join(["honey"] * 40)
    assert short.score(long, PASSAGES).tolist() == short.score(f"{long} sun", PASSAGES).tolist()
    assert short.score("honey " * 4, PASSAGES).tolist() == short.score(long, PASSAGES).tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 7}, "max_length must be between 8 and 512 tokens, got 7"),
        ({"max_length": 513}, "max_length must be between 8 and 512 tokens, got 513"),
        ({"threads": 0}, "threads must be at least 1, or None for all cores, got 0"),
    ],
    ids=["too short", "past the model's limit", "no thread"],
)
def test_a_cross_encoder_that_could_not_run_is_refused(
    folder: Path, settings: dict[str, Any], message: str
):
    with pytest.raises(InvalidValue, match=message):
        CrossEncoder(folder, **settings)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_its_files_is_refused(tmp_path: Path, missing: str):
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        (tmp_path / name).touch()
    with pytest.raises(NotFound, match=f"it has no {missing}"):
        CrossEncoder(tmp_path)


def save_graph(folder: Path, *, inputs: Sequence[str], width: int = 1) -> Path:
    """A graph that counts attended tokens, `width` times a pair, and a tokenizer of whole words."""
    onnx = pytest.importorskip("onnx", reason="needs onnx: the extra train")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    make, number = onnx.helper, onnx.TensorProto
    read = [make.make_tensor_value_info(name, number.INT64, ["n", "t"]) for name in inputs]
    logits = make.make_tensor_value_info("logits", number.FLOAT, ["n", width])
    axis = make.make_tensor("axis", number.INT64, [1], [1])
    nodes = [
        make.make_node("Cast", [inputs[-1]], ["real"], to=number.FLOAT),
        make.make_node("ReduceSum", ["real", "axis"], ["sum"], keepdims=1),
        make.make_node("Concat", ["sum"] * width, ["logits"], axis=1),
    ]
    graph = make.make_graph(nodes, "count", read, [logits], initializer=[axis])
    opset = [make.make_opsetid("", 13)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=8), folder / "model.onnx")
    words = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "bee": 3}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_a_graph_without_token_types_is_run_without_them(tmp_path: Path):
    counting = CrossEncoder(save_graph(tmp_path, inputs=["input_ids", "attention_mask"]))
    # The query's word, three special tokens and the passage's words; padding does not count.
    assert counting.score("bee", ["a", "a bee flies", ""]).tolist() == [5, 7, 4]


def test_a_model_that_names_no_limit_takes_any_length(tmp_path: Path):
    save_graph(tmp_path, inputs=["input_ids", "attention_mask"])
    assert CrossEncoder(tmp_path, max_length=4000).score("bee", ["bee " * 5000]).tolist() == [4000]
    with pytest.raises(InvalidValue, match="max_length must be at least 8 tokens, got 2"):
        CrossEncoder(tmp_path, max_length=2)


@pytest.mark.parametrize(
    ("inputs", "width", "message"),
    [
        (["input_ids"], 1, "it reads input_ids"),
        (["position_ids", "input_ids", "attention_mask"], 1, "input_ids, position_ids$"),
        (["input_ids", "attention_mask"], 2, r"one output of shape \(batch, 1\)"),
    ],
    ids=["no mask", "other inputs", "two logits"],
)
def test_a_graph_that_reads_or_says_something_else_is_refused(
    tmp_path: Path, inputs: list[str], width: int, message: str
):
    with pytest.raises(InvalidFile, match=message):
        CrossEncoder(save_graph(tmp_path, inputs=inputs, width=width))
