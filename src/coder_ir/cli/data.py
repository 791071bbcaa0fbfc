"""data: benchmarks, training triplets and diagnostic sets."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.talk import progress_bar, say

data_app = typer.Typer(
    help="Get benchmarks, build diagnostic sets and training triplets.\n\n"
    "Example: coder-ir data list benchmarks",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Root = Annotated[Path, typer.Argument(help="Folder that holds the benchmarks' folders.")]


@data_app.command("list")
def list_benchmarks(root: Root = Path("benchmarks")) -> None:
    """What is there, what is missing and how to get it.

    Example: coder-ir data list benchmarks
    """
    from rich.console import Console
    from rich.table import Table as Grid

    from coder_ir.datasets.registry import BENCHMARKS, how_to_get

    grid = Grid(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "what", "documents", "queries", "licence", "state"):
        right = column in ("documents", "queries")
        grid.add_column(column, justify="right" if right else "left", overflow="fold")
    for name, known in BENCHMARKS.items():
        missing = known.missing(root)
        state = f"missing; {how_to_get(known, root)}" if missing else "there"
        size = f"{known.documents:,}" if known.documents else "?"
        grid.add_row(name, known.title, size, f"{known.queries:,}", known.licence, state)
    Console(width=200).print(grid)


@data_app.command("get")
def get(
    names: Annotated[list[str], typer.Argument(help="Benchmarks to download.", metavar="NAME...")],
    *,
    to: Annotated[Path, typer.Option(help="Folder for the benchmarks' folders.")] = Path(
        "benchmarks"
    ),
) -> None:
    """Download benchmarks from their public homes, and check them.

    Example: coder-ir data get scifact nevir --to benchmarks
    """
    from coder_ir.datasets.download import download
    from coder_ir.datasets.registry import benchmark_named, load_benchmark

    wanted = [benchmark_named(name) for name in names]
    for known in wanted:
        if known.missing(to):
            with progress_bar(f"{known.name}, bytes", None) as done:
                download(known, to, progress=done)
        found = load_benchmark(known.name, to)
        say(
            f"{known.place(to)}: {len(found.documents)} documents, {len(found.queries)} judged "
            f"queries ({known.licence})"
        )


@data_app.command("wordnet")
def wordnet(
    output: Annotated[Path, typer.Option("-o", "--output", help="Triplet file to write (jsonl).")],
    *,
    source: Annotated[
        Path | None, typer.Option(help="Folder with WordNet's data.adj and so on.")
    ] = None,
    antonyms: Annotated[
        Path | None, typer.Option(help="Also write the compact antonym list here (.tsv.gz).")
    ] = None,
) -> None:
    """Word-level polarity triplets from WordNet; without --source from the list inside the package.

    Example: coder-ir data wordnet -o triplets/wordnet.jsonl
    """
    from coder_ir.datasets.wordnet import extract_antonyms, load_antonyms, save_antonyms
    from coder_ir.training.sentences import save_triplets
    from coder_ir.training.wordnet import polarity_triplets

    pairs = extract_antonyms(source) if source else load_antonyms()
    if antonyms:
        save_antonyms(pairs, antonyms)
    triplets = polarity_triplets(pairs)
    save_triplets(triplets, output)
    say(f"{output}: {len(triplets)} triplets from {len(pairs)} antonym pairs")


@data_app.command("sentences")
def sentences(
    source: Annotated[list[Path], typer.Argument(help="Folders of source folders as published.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Triplet file to write (jsonl).")],
    *,
    away: Annotated[
        list[Path] | None,
        typer.Option(help="jsonl of a benchmark: no text that shares eight words in a row."),
    ] = None,
    cap: Annotated[int, typer.Option(help="Triplets of a public source, at most.")] = 800,
    seed: Annotated[int, typer.Option(help="Of the sample where a source is capped.")] = 13,
) -> None:
    """Sentence-level triplets of every known source, split by topic.

    The held-out part goes beside the output, as NAME.development.jsonl.

    Example: coder-ir data sentences recipes sources -o triplets/sentences.jsonl
    """
    from collections import Counter

    from coder_ir.training.sentences import (
        HELD_OUT,
        gather,
        save_triplets,
        split_by_group,
        texts_in,
    )
    from coder_ir.training.surface import clue_scores

    triplets = gather(*source, cap=cap, seed=seed, away=texts_in(away or ()))
    train_part, held_out = split_by_group(triplets, share=HELD_OUT)
    save_triplets(train_part, output)
    save_triplets(held_out, output.with_suffix(".development.jsonl"))
    for (name, licence), count in sorted(Counter((t.source, t.licence) for t in triplets).items()):
        say(f"{count:6} {name} ({licence})")
    for clue, share in clue_scores(triplets).items():
        say(f"{100 * share:5.1f}% told by: {clue}")
    say(f"{output}: {len(train_part)} to train on, {len(held_out)} held out")


@data_app.command("diagnostics")
def diagnostics(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Sheet (.csv, .csv.xz) or folder to write.")
    ],
    kind: Annotated[str, typer.Option(help="antonym, negation or exclusion.")],
    *,
    source: Annotated[
        Path | None, typer.Option(help="BEIR folder: build a review sheet from its passages.")
    ] = None,
    reviewed: Annotated[
        Path | None, typer.Option(help="Reviewed sheet: write its kept rows as a BEIR folder.")
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Pairs in the sheet, at most; 51 if not given.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the order of the passages; 13 if not given.")
    ] = None,
) -> None:
    """Diagnostic sets: a sheet of candidate pairs to review, or a reviewed set as a BEIR folder.

    With neither --source nor --reviewed, the set that ships with the package is written.

    Example: coder-ir data diagnostics --kind antonym --source benchmarks/scifact -o sheet.csv
    """
    from coder_ir.errors import InvalidValue

    if source and reviewed:
        raise InvalidValue("give --source to build a sheet or --reviewed to export one, not both")
    if source:
        _write_sheet(source, kind, output, 51 if pairs is None else pairs, seed)
    elif pairs is not None or seed is not None:
        raise InvalidValue("--pairs and --seed belong to --source")
    else:
        _export_reviewed(reviewed, kind, output)


def _write_sheet(source: Path, kind: str, output: Path, pairs: int, seed: int | None) -> None:
    from coder_ir.datasets.diagnostics.build import build_pairs
    from coder_ir.datasets.diagnostics.sheet import write_sheet
    from coder_ir.errors import InvalidValue

    if not output.name.endswith((".csv", ".csv.xz")):
        raise InvalidValue(f"a review sheet is named .csv or .csv.xz, got {output.name}")
    if output.exists():
        raise InvalidValue(f"{output} is there already; a reviewed sheet is not written over")
    found = build_pairs(source, kind, pairs=pairs, seed=13 if seed is None else seed)
    write_sheet(found, output)
    say(f"{output}: {len(found)} {kind} pairs to review; set decision to keep or drop")


def _export_reviewed(reviewed: Path | None, kind: str, output: Path) -> None:
    from coder_ir.datasets.diagnostics.load import load_reviewed, save_beir, shipped_sheet
    from coder_ir.errors import InvalidValue

    if output.suffix in (".csv", ".xz"):
        raise InvalidValue(
            f"a set is written into a folder, got {output.name}; --source is for sheets"
        )
    found = load_reviewed(reviewed or shipped_sheet(kind), kind=kind)
    save_beir(found, output)
    say(f"{output}: {len(found.documents)} documents, {len(found.queries)} judged queries")
