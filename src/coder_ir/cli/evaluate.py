"""eval: measures of any retriever's run."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coder_ir.cli.talk import say
from coder_ir.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from coder_ir.metrics import Measure
    from coder_ir.metrics.report import RunReport
    from coder_ir.types import Qrels

_CURVE = 20  # ranks of a survival curve
_STDIN = Path("-")


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(help="Run files, then the judgements; - is stdin.", metavar="RUN... QRELS"),
    ],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--metric", help="V@k, FVR@k, Survival@k, nDCG@k, AP@k, R@k, RR@k. Repeatable."
        ),
    ] = None,
    per_query: Annotated[bool, typer.Option(help="A line for each query, not the means.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a run.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw violation survival curves into this PNG.")
    ] = None,
) -> None:
    """Score runs of any retriever: violations beside nDCG, recall and precision.

    Runs: TREC, MS MARCO TSV, jsonl, or JSON as ranx writes it. Judgements: TREC, BEIR TSV, or the
    words satisfying, neutral, violating. The first run is the one the others are tested against.

    Example: coder-ir eval bm25.trec mine.trec qrels.tsv -m V@1 -m FVR@10 -m nDCG@10
    """
    from coder_ir.datasets.qrels import load_qrels
    from coder_ir.datasets.runs import load_run
    from coder_ir.metrics import DEFAULT, measure_named
    from coder_ir.metrics.report import report_runs

    if len(files) < 2:
        raise InvalidValue("eval needs at least one run and, last, the judgements")
    if as_json and as_csv:
        raise InvalidValue("choose one of --json and --csv")
    *paths, judged = files
    if len(set(paths)) < len(paths) or files.count(_STDIN) > 1:
        raise InvalidValue("a run file is named twice, or stdin is")
    if plot and not plot.parent.is_dir():
        raise NotFound(f"no folder {plot.parent} to write {plot.name} into")
    measures = list({m.name: m for m in map(measure_named, metric or DEFAULT)}.values())
    depth = max([measure.k for measure in measures] + [_CURVE] * (plot is not None))
    with _as_file() as on_disk:
        qrels = load_qrels(on_disk(judged))
        runs = {_name(path, paths): load_run(on_disk(path), depth=depth) for path in paths}
    reports = report_runs(runs, qrels, measures)
    _warn(reports, qrels, measures)
    if plot:
        _plot(runs, qrels, plot)
    if as_json:
        _print_json(reports, per_query=per_query)
    elif as_csv:
        _print_csv(reports, measures, per_query=per_query)
    else:
        _print_table(reports, measures, per_query=per_query)


@contextmanager
def _as_file() -> Iterator[Callable[[Path], Path]]:
    """Gives each path as it is, and for - a file with what stdin holds."""
    with tempfile.TemporaryDirectory() as folder:

        def on_disk(path: Path) -> Path:
            if path != _STDIN:
                return path
            copy = Path(folder) / "stdin"  # the name that messages show
            with copy.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return copy

        yield on_disk


def _name(path: Path, paths: Sequence[Path]) -> str:
    """The file's name, or its path where two runs share one."""
    if path == _STDIN:
        return "stdin"
    return path.name if sum(other.name == path.name for other in paths) == 1 else str(path)


def _warn(reports: Sequence[RunReport], qrels: Qrels, measures: Sequence[Measure]) -> None:
    for report in reports:
        missing = len(qrels) - report.answered
        if missing:
            say(f"{report.name}: {missing} of {len(qrels)} judged queries have no documents")
        if report.surplus:
            say(f"{report.name}: {report.surplus} queries are not judged and were left out")
    violating = any(grade < 0 for own in qrels.grades.values() for grade in own.values())
    named = [m.name for m in measures if m.of_violations]
    if named and not violating:
        say(f"no document is judged violating (grade below 0), so {named[0]} says nothing here")


def _plot(runs: Mapping[str, Mapping[str, Sequence[str]]], qrels: Qrels, path: Path) -> None:
    from coder_ir.experiments.figures import draw_survival
    from coder_ir.metrics import first_violation_at
    from coder_ir.metrics import per_query as values_of

    curves = {}
    for name, run in runs.items():
        first = values_of(lambda r, g: first_violation_at(r, g, k=_CURVE), run, qrels).values()
        curves[name] = [sum(rank > k for rank in first) / len(qrels) for k in range(1, _CURVE + 1)]
    draw_survival(curves, path)
    say(f"survival curves: {path}")


