"""Groups from triplets, reading items, inference and reviews."""

import random
from pathlib import Path

import pytest

from coder_ir.training.reading_items import LabelledQuery, ReadingItem
from coder_ir.training.verifier.entailment_sets import entailment_groups
from coder_ir.training.verifier.groups import Group, item_groups, triplet_groups, triplet_source
from coder_ir.training.verifier.pool import DataFiles
from coder_ir.training.verifier.reviews import review_groups
from coder_ir.types import Triplet

FORTH, BACK = ("satisfies", "violates"), ("violates", "satisfies")


def triplet(query: str, good: str, bad: str, source: str = "written: ours") -> Triplet:
    return Triplet(query, good, bad, "group", source, "none")


class TestTriplets:
    def test_a_query_for_each_direction_makes_one_group_of_two(self):
        [found] = triplet_groups([triplet("for a", "a", "b"), triplet("for b", "b", "a")])
        assert found == Group("ours", ("for a", "for b"), ("a", "b"), (FORTH, BACK), "ours")

    def test_a_query_alone_makes_a_group_of_one(self):
        [found] = triplet_groups([triplet("for a", "a", "b")])
        assert (found.queries, found.labels) == (("for a",), (FORTH,))

    def test_the_direction_with_fewer_queries_repeats_them(self):
        rows = [triplet("a1", "a", "b"), triplet("a2", "a", "b"), triplet("b1", "b", "a")]
        assert [g.queries for g in triplet_groups(rows)] == [("a1", "b1"), ("a2", "b1")]

    @pytest.mark.parametrize(
        ("source", "name"),
        [
            ("written: ours", "ours"),
            ("written: ours, one fact turned round", "turned"),
            ("written: Wikipedia paragraph (CC BY-SA), edit and questions ours", "wikipedia"),
            ("written: CondaQA dev passages (Apache-2.0), questions ours", "condaqa"),
            ("CondaQA dev", "condaqa"),
            ("Wikipedia sets", "public"),
        ],
    )
    def test_five_sources_are_weighed_apart(self, source: str, name: str):
        assert triplet_source(triplet("q", "a", "b", source)) == name


ITEM = ReadingItem(
    "replaced",
    "bread",
    "recipes",
    {"a": "no nuts", "b": "nuts", "c": "salt"},
    (
        LabelledQuery("bread, no nuts", False, {"b": "violates", "a": "satisfies", "c": "silent"}),
        LabelledQuery("nuts", True, {"a": "satisfies", "b": "violates", "c": "silent"}),
    ),
)


class Always(random.Random):
    """Draws the least number there is."""

    def random(self) -> float:
        return 0.0


class TestItems:
    def test_a_phrase_is_asked_without_and_labels_follow_the_passages(self):
        row = ("satisfies", "violates", "silent")
        assert item_groups([ITEM]) == [
            Group(
                "reading",
                ("bread, no nuts", "without nuts"),
                ("no nuts", "nuts", "salt"),
                (row, row),
                "replaced",
                "bread",
            )
        ]

    def test_a_phrase_that_is_asked_for_swaps_its_labels_and_a_query_never_does(self):
        [found] = item_groups([ITEM], Always())
        assert found.queries == ("bread, no nuts", "with nuts")
        assert found.labels[0] == ("satisfies", "violates", "silent")
        assert found.labels[1] == ("violates", "satisfies", "silent")

    def test_three_phrases_in_ten_are_asked_for(self):
        found = item_groups([ITEM] * 1000, random.Random(1))
        assert 250 < sum(group.queries[1] == "with nuts" for group in found) < 350


def test_pairs_go_query_by_query():
    group = Group("nli", ("q", "r"), ("a", "b"), (FORTH, BACK), "nli")
    assert group.pairs == [("q", "a"), ("q", "b"), ("r", "a"), ("r", "b")]


class TestInference:
    def test_a_hypothesis_asks_its_premises_by_their_labels(self, data: DataFiles):
        one, two = entailment_groups(data.published, held_out=frozenset())
        assert one.queries == ("A house is old.",)
        assert one.passages == ("The house is old.", "The house is new.", "The house is warm.")
        assert one.labels == (("satisfies", "violates", "silent"),)  # "-" is no label
        assert (two.queries, two.labels) == (("A garden.",), (("violates",),))

    def test_texts_that_are_held_out_are_left_out(self, data: DataFiles):
        held_out = {"A garden.", "The house is new."}
        [found] = entailment_groups(data.published, held_out=held_out)
        assert found.passages == ("The house is old.", "The house is warm.")

    def test_a_hypothesis_has_four_premises_at_most(self, data: DataFiles, tmp_path: Path):
        for file in ("CAD-NLI/revised_combined/train.tsv", "NegNLI/clean_data/MNLI.txt"):
            path = tmp_path / file
            path.parent.mkdir(parents=True)
            path.write_text((data.published / file).read_text())
        rows = "".join(f"{i}\tText {i}.\tAll.\tneutral\n" for i in range(6))
        path = tmp_path / "NegNLI/clean_data/SNLI.txt"
        path.write_text(f"index\tText\tHypothesis\tgold_label\n{rows}")
        *_, found = entailment_groups(tmp_path, held_out=frozenset())
        assert found.passages == ("Text 0.", "Text 1.", "Text 2.", "Text 3.")


class TestReviews:
    def test_an_aspect_needs_both_opinions(self, data: DataFiles):
        found = review_groups(data.published, random.Random(1))
        assert {group.passages[:2] for group in found} == {
            ("Loved the table.", "The table was dirty.")
        }

    def test_praise_satisfies_who_wants_it_good_and_violates_who_looks_for_complaints(
        self, data: DataFiles
    ):
        [found] = review_groups(data.published, Always())
        assert found.queries[0].startswith("table that is good")
        assert found.queries[1] == "bad table"
        assert found.passages[2] == "We sat at a table."
        assert found.labels == (
            ("satisfies", "violates", "silent"),
            ("violates", "satisfies", "silent"),
        )
