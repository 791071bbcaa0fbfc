"""From the name of a system to something that answers queries over an index's documents."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from coder_ir.baselines.bm25 import BM25
from coder_ir.baselines.by_vector import Indexed, Nearest
from coder_ir.baselines.decompose import Decomposer, ParserDecomposer
from coder_ir.baselines.dense import Dense, load_dense_encoder
from coder_ir.baselines.deo import DEO
from coder_ir.baselines.hyde import HyDE
from coder_ir.baselines.ns_ir import NSIR
from coder_ir.encoders.onnx import Runtime
from coder_ir.errors import InvalidValue
from coder_ir.types import Progress, Searcher

DECOMPOSING = ("hyde", "deo", "ns-ir")  # ask a language model, or our parser


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a system may use."""

    base: Indexed
    decomposer: Decomposer = field(default_factory=ParserDecomposer)
    folder: Path | None = None  # where it keeps what it made of the documents
    first: int = 100  # hits that `ns-ir` ranks anew
    encoder: str = ""  # of `dense`; "": the index's own
    runtime: Runtime | None = None  # of that encoder
    progress: Progress | None = None  # called while it encodes documents


def open_system(name: str, work: Workplace) -> Searcher:
    """A system by name; building what it needs of the documents is part of opening it."""
    if name not in SYSTEMS:
        raise InvalidValue(f"no system {name!r}; there are coder, {', '.join(SYSTEMS)}")
    return SYSTEMS[name](work)


def _bm25(work: Workplace) -> Searcher:
    return BM25(work.base.store.documents(), folder=_inside(work, "bm25"))


def _dense(work: Workplace) -> Searcher:
    if not work.encoder:
        return Nearest(work.base)
    encoder = load_dense_encoder(work.encoder, runtime=work.runtime)
    folder = _inside(work, f"dense-{encoder.fingerprint[:16]}")
    documents = work.base.store.documents()
    return Dense(documents, encoder, folder=folder, progress=work.progress)


def _inside(work: Workplace, name: str) -> Path | None:
    return work.folder / name if work.folder else None


SYSTEMS: dict[str, Callable[[Workplace], Searcher]] = {
    "bm25": _bm25,
    "dense": _dense,
    "hyde": lambda work: HyDE(work.base, work.decomposer),
    "deo": lambda work: DEO(work.base, work.decomposer),
    "ns-ir": lambda work: NSIR(work.base, work.decomposer, folder=work.folder, first=work.first),
}
