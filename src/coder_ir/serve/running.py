"""An application on an address, until it is told to stop."""

import logging
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from coder_ir.errors import InvalidValue, ServiceError
from coder_ir.retriever import Retriever
from coder_ir.serve import create_app
from coder_ir.serve.auth import check_address
from coder_ir.serve.logs import log, log_to_stderr
from coder_ir.serve.settings import ServeSettings

if TYPE_CHECKING:
    import uvicorn


def run(
    retriever: Retriever,
    settings: ServeSettings,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then finish what was accepted.

    Port 0 takes one that is free; the first line of the log names it. `ready` is called with the
    address once it takes connections.
    """
    check_address(host, settings.tokens)
    server = _server(retriever, settings)
    with listen(host, port) as listening:
        log_to_stderr()
        bound = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        if settings.read_only:
            log(f"read-only: {settings.read_only}", level=logging.WARNING)
        log(
            f"serving on http://{shown}:{bound}",
            port=bound,
            documents=len(retriever),
            read_only=bool(settings.read_only),
            tokens=bool(settings.tokens),
        )
        # uvicorn raises the signal anew once it is done; the index is still to be closed.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        if ready:
            ready(f"http://{shown}:{bound}/")
        with one_blas_thread():
            server.run(sockets=[listening])
    if not server.started:
        raise ServiceError("the server could not start; the lines above say why")


def _server(retriever: Retriever, settings: ServeSettings) -> "uvicorn.Server":
    app = create_app(retriever, settings)
    import uvicorn

    from coder_ir.serve.connections import Connection

    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",  # an upgrade would pass the gate by
        timeout_graceful_shutdown=settings.limits.grace,
        timeout_keep_alive=settings.limits.idle,
    )
    return uvicorn.Server(config)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep numpy from waking a thread a core for small products; searches use the cores."""
    from threadpoolctl import threadpool_limits

    return cast(AbstractContextManager[Any], threadpool_limits(1, user_api="blas"))


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address."""
    if not 0 <= port < 2**16:
        raise InvalidValue(f"a port is a number from 0 to 65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ServiceError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port"
        ) from error
    # Connections inherit it. Without it, an answer waits 40 ms for the caller's delayed ACK.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
