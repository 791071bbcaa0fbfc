"""The settings of a training run, read from TOML."""

import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from coder_ir.encoders.conventions import BGE_PREFIX
from coder_ir.errors import InvalidFile, InvalidValue, NotFound


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass over one set of triplets."""

    name: str
    triplets: Path  # jsonl as `coder-ir data` writes it
    most: int = 0  # triplets to take, in whole groups; 0: all
    development: Path | None = None  # scored after each epoch
    epochs: int = 1
    batch_size: int = 16
    together: int = 2  # triplets of one group that share a batch; those over two passages are cheap
    learning_rate: float = 2e-5
    rounded: bool = False  # frozen layers in int8, as the exported model runs them
    crops: bool = False  # each triplet over near-copies also with only the sentences that differ
    warmup: float = 0.1  # share of the stage's steps
    anchor: float = 0.0  # weight of staying at the base encoder's similarity of unrelated texts
    pairwise: float = 0.0  # weight of the loss over satisfying against violating alone
    symmetric: float = 0.0  # weight of the loss that lets a passage pick its query

    def __post_init__(self) -> None:
        """Refuse what would train nothing."""
        # A batch of one has no negatives but its own.
        for name, least in (("most", 0), ("epochs", 1), ("batch_size", 2), ("together", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidValue(f"{name} must be a whole number from {least} up, got {value!r}")


@dataclass(frozen=True, slots=True)
class Config:
    """A whole run; the defaults are the paper's recipe."""

    base: str  # sentence-transformers or Hugging Face name, or a folder
    output: Path
    stages: tuple[Stage, ...]
    seed: int = 13
    frozen_layers: int = 0  # lower layers kept as they are, their activations cached
    max_length: int = 128  # tokens
    query_prefix: str = BGE_PREFIX
    scale: float = 20.0  # beta of the loss
    bfloat16: bool = False  # products of the trained layers, where the processor has it
    threads: int = 2
    checkpoint_steps: int = 100

    def as_json(self) -> dict[str, Any]:
        """Plain values, paths as text."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def load_config(path: Path) -> Config:
    """Read a TOML file; relative paths are taken from the file's folder."""
    if not path.is_file():
        raise NotFound(f"no training config {path}")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} is not TOML: {error}") from error
    folder = path.parent
    tables = raw.pop("stage", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidValue(f"{path} should write each stage as a table under [[stage]]")
    if "stages" in raw:
        raise InvalidValue(f"{path} sets 'stages', which is none of the settings; use [[stage]]")
    stages = tuple(_build(Stage, table, folder, path) for table in tables)
    if not stages:
        raise InvalidValue(f"{path} has no [[stage]]; a run needs at least one")
    base = str(raw.get("base", ""))
    if base and (folder / base).is_dir():
        raw["base"] = str((folder / base).resolve())
    config: Config = _build(Config, {**raw, "stages": stages}, folder, path)
    if len({stage.name for stage in stages}) != len(stages):
        raise InvalidValue(f"{path} has two stages of one name")
    return config


def _build(cls: Any, raw: dict[str, Any], folder: Path, path: Path) -> Any:
    known = {field.name: field for field in fields(cls)}
    for name in raw:
        if name not in known:
            raise InvalidValue(f"{path} sets {name!r}, which is none of {', '.join(known)}")
    for name in ("triplets", "development", "output"):
        if name in raw and name in known:
            if not isinstance(raw[name], str):
                raise InvalidValue(f"{path} sets {name} to {raw[name]!r}, which is no path")
            raw[name] = (folder / raw[name]).resolve()
    try:
        return cls(**raw)
    except TypeError as error:
        raise InvalidValue(f"{path} is incomplete: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
