"""serve: an index over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from coder_ir.cli.search import Exact, Hybrid, Index, Model, Verifier


def serve(
    index: Index,
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; another than this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes one that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with lines read=TOKEN and write=TOKEN. Also: CODER_IR_READ_TOKEN and "
            "CODER_IR_WRITE_TOKEN in the environment."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Never write to the index.")
    ] = False,
    hybrid: Hybrid = False,
    exact: Exact = False,
    example: Annotated[
        list[str] | None, typer.Option(help="Query that the page offers; may be repeated.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="What requests may ask for, as in k=500 or timeout=10; may be repeated. Names "
            "and defaults: docs/http.md, and GET /v1/index.",
        ),
    ] = None,
    model: Model = None,
    verifier: Verifier = None,
    threads: Annotated[
        int,
        typer.Option(
            help="CPU threads of one search or write; 0 takes all. Searches run side by side, so "
            "more make one faster, not many.",
            min=0,
        ),
    ] = 1,
) -> None:
    """Serve an index over HTTP, until SIGINT or SIGTERM; accepted requests are finished.

    A browser finds a page at the address, a program the description at /openapi.json.

    An index that another server already writes is served read-only.

    Example: coder-ir serve my-index --port 8000

    Example: coder-ir serve my-index --host 0.0.0.0 --token-file tokens.txt
    """
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.serve import ServeSettings, check_extra, load_tokens
    from coder_ir.serve.auth import check_address
    from coder_ir.serve.limits import limits_from
    from coder_ir.serve.locking import opened
    from coder_ir.serve.running import run

    check_extra()
    tokens = load_tokens(token_file)
    check_address(host, tokens)
    limits = limits_from(limit or [])
    runtime = Runtime(threads=threads)
    with opened(
        index,
        model=model,
        runtime=runtime,
        hybrid=hybrid,
        exact=exact,
        read_only=read_only,
        verifier=verifier,
    ) as (retriever, reason):
        settings = ServeSettings(tokens, limits, reason, examples=example or ())
        run(retriever, settings, host=host, port=port)
