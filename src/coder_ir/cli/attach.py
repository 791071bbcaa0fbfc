"""attach: compatibility vectors beside a collection of the user's own."""

from contextlib import closing
from typing import Annotated

import typer

from coder_ir.cli.search import MaxLength, Threads
from coder_ir.cli.talk import progress_bar, say


def attach(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder with vectors.npy and ids.txt or ids.json, "
            "postgresql://…?table=TABLE&id=COLUMN&text=COLUMN&vector=COLUMN, or "
            "milvus://HOST:PORT/COLLECTION?text=FIELD&vector=FIELD.",
            metavar="SOURCE",
        ),
    ],
    *,
    texts: Annotated[
        str | None,
        typer.Option(help="Texts by id, as jsonl, of a folder. Default: its texts.jsonl."),
    ] = None,
    id_field: Annotated[str | None, typer.Option("--id", help="Field of the id in it.")] = None,
    text_field: Annotated[
        str | None, typer.Option("--text", help="Field of the text in it.  [default: text]")
    ] = None,
    title_field: Annotated[
        str | None, typer.Option("--title", help="Field of the title in it.  [default: title]")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model folder, or a compatibility encoder by name. Default: as attached, or "
            "built-in."
        ),
    ] = None,
    threads: Threads = 0,
    max_length: MaxLength = None,
) -> None:
    """Add compatibility vectors to a collection that has topical vectors of your own.

    What is there is only read; the vectors go beside it. Interrupted at any point and run again,
    it goes on where it stopped; run later, it does what is new, changed or gone.

    Example: coder-ir attach my-vectors --texts docs.jsonl
    """
    from coder_ir.attached import attach as fill
    from coder_ir.attached import open_source
    from coder_ir.datasets.documents import Columns
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.encoders.registry import BUILT_IN, load_space

    named = id_field or text_field or title_field
    columns = Columns(id_field, text_field or "text", title_field or "title") if named else None
    runtime = Runtime(threads=threads, max_length=max_length)
    with closing(open_source(source, texts=texts, columns=columns)) as opened:
        stamp = opened.stamp()
        spec = model or (stamp.spec if stamp else BUILT_IN)
        encoder, chosen = load_space(spec, "compatibility", runtime=runtime)
        try:
            with progress_bar("attaching", opened.count()) as done:
                found = fill(opened, encoder, spec=chosen.spec, progress=done)
        except KeyboardInterrupt:
            say(f"stopped; what was encoded is kept beside {opened.place}; run it again to go on")
            raise typer.Exit(1) from None
        say(
            f"{opened.place}: {found.encoded} encoded, {found.unchanged} unchanged, "
            f"{found.removed} removed"
        )
        if found.cut:
            say(
                f"{found.cut} texts are longer than the {encoder.max_length} tokens the model "
                "reads; their beginning was encoded"
            )
