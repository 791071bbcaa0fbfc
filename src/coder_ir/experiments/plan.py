"""What a collection of any size takes: machines, hours and money, from what was measured."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.experiments.encoding import BOTH, THREADS
from coder_ir.experiments.footprint import Footprint

_GB = 1e9
_FILLED = 0.8  # share of a machine's memory that indexes may take


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast documents are encoded, both vectors."""

    documents_per_second: float
    cores: int  # that took

    @classmethod
    def load(cls, path: Path) -> "Speed":
        """The median of the rounds in `encoding.json`."""
        try:
            found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            rate = median(found["documents_per_second"][BOTH])
            return cls(float(rate), int(found.get("threads", THREADS)))
        except FileNotFoundError as error:
            raise NotFound(f"there is no {path}; make it with: coder-ir bench encoding") from error
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidFile(f"{path} holds no speed of {BOTH!r}: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is planned for; machines and prices are the reader's own."""

    documents: int
    passages: float = 1.0  # a document
    machines: int = 32  # that encode
    cores: int = 16  # of an encoding machine
    memory: float = 256.0  # GB of a machine that holds a shard
    core_hour: float = 0.0  # price
    memory_hour: float = 0.0  # price of a GB for an hour

    def __post_init__(self) -> None:
        """Refuse what cannot be planned for."""
        for name in ("documents", "passages", "machines", "cores", "memory"):
            if not getattr(self, name) > 0:
                raise InvalidValue(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("core_hour", "memory_hour"):
            if getattr(self, name) < 0:
                raise InvalidValue(f"{name} must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Plan:
    """What it takes."""

    core_hours: float  # of encoding
    hours: float  # of encoding, on the machines wanted
    index_gb: float  # HNSW indexes of both spaces, in memory
    table_gb: float  # texts and vectors, on disks
    shards: int  # databases, each with its index in memory
    encoding_price: float
    serving_price: float  # a month of 730 hours, of the shards' memory


def plan(wanted: Wanted, speed: Speed, footprint: Footprint) -> Plan:
    """Everything grows with the number of passages: twice as many take twice of all.

    The speed is of documents of one passage each.
    """
    passages = wanted.documents * wanted.passages
    core_hours = passages / speed.documents_per_second * speed.cores / 3600
    index = passages * footprint.index_bytes / _GB
    shards = math.ceil(index / (wanted.memory * _FILLED))
    return Plan(
        core_hours=core_hours,
        hours=core_hours / (wanted.machines * wanted.cores),
        index_gb=index,
        table_gb=passages * footprint.table_bytes / _GB,
        shards=shards,
        encoding_price=core_hours * wanted.core_hour,
        serving_price=shards * wanted.memory * 730 * wanted.memory_hour,
    )


def as_markdown(wanted: Wanted, speed: Speed, footprint: Footprint) -> str:
    """A table with what was measured above what follows from it."""
    found = plan(wanted, speed, footprint)
    vectors = 2 * 4 * footprint.dimensions
    rows = [
        ("measured: encoding, both vectors", f"{speed.documents_per_second:.1f} documents/s on "
         f"{speed.cores} cores"),
        ("measured: tables", f"{footprint.table_bytes:,.0f} bytes a passage, {vectors:,} of them "
         f"vectors ({footprint.passages:,} passages of {footprint.characters:,} characters)"),
        ("measured: both HNSW indexes", f"{footprint.index_bytes:,.0f} bytes a passage"),
        ("planned for", f"{wanted.documents:,} documents of {wanted.passages:g} passages"),
        ("encoding", f"{found.core_hours:,.0f} core-hours"),
        (f"on {wanted.machines} machines of {wanted.cores} cores", f"{found.hours:,.1f} hours"),
        ("tables, on disks", f"{found.table_gb:,.0f} GB"),
        ("indexes, in memory", f"{found.index_gb:,.0f} GB"),
        (f"shards of {wanted.memory:g} GB, {_FILLED:.0%} filled", f"{found.shards}"),
    ]  # fmt: skip
    if wanted.core_hour:
        said = f"{found.encoding_price:,.0f} at {wanted.core_hour:g} a core-hour"
        rows.append(("price of encoding, once", said))
    if wanted.memory_hour:
        said = f"{found.serving_price:,.0f} at {wanted.memory_hour:g} a GB-hour"
        rows.append(("price of the shards' memory, a month", said))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
