"""The HTTP service over one index; needs the extra `serve`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from coder_ir.errors import MissingExtra
from coder_ir.serve.auth import Tokens, load_tokens
from coder_ir.serve.limits import Limits
from coder_ir.serve.settings import ServeSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from coder_ir.retriever import Retriever

__all__ = ["Limits", "ServeSettings", "Tokens", "check_extra", "create_app", "load_tokens"]

_PARTS = ("fastapi", "uvicorn", "prometheus_client", "threadpoolctl")


def check_extra() -> None:
    """Refuse to go on without the libraries of the extra."""
    if not all(map(find_spec, _PARTS)):
        raise MissingExtra("The HTTP server", extra="serve")


def create_app(retriever: "Retriever", settings: ServeSettings | None = None) -> "FastAPI":
    """An application over an open retriever, which the caller closes after it."""
    check_extra()
    from coder_ir.serve.app import build

    return build(retriever, settings or ServeSettings())
