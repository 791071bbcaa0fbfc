"""The commands, put together."""

from typing import Annotated

import typer

from coder_ir.cli.attach import attach
from coder_ir.cli.bench import bench
from coder_ir.cli.data import data_app
from coder_ir.cli.demo import demo
from coder_ir.cli.evaluate import evaluate
from coder_ir.cli.info import info
from coder_ir.cli.model import model_export
from coder_ir.cli.parse import parse
from coder_ir.cli.plan import plan
from coder_ir.cli.run import run
from coder_ir.cli.search import index, model_info, search
from coder_ir.cli.serve import serve
from coder_ir.cli.train import train_app

app = typer.Typer(
    help="Search that respects not, without, except and opposite preferences.\n\n"
    "Start with: coder-ir demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
model_app = typer.Typer(
    help="Look at models, and take them elsewhere.\n\nExample: coder-ir model info",
    no_args_is_help=True,
    rich_markup_mode=None,
)
model_app.command("info")(model_info)
model_app.command("export")(model_export)


def _version(asked: bool) -> None:
    if asked:
        from coder_ir import __version__

        typer.echo(f"coder-ir {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


for command in (demo, index, search, parse, attach, run, info, serve, plan, bench):
    app.command()(command)
app.command("eval")(evaluate)
app.add_typer(model_app, name="model")
app.add_typer(train_app, name="train")
app.add_typer(data_app, name="data")
