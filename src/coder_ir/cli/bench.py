"""bench: measurements that write their own tables."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.talk import say
from coder_ir.errors import NotFound


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="development, settings, recipe, parsing, detection, ordinary, risk, diagnostics, "
            "survival, benchmarks, nevir, negconstraint, beir, torch, encoders, separation, "
            "reranker, reading, sensitivity, efficiency, encoding, query-encoding, search, "
            "reading-cost, ann, kinds, serving, kill, probe, goals, card, results; default: all "
            "but settings, recipe, torch, ann, kinds, serving and probe.",
            metavar="[NAME]...",
        ),
    ] = None,
    *,
    data: Annotated[
        Path,
        typer.Option(help="Folder of benchmarks, as `data list` shows it."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.md.")] = Path("results"),
    reference: Annotated[
        str, typer.Option(help="Torch model that torch and encoding compare with.")
    ] = "BAAI/bge-small-en-v1.5",
    model: Annotated[str, typer.Option(help="Model to measure.")] = "built-in",
    written: Annotated[
        Path, typer.Option(help="Folder with contrast.development.jsonl (development).")
    ] = Path("recipes/written"),
    queries: Annotated[
        Path, typer.Option(help="Folder of marked queries (parsing, serving).")
    ] = Path("recipes/queries"),
    reranker: Annotated[
        Path | None,
        typer.Option(help="Folder of an ONNX cross-encoder (reranker, efficiency)."),
    ] = None,
    llm: Annotated[
        Path | None,
        typer.Option(help="TOML file of a language model (efficiency, probe); else a local one."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Markdown file whose tables, marked <!-- table: NAME -->, are filled."),
    ] = None,
) -> None:
    """Measure and write a JSON file and a Markdown table for each name, and its pictures.

    Indexes, runs and finished tables are kept in OUT/cache: a second call does only what is not
    there or what changed. Ends with 1 where figures are not those that were expected.

    Example: coder-ir bench nevir --data benchmarks --out results
    """
    from coder_ir.experiments.page import fill
    from coder_ir.experiments.run import Setup, run_experiments

    setup = Setup(data, out, reference, model, written, queries, reranker, llm)
    if into and not into.is_file():
        raise NotFound(f"no {into} to fill tables into")
    try:
        for table in run_experiments(names or [], setup, report=say):
            typer.echo(table)
    finally:
        if into:
            fill(into, out)
