"""The run: an encoder in each actor, writes that may come twice, counts that come back.

A worker reads a part, asks the store which of its documents it has, and encodes and writes the
rest in batches. So the store itself is the record of what is done: a part that is given out again,
because a worker or the whole run was killed, costs only what had not been written.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coder_ir.datasets.documents import Columns
from coder_ir.distributed.parts import Part, read_part
from coder_ir.encoders.onnx import Runtime
from coder_ir.errors import (
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    MissingExtra,
    ModelMismatch,
    NotFound,
    ServiceError,
    StoreError,
)
from coder_ir.intake import Added
from coder_ir.retriever import Retriever
from coder_ir.stores import index_folder
from coder_ir.types import Progress

LOCAL = "local"
_OBJECT_STORE = 200_000_000  # bytes; only places of parts and counts pass through it
_RAISED = {
    kind.__name__: kind
    for kind in (InvalidValue, InvalidFile, DuplicateId, NotFound, ModelMismatch, StoreError)
}
_PATIENCE = 10.0  # seconds to wait for a cluster to answer
_BLOCKS = 4096  # of parts, at most; a block is what Ray gives out again after a kill


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where to run."""

    address: str = LOCAL  # `local` starts Ray here and ends it; or one that runs: auto, HOST:PORT
    threads: int = 0  # CPUs of a worker; 0: all of the smallest machine, so one worker each

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        if self.threads < 0:
            raise InvalidValue(f"threads must not be negative, got {self.threads}")


@dataclass(frozen=True, slots=True)
class Opening:
    """How a worker opens the index; this goes to every machine."""

    address: str
    model: str | None
    runtime: Runtime

    def __post_init__(self) -> None:
        """Refuse an embedded index: it has one writer, and may be on one machine only."""
        lite = self.address.lower().startswith("milvus-lite:")  # a file, for one process
        if lite or index_folder(self.address) is not None:
            raise InvalidValue(
                f"{self.address} is an embedded index, which has one writer; with --ray, index "
                "into a server such as postgresql://…?table=NAME, or leave --ray out: on one "
                "machine the encoder takes all cores anyway"
            )

    def on(self, threads: int) -> "Opening":
        """The same for a worker that was given so many CPUs, on a machine that may have more."""
        return replace(self, runtime=replace(self.runtime, threads=threads))

    def __call__(self) -> Retriever:
        """Encoder and store, in the process that asks."""
        return Retriever.open(self.address, model=self.model, runtime=self.runtime)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did."""

    added: Added
    stored: int  # documents in the index at the end
    workers: int

    @property
    def read(self) -> int:
        """Documents that were read, each id counted as often as it came."""
        return self.added.written + self.added.unchanged


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of a part; plain values, as Ray keeps them in columns."""

    written: int = 0
    unchanged: int = 0
    error: str = ""  # name of the exception; "": none
    message: str = ""

    def raised(self) -> CoderError:
        """The worker's exception, in this process."""
        return _RAISED.get(self.error, CoderError)(self.message)


class Worker:
    """An actor: one encoder and one connection to the store, for as many parts as it is given."""

    def __init__(self, opening: Callable[[], Retriever], columns: Columns, split: bool) -> None:
        """Load the model; Ray does this once in each actor, and again in one that replaces it."""
        self._retriever = opening()
        self._columns = columns
        self._split = split

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Index the parts of a batch of columns; errors of ours come back as values."""
        columns = [batch[name].tolist() for name in ("path", "kind", "start", "end")]
        done = [asdict(self._index(Part(*row))) for row in zip(*columns, strict=True)]
        return {name: [row[name] for row in done] for name in done[0]} if done else {}

    def _index(self, part: Part) -> _Done:
        try:
            added = self._retriever.add(read_part(part, self._columns), split=self._split)
        except CoderError as error:
            return _Done(error=type(error).__name__, message=str(error))
        return _Done(added.written, added.unchanged)


def index_with_ray(
    opening: Callable[[], Retriever],
    parts: Sequence[Part],
    *,
    cluster: Cluster,
    columns: Columns | None = None,
    split: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Add or update the documents of all parts; run again, it goes on where it stopped.

    Args:
        opening: gives a worker its retriever; pickled, so a function of a module or `Opening`.
        parts: from `find_parts`; every machine must reach the files under the same names.
        cluster: where to run.
        columns: fields of the documents.
        split: cut texts past the model's limit into passages.
        progress: called with the number of parts done since the last call.
    """
    added, workers = Added(), 0
    # Tables are made, and a wrong model refused, before any worker starts.
    with opening() as retriever:
        if parts:
            with _connected(cluster) as ray:
                threads, workers = _shares(ray, cluster)
                given = opening.on(threads) if isinstance(opening, Opening) else opening
                work = _dataset(ray, parts).map_batches(
                    Worker,
                    batch_size=1,
                    compute=ray.data.ActorPoolStrategy(size=workers),
                    num_cpus=threads,
                    fn_constructor_args=(given, columns or Columns(), split),
                )
                for done in _outcomes(ray, work):
                    added += Added(done.written, done.unchanged)
                    if done.error:
                        raise done.raised()
                    if progress:
                        progress(1)
        return Outcome(added, len(retriever), workers)


def _dataset(ray: Any, parts: Sequence[Part]) -> Any:
    rows = [asdict(part) for part in parts]
    return ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS))


def _outcomes(ray: Any, work: Any) -> Iterator[_Done]:
    """As parts are done, in whatever order."""
    try:
        for row in work.iter_rows():
            yield _Done(**row)
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines()
        raise ServiceError(
            f"Ray gave up: {lines[-1] if lines else type(error).__name__}; what was written is "
            "kept, so run the same command again"
        ) from error


def _shares(ray: Any, cluster: Cluster) -> tuple[int, int]:
    """CPUs of a worker, and how many workers the machines hold."""
    cpus = [
        int(node["Resources"].get("CPU", 0))
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    ]
    if not cpus:
        raise ServiceError(f"the Ray cluster at {cluster.address} has no CPU to give")
    threads = cluster.threads or min(cpus)
    workers = sum(count // threads for count in cpus)
    if not workers:
        raise InvalidValue(f"no machine of the cluster has {threads} CPUs; the largest {max(cpus)}")
    return threads, workers


def _knock(address: str) -> None:
    """Refuse a cluster that nobody answers at, for which Ray itself waits many minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise ServiceError(
            f"no Ray cluster at {address}: {error}; `local` starts one here"
        ) from error


def _send_token() -> None:
    """Have Ray show a cluster the token there is; by itself it does so only with `auto`."""
    named = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if named or (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """Ray, quiet and without its reports; what was started here ends here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if cluster.address.startswith("ray://"):
        raise InvalidValue(
            f"Ray Data does not run through a Ray client, which {cluster.address} asks for; on a "
            "machine of the cluster use auto or HOST:PORT, from outside submit a Ray job"
        )
    if cluster.address != LOCAL:
        _send_token()
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra("Indexing with Ray", extra="ray") from error
    mine = not ray.is_initialized()
    if mine:
        _knock(cluster.address)
        options: dict[str, Any] = {"address": cluster.address}
        if cluster.address == LOCAL:
            options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ServiceError(f"no Ray cluster at {cluster.address}: {reason}") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()
