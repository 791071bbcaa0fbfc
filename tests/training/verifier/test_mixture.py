"""What is drawn for training, and what never is."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidValue, NotFound
from coder_ir.training.verifier.batches import batched
from coder_ir.training.verifier.groups import Group
from coder_ir.training.verifier.mixture import SOURCES, Mixture, mixed
from coder_ir.training.verifier.pool import DataFiles, read_held_out, read_pool
from tests.training.verifier.conftest import ITEM, TOPICS, triplets, write_triplets

ALL = Mixture(
    dict.fromkeys(SOURCES, 1.0),
    strangers=0.5,
    companions=0.5,
    strangers_from=("reading",),
)
Build = Callable[..., Group]


def drawn(data: DataFiles, mixture: Mixture = ALL, seed: int = 3) -> list[Group]:
    rng = random.Random(seed)
    return mixed(read_pool(data, mixture, read_held_out(data), rng), mixture, rng)


class TestThePool:
    def test_it_is_the_same_twice_for_a_seed(self, data: DataFiles):
        assert drawn(data) == drawn(data)

    def test_another_seed_draws_others(self, data: DataFiles):
        assert drawn(data) != drawn(data, seed=4)

    def test_every_source_is_in_it(self, data: DataFiles):
        assert Counter(group.source for group in drawn(data)) == {
            **{"ours": 4, "turned": 4, "public": 4, "nli": 2, "mams": 1, "reading": 12}
        }

    def test_no_held_out_topic_is_in_it(self, data: DataFiles):
        texts = [text for group in drawn(data) for text in (*group.queries, *group.passages)]
        held_out = read_held_out(data)
        assert held_out.topics == {"river", "garden"}
        assert not any(group.topic in held_out.topics for group in drawn(data))
        assert held_out.texts.isdisjoint(texts)

    def test_a_training_item_on_a_held_out_topic_is_refused(self, data: DataFiles, tmp_path: Path):
        leaking = tmp_path / "leaking.txt"
        leaking.write_text(ITEM.format(topic="river"))
        with pytest.raises(InvalidValue, match="holds the topic 'river', which is held out"):
            drawn(replace(data, items=(*data.items, leaking)))

    def test_triplets_of_a_held_out_group_are_refused(self, data: DataFiles, tmp_path: Path):
        leaking = write_triplets(tmp_path / "t.jsonl", triplets((*TOPICS, "river")))
        with pytest.raises(InvalidValue, match="holds the group 'river', which is development"):
            drawn(replace(data, triplets=leaking))

    def test_inference_that_is_development_data_is_left_out(self, data: DataFiles, tmp_path: Path):
        rows = [replace(t, query="A house is old.") for t in triplets(("river",))]
        held = write_triplets(tmp_path / "t.jsonl", rows)
        found = drawn(replace(data, development_triplets=held))
        assert [g.queries for g in found if g.source == "nli"] == [("A garden.",)]

    def test_a_source_that_is_not_drawn_is_not_read(self, data: DataFiles, tmp_path: Path):
        there = replace(data, published=tmp_path / "nothing", triplets=tmp_path / "nothing")
        assert {g.source for g in drawn(there, Mixture({"reading": 1}))} == {"reading"}
        with pytest.raises(NotFound):
            drawn(there, Mixture({"nli": 1}))


class TestWeights:
    @pytest.mark.parametrize(("weight", "count"), [(0.5, 5), (1.0, 10), (2.3, 23)])
    def test_a_weight_is_so_many_passes(self, group: Build, weight: float, count: int):
        pool = [group(("satisfies", "violates"))] * 10
        assert len(mixed(pool, Mixture({"reading": weight}), random.Random(1))) == count

    def test_a_source_without_a_weight_is_left_out(self, group: Build):
        pool = [group(("satisfies", "violates"), source=name) for name in ("nli", "ours")]
        assert mixed(pool, Mixture({"ours": 1}), random.Random(1)) == pool[1:]

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"weights": {"other": 1}}, "no source 'other'"),
            ({"weights": {"nli": -1}}, "weight of nli must be 0 or more, got -1"),
            ({"weights": {"nli": 0}}, "needs a source with a weight above 0"),
            ({"weights": {"nli": 1}, "strangers": 2}, "strangers must be from 0 to 1, got 2"),
        ],
        ids=["unknown", "negative", "nothing", "no share"],
    )
    def test_what_is_no_mixture_is_refused(self, settings: dict[str, Any], said: str):
        with pytest.raises(InvalidValue, match=said):
            Mixture(**settings)


class TestPassagesThatJoin:
    def test_a_stranger_is_silent_for_every_query(self, group: Build):
        both = ("satisfies", "violates"), ("violates", "satisfies")
        [found] = mixed([group(*both)], Mixture({"reading": 1}, strangers=1), random.Random(1))
        assert [row[-1] for row in found.labels] == ["silent", "silent"]
        assert len(found.passages) == 3

    def test_a_companion_is_on_the_topic_and_known_to_the_teacher_alone(self, data: DataFiles):
        found = [g for g in drawn(data) if None in g.labels[0]]
        assert found
        for one in found:
            assert one.source == "reading"
            assert all(row[-1] is None for row in one.labels)
            assert one.topic in one.passages[-1]
            assert len(set(one.passages)) == len(one.passages)

    def test_a_large_group_gets_no_stranger(self, group: Build):
        pool = [group(("satisfies", "violates", "silent", "silent"))]
        mixture = Mixture({"reading": 1}, strangers=1, most_passages=4)
        assert mixed(pool, mixture, random.Random(1)) == pool

    def test_strangers_go_to_and_come_from_the_sources_named(self, group: Build):
        one, two = group(("satisfies", "violates")), group(("silent",), source="nli")
        two = replace(two, passages=("from elsewhere",))
        mixture = Mixture(
            {"reading": 1, "nli": 1},
            strangers=1,
            strangers_for=("reading",),
            strangers_from=("nli",),
        )
        found = mixed([one, two], mixture, random.Random(1))
        assert [g.passages for g in found] == [
            ("passage 0", "passage 1", "from elsewhere"),
            ("from elsewhere",),
        ]


class TestBatches:
    def test_every_group_is_in_one_batch(self, data: DataFiles):
        groups = drawn(data)
        batches = batched(groups, 60, random.Random(1))
        assert Counter(g for batch in batches for g in batch) == Counter(groups)

    def test_a_batch_keeps_to_the_budget_unless_one_group_is_above_it(self, data: DataFiles):
        def cost(batch: list[Group]) -> int:
            pairs = [pair for group in batch for pair in group.pairs]
            return len(pairs) * max(len(f"{q} {p}".split()) for q, p in pairs)

        batches = batched(drawn(data), 60, random.Random(1))
        assert max(map(len, batches)) > 1
        assert all(cost(batch) <= 60 or len(batch) == 1 for batch in batches)

    def test_they_are_the_same_twice_for_a_seed(self, data: DataFiles):
        one, two = (batched(drawn(data), 60, random.Random(1)) for _ in range(2))
        assert one == two
        assert one != batched(drawn(data), 60, random.Random(2))
