"""info: what an index holds and how it is searched."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from coder_ir.cli.search import Index

if TYPE_CHECKING:
    from coder_ir.stores import IndexInfo


def info(
    index: Index,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Describe an index in a folder: size, model, exact or approximate search and its recall.

    Example: coder-ir info my-index
    """
    from coder_ir.errors import InvalidValue
    from coder_ir.stores import SqliteStore, index_folder, shown

    folder = index_folder(index)
    if folder is None:
        raise InvalidValue(f"info describes an index in a folder, and {shown(index)} is none")
    store = SqliteStore(folder, read_only=True)
    try:
        found = store.info()
    finally:
        store.close()
    typer.echo(json.dumps(asdict(found)) if as_json else "\n".join(_lines(found)))


def _lines(found: "IndexInfo") -> list[str]:
    model = "none yet" if found.model is None else f"{found.model} ({found.fingerprint:.12})"
    rows = {
        "documents": f"{found.documents:,}",
        "passages": f"{found.passages:,}",
        "model": model,
        "on disk": f"{found.bytes / 1e6:,.1f} MB",
        "search": found.search if found.kind is None else f"{found.search} ({found.kind})",
    }
    if found.recall is not None:
        measured = ", ".join(f"{space} {value:.3f}" for space, value in found.recall.items())
        rows["recall@100"] = f"{measured}, when it was built"
        read = ", ".join(f"{space} {count}" for space, count in (found.width or {}).items())
        rows["width"] = f"{read} rows looked at for one that is wanted"
        rows["tail"] = f"{found.tail:,} newer passages, searched exactly"
        rows["deleted"] = f"{found.deleted:,} passages that are passed over"
    return [f"{name:<11}{value}" for name, value in rows.items()]
