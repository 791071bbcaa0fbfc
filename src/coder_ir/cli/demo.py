"""The demo: sample corpus in, two rankings side by side."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coder_ir.cli.talk import progress_bar

if TYPE_CHECKING:
    from coder_ir import Ranking, Retriever
    from coder_ir.datasets.sample import SampleQuery

_SHOWN = 3


def demo(
    *,
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep the sample index in this folder to search it yourself."),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the sample to a browser; needs the extra serve.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(help="Port of the page; 0 takes one that is free.", show_default="8000"),
    ] = None,
) -> None:
    """Index a sample corpus and show topical search and CoDeR side by side.

    Example: coder-ir demo --keep demo-index

    Example: coder-ir demo --page
    """
    from coder_ir.datasets.sample import load_sample
    from coder_ir.retriever import Retriever

    if port is not None and not page:
        raise typer.BadParameter("--port is for the page; add --page", param_hint="--port")
    if page:
        from coder_ir.serve import check_extra

        check_extra()
    documents, queries = load_sample()
    folder = keep or Path(tempfile.mkdtemp(prefix="coder-ir-demo-"))
    try:
        with Retriever.open(folder) as retriever:
            with progress_bar("encoding the sample", len(documents)) as done:
                retriever.add(documents, progress=done)
            if page:
                examples = [query.text for query in queries]
                _serve(retriever, examples, 8000 if port is None else port)
            else:
                _compare(retriever, queries)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if not page:
        _next_steps(keep)


def _serve(retriever: "Retriever", examples: list[str], port: int) -> None:
    """Until Ctrl-C; a browser is opened where there is one."""
    import threading
    import webbrowser

    from coder_ir.serve import ServeSettings
    from coder_ir.serve.running import run

    def ready(url: str) -> None:
        typer.echo(f"The page is at {url}\nCtrl-C ends it.")
        # Beside the server: a browser in the terminal returns only when it is left.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    run(retriever, ServeSettings(examples=examples), host="127.0.0.1", port=port, ready=ready)


def _compare(retriever: "Retriever", queries: "list[SampleQuery]") -> None:
    from coder_ir.searching import DEFAULT_POLICY, SearchOptions

    texts = [query.text for query in queries]
    plain = retriever.search_many(texts, SearchOptions(k=_SHOWN, policy="topical"))
    ours = retriever.search_many(texts, SearchOptions(k=_SHOWN, policy=DEFAULT_POLICY))
    _print(queries, plain, ours, len(retriever))


def _print(
    queries: "list[SampleQuery]", plain: "list[Ranking]", ours: "list[Ranking]", documents: int
) -> None:
    from rich.console import Console

    console = Console()
    width = max(40, (min(console.width, 160) - 9) // 2)
    console.print(
        f"\n{len(queries)} queries with a constraint over {documents} passages; the first {_SHOWN} "
        "hits of plain semantic search and of CoDeR.\n"
        "[red]✗ breaks the constraint[/]   [green]✓ keeps to it[/]   [dim]· says nothing of it[/]\n"
    )
    for query, left, right in zip(queries, plain, ours, strict=True):
        console.print(_block(query, left, right, width))
    console.print(_summary(queries, plain, ours))


def _block(query: "SampleQuery", left: "Ranking", right: "Ranking", width: int) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"[bold]“{query.text}”[/]",
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        header_style="dim",
    )
    for name in ("topical only", "CoDeR"):
        table.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    for i in range(_SHOWN):
        table.add_row(*(_cell(query, ranking, i, width) for ranking in (left, right)))
    return table


def _cell(query: "SampleQuery", ranking: "Ranking", i: int, width: int) -> str:
    from rich.markup import escape

    if i >= len(ranking):
        return ""
    hit = ranking[i]
    mark, style = "·", "dim"
    if hit.doc_id in query.violating:
        mark, style = "✗", "red"
    elif hit.doc_id in query.satisfying:
        mark, style = "✓", "green"
    text = " ".join(hit.text.split())
    short = text if len(text) <= width - 4 else text[: width - 5] + "…"
    return f"[{style}]{mark} {escape(short)}[/]"


def _summary(queries: "list[SampleQuery]", plain: "list[Ranking]", ours: "list[Ranking]") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    for name in (f"of {len(queries)} queries", "topical only", "CoDeR"):
        table.add_column(name, justify="left" if name.startswith("of") else "right")
    hits = f"of all {_SHOWN * len(queries)} hits, those that"
    for words, label, first in (
        ("first hit breaks the constraint", "violating", 1),
        (f"{hits} break it", "violating", _SHOWN),
        (f"{hits} keep to it", "satisfying", _SHOWN),
    ):
        counts = [
            sum(
                hit.doc_id in getattr(query, label)
                for query, ranking in zip(queries, rankings, strict=True)
                for hit in ranking[:first]
            )
            for rankings in (plain, ours)
        ]
        table.add_row(words, *map(str, counts))
    return table


def _next_steps(keep: Path | None) -> None:
    program = "coder-ir" if shutil.which("coder-ir") else sys.argv[0]
    folder = keep or Path("demo-index")
    lines = ["\nWhat to type next:"]
    if keep is None:
        lines.append(f"  {program} demo --keep {folder}")
    lines += [
        f'  {program} search {folder} "snack without nuts" -k 3 --explain',
        f"  {program} index my-index corpus.jsonl      # your own documents: jsonl, CSV, .txt, .md",
        f"  {program} demo --page      # the same in a browser; needs the extra serve",
    ]
    typer.echo("\n".join(lines))
