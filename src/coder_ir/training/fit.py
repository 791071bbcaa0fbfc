"""Training in stages: batches, checkpoints, log, development figures."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidValue, MissingExtra, NotFound
from coder_ir.training.checkpoint import Checkpoint
from coder_ir.training.config import Config, Stage
from coder_ir.training.learners import EncoderLearner, learner_of
from coder_ir.training.loss import positives_of
from coder_ir.training.model_card import write_model_card
from coder_ir.training.sentences import cropped, load_triplets, whole_groups
from coder_ir.training.tower import Tower
from coder_ir.types import Triplet

if TYPE_CHECKING:
    import torch

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Development:
    """How a network does on held-out triplets."""

    triplets: int
    accuracy: float  # share with the satisfying passage scored above the violating one
    paired: float  # share of groups of two or more triplets that are right throughout
    margin: float  # mean difference of scores, satisfying minus violating


def train(config: Config, *, report: Report) -> Path:
    """Run or resume all stages; returns the folder of the finished network.

    Killed at any moment and started again with the same config, it goes on from the last
    checkpoint and ends with the same weights.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("Training", extra="train") from error

    torch.set_num_threads(config.threads)
    config.output.mkdir(parents=True, exist_ok=True)
    _claim(config)
    torch.manual_seed(config.seed)
    learner = learner_of(config)
    scores: dict[str, Any] = {}
    for stage in config.stages:
        scores[stage.name] = _run_stage(config, stage, learner, report)
    finished = config.output / "model"
    learner.save(finished)
    record = {
        "config": config.as_json(),
        "data": data_hashes(config),
        "sources": sources(config),
        "development": scores,
        "software": software(),
    }
    (finished / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    write_model_card(finished, record)
    return finished


def data_hashes(config: Config) -> dict[str, str]:
    """sha256 of every triplet file of the run, by stage and use."""
    files = {
        f"{stage.name} {use}": file
        for stage in config.stages
        for use, file in (("triplets", stage.triplets), ("development", stage.development))
        if file
    }
    for file in files.values():
        if not file.is_file():
            raise NotFound(f"no triplet file {file}; build it with: coder-ir data")
    return {name: file_sha256(file) for name, file in files.items()}


def sources(config: Config) -> list[dict[str, Any]]:
    """How many triplets of each source and licence a run was trained on, in one stage or more."""
    distinct = {triplet for stage in config.stages for triplet in _taken(stage)}
    counts = Counter((triplet.source, triplet.licence) for triplet in distinct)
    return [
        {"source": source, "licence": licence, "triplets": count}
        for (source, licence), count in sorted(counts.items())
    ]


def _taken(stage: Stage) -> list[Triplet]:
    """What a stage trains on."""
    triplets = load_triplets(stage.triplets)
    return whole_groups(triplets, stage.most) if stage.most else triplets


def software() -> str:
    """Version of this package and, in a checkout, its commit."""
    name = f"coder-ir {version('coder-ir')}"
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git on this machine
        return name
    return f"{name} at {commit.stdout.strip()}" if commit.returncode == 0 else name


def is_run_of(config: Config) -> bool:
    """Whether the output folder holds a run with these settings and this data."""
    path = config.output / "config.json"
    return path.is_file() and json.loads(path.read_text(encoding="utf-8")) == _identity(config)


def _identity(config: Config) -> dict[str, Any]:
    return {"config": config.as_json(), "data": data_hashes(config)}


def _claim(config: Config) -> None:
    """Record what this run is; a folder that holds another run is refused."""
    path = config.output / "config.json"
    if path.is_file() and not is_run_of(config):
        raise InvalidValue(
            f"{config.output} holds a run with other settings or data; choose another output "
            "folder, or delete it to start over"
        )
    path.write_text(json.dumps(_identity(config), indent=2) + "\n", encoding="utf-8")


def _run_stage(
    config: Config, stage: Stage, learner: EncoderLearner, report: Report
) -> dict[str, float]:
    import torch

    triplets = _taken(stage)
    if stage.crops:
        triplets += cropped(triplets)
    if len(triplets) < 2:
        raise InvalidValue(f"{stage.triplets} holds {len(triplets)} triplets; a stage needs two")
    held_out = load_triplets(stage.development) if stage.development else []
    batches = [
        batch
        for epoch in range(stage.epochs)
        for batch in plan(triplets, stage.batch_size, config.seed + epoch, together=stage.together)
    ]
    parameters = learner.parameters()
    optimiser = torch.optim.AdamW([p for _, p in parameters], lr=stage.learning_rate)
    checkpoint = Checkpoint(config.output / f"checkpoint-{stage.name}.safetensors")
    step = checkpoint.load(parameters, optimiser)
    if step < len(batches) or held_out:
        read = held_out + (triplets if step < len(batches) else [])
        _cache(config, stage, read, learner.tower, report)
    positives = positives_of(triplets)
    per_epoch = len(batches) // stage.epochs
    started, losses = time.monotonic(), []
    while step < len(batches):
        _set_rate(optimiser, stage, step, len(batches))
        loss = learner.loss(batches[step], positives, stage)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for _, p in parameters], 1.0)
        optimiser.step()
        losses.append(loss.item())
        step += 1
        if step % 20 == 0:
            rate = (time.monotonic() - started) / len(losses)
            _log(config, stage, step, len(batches), report, loss=mean(losses[-20:]), seconds=rate)
        if step % per_epoch == 0 and held_out:
            _log(
                config,
                stage,
                step,
                len(batches),
                report,
                **asdict(develop(learner, held_out)),
            )
        if step % config.checkpoint_steps == 0 or step == len(batches):
            checkpoint.save(parameters, optimiser, step)
    return asdict(develop(learner, held_out)) if held_out else {}


