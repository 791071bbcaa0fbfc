"""What logits cost, worked out by hand."""

from collections.abc import Callable
from math import exp, log

import pytest
import torch

from coder_ir.training.verifier.groups import Group
from coder_ir.training.verifier.loss import class_loss, label_loss, margin

Build = Callable[..., Group]
SMOOTH = 0.03


def softplus(x: float) -> float:
    return log(1 + exp(x))


def cross_entropy(logits: list[float], label: int) -> float:
    """With smoothed labels: a hundredth for each class, the rest for the right one."""
    total = log(sum(map(exp, logits)))
    shares = [SMOOTH / 3 + (1 - SMOOTH) * (i == label) for i in range(3)]
    return sum(share * (total - x) for share, x in zip(shares, logits, strict=True))


def test_the_margin_is_satisfies_less_violates():
    assert margin(torch.tensor([[3.0, 1.0, 9.0], [0.5, 2.0, 0.0]])).tolist() == [2.0, -1.5]


class TestLabels:
    def test_two_passages_of_one_query(self, group: Build):
        logits = [[2.0, 1.0, 0.0], [1.0, 0.5, 0.0]]  # margins 1 and 0.5
        classes = (cross_entropy(logits[0], 0) + cross_entropy(logits[1], 1)) / 2
        expected = classes + softplus(0.5 - 1.0)
        found = label_loss(torch.tensor(logits), [group(("satisfies", "violates"))])
        assert found.item() == pytest.approx(expected, rel=1e-5)

    def test_a_silent_passage_stands_between_and_its_pairs_count_half(self, group: Build):
        logits = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]  # margins 1, -2 and 0
        classes = sum(cross_entropy(row, i) for i, row in enumerate(logits)) / 3
        ranked = softplus(-2.0 - 1.0) + 0.5 * softplus(0.0 - 1.0) + 0.5 * softplus(-2.0 - 0.0)
        found = label_loss(torch.tensor(logits), [group(("satisfies", "violates", "silent"))])
        assert found.item() == pytest.approx(classes + ranked / 3, rel=1e-5)

    def test_two_queries_of_one_passage_count_half(self, group: Build):
        logits = [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]  # margins 2 and 1
        classes = (cross_entropy(logits[0], 0) + cross_entropy(logits[1], 1)) / 2
        found = label_loss(torch.tensor(logits), [group(("satisfies",), ("violates",))])
        assert found.item() == pytest.approx(classes + 0.5 * softplus(1.0 - 2.0), rel=1e-5)

    def test_both_directions_of_a_pair_are_averaged_over_all_four_margins(self, group: Build):
        logits = torch.zeros(4, 3)
        found = label_loss(
            logits, [group(("satisfies", "violates"), ("violates", "satisfies"))]
        ).item()
        assert found == pytest.approx(log(3) + (2 + 2 * 0.5) * log(2) / 4, rel=1e-5)

    def test_classes_count_half_outside_reading_items(self, group: Build):
        logits = torch.zeros(2, 3)
        labels = ("satisfies", "violates")
        reading, other = (
            label_loss(logits, [group(labels, source=name)]).item() for name in ("reading", "nli")
        )
        assert reading - other == pytest.approx(log(3) / 2, rel=1e-5)

    def test_a_passage_that_only_the_teacher_knows_costs_nothing(self, group: Build):
        two, unknown = torch.tensor([[2.0, 1.0, 0.0], [1.0, 0.5, 0.0]]), torch.full((1, 3), 7.0)
        without = label_loss(two, [group(("satisfies", "violates"))])
        found = label_loss(torch.cat([two, unknown]), [group(("satisfies", "violates", None))])
        assert found.item() == pytest.approx(without.item())

    def test_a_batch_costs_the_mean_of_its_groups(self, group: Build):
        torch.manual_seed(0)
        logits = torch.randn(5, 3)
        groups = [group(("satisfies", "violates")), group(("silent", "satisfies", "violates"))]
        one, two = label_loss(logits[:2], groups[:1]), label_loss(logits[2:], groups[1:])
        assert label_loss(logits, groups).item() == pytest.approx((one + two).item() / 2, rel=1e-5)

    def test_passages_of_one_label_have_no_margin(self, group: Build):
        logits = [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]
        classes = (cross_entropy(logits[0], 0) + cross_entropy(logits[1], 0)) / 2
        found = label_loss(torch.tensor(logits), [group(("satisfies", "satisfies"))])
        assert found.item() == pytest.approx(classes, rel=1e-5)


class TestClasses:
    def test_a_student_that_says_what_the_teacher_says_costs_nothing(self):
        logits = torch.tensor([[1.0, 2.0, 3.0]])
        assert class_loss(logits, logits).item() == pytest.approx(0, abs=1e-6)

    def test_divergence_and_a_tenth_of_the_margin(self):
        taught = torch.tensor([[log(2.0), 0.0, 0.0]])  # 1/2, 1/4, 1/4
        divergence = 0.5 * log(0.5 * 3) + 2 * 0.25 * log(0.25 * 3)
        expected = divergence + 0.1 * log(2) ** 2 / 2
        assert class_loss(torch.zeros(1, 3), taught).item() == pytest.approx(expected, rel=1e-5)

    def test_a_margin_of_the_teacher_counts_as_eight_at_most(self):
        taught, own = torch.tensor([[30.0, 0.0, 0.0]]), torch.tensor([[30.0, 22.0, 0.0]])
        sure = class_loss(own, taught).item()
        assert sure == pytest.approx(log(1 + exp(-8)), rel=1e-3)  # no margin to make up
