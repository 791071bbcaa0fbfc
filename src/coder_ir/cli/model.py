"""model export."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.talk import say


def model_export(
    output: Annotated[Path, typer.Argument(help="Folder to write.")],
    *,
    model: Annotated[str, typer.Option(help="Model folder.")] = "built-in",
    topical: Annotated[
        bool, typer.Option("--topical", help="The topical encoder, not the compatibility one.")
    ] = False,
) -> None:
    """Write the compatibility encoder as a sentence-transformers folder, unpacked from int8.

    Needs the extra train. The vectors are compared with the model's own on a sample.

    Example: coder-ir model export my-encoder
    """
    from coder_ir.encoders.registry import BUILT_IN, built_in_folder
    from coder_ir.training.unpack import unpack

    folder = built_in_folder() if model == BUILT_IN else Path(model)
    report = unpack(folder, output, space="topical" if topical else "compatibility")
    typer.echo(report.table())
    if not report.passed:
        say("the unpacked vectors stray too far from the model's own (cosine below 0.99)")
        raise typer.Exit(1)
    say(f"load it with: SentenceTransformer({str(output.resolve())!r})")
