"""parse: how a query is understood."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coder_ir.errors import InvalidValue

if TYPE_CHECKING:
    from rich.text import Text

    from coder_ir.types import Constraint

_STYLES = {"excluded": "bold red", "implied": "bold red", "required": "bold green", "cue": "yellow"}


def parse(
    queries: Annotated[
        list[str], typer.Argument(help="Queries; - reads them from stdin, one a line.")
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a query.")] = False,
    model: Annotated[
        str, typer.Option(help="Model folder whose parser reads the queries.")
    ] = "built-in",
) -> None:
    """Show what queries rule out and require, and the topic that is left.

    Example: coder-ir parse "thai noodles, no peanuts" "hotels that don't allow pets"

    A query that starts with - goes behind --: coder-ir parse -- "-pool hotel"
    """
    from coder_ir.encoders.registry import load_encoder
    from coder_ir.intake import check_text
    from coder_ir.query import load_parser

    parser = load_parser(load_encoder(model))
    for query in _asked(queries):
        check_text(query, "the query")
        (constraint,) = parser.parse([query])
        if as_json:
            typer.echo(json.dumps(as_row(query, constraint), ensure_ascii=False))
        else:
            _print(query, constraint)


def _asked(queries: list[str]) -> Iterator[str]:
    for query in queries:
        lines = sys.stdin if query == "-" else [query]
        for line in lines:
            if line.strip():
                yield line.rstrip("\n")
            elif query != "-":
                raise InvalidValue("the query is empty; say what to look for")


def as_row(query: str, constraint: "Constraint") -> dict[str, Any]:
    """A parse as JSON has it."""
    return {
        "query": query,
        "probability": round(constraint.probability, 4),
        "excluded": list(constraint.excluded),
        "required": list(constraint.required),
        "topic": constraint.topic or query,
        "spans": [
            {
                "start": mark.span.start,
                "end": mark.span.end,
                "role": mark.role,
                "text": mark.text,
                "names": list(mark.names),
                "probability": round(mark.probability, 4),
            }
            for mark in constraint.marks
        ],
    }


def marked(query: str, constraint: "Constraint") -> "Text":
    """The query with its marks in colour."""
    from rich.text import Text

    text = Text(query)
    for mark in constraint.marks:
        text.stylize(_STYLES[mark.role], mark.span.start, mark.span.end)
    return text


def summary(constraint: "Constraint") -> str:
    """What the marks say, in words."""
    if not constraint.stated:
        return f"no constraint ({constraint.probability:.2f})"
    parts = [f"constraint {constraint.probability:.2f}"]
    for name, found in (("not", constraint.excluded), ("required", constraint.required)):
        if found:
            parts.append(f"{name}: {', '.join(found)}")
    if constraint.topic:
        parts.append(f"look for: {constraint.topic}")
    return "; ".join(parts)


def _print(query: str, constraint: "Constraint") -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(marked(query, constraint), soft_wrap=True)
    console.print(f"  {summary(constraint)}", style="dim", markup=False, soft_wrap=True)
