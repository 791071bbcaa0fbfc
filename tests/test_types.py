import pickle
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest

from coder_ir.types import (
    Candidates,
    Constraint,
    Document,
    Hit,
    Mark,
    Passage,
    Qrels,
    Ranking,
    Reading,
    Span,
    VectorPair,
)
from coder_ir.vectors import unit_rows


def hit(doc_id: str, rank: int, **changes: str) -> Hit:
    texts = {"text": "Back rooms are silent.", "title": "", **changes}
    scores = (0.5, 0.6, 0.4, None)
    return Hit(doc_id, rank, *scores, "Because.", metadata={}, passage=PASSAGE, **texts)


PASSAGE = Passage(0, Span(0, 10))
SAID = Reading(0.7, 0.2, 0.1, 0.3, Span(0, 4))


class TestDocument:
    def test_content_joins_title_and_text_with_a_space(self):
        assert Document("d", "Silent rooms.", "Hotel").content == "Hotel Silent rooms."

    def test_content_without_a_title_is_the_text_alone(self):
        assert Document("d", "Silent rooms.").content == "Silent rooms."

    def test_metadata_is_empty_unless_given(self):
        assert Document("d", "t").metadata == {}

    def test_a_document_survives_pickling(self):
        document = Document("d", "t")
        assert pickle.loads(pickle.dumps(document)) == document

    def test_a_document_converts_to_a_plain_dict(self):
        plain = asdict(Document("d", "t"))
        assert plain == {"doc_id": "d", "text": "t", "title": "", "metadata": {}}


class TestRanking:
    ranking = Ranking(
        "quiet hotel", "seq", (hit("a", 1), hit("b", 2), hit("c", 3)), (), Constraint(0.0)
    )

    def test_a_ranking_is_a_sequence(self):
        assert isinstance(self.ranking, Sequence)

    def test_its_length_is_the_number_of_hits(self):
        assert len(self.ranking) == 3

    def test_iterating_gives_hits_best_first(self):
        assert [h.doc_id for h in self.ranking] == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("index", "doc_id"), [(0, "a"), (2, "c"), (-1, "c")], ids=["first", "last", "from the end"]
    )
    def test_an_index_gives_the_hit_at_that_place(self, index: int, doc_id: str):
        assert self.ranking[index].doc_id == doc_id

    def test_an_index_past_the_end_raises(self):
        with pytest.raises(IndexError, match="out of range"):
            self.ranking[3]

    def test_a_slice_gives_hits(self):
        assert [h.doc_id for h in self.ranking[:2]] == ["a", "b"]

    def test_membership_and_reversal_come_with_being_a_sequence(self):
        assert self.ranking.hits[1] in self.ranking
        assert hit("z", 1) not in self.ranking
        assert [h.doc_id for h in reversed(self.ranking)] == ["c", "b", "a"]

    def test_a_ranking_without_hits_is_falsy(self):
        assert not Ranking("quiet hotel", "seq", (), (), Constraint(0.0))

    def test_passage_text_is_cut_from_title_and_text_together(self):
        assert hit("a", 1, title="Hotel").passage_text == "Hotel Back"

    def test_a_hit_has_no_decisive_sentence_unless_one_is_known(self):
        assert hit("a", 1).decisive == ""

    def test_a_hit_that_was_not_read_has_no_reading(self):
        assert hit("a", 1).reading is None


def test_a_constraint_names_nothing_unless_given():
    assert Constraint(0.2) == Constraint(
        0.2, excluded=(), required=(), topic="", marks=(), sentences=()
    )
    assert Constraint(0.2).cues == ()


class TestTrust:
    """How much each excluded phrase counts."""

    def mark(self, text: str, probability: float, *names: str) -> Mark:
        return Mark(Span(0, 1), "implied" if names else "excluded", text, names, probability)

    def test_it_grows_from_a_mark_that_is_as_likely_wrong_to_one_that_is_certain(self):
        marks = (self.mark("the bar", 0.5), self.mark("a pool", 0.8), self.mark("bus", 1.0))
        constraint = Constraint(0.9, ("bar", "pool", "bus"), marks=marks)
        assert constraint.trust == pytest.approx((0, 0.6, 1))

    def test_names_have_that_of_the_word_that_implies_them(self):
        marks = (self.mark("vegan", 0.9, "meat", "fish"), self.mark("fish", 0.6))
        constraint = Constraint(0.9, ("meat", "fish"), marks=marks)
        assert constraint.trust == pytest.approx((0.8, 0.8))

    def test_what_an_option_rules_out_counts_wholly(self):
        assert Constraint(1.0, ("bar",)).trust == (1.0,)


def test_a_pool_nobody_looked_at_states_no_constraint():
    pool = Candidates(["a"], [PASSAGE], np.array([0.5]), np.array([0.4]))
    assert (pool.constraint, pool.topic, pool.breach, pool.rows) == (None,) * 4
    assert (pool.near_duplicates, pool.readings) == ((), ())


class TestPart:
    pool = Candidates(
        ["a", "b", "c"],
        [PASSAGE, Passage(1, Span(0, 5)), Passage(2, Span(5, 9))],
        np.array([0.9, 0.8, 0.7]),
        np.array([0.1, 0.2, 0.3]),
        Constraint(0.6),
        breach=np.array([0.0, 0.5, 1.0]),
        rows=unit_rows([[1, 0], [0, 1], [1, 1]]),
        near_duplicates=((0, 2), (0, 1)),
        readings=[SAID, None, None],
    )

    def test_every_field_follows_the_positions_in_their_order(self):
        part = self.pool.part([2, 0])
        assert part.doc_ids == ["c", "a"]
        assert [passage.number for passage in part.passages] == [2, 0]
        assert part.topical.tolist() == [0.7, 0.9]
        assert part.compatibility.tolist() == [0.3, 0.1]
        assert part.breach is not None
        assert part.breach.tolist() == [1.0, 0.0]
        assert part.rows is not None
        assert part.rows[1].tolist() == [1, 0]
        assert part.near_duplicates == ((1, 0),)
        assert part.readings == [None, SAID]

    def test_what_the_pool_lacks_the_part_lacks_too(self):
        assert self.pool.part([1]).topic is None
        assert replace(self.pool, readings=()).part([1]).readings == ()

    def test_the_constraint_is_the_querys_and_stays(self):
        assert self.pool.part([1]).constraint == Constraint(0.6)

    def test_a_part_may_be_empty(self):
        part = self.pool.part([])
        assert (len(part), part.topical.shape, part.passages) == (0, (0,), [])

    def test_the_pool_is_left_as_it_was(self):
        part = self.pool.part([0, 1])
        part.compatibility[0] = 9
        assert self.pool.compatibility[0] == 0.1


def test_qrels_have_the_length_of_the_judged_queries():
    assert len(Qrels({"q1": {"a": 1, "b": 2}, "q2": {}})) == 2


def test_a_vector_pair_gives_the_rows_of_the_space_asked_for():
    pair = VectorPair(unit_rows([[1, 0]]), unit_rows([[0, 1]]))
    assert pair.space("topical").tolist() == [[1, 0]]
    assert pair.space("compatibility").tolist() == [[0, 1]]
