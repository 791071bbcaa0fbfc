"""What the commands share in talking: messages and bars on stderr, results on stdout."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


def say(message: str) -> None:
    """A line for the person, never part of a result."""
    typer.echo(message, err=True)


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr; the value is called with the number of items done."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
