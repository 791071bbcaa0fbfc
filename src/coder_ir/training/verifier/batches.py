"""Batches of groups: of like length, so that little is padded, and to a budget of words."""

import random
from collections.abc import Iterable, Sequence

from coder_ir.training.verifier.groups import Group

_WINDOW = 600  # groups that are sorted by length at a time


def batched(groups: Sequence[Group], words: int, rng: random.Random) -> list[list[Group]]:
    """Every group once, in batches that hold about `words` words when padded, in random order.

    A group that is above the budget by itself is a batch of its own.
    """
    shuffled = list(groups)
    rng.shuffle(shuffled)
    batches = []
    for start in range(0, len(shuffled), _WINDOW):
        part = sorted(shuffled[start : start + _WINDOW], key=_longest)
        batches += list(_filled(part, words))
    rng.shuffle(batches)
    return batches


def _filled(groups: Iterable[Group], words: int) -> Iterable[list[Group]]:
    """Groups in the order given; a batch costs its pairs times its longest pair."""
    batch: list[Group] = []
    pairs = longest = 0
    for group in groups:
        own = len(group.queries) * len(group.passages)
        longest = max(longest, _longest(group))
        if batch and (pairs + own) * longest > words:
            yield batch
            batch, pairs, longest = [], 0, _longest(group)
        batch.append(group)
        pairs += own
    if batch:
        yield batch


def _longest(group: Group) -> int:
    """Words of the longest pair, at most."""
    return sum(max(len(text.split()) for text in side) for side in (group.passages, group.queries))