def _print_json(reports: Sequence[RunReport], *, per_query: bool) -> None:
    for report in reports:
        for line in _query_lines(report) if per_query else [_run_line(report)]:
            typer.echo(json.dumps(line, ensure_ascii=False))


def _query_lines(report: RunReport) -> Iterator[dict[str, Any]]:
    for query_id in next(iter(report.values.values())):
        values = {measure: own[query_id] for measure, own in report.values.items()}
        yield {"run": report.name, "query_id": query_id, "metrics": values}


def _run_line(report: RunReport) -> dict[str, Any]:
    judged = next(iter(report.estimates.values())).n
    return {
        "run": report.name,
        "queries": judged,
        "metrics": {m: e.mean for m, e in report.estimates.items()},
        "intervals": {m: [e.low, e.high] for m, e in report.estimates.items()},
        "p_values": dict(report.p_values),
        "unanswered": judged - report.answered,
        "not_judged": report.surplus,
    }


def _print_csv(
    reports: Sequence[RunReport], measures: Sequence[Measure], *, per_query: bool
) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = [measure.name for measure in measures]
    if per_query:
        writer.writerow(["run", "query_id", *names])
        for report in reports:
            for query_id in report.values[names[0]]:
                writer.writerow(
                    [report.name, query_id, *(report.values[m][query_id] for m in names)]
                )
        return
    writer.writerow(["run", "queries", *(c for m in names for c in (m, f"{m} low", f"{m} high"))])
    for report in reports:
        found = [report.estimates[m] for m in names]
        cells = [cell for e in found for cell in (e.mean, e.low, e.high)]
        writer.writerow([report.name, found[0].n, *cells])


def _print_table(
    reports: Sequence[RunReport], measures: Sequence[Measure], *, per_query: bool
) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(box=None, header_style="bold", pad_edge=False)
    grid.add_column("run", overflow="fold")
    if per_query:
        grid.add_column("query")
    for measure in measures:
        better = "↑" if measure.higher_is_better else "↓"
        grid.add_column(f"{measure.name} {better}", justify="right")
    for row in _query_rows(reports, measures) if per_query else _run_rows(reports, measures):
        grid.add_row(*row)
    width = None if sys.stdout.isatty() else 200
    Console(width=width, emoji=False, highlight=False).print(grid)
    if not per_query:
        say(_note(reports))


def _query_rows(reports: Sequence[RunReport], measures: Sequence[Measure]) -> Iterator[list[str]]:
    from rich.markup import escape

    for report in reports:
        for query_id in report.values[measures[0].name]:
            cells = (_shown(report.values[m.name][query_id], m) for m in measures)
            yield [escape(report.name), escape(query_id), *cells]


def _run_rows(reports: Sequence[RunReport], measures: Sequence[Measure]) -> Iterator[list[str]]:
    from rich.markup import escape

    from coder_ir.metrics.report import SIGNIFICANT, best_of

    best = {measure.name: best_of(reports, measure) for measure in measures}
    for report in reports:
        row = [escape(report.name)]
        for measure in measures:
            text = _shown(report.estimates[measure.name].mean, measure)
            text += "*" if report.p_values.get(measure.name, 1) < SIGNIFICANT else ""
            bold = len(reports) > 1 and report.name in best[measure.name]
            row.append(f"[bold]{text}[/bold]" if bold else text)
        yield row


def _note(reports: Sequence[RunReport]) -> str:
    from coder_ir.metrics.report import SIGNIFICANT

    judged = next(iter(reports[0].estimates.values())).n
    note = f"{judged} judged queries; rates in percent, FVR in ranks."
    if len(reports) == 1:
        return note
    return (
        f"{note} Best in bold; * differs from {reports[0].name} (paired randomisation test, "
        f"p < {SIGNIFICANT})."
    )


def _shown(value: float, measure: Measure) -> str:
    return f"{100 * value:.1f}" if measure.rate else f"{value:.2f}"
