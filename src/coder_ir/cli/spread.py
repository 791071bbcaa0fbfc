"""index --ray: the same command, spread over processes and machines."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from coder_ir.cli.talk import progress_bar, say
from coder_ir.errors import InvalidValue

if TYPE_CHECKING:
    from coder_ir.datasets.documents import Columns
    from coder_ir.encoders.onnx import Runtime


@dataclass(frozen=True, slots=True)
class Spread:
    """What the command was given."""

    index: str
    docs: list[str]
    model: str | None
    runtime: "Runtime"
    columns: "Columns"
    split: bool
    ray: str  # address of the cluster


def spread(given: Spread, *, hybrid: bool) -> None:
    """Index with Ray and say what was done."""
    from coder_ir.distributed import Cluster, Opening, find_parts, index_with_ray
    from coder_ir.stores import shown

    if hybrid:
        raise InvalidValue(
            "--hybrid keeps word counts in an index folder; with --ray leave it out, `search "
            "--hybrid` counts by itself"
        )
    opening = Opening(given.index, given.model, given.runtime)
    parts = find_parts(given.docs)
    cluster = Cluster(given.ray, given.runtime.threads)
    try:
        with (
            progress_bar("indexing, in parts of files", len(parts)) as done,
            redirect_stdout(sys.stderr),  # Ray prints there that a worker died
        ):
            outcome = index_with_ray(
                opening,
                parts,
                cluster=cluster,
                columns=given.columns,
                split=given.split,
                progress=done,
            )
    except KeyboardInterrupt:
        say(f"stopped; what was written to {shown(given.index)} is kept: run it again to go on")
        raise typer.Exit(1) from None
    say(
        f"{shown(given.index)}: {outcome.added.written} documents written, "
        f"{outcome.added.unchanged} unchanged by {outcome.workers} workers, {outcome.stored} in all"
    )
    if outcome.read > outcome.stored:
        say(
            f"{outcome.read} documents were read and {outcome.stored} are stored: some ids come "
            "more than once, and one document of each such id was kept"
        )
