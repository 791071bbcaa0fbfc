"""The application, put together."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from coder_ir.errors import CoderError
from coder_ir.retriever import Retriever
from coder_ir.serve.gate import FILES, JSON, PAGE, Gate, visit_of
from coder_ir.serve.logs import failure_fields, log
from coder_ir.serve.problems import (
    Problem,
    problem_of,
    problem_of_input,
    problem_of_status,
)
from coder_ir.serve.routes import ANY, document_routes, search_routes, status_routes
from coder_ir.serve.service import Service
from coder_ir.serve.settings import ServeSettings

_ABOUT = (
    "Search that respects not, without, except and opposite preferences. Every error has one "
    "shape: code, message, advice, request_id."
)

_FILES = Path(__file__).parent / "page"
_ASK_ANEW = {"cache-control": "no-cache"}
_OURS = ("internal", "store_refused", "model_mismatch")  # for whoever runs the server to mend


class Anything(Convertor[str]):
    """The rest of a path, line ends included, which the converter `path` leaves out."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """As it is."""
        return value

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


def build(retriever: Retriever, settings: ServeSettings) -> FastAPI:
    """Routes over one service, behind one gate, with one way to answer errors."""
    register_url_convertor(ANY, Anything())
    service = Service.over(retriever, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.close()

    app = FastAPI(
        title="coder-ir",
        version=service.version,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # both pages would load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Gate, settings=settings, metrics=service.metrics)
    for routes in (search_routes, document_routes, status_routes):
        app.include_router(routes(service))
    app.api_route(PAGE, methods=["GET", "HEAD"], include_in_schema=False)(page)
    app.mount(FILES, Fresh(directory=_FILES), name="page")
    for kind in (CoderError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_error)
    return app


class Fresh(StaticFiles):
    """Files that a browser asks about anew each time: old and new ones do not go together."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        """With the header that says so."""
        response = super().file_response(*args, **options)
        response.headers.update(_ASK_ANEW)
        return response


async def page() -> Response:
    """A search box over the index; all it loads lies under FILES."""
    return FileResponse(_FILES / "index.html", headers=_ASK_ANEW)


async def answer_error(request: Request, error: Exception) -> Response:
    """The one handler; what nobody foresaw goes on to the gate."""
    visit = visit_of(request.scope["state"])
    problem = _problem(error)
    visit.code = problem.code
    if problem.code in _OURS:
        log(
            "request failed",
            level=logging.ERROR,
            request_id=visit.request_id,
            cause=str(error) if problem.code == "store_refused" else "",
            **failure_fields(error),
        )
    return Response(
        problem.body(visit.request_id), problem.status, dict(problem.headers), media_type=JSON
    )


def _problem(error: Exception) -> Problem:
    if isinstance(error, CoderError):
        return problem_of(error)
    if isinstance(error, RequestValidationError):
        return problem_of_input(list(error.errors()))
    if isinstance(error, HTTPException):
        return problem_of_status(error.status_code, error.headers)
    raise error
