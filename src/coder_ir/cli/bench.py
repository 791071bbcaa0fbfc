"""bench: measurements that write their own tables."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.talk import say


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="development, settings, recipe, detection, risk, nevir, negconstraint, topical, "
            "torch, verifier, encoding, search, kill, goals, card; default: all but recipe.",
            metavar="[NAME]...",
        ),
    ] = None,
    *,
    data: Annotated[
        Path,
        typer.Option(help="Folder with nevir/, negconstraint/, excluir/, scifact/, nfcorpus/."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.md.")] = Path("results"),
    reference: Annotated[
        str, typer.Option(help="Torch model that torch and encoding compare with.")
    ] = "BAAI/bge-small-en-v1.5",
    model: Annotated[str, typer.Option(help="Model to measure.")] = "built-in",
    written: Annotated[
        Path, typer.Option(help="Folder with contrast.development.jsonl (development).")
    ] = Path("recipes/written"),
) -> None:
    """Measure and write a JSON file and a Markdown table for each name.

    Example: coder-ir bench nevir --data benchmarks --out results
    """
    from coder_ir.experiments.run import Setup, run_experiments

    setup = Setup(data, out, reference, model, written)
    for table in run_experiments(names or [], setup, report=say):
        typer.echo(table)
