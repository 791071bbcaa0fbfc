"""ExactIndex equals plain numpy."""

import numpy as np
import pytest

from coder_ir.stores.sqlite.exact import ExactIndex
from coder_ir.vectors import unit_rows

DIMENSIONS = 24


def random_rows(count: int, seed: int):
    return unit_rows(np.random.default_rng(seed).normal(size=(count, DIMENSIONS)))


@pytest.fixture
def rows():
    return random_rows(200, seed=0)


@pytest.fixture
def query():
    return random_rows(1, seed=1)[0]


@pytest.fixture
def index(rows):
    filled = ExactIndex(DIMENSIONS)
    filled.add(rows)
    return filled


def best_by_numpy(rows, query, n, allowed=None):
    scores = rows @ query
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return np.argsort(-scores)[:n], np.sort(scores)[::-1][:n]


@pytest.mark.parametrize("n", [1, 7, 200])
def test_top_returns_the_positions_numpy_ranks_first(index, rows, query, n):
    positions, _ = index.top(query, n, None)
    assert positions.tolist() == best_by_numpy(rows, query, n)[0].tolist()


def test_top_returns_the_inner_products_as_scores(index, rows, query):
    _, scores = index.top(query, 9, None)
    np.testing.assert_allclose(scores, best_by_numpy(rows, query, 9)[1], atol=1e-6)


def test_top_returns_every_row_when_n_is_larger_than_the_index(index, query):
    positions, _ = index.top(query, 1000, None)
    assert sorted(positions.tolist()) == list(range(200))


def test_top_of_an_empty_index_is_empty(query):
    positions, scores = ExactIndex(DIMENSIONS).top(query, 5, None)
    assert (len(positions), len(scores)) == (0, 0)


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_a_mask_limits_top_to_the_allowed_rows(index, rows, query, share):
    allowed = np.random.default_rng(2).random(200) < share
    n = min(5, int(allowed.sum()))
    positions, _ = index.top(query, n, allowed)
    assert positions.tolist() == best_by_numpy(rows, query, n, allowed)[0].tolist()


def test_a_mask_that_allows_fewer_rows_than_asked_for_returns_just_those(index, query):
    allowed = np.zeros(200, dtype=bool)
    allowed[[3, 150, 199]] = True
    positions, scores = index.top(query, 10, allowed)
    assert sorted(positions.tolist()) == [3, 150, 199]
    assert len(scores) == 3


def test_a_mask_that_allows_nothing_finds_nothing(index, query):
    positions, _ = index.top(query, 10, np.zeros(200, dtype=bool))
    assert positions.tolist() == []


def test_a_mask_whose_length_is_no_multiple_of_eight_reaches_the_last_row(query):
    index = ExactIndex(DIMENSIONS)
    index.add(random_rows(13, seed=3))
    allowed = np.zeros(13, dtype=bool)
    allowed[12] = True
    assert index.top(query, 5, allowed)[0].tolist() == [12]


def test_added_rows_take_the_next_positions(index, rows):
    more = random_rows(30, seed=4)
    index.add(more)
    np.testing.assert_array_equal(index.rows(np.arange(200, 230)), more)
    assert len(index) == 230


def test_rows_added_in_parts_are_searched_as_one(rows, index, query):
    parts = ExactIndex(DIMENSIONS)
    for start in range(0, 200, 37):
        parts.add(rows[start : start + 37])
    assert parts.top(query, 50, None)[0].tolist() == index.top(query, 50, None)[0].tolist()


def test_rows_that_are_not_contiguous_are_stored_as_they_read(query):
    wide = random_rows(10, seed=5)
    index = ExactIndex(DIMENSIONS)
    index.add(wide[::-2])
    np.testing.assert_array_equal(index.rows(np.arange(5)), wide[::-2])


def test_removed_rows_are_gone_and_the_rest_close_up_in_order(index, rows):
    gone = np.random.default_rng(6).random(200) < 0.3
    index.remove(gone)
    assert len(index) == int((~gone).sum())
    np.testing.assert_array_equal(index.rows(np.arange(len(index))), rows[~gone])


def test_top_after_a_removal_equals_numpy_over_what_is_left(index, rows, query):
    gone = np.random.default_rng(7).random(200) < 0.3
    index.remove(gone)
    positions, _ = index.top(query, 20, None)
    assert positions.tolist() == best_by_numpy(rows[~gone], query, 20)[0].tolist()


def test_removing_nothing_changes_nothing(index, rows):
    index.remove(np.zeros(200, dtype=bool))
    np.testing.assert_array_equal(index.rows(np.arange(200)), rows)


def test_an_index_emptied_by_removal_takes_rows_again(index, rows, query):
    index.remove(np.ones(200, dtype=bool))
    index.add(rows[:10])
    assert index.top(query, 3, None)[0].tolist() == best_by_numpy(rows[:10], query, 3)[0].tolist()


def test_a_search_leaves_the_number_of_threads_as_it_was(index, query):
    faiss = pytest.importorskip("faiss")
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(before + 2)
    try:
        index.top(query, 3, None)
        assert faiss.omp_get_max_threads() == before + 2
    finally:
        faiss.omp_set_num_threads(before)


def test_rows_come_in_the_order_asked_for_and_may_repeat(index, rows):
    asked = np.array([5, 199, 0, 5])
    np.testing.assert_array_equal(index.rows(asked), rows[asked])


def test_rows_returned_survive_a_later_add(index, rows):
    taken = index.rows(np.array([0, 1]))
    index.add(random_rows(5000, seed=8))
    np.testing.assert_array_equal(taken, rows[:2])


def test_no_rows_of_an_empty_index_have_its_width():
    assert ExactIndex(DIMENSIONS).rows(np.empty(0, dtype=np.int64)).shape == (0, DIMENSIONS)
