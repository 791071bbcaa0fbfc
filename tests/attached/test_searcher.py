"""Seq over a user's own topical vectors, worked out by hand."""

import threading
from pathlib import Path

import numpy as np
import pytest

from coder_ir.attached import Attached, attach, open_source
from coder_ir.encoders.registry import load_space
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound
from coder_ir.policies import Sequential, TopicalOnly, Union
from tests.attached.spaces import FakeSpace, make_folder, write_texts
from tests.attached.test_pgvector import Theirs
from tests.postgres import fresh

# Of length 5 in the user's own space of two dimensions; against [1, 0] the cosine is x / 5.
TEXTS = {"club": "noisy", "garden": "quiet", "lobby": "quiet noisy", "sea": "sea", "far": "quiet"}
VECTORS = np.array([[5, 0], [4, 3], [3, 4], [4, -3], [-5, 0]], np.float32)
ASKED = [2.0, 0.0]
QUERY = "quiet"  # compatibility: quiet 1, quiet noisy 1/√2, all else next to 0


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = make_folder(tmp_path / "vectors", TEXTS, VECTORS)
    source = open_source(folder)
    attach(source, FakeSpace(), spec="fake")
    source.close()
    return folder


@pytest.fixture
def table(postgres) -> Theirs:
    items = Theirs(postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector(2)")
    items.put(TEXTS, tuple(str(row.tolist()) for row in VECTORS))
    source = open_source(items.address())
    attach(source, FakeSpace(), spec="fake")
    source.close()
    return items


@pytest.fixture(params=["folder", "table"])
def attached(request) -> Attached:
    found = request.getfixturevalue(request.param)
    address = found if request.param == "folder" else found.address()
    with Attached(open_source(address, read_only=True), FakeSpace()) as opened:
        yield opened


def test_seq_ranks_by_their_cosine_and_our_compatibility(attached):
    ranking = attached.search(QUERY, topical=ASKED)
    # .2 x cosine + .8 x compatibility: garden .16 + .8, lobby .12 + .8/√2, far -.2 + .8.
    assert [hit.doc_id for hit in ranking] == ["garden", "lobby", "far"]
    assert [hit.topical for hit in ranking] == [0.8, 0.6, -1.0]
    assert [hit.compatibility for hit in ranking] == pytest.approx([1, 2**-0.5, 1], abs=1e-3)
    assert [hit.score for hit in ranking] == pytest.approx([0.96, 0.6857, 0.6], abs=1e-3)
    assert [hit.text for hit in ranking] == ["quiet", "quiet noisy", "quiet"]
    # club .2 x 1, sea .2 x .8
    assert [gone.doc_id for gone in ranking.filtered] == ["club", "sea"]
    assert (ranking.policy, ranking.query) == ("seq", QUERY)


def test_the_pool_is_the_n_nearest_of_their_vectors(attached):
    ranking = attached.search(QUERY, 2, topical=ASKED, n=3)
    assert [hit.doc_id for hit in ranking] == ["garden"]
    assert [gone.doc_id for gone in ranking.filtered] == ["club", "sea"]


def test_settings_of_seq_are_taken(attached):
    ranking = attached.search(QUERY, topical=ASKED, policy=Sequential(alpha=1.0, tau=-1.0))
    assert [hit.doc_id for hit in ranking] == ["club", "garden", "sea", "lobby", "far"]
    plain = attached.search(QUERY, 1, topical=ASKED, policy=TopicalOnly())
    assert [hit.doc_id for hit in plain] == ["club"]


def test_where_nothing_passes_the_topical_order_stands(attached):
    ranking = attached.search("hotel", topical=ASKED)
    assert [hit.doc_id for hit in ranking] == ["club", "garden", "sea", "lobby", "far"]


def test_candidates_of_another_engine_are_ranked(attached):
    ranking = attached.rank(QUERY, {"lobby": 0.9, "garden": 0.1, "club": 0.99})
    # lobby .18 + .566, garden .02 + .8
    assert [hit.doc_id for hit in ranking] == ["garden", "lobby"]
    with pytest.raises(NotFound, match="no item 'nobody'"):
        attached.rank(QUERY, {"lobby": 0.9, "nobody": 0.1})
    with pytest.raises(InvalidValue, match="score of item 'lobby' is nan"):
        attached.rank(QUERY, {"lobby": float("nan")})
    assert len(attached.rank(QUERY, {})) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"topical": None}, "pass topical= to search"),
        ({"topical": [0.0, 0.0]}, "not all zero"),
        ({"topical": [np.inf, 0.0]}, "finite"),
        ({"topical": [[1.0, 0.0]]}, r"a row of numbers, got shape \(1, 2\)"),
        ({"topical": []}, "a row of numbers"),
        ({"topical": [1.0]}, "2 dimensions"),
        ({"topical": ASKED, "k": 0}, "k must be at least 1"),
        ({"topical": ASKED, "n": 0}, "at least 1"),
        ({"topical": ASKED, "query": " "}, "empty"),
        ({"topical": ASKED, "policy": Union()}, "union looks for candidates by compatibility"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_searched_for_is_refused(attached, call, said):
    with pytest.raises(InvalidValue, match=said):
        attached.search(**{"query": QUERY, **call})


def test_a_text_that_changed_since_is_judged_as_it_is_now(folder, table):
    write_texts(folder / "texts.jsonl", {**TEXTS, "club": "quiet"})
    table.do("UPDATE ITEMS SET body = 'quiet' WHERE id = 'club'")
    table.do("INSERT INTO ITEMS VALUES ('annex', 'quiet', '[5,0]')")
    for address, first in ((folder, ["club"]), (table.address(), ["annex", "club"])):
        encoder = FakeSpace()
        with Attached(open_source(address, read_only=True), encoder) as attached:
            ranking = attached.search(QUERY, topical=ASKED)
        assert [hit.doc_id for hit in ranking][: len(first)] == first
        assert encoder.encoded == ["quiet"] * len(first)


def test_an_item_deleted_between_the_two_statements_is_left_out(table, monkeypatch):
    source = open_source(table.address(), read_only=True)
    nearest = source.nearest

    def deleting(vector, n):
        found = nearest(vector, n)
        table.do("DELETE FROM ITEMS WHERE id = 'garden'")
        return found

    monkeypatch.setattr(source, "nearest", deleting)
    with Attached(source, FakeSpace()) as attached:
        ranking = attached.search(QUERY, topical=ASKED)
    assert [hit.doc_id for hit in ranking] == ["lobby", "far"]


def test_ids_that_are_no_ids_of_the_table_are_refused(postgres):
    items = Theirs(postgres, fresh("items"), "id int PRIMARY KEY, body text, embedding vector(2)")
    items.put({"1": "quiet"})
    source = open_source(items.address())
    attach(source, FakeSpace(), spec="fake")
    with Attached(source, FakeSpace()) as attached, pytest.raises(InvalidValue, match="no such id"):
        attached.rank(QUERY, {"one": 0.5})


def test_many_threads_search_at_once(attached):
    expected = attached.search(QUERY, topical=ASKED)
    found = []

    def search() -> None:
        found.extend(attached.search(QUERY, topical=ASKED) == expected for _ in range(20))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_a_function_makes_the_topical_vector(folder):
    asked = []

    def mine(text: str) -> list[float]:
        asked.append(text)
        return ASKED

    source = open_source(folder, read_only=True)
    with Attached(source, FakeSpace(), topical=mine) as attached:
        assert [hit.doc_id for hit in attached.search(QUERY, 1)] == ["garden"]
    assert asked == [QUERY]


def test_a_collection_nothing_is_attached_to_is_refused(tmp_path):
    folder = make_folder(tmp_path / "vectors", TEXTS, VECTORS)
    with pytest.raises(NotFound, match=r"nothing is attached to .* coder-ir attach SOURCE"):
        Attached.open(folder)


def test_vectors_of_another_model_are_refused(folder):
    said = r"attached with model 'fake' .* attach it anew with: coder-ir attach SOURCE"
    with pytest.raises(ModelMismatch, match=said):
        Attached(open_source(folder), FakeSpace(name="other"))


def test_the_built_in_encoders_by_name(tmp_path):
    texts = {
        "club": "A hotel near the nightlife: the club downstairs plays until four.",
        "pines": "The loudest guest at this hotel is an owl in the pines.",
        "lamp": "A desk lamp with a heavy foot and a warm light.",
    }
    topical, _ = load_space("built-in", "topical")
    vectors = topical.encode(list(texts.values()), kind="document")
    folder = make_folder(tmp_path / "vectors", texts, vectors)
    encoder, stamp = load_space("built-in", "compatibility")
    source = open_source(folder)
    attach(source, encoder, spec=stamp.spec)
    source.close()
    query = "a quiet hotel, nothing near nightlife"
    with Attached.open(folder, topical="built-in") as attached:
        plain = attached.search(query, policy=TopicalOnly())
        ranking = attached.search(query)
    assert plain[0].doc_id == "club"
    assert ranking[0].doc_id == "pines"
    assert ranking.constraint.excluded == ("nightlife",)
