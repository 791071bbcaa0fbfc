"""Development figures over logits given by hand."""

from collections.abc import Callable, Mapping, Sequence

import pytest
import torch

from coder_ir.training.verifier.evaluate import Share, item_figures, triplet_figures
from coder_ir.training.verifier.groups import Group, Pair
from coder_ir.types import Triplet


def scorer(margins: Mapping[str, float]) -> Callable[[Sequence[Pair]], torch.Tensor]:
    """Margin by passage; *silent* has the logit 0.25."""

    def score(pairs: Sequence[Pair]) -> torch.Tensor:
        return torch.tensor([[margins[passage], 0.0, 0.25] for _, passage in pairs])

    return score


def triplet(good: str, bad: str, source: str) -> Triplet:
    return Triplet("q", good, bad, "g", source, "none")


def test_a_triplet_is_right_when_the_satisfying_passage_is_strictly_above():
    rows = [
        triplet("a", "b", "written: ours"),
        triplet("b", "a", "written: ours"),
        triplet("a", "a2", "CANNOT"),
    ]
    found = triplet_figures(scorer({"a": 1.0, "b": 0.0, "a2": 1.0}), rows)
    assert found == {"all": Share(1, 3), "ours": Share(1, 2), "public": Share(0, 1)}


def test_more_triplets_than_are_scored_at_once_keep_their_order():
    rows = [triplet("a", "b", "CANNOT"), *[triplet("b", "a", "CANNOT")] * 150]
    assert triplet_figures(scorer({"a": 1.0, "b": 0.0}), rows)["all"] == Share(1, 151)


def items(*labels: str, kind: str = "degree") -> Group:
    passages = tuple("abcd"[: len(labels)])
    return Group("reading", ("q",), passages, (labels,), kind)  # type: ignore[arg-type]


def test_every_order_of_a_reading_item_is_counted():
    margins = {"a": 2.0, "b": -1.0, "c": -1.5}
    found = item_figures(scorer(margins), [items("satisfies", "violates", "silent")])
    assert found == {
        "satisfies over violates": Share(1, 1),
        "satisfies over silent": Share(1, 1),
        "silent over violates": Share(0, 1),
        "order": Share(1, 1),  # who is silent need not be above who violates
        "class": Share(2, 3),  # a satisfies, b and c are taken for silent
        "kind degree": Share(1, 1),
    }


def test_a_query_is_in_order_only_if_all_that_satisfy_are_above_all_others():
    margins = {"a": 2.0, "b": 0.0, "c": 1.0, "d": 0.5}
    found = item_figures(scorer(margins), [items("satisfies", "satisfies", "violates", "silent")])
    assert found["order"] == Share(0, 1)
    assert found["satisfies over violates"] == Share(1, 2)
    assert found["satisfies over silent"] == Share(1, 2)


def test_kinds_are_told_apart_in_order_of_name():
    groups = [items("satisfies", "violates", kind=kind) for kind in ("scope", "long", "scope")]
    found = item_figures(scorer({"a": 1.0, "b": 0.0}), groups)
    assert [name for name in found if name.startswith("kind")] == ["kind long", "kind scope"]
    assert found["kind scope"] == Share(2, 2)


@pytest.mark.parametrize(
    ("share", "text"), [(Share(1, 3), "33.3/3"), (Share(0, 0), "0.0/0")], ids=["third", "none"]
)
def test_a_share_reads_as_percent_of_cases(share: Share, text: str):
    assert str(share) == text
