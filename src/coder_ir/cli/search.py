"""index, search, run and model info."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coder_ir.cli.parse import as_row, marked, summary
from coder_ir.cli.talk import progress_bar, say

if TYPE_CHECKING:
    from coder_ir import Ranking, SearchOptions
    from coder_ir.types import Policy

Index = Annotated[str, typer.Argument(help="Folder or address of the index.", metavar="INDEX")]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model folder, or TOPICAL+COMPATIBILITY by name or folder. Default: the index's own."
    ),
]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 takes all.", min=0)]
MaxLength = Annotated[int | None, typer.Option(help="Token limit; default: the model's own.")]
K = Annotated[int, typer.Option("-k", help="Number of hits.")]
PolicyName = Annotated[
    str, typer.Option("--policy", help="auto, topical, compatibility, seq or union.")
]
Pool = Annotated[int, typer.Option(help="Documents each space brings to the pool.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="Metadata condition: field=value, field<3, field>3, 'field in a,b'. Repeatable."
    ),
]
Exclude = Annotated[list[str] | None, typer.Option(help="What no hit should be about. Repeatable.")]
Require = Annotated[
    list[str] | None, typer.Option(help="What every hit should be about. Repeatable.")
]
Hard = Annotated[
    bool,
    typer.Option("--hard", help="Drop what affirms an excluded phrase or lacks a required one."),
]
MaxRisk = Annotated[float, typer.Option(help="Drop hits whose risk is above this.")]
Verify = Annotated[
    int | None,
    typer.Option(
        help="First hits that the verifier reads, at most. Default: 20 where the query states a "
        "constraint; without one near-duplicates alone. 0: none."
    ),
]
Verifier = Annotated[
    str | None,
    typer.Option(help="Folder with a cross-encoder to read hits with. Default: the built-in one."),
]
Alpha = Annotated[float | None, typer.Option(help="Weight of the topical side (seq, union).")]
Tau = Annotated[float | None, typer.Option(help="Least compatibility (seq).")]
Hybrid = Annotated[
    bool, typer.Option("--hybrid", help="Find by words (BM25) as well as by vectors.")
]
Exact = Annotated[bool, typer.Option("--exact", help="Look at every passage of a large index too.")]
Quantile = Annotated[
    float | None, typer.Option("--quantile", "-p", help="Quantile of the cut (union).")
]


def index(
    index: Index,
    docs: Annotated[
        list[str],
        typer.Argument(help="Files, folders, or - for jsonl on stdin.", metavar="DOCS..."),
    ],
    *,
    id_field: Annotated[str | None, typer.Option("--id", help="Field or column of the id.")] = None,
    text_field: Annotated[
        str, typer.Option("--text", help="Field or column of the text.")
    ] = "text",
    title_field: Annotated[
        str, typer.Option("--title", help="Field or column of the title.")
    ] = "title",
    split: Annotated[
        bool, typer.Option("--split/--no-split", help="Cut long texts into passages, or truncate.")
    ] = True,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Count words too, for `search --hybrid`.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Spread the work with Ray, into a server: `local`, or nothing, starts it here, "
            "`auto` or HOST:PORT joins a cluster; DOCS are .jsonl or .parquet files, folders "
            "or URLs.",
            metavar="[ADDRESS]",
        ),
    ] = None,
    model: Model = None,
    threads: Threads = 0,
    max_length: MaxLength = None,
) -> None:
    """Add or update documents: jsonl (BEIR), CSV, TSV, folders of .txt and .md.

    Interrupted at any point and run again, it goes on where it stopped.

    Example: coder-ir index my-index corpus.jsonl
    """
    from coder_ir.cli.spread import Spread, spread
    from coder_ir.datasets.documents import Columns, check_sources, count_documents, read_documents
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.lexical import LEXICAL
    from coder_ir.retriever import Retriever
    from coder_ir.stores import index_folder, settle, shown

    runtime = Runtime(threads=threads, max_length=max_length)
    columns = Columns(id_field, text_field, title_field)
    if ray is not None:
        spread(Spread(index, docs, model, runtime, columns, split, ray), hybrid=hybrid)
        return
    check_sources(docs)
    folder = index_folder(index)
    # Words counted before are kept up to date.
    counted = folder is not None and (folder / LEXICAL).is_dir()
    with Retriever.open(index, model=model, runtime=runtime, hybrid=hybrid or counted) as retriever:
        documents = read_documents(docs, columns)
        retriever.settles = False  # after the bar, and with a word
        try:
            with progress_bar("indexing", count_documents(docs)) as done:
                added = retriever.add(documents, split=split, progress=done)
        except KeyboardInterrupt:
            say(f"stopped: {len(retriever)} documents are in {shown(index)}; run it again to go on")
            raise typer.Exit(1) from None
        if retriever.lexical:
            retriever.lexical.refresh()
        settle(retriever.store, begin=lambda: say("building the approximate index"))
        say(
            f"{shown(index)}: {added.written} documents written, {added.unchanged} unchanged, "
            f"{len(retriever)} in all"
        )


def search(
    index: Index,
    query: Annotated[str, typer.Argument(help="What to look for, constraints included.")],
    *,
    k: K = 10,
    policy: PolicyName = "",
    pool: Pool = 100,
    where: Where = None,
    exclude: Exclude = None,
    require: Require = None,
    hard: Hard = False,
    max_risk: MaxRisk = 1.0,
    verify: Verify = None,
    alpha: Alpha = None,
    tau: Tau = None,
    quantile: Quantile = None,
    hybrid: Hybrid = False,
    exact: Exact = False,
    explain: Annotated[bool, typer.Option(help="Say why, and what was filtered.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a hit.")] = False,
    model: Model = None,
    verifier: Verifier = None,
    threads: Threads = 0,
) -> None:
    """Search an index.

    Example: coder-ir search my-index "a quiet hotel, nothing near nightlife" -k 5 --explain

    A query that starts with - goes behind --: coder-ir search my-index -- "-pool hotel"
    """
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.retriever import Retriever

    chosen = policy_option(policy, alpha, tau, quantile)
    options = search_options(k, chosen, pool, where, exclude, require, hard=hard)
    options = replace(options, max_risk=max_risk, verify=verify, explain=explain)
    runtime = Runtime(threads=threads)
    with Retriever.open(
        index,
        model=model,
        read_only=True,
        runtime=runtime,
        hybrid=hybrid,
        exact=exact,
        verifier=verifier,
    ) as retriever:
        ranking = retriever.search_many([query], options)[0]
        if as_json:
            _print_json(ranking, explain=explain)
        elif ranking or ranking.filtered:
            _print_table(ranking, explain=explain)
        else:
            say(_nothing(len(retriever), where))


def model_info(
    model: Annotated[str, typer.Argument(help="Model folder.")] = "built-in",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The whole description as JSON.")] = False,
) -> None:
    """Describe a model folder and check its files.

    Example: coder-ir model info
    """
    from coder_ir.encoders.folder import Manifest
    from coder_ir.encoders.registry import BUILT_IN, built_in_folder

    folder = built_in_folder() if model == BUILT_IN else Path(model)
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    if as_json:
        typer.echo(json.dumps({**asdict(manifest), "fingerprint": manifest.fingerprint}))
        return
    typer.echo(f"{manifest.name}  ({manifest.licence})\nfingerprint {manifest.fingerprint[:16]}")
    for space in ("topical", "compatibility"):
        role = manifest.role(space)
        typer.echo(
            f"{space:14} {role.graph}:{role.output}, {role.pooling} pooling, {role.dimensions} "
            f"dimensions, {role.max_length} tokens\n{'':14} query prefix {role.query_prefix!r}"
        )
    for name, digest in manifest.sha256.items():
        size = (folder / name).stat().st_size / 1e6
        typer.echo(f"{name:14} {size:6.1f} MB  sha256 {digest[:16]} ok")


def policy_option(
    name: str, alpha: float | None, tau: float | None, quantile: float | None
) -> "Policy":
    """A named policy, its settings changed where options say so."""
    from coder_ir.policies import policy_with
    from coder_ir.searching import DEFAULT_POLICY

    return policy_with(name or DEFAULT_POLICY, alpha=alpha, tau=tau, p=quantile)


def search_options(
    k: int,
    policy: "str | Policy",
    pool: int,
    where: list[str] | None,
    exclude: list[str] | None,
    require: list[str] | None,
    *,
    hard: bool,
) -> "SearchOptions":
    """What both commands share, with name and conditions looked up before a model is loaded."""
    from coder_ir.searching import SearchOptions

    options = SearchOptions(
        k=k,
        policy=policy,
        n=pool,
        where=tuple(where or ()),
        exclude=tuple(exclude or ()),
        require=tuple(require or ()),
        mode="hard" if hard else "soft",
    )
    return replace(options, policy=options.chosen_policy, where=options.conditions)


def _nothing(documents: int, where: list[str] | None) -> str:
    if not documents:
        return "the index holds no documents yet; add some with: coder-ir index INDEX DOCS"
    return f"no document meets {' and '.join(where or [])}" if where else "nothing found"


def _print_json(ranking: "Ranking", *, explain: bool) -> None:
    if explain:
        read = {"constraint": as_row(ranking.query, ranking.constraint)}
        typer.echo(json.dumps(read, ensure_ascii=False))
    for hit in ranking:
        row = {
            "rank": hit.rank,
            "doc_id": hit.doc_id,
            "score": hit.score,
            "topical": hit.topical,
            "compatibility": hit.compatibility,
            "risk": hit.risk,
            "text": hit.text,
            "title": hit.title,
            "metadata": dict(hit.metadata),
            "passage": {
                "number": hit.passage.number,
                "start": hit.passage.span.start,
                "end": hit.passage.span.end,
            },
            "reason": hit.reason,
            "scoring": hit.scoring,
            "reading": asdict(hit.reading) if hit.reading else None,
        }
        if explain:
            row["decisive"] = hit.decisive
        typer.echo(json.dumps(row, ensure_ascii=False))
    for gone in ranking.filtered if explain else ():
        row = {
            "filtered": True,
            "doc_id": gone.doc_id,
            "score": gone.score,
            "topical": gone.topical,
            "compatibility": gone.compatibility,
            "risk": gone.risk,
            "reason": gone.reason,
        }
        typer.echo(json.dumps(row, ensure_ascii=False))


def _print_table(ranking: "Ranking", *, explain: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if explain:
        console.print(marked(ranking.query, ranking.constraint))
        console.print(f"[dim]{escape(summary(ranking.constraint))}[/]\n")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "score", "topical", "compat.", "risk"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(f"hits by {ranking.policy}", overflow="fold")
    for hit in ranking:
        shown = escape(_shortened(hit.passage_text))
        part = f" [dim]passage {hit.passage.number + 1}[/]" if hit.passage.number else ""
        words = f"[bold]{escape(hit.doc_id)}[/]{part}  {shown}"
        words += f"\n[dim]{escape(hit.reason)}[/]"
        if explain:
            if hit.scoring != hit.reason:
                words += f"\n[dim]{escape(hit.scoring)}[/]"
            if hit.decisive and hit.reading is None:
                words += f"\n[dim]Decided by: “{escape(_shortened(hit.decisive))}”[/]"
        scores = (f"{value:.3f}" for value in (hit.score, hit.topical, hit.compatibility))
        risk = "" if hit.risk is None else f"{hit.risk:.2f}"
        table.add_row(str(hit.rank), *scores, risk, words)
    console.print(table)
    if ranking.filtered:
        why = "" if explain else "; --explain says why"
        console.print(f"\n[dim]Filtered: {len(ranking.filtered)}{why}.[/]")
    for gone in ranking.filtered[:10] if explain else ():
        console.print(f"  [red]✗[/] [bold]{escape(gone.doc_id)}[/]  [dim]{escape(gone.reason)}[/]")
    if explain and len(ranking.filtered) > 10:
        console.print(f"  [dim]and {len(ranking.filtered) - 10} more (all with --json)[/]")


def _shortened(text: str, width: int = 220) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
