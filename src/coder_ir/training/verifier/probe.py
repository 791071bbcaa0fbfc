"""A part of the development data, always the same, for a look during training."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from coder_ir.training.verifier.evaluate import Figures, Scorer, item_figures, triplet_figures
from coder_ir.training.verifier.groups import Group, item_groups
from coder_ir.training.verifier.pool import HeldOut
from coder_ir.types import Triplet

_SEED = 1  # of the sample of triplets, whatever the seed of the run


@dataclass(frozen=True, slots=True)
class Probe:
    """Triplets and reading items to score."""

    triplets: Sequence[Triplet]
    items: Sequence[Group]

    @classmethod
    def from_held_out(cls, held_out: HeldOut, *, triplets: int, items: int) -> Probe:
        """A sample of so many triplets, and so many items from the top."""
        size = min(triplets, len(held_out.triplets))
        sampled = random.Random(_SEED).sample(list(held_out.triplets), size)
        return cls(sampled, item_groups(held_out.items[:items]))

    def figures(self, score: Scorer) -> dict[str, Figures]:
        """Of triplets and of items."""
        return {
            "triplets": triplet_figures(score, self.triplets),
            "items": item_figures(score, self.items),
        }


def final_figures(score: Scorer, held_out: HeldOut) -> dict[str, Figures]:
    """Of all held-out data, and of the items that nothing was ever chosen by."""
    return {
        "triplets": triplet_figures(score, held_out.triplets),
        "items": item_figures(score, item_groups(held_out.items)),
        "measured": item_figures(score, item_groups(held_out.measured)),
    }
