"""Near-copies are read again by what one says and another does not."""

from collections.abc import Sequence

import numpy as np
import pytest

from coder_ir import Document, Retriever
from coder_ir.copies import (
    ComparesCopies,
    compared_copies,
    encoded_alone,
    own_words,
    shared_words,
)
from coder_ir.policies import POLICIES, Auto
from coder_ir.searching import SearchOptions
from coder_ir.types import Candidates, Floats, Passage, Span
from tests.conftest import FakeEncoder

BOTH = [(0, 1)]
QUERY = np.array([1, 0], dtype=np.float32)


class Reader:
    """Encodes "yes" along the query and everything else across it; remembers what it was given."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, text: str) -> Floats:
        self.read.append(text)
        return np.array([1, 0] if "yes" in text else [0, 1], dtype=np.float32)


def pool_of(angles: Sequence[float], topical: Sequence[float] | None = None) -> Candidates:
    size = len(angles)
    return Candidates(
        doc_ids=[f"d{i:02}" for i in range(size)],
        passages=[Passage(0, Span(0, 1))] * size,
        topical=np.array(topical if topical is not None else [0.5] * size),
        compatibility=np.arange(size) / 100,
        rows=np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32),
    )


def read(pool: Candidates, texts: Sequence[str], reader: Reader) -> list[float | None]:
    """`apart` of each passage, None where it was not read."""
    by_id = dict(zip(pool.doc_ids, texts, strict=True))
    found = compared_copies(
        pool, QUERY, twin=0.9, texts=lambda p: [by_id[d] for d in p.doc_ids], encode=reader
    )
    if found.apart is None:
        return []
    return [None if np.isnan(value) else float(value) for value in found.apart]


def own(pairs: Sequence[tuple[int, int]], *texts: str) -> list[str]:
    return list(own_words(pairs, dict(enumerate(texts))).values())


class TestOwnWords:
    def test_are_the_sentences_that_the_copy_lacks(self):
        one, other = "A stays. B is old. C stays.", "A stays. B is new. C stays."
        assert own(BOTH, one, other) == ["B is old.", "B is new."]

    def test_of_three_are_those_that_any_copy_lacks(self):
        texts = ["One. Two.", "One. Three.", "One. Two. Four."]
        assert own([(0, 1), (0, 2), (1, 2)], *texts) == ["Two.", "Three.", "Two. Four."]

    def test_are_none_where_the_copy_says_all_of_it_and_more(self):
        assert own(BOTH, "One.", "One. Two.") == ["", "Two."]

    def test_are_of_copies_alone(self):
        assert own([(0, 2)], "A.", "B.", "C.") == ["A.", "C."]


class TestSharedWords:
    @pytest.mark.parametrize(
        ("one", "other", "share"),
        [
            ("The toll house is shut.", "the toll house is open", 4 / 6),
            ("a a b", "a b b", 2 / 4),
            ("one", "other", 0),
            ("", "", 0),
            ("same words", "same words", 1),
        ],
    )
    def test_is_what_both_have_of_what_either_has(self, one: str, other: str, share: float):
        assert shared_words(one, other) == pytest.approx(share)
        assert shared_words(other, one) == pytest.approx(share)


class TestComparedCopies:
    def test_each_copy_is_scored_by_what_only_it_says(self):
        reader = Reader()
        texts = [
            "Both of these say it. Says yes.",
            "Both of these say it. Says no.",
            "Another: yes.",
        ]
        assert read(pool_of([0, 0.1, 2]), texts, reader) == [1, 0, None]
        assert reader.read == ["Says yes.", "Says no."]

    def test_a_pool_without_copies_costs_nothing(self):
        reader = Reader()
        pool = pool_of([0, 1, 2])
        assert read(pool, ["yes", "no", "yes"], reader) == []
        assert reader.read == []

    def test_identical_texts_are_not_read(self):
        reader = Reader()
        assert read(pool_of([0, 0]), ["Same.", "Same."], reader) == [None, None]
        assert reader.read == []

    def test_copies_that_share_no_sentence_keep_their_score(self):
        reader = Reader()
        texts = ["One of them all says yes.", "Here one of them all says no."]
        assert read(pool_of([0, 0]), texts, reader) == [0, 0.01]
        assert reader.read == []

    def test_the_same_words_of_two_passages_are_encoded_once(self):
        reader = Reader()
        texts = [f"Both of these say it. Says {word}." for word in ("yes", "no", "yes")]
        assert read(pool_of([0, 0, 0]), texts, reader) == [1, 0, 1]
        assert reader.read == ["Says yes.", "Says no."]

    def test_only_the_first_twenty_by_topic_are_read(self):
        reader = Reader()
        topical = np.linspace(0.9, 0.1, 30)
        texts = [f"Both of these say it. Number {i}." for i in range(30)]
        found = read(pool_of([0.0] * 30, topical), texts, reader)
        assert [value is not None for value in found] == [True] * 20 + [False] * 10

    def test_passages_on_one_subject_in_other_words_are_no_copies(self):
        reader = Reader()
        texts = ["The bridge is shut, yes.", "Nobody may walk over the bridge any more."]
        assert read(pool_of([0, 0]), texts, reader) == []
        assert reader.read == []

    def test_passages_alike_in_words_and_not_in_vector_are_no_copies(self):
        assert read(pool_of([0, 2]), ["Both. Yes.", "Both. Yes."], Reader()) == []

    def test_an_empty_pool_and_one_without_vectors_stay_as_they_are(self):
        assert read(pool_of([]), [], Reader()) == []
        pool = pool_of([0, 0])
        bare = Candidates(pool.doc_ids, pool.passages, pool.topical, pool.compatibility)
        assert read(bare, ["A. B.", "A. C."], Reader()) == []


def test_a_part_that_was_read_is_not_encoded_again():
    encoder = FakeEncoder(["quiet", "noisy"])
    alone = encoded_alone(encoder)
    first = alone("quiet rooms")
    assert alone("quiet rooms") is first
    assert encoder.encoded == ["quiet rooms"]
    assert np.array_equal(first, encoder.encode(["quiet rooms"], kind="document").compatibility[0])


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_of_the_named_policies_only_auto_wants_near_copies_compared(name: str):
    assert isinstance(POLICIES[name], ComparesCopies) == (name == "auto")


def test_a_search_tells_long_copies_apart_by_the_sentence_that_differs(tmp_path):
    """The built-in model: two reports that differ in one of eight sentences."""
    report = (
        "The Orrin footbridge was put up in 1931 by a firm from Leeds. It is forty metres long. "
        "Its deck is of larch, its cables are of steel. {} The toll house is now a tea room. "
        "A plaque names the nine men who built it. The river floods most springs. The nearest "
        "station is two miles off."
    )
    closed = report.format("Since the winter of 2009 nobody has been allowed to walk across.")
    open_ = report.format("Since the winter of 2009 everybody has been free to walk across.")
    with Retriever.open(tmp_path / "index") as retriever:
        retriever.add([Document("closed", closed), Document("open", open_)])
        asked = retriever.prepare(["Which footbridge is shut?"], [SearchOptions()])[0]
        pool = retriever.pool(asked, Auto())
        assert pool.apart is not None
        assert pool.apart[0] > pool.apart[1]
        for query, first in (
            ("Which footbridge is shut to walkers?", "closed"),
            ("Which footbridge is open to walkers?", "open"),
        ):
            assert retriever.search(query)[0].doc_id == first
