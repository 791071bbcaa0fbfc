import numpy as np
import pytest

from coder_ir import vectors
from coder_ir.vectors import (
    SCORE_DECIMALS,
    best_first,
    best_of_many,
    cosine,
    inner_products,
    ranks,
    unit_rows,
)


class TestUnitRows:
    def test_rows_are_scaled_to_length_one(self):
        assert unit_rows(np.array([[3.0, 4.0], [0.0, 2.0]])) == pytest.approx(
            np.array([[0.6, 0.8], [0.0, 1.0]])
        )

    def test_a_very_short_row_is_scaled_too(self):
        assert unit_rows(np.array([[3e-6, 4e-6]])) == pytest.approx(np.array([[0.6, 0.8]]))

    def test_a_zero_row_stays_zero(self):
        assert unit_rows(np.array([[0.0, 0.0], [1.0, 0.0]])).tolist() == [[0, 0], [1, 0]]

    def test_the_result_is_float32_whatever_comes_in(self):
        assert unit_rows(np.array([[3.0, 4.0]], dtype=np.float64)).dtype == np.float32

    def test_no_rows_give_no_rows(self):
        assert unit_rows(np.empty((0, 4))).shape == (0, 4)

    def test_the_input_is_not_changed(self):
        rows = np.array([[3.0, 4.0]], dtype=np.float32)
        unit_rows(rows)
        assert rows.tolist() == [[3.0, 4.0]]


class TestCosine:
    def test_each_row_is_multiplied_with_the_vector(self):
        rows = unit_rows(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
        assert cosine(rows, np.float32([1, 0])).tolist() == [1.0, 0.0, -1.0]

    def test_scores_carry_no_more_than_the_promised_decimals(self):
        rng = np.random.default_rng(1)
        rows = unit_rows(rng.normal(size=(50, 8)))
        scores = cosine(rows, rows[0])
        exact = rows.astype(np.float64) @ rows[0].astype(np.float64)
        assert [round(score, SCORE_DECIMALS) for score in scores] == scores.tolist()
        assert scores == pytest.approx(exact, abs=0.5 * 10**-SCORE_DECIMALS)

    def test_a_difference_below_the_last_decimal_is_a_tie(self):
        rows = np.float32([[0.5, 0.0], [0.5000001, 0.0]])
        one, two = cosine(rows, np.float32([1, 0]))
        assert one == two

    def test_a_row_scores_the_same_alone_and_in_a_batch(self):
        rng = np.random.default_rng(2)
        rows, query = unit_rows(rng.normal(size=(257, 384))), unit_rows(rng.normal(size=(1, 384)))
        batch = cosine(rows, query[0])
        assert [cosine(row[None, :], query[0])[0] for row in rows] == batch.tolist()


class TestInnerProducts:
    def test_rows_keep_their_length(self):
        rows = np.float32([[3, 4], [0.5, 0], [0, 0]])
        assert inner_products(rows, np.float32([2, 0])).tolist() == [6.0, 1.0, 0.0]

    @pytest.mark.parametrize("block", [1, 3, 7, 100])
    def test_blocks_change_nothing(self, monkeypatch, block):
        monkeypatch.setattr(vectors, "_BLOCK", block)
        rng = np.random.default_rng(3)
        rows, vector = rng.normal(size=(7, 5)).astype(np.float32), np.float32([1, -2, 3, 0, 5])
        assert inner_products(rows, vector).tolist() == cosine(rows, vector).tolist()

    def test_no_rows_give_no_scores(self):
        assert inner_products(np.empty((0, 2), np.float32), np.float32([1, 0])).shape == (0,)


class TestBestOfMany:
    @pytest.mark.parametrize("k", [0, 1, 4, 19, 20, 50])
    def test_it_is_best_first_whatever_ties_fall_on_the_cut(self, k):
        rng = np.random.default_rng(4)
        for _ in range(20):
            scores = rng.integers(0, 5, 20).astype(float)
            ids = [f"d{number:02}" for number in rng.permutation(20)]
            assert best_of_many(scores, ids, k) == best_first(scores, ids, k)


class TestBestFirst:
    def test_higher_scores_come_first(self):
        assert best_first([0.1, 0.9, 0.5], ["a", "b", "c"], 3) == [1, 2, 0]

    def test_equal_scores_go_by_ascending_id_and_not_by_position(self):
        assert best_first([0.5, 0.5, 0.5], ["c", "a", "b"], 3) == [1, 2, 0]

    def test_ids_compare_as_text(self):
        assert best_first([0.5, 0.5], ["9", "10"], 2) == [1, 0]

    def test_equal_scores_of_one_id_keep_their_position(self):
        assert best_first([0.5, 0.7, 0.5], ["a", "a", "a"], 3) == [1, 0, 2]

    def test_the_tie_at_the_cut_goes_to_the_lower_id(self):
        assert best_first([0.5, 0.9, 0.5], ["b", "z", "a"], 2) == [1, 2]

    @pytest.mark.parametrize(("k", "length"), [(0, 0), (2, 2), (9, 3)], ids=["none", "two", "more"])
    def test_no_more_than_k_come_back(self, k: int, length: int):
        assert len(best_first([0.1, 0.2, 0.3], ["a", "b", "c"], k)) == length

    def test_nothing_sorts_to_nothing(self):
        assert best_first(np.array([]), [], 5) == []


class TestRanks:
    def test_the_highest_score_has_rank_one(self):
        assert ranks(np.array([0.1, 0.9, 0.5]), ["a", "b", "c"]).tolist() == [3, 1, 2]

    def test_tied_scores_get_different_ranks_by_ascending_id(self):
        assert ranks(np.array([0.5, 0.5, 0.9]), ["b", "a", "c"]).tolist() == [3, 2, 1]

    def test_no_scores_have_no_ranks(self):
        assert ranks(np.array([]), []).tolist() == []
