"""Near-duplicates of a pool, by vectors and words chosen by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import acos, cos, sin

import numpy as np
import pytest

from coder_ir.search.near_duplicates import FIRST, shared_words, with_near_duplicates
from coder_ir.types import Candidates, Passage, Span

SAME = "The rooms at the back are quiet at night"


def pool_of(angles: Sequence[float], topical: Sequence[float] | None = None) -> Candidates:
    """Passages whose vectors lie in one plane, at these angles, the first the most topical."""
    ids = [f"d{i:02}" for i in range(len(angles))]
    best = np.linspace(0.9, 0.1, len(ids)) if topical is None else np.array(topical)
    rows = np.array([(cos(a), sin(a)) for a in angles], dtype=np.float32).reshape(-1, 2)
    return Candidates(ids, [Passage(0, Span(0, 1))] * len(ids), best, np.zeros(len(ids)), rows=rows)


class Texts:
    """The words of each passage, and whose were asked for."""

    def __init__(self, words: dict[str, str]) -> None:
        self.words = words
        self.asked: list[list[str]] = []

    def __call__(self, part: Candidates) -> list[str]:
        self.asked.append(list(part.doc_ids))
        return [self.words.get(doc_id, SAME) for doc_id in part.doc_ids]


def pairs(pool: Candidates, words: dict[str, str] | None = None) -> tuple[tuple[int, int], ...]:
    return with_near_duplicates(pool, Texts(words or {})).near_duplicates


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (SAME, SAME, 1),
        (SAME, SAME.upper() + "!", 1),
        ("a b c d", "a b c e", 3 / 5),
        ("a a b", "a b b", 2 / 4),
        ("a b", "c d", 0),
        ("", "", 0),
        ("a", "", 0),
    ],
    ids=["same", "case and marks", "one differs", "repeats", "other", "empty", "one empty"],
)
def test_shared_words_are_those_of_both_of_all_words_of_either(one: str, other: str, share: float):
    assert shared_words(one, other) == pytest.approx(share)
    assert shared_words(other, one) == pytest.approx(share)


@pytest.mark.parametrize(("cosine", "found"), [(0.95, True), (0.9, False)])
def test_their_vectors_are_close(cosine: float, found: bool):
    assert pairs(pool_of([0, acos(cosine)])) == (((0, 1),) if found else ())


@pytest.mark.parametrize(
    ("other", "found"), [("a b c e", True), ("a b e f", False)], ids=["3 of 5", "2 of 6"]
)
def test_they_share_most_of_their_words(other: str, found: bool):
    words = {"d00": "a b c d", "d01": other}
    assert pairs(pool_of([0, 0]), words) == (((0, 1),) if found else ())


def test_each_pair_is_named_once_with_the_more_topical_first():
    assert pairs(pool_of([0, 2, 0, 2])) == ((0, 2), (1, 3))
    assert pairs(pool_of([0, 0], topical=[0.2, 0.9])) == ((1, 0),)


def test_only_the_first_by_topic_are_looked_at():
    size = FIRST + 2
    topical = [0.5] * size
    topical[0] = 0.1  # the last by topic, though its id is the first
    angles = [0.0 if i in (0, 1, 2) else 1.0 + i for i in range(size)]
    texts = {f"d{i:02}": SAME if i in (0, 1, 2) else f"word{i}" for i in range(size)}
    assert pairs(pool_of(angles, topical), texts) == ((1, 2),)


def test_only_the_words_of_passages_with_close_vectors_are_fetched():
    texts = Texts({})
    with_near_duplicates(pool_of([0, 2, 0, 4]), texts)
    assert texts.asked == [["d00", "d02"]]


def test_no_words_are_fetched_where_no_vectors_are_close():
    texts = Texts({})
    pool = pool_of([0, 2, 4])
    assert with_near_duplicates(pool, texts) is pool
    assert texts.asked == []


@pytest.mark.parametrize(
    "pool", [pool_of([]), pool_of([0]), replace(pool_of([0, 0]), rows=None)], ids=["0", "1", "rows"]
)
def test_a_pool_that_cannot_hold_any_is_left_alone(pool: Candidates):
    assert with_near_duplicates(pool, Texts({})) is pool
