"""The steps of a run: rate, gradient, checkpoint, log, and figures at the end of each quarter."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coder_ir.training.checkpoint import Checkpoint
from coder_ir.training.verifier.evaluate import Figures
from coder_ir.training.verifier.groups import Group

if TYPE_CHECKING:
    import torch

Report = Callable[[str], None]
_LOGGED = 50  # steps between two lines
_LEAST = 0.02  # of the rate, to the end
_DECAY = 0.01  # of weights


@dataclass(frozen=True, slots=True)
class RateGroup:
    """Parameters that learn at one rate."""

    parameters: Sequence[tuple[str, torch.nn.Parameter]]
    factor: float  # of the run's rate


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a run is and how fast it learns: up to the rate, then down in a line."""

    steps: int
    rate: float
    warmup: float  # steps
    checkpoint_steps: int

    def rate_at(self, step: int) -> float:
        """The rate of a step, counted from 0."""
        up = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return self.rate * up * max(_LEAST, 1 - step / self.steps)


class Trainee(Protocol):
    """A network under training."""

    def rate_groups(self) -> Sequence[RateGroup]:
        """What is trained, always in the same order."""

    def losses(self, batch: Sequence[Group]) -> dict[str, torch.Tensor]:
        """The terms whose sum is made smaller."""

    def develop(self) -> dict[str, Figures]:
        """Figures on a part of the development data, by its name."""


def run_steps(
    trainee: Trainee,
    batches: Sequence[Sequence[Group]],
    schedule: Schedule,
    folder: Path,
    report: Report,
) -> None:
    """Run, or resume from the folder's checkpoint; batches repeat when they are used up.

    Killed at any moment and started again, a run ends with the same weights.
    """
    import torch

    groups = trainee.rate_groups()
    named = [pair for group in groups for pair in group.parameters]
    parameters = [parameter for _, parameter in named]
    optimiser = torch.optim.AdamW(
        [{"params": [p for _, p in g.parameters], "factor": g.factor} for g in groups],
        lr=schedule.rate,
        weight_decay=_DECAY,
    )
    checkpoint = Checkpoint(folder / "checkpoint.safetensors")
    step = checkpoint.load(named, optimiser)
    log = _Log(folder / "log.jsonl", schedule.steps, report)
    while step < schedule.steps:
        for group in optimiser.param_groups:
            group["lr"] = schedule.rate_at(step) * group["factor"]
        losses = trainee.losses(batches[step % len(batches)])
        optimiser.zero_grad()
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        step += 1
        log.add(step, {name: float(loss.detach()) for name, loss in losses.items()})
        if step % max(1, schedule.steps // 4) == 0:
            log.figures(step, trainee.develop())
        if step % schedule.checkpoint_steps == 0 or step == schedule.steps:
            checkpoint.save(named, optimiser, step)


class _Log:
    """Lines of JSON in a file, and the same in words to the report."""

    def __init__(self, path: Path, steps: int, report: Report) -> None:
        self._path = path
        self._steps = steps
        self._report = report
        self._started = time.monotonic()
        self._taken = 0
        self._sums: dict[str, float] = defaultdict(float)
        self._summed = 0

    def add(self, step: int, losses: dict[str, float]) -> None:
        self._taken += 1
        self._summed += 1
        for name, loss in losses.items():
            self._sums[name] += loss
        if step % _LOGGED == 0:
            means = {name: total / self._summed for name, total in self._sums.items()}
            seconds = (time.monotonic() - self._started) / self._taken
            self._write({"step": step, "seconds": round(seconds, 3), "losses": means})
            shown = " ".join(f"{name} {mean:.3f}" for name, mean in means.items())
            self._report(f"step {step}/{self._steps} {seconds:.2f} s {shown}")
            self._sums.clear()
            self._summed = 0

    def figures(self, step: int, figures: dict[str, Figures]) -> None:
        shown = {
            name: {case: str(share) for case, share in own.items()} for name, own in figures.items()
        }
        self._write({"step": step, "figures": shown})
        for name, own in shown.items():
            words = ", ".join(f"{case} {share}" for case, share in own.items())
            self._report(f"step {step}/{self._steps} {name}: {words}")

    def _write(self, row: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
