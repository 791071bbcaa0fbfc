"""plan: what a collection of a given size would take."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.talk import say


def plan(
    documents: Annotated[int, typer.Argument(help="How many.", min=1)],
    *,
    passages: Annotated[float, typer.Option(help="Passages a document.")] = 1.0,
    machines: Annotated[int, typer.Option(help="Machines that encode.")] = 32,
    cores: Annotated[int, typer.Option(help="Cores of each of them.")] = 16,
    memory: Annotated[float, typer.Option(help="GB of a machine that holds a shard.")] = 256.0,
    core_hour: Annotated[float, typer.Option(help="Your price of a core for an hour.")] = 0.0,
    memory_hour: Annotated[float, typer.Option(help="Your price of a GB for an hour.")] = 0.0,
    encoding: Annotated[
        Path, typer.Option(help="Measured speed, as `bench encoding` writes it.")
    ] = Path("docs/results/encoding.json"),
    footprint: Annotated[Path, typer.Option(help="Measured bytes a passage.")] = Path(
        "docs/results/footprint.json"
    ),
    measure: Annotated[
        str | None,
        typer.Option(
            help="Measure them first, in this database, with 20,000 passages that are made up, in "
            "tables that are dropped afterwards.",
            metavar="ADDRESS",
        ),
    ] = None,
) -> None:
    """Say what a collection would take, from speed and sizes that were measured.

    Example: coder-ir plan 1000000000 --core-hour 0.04 --memory-hour 0.005
    """
    from coder_ir.experiments.footprint import Footprint, measure_footprint
    from coder_ir.experiments.plan import Speed, Wanted, as_markdown

    wanted = Wanted(documents, passages, machines, cores, memory, core_hour, memory_hour)
    speed = Speed.load(encoding)
    if measure is not None:
        say("measuring; this takes a minute or two")
        measure_footprint(measure).save(footprint)
    typer.echo(as_markdown(wanted, speed, Footprint.load(footprint)))
