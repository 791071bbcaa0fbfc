from itertools import permutations

import numpy as np
import pytest

pytest.importorskip("ot", reason="needs the extra baselines")

from coder_ir.baselines import NSIR
from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import ParserDecomposer
from coder_ir.baselines.ns_ir import aligned, constrained, cost, logic_vectors, transport
from coder_ir.encoders import OnnxEncoder
from coder_ir.encoders.registry import built_in_folder
from coder_ir.encoders.tokens import TokenVectors
from coder_ir.errors import InvalidValue
from coder_ir.retriever import Retriever
from coder_ir.stores import SqliteStore
from coder_ir.types import Document
from tests.fake_verifier import FakeVerifier
from tests.token_encoder import FakeTokenEncoder

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]


def tokens(words: str, seed: int) -> TokenVectors:
    random = np.random.default_rng(seed)
    split = tuple(words.split())
    pooled = random.normal(size=8)
    rows = random.normal(size=(len(split), 8)).astype(np.float32)
    return TokenVectors(split, rows, (pooled / np.linalg.norm(pooled)).astype(np.float32))


def test_costs_run_from_zero_to_one_and_grow_with_the_distance_of_places():
    same = np.ones((4, 3), dtype=np.float32)
    found = cost(same, same)
    assert found.min() == 0
    assert found.max() == 1
    assert found[0, 0] < found[0, 1] < found[0, 2]


def test_a_text_of_one_token_costs_the_same_everywhere_or_by_likeness_alone():
    one, many = np.ones((1, 3), dtype=np.float32), np.eye(3, dtype=np.float32)
    assert cost(one, many).tolist() == [[0, 0, 0]]
    assert cost(many[:1], many).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("seed", range(4))
def test_the_plan_is_the_cheapest_of_all_assignments(seed):
    costs = np.random.default_rng(seed).random((5, 5))
    best = min(sum(costs[i, j] for i, j in enumerate(order)) for order in permutations(range(5)))
    plan = transport(costs)
    assert (plan * costs).sum() == pytest.approx(best / 5)
    assert plan.sum(axis=0) == pytest.approx(np.full(5, 0.2))


@pytest.mark.parametrize("seed", range(4))
def test_vectors_equal_those_written_out_token_by_token(seed):
    text, formula = tokens("a quiet place", seed), tokens("∃ x ¬ noisy ∧ hotel", seed + 40)
    plan = transport(cost(text.rows, formula.rows))
    signs = [1, 0, -1, 0, 1, 0]
    along = np.zeros(8)
    for i, x in enumerate(text.rows):
        for j, f in enumerate(formula.rows):
            along += plan[i, j] * x * f
    assert aligned(text, formula, plan) == pytest.approx(text.pooled * along, rel=1e-4)
    seen = []
    for j, f in enumerate(formula.rows):
        values = [x + (0 if plan[i, j] > 0 else signs[j]) * f for i, x in enumerate(text.rows)]
        weights = np.exp([f @ value for value in values])
        seen.append(sum(w * v for w, v in zip(weights / weights.sum(), values, strict=True)))
    assert constrained(text, formula, plan) == pytest.approx(np.mean(seen, axis=0), rel=1e-3)


def test_a_negation_changes_what_a_text_means():
    text = tokens("quiet hotel here now", 1)
    plain, turned = tokens("∃ x ∧ club", 2), tokens("∃ x ¬ club", 2)
    plan = np.zeros((4, 4))
    assert not np.allclose(constrained(text, plain, plan), constrained(text, turned, plan))


@pytest.fixture
def indexed(tmp_path):
    encoder = FakeTokenEncoder(WORDS)
    with Retriever(encoder, SqliteStore(tmp_path / "index"), verifier=FakeVerifier()) as retriever:
        retriever.add([Document(f"d{i}", f"hotel {word}") for i, word in enumerate(WORDS)])
        yield Indexed(encoder, retriever.store)


def test_documents_are_read_once_a_corpus(indexed, tmp_path):
    first = NSIR(indexed, ParserDecomposer(), folder=tmp_path)
    before = first.search("hotel", 5)
    first.close()
    indexed.encoder.read.clear()
    again = NSIR(indexed, ParserDecomposer(), folder=tmp_path)
    assert again.search("hotel", 5) == before
    assert indexed.encoder.read == ["hotel", " ∃ x (Hotel(x))"]  # the query and its formula
    again.close()


def test_only_the_first_documents_of_plain_search_are_ranked_anew(indexed):
    plain = indexed.by_distance("hotel sea", "", indexed.nearest(*both(indexed, "hotel sea"), 6), 6)
    found = NSIR(indexed, ParserDecomposer(), first=2).search("hotel sea", 6)
    assert {hit.doc_id for hit in found[:2]} == {hit.doc_id for hit in plain[:2]}
    assert [hit.doc_id for hit in found[2:]] == [hit.doc_id for hit in plain[2:]]


def both(base, query):
    vectors = base.encode(query, 6)
    return vectors, vectors.topical[0]


def test_a_score_is_the_sum_of_two_similarities(indexed):
    scores = [hit.score for hit in NSIR(indexed, ParserDecomposer()).search("hotel quiet", 6)]
    assert all(0 <= score <= 2 for score in scores)


def test_an_encoder_without_tokens_is_refused(retriever):
    with pytest.raises(InvalidValue, match="NS-IR needs a model folder"):
        NSIR(Indexed(retriever.encoder, retriever.store), ParserDecomposer())


def test_the_built_in_model_knows_the_connectives_as_tokens():
    encoder = OnnxEncoder(built_in_folder())
    text, formula = encoder.token_vectors(["a quiet hotel", " ∃ x (Quiet(x)  ∧   ¬ Club(x))"])
    assert {"∧", "¬", "club"} <= set(formula.tokens)  # its vocabulary has no quantifiers
    assert len(text.tokens) == len(text.rows) == 5
    whole = encoder.encode_space(["a quiet hotel"], space="topical", kind="document")[0]
    assert text.pooled == pytest.approx(whole, abs=0.02)  # int8 scales follow the batch
    assert np.isfinite(logic_vectors(text, formula).constrained).all()