def _cache(
    config: Config, stage: Stage, triplets: list[Triplet], tower: Tower, report: Report
) -> None:
    texts = [
        t for x in triplets for t in (config.query_prefix + x.query, x.satisfying, x.violating)
    ]
    total, seen = len(texts), 0

    def done(n: int) -> None:
        nonlocal seen
        seen += n
        if seen // 2000 != (seen - n) // 2000 or seen == total:
            report(f"cached the frozen layers for {seen} of {total} texts")

    tower.cache(texts, done=done, rounded=stage.rounded)


def plan(
    triplets: Sequence[Triplet], batch_size: int, seed: int, *, together: int = 2
) -> list[list[Triplet]]:
    """Seeded batches; triplets over the same two passages stay neighbours and meet in one batch.

    A group is dealt out `together` triplets at a time: a batch of near-copies has no easy
    negatives left.
    """
    groups: dict[str, dict[frozenset[str], list[Triplet]]] = defaultdict(lambda: defaultdict(list))
    for triplet in triplets:
        passages = frozenset((triplet.satisfying, triplet.violating))
        groups[triplet.group][passages].append(triplet)
    draw = random.Random(seed)
    bundles = []
    for group in groups.values():
        side_by_side = [triplet for same in group.values() for triplet in same]
        bundles += [side_by_side[i : i + together] for i in range(0, len(side_by_side), together)]
    draw.shuffle(bundles)
    batches: list[list[Triplet]] = [[]]
    for bundle in bundles:
        if len(batches[-1]) + len(bundle) > batch_size:
            batches.append([])
        batches[-1] += bundle
    return [batch for batch in batches if len(batch) > 1]


def develop(learner: EncoderLearner, triplets: Sequence[Triplet]) -> Development:
    """Score held-out triplets."""
    margins = learner.margins(triplets)
    groups: dict[str, list[bool]] = defaultdict(list)
    for triplet, margin in zip(triplets, margins, strict=True):
        groups[triplet.group].append(margin > 0)
    pairs = [all(right) for right in groups.values() if len(right) > 1]
    return Development(
        triplets=len(triplets),
        accuracy=sum(margin > 0 for margin in margins) / len(margins),
        paired=sum(pairs) / len(pairs) if pairs else 0.0,
        margin=sum(margins) / len(margins),
    )


def _set_rate(optimiser: torch.optim.Optimizer, stage: Stage, step: int, total: int) -> None:
    warm = max(1, round(total * stage.warmup))
    share = (step + 1) / warm if step < warm else (total - step) / max(1, total - warm)
    for group in optimiser.param_groups:
        group["lr"] = stage.learning_rate * share


def _log(
    config: Config, stage: Stage, step: int, total: int, report: Report, **values: float
) -> None:
    with (config.output / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"stage": stage.name, "step": step, **values}) + "\n")
    shown = " ".join(f"{name} {value:.3f}" for name, value in values.items())
    report(f"{stage.name} step {step}/{total} {shown}")
