"""The paths: arguments in, one call, answer."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from coder_ir.errors import InvalidValue, NotFound
from coder_ir.serve.gate import BATCH, DOCUMENTS, JSON, LINES, POOL, SEARCH
from coder_ir.serve.metrics import CONTENT_TYPE
from coder_ir.serve.pool import PoolOut
from coder_ir.serve.schemas import (
    EXAMPLE,
    FILTERED,
    AddedOut,
    BatchIn,
    BatchOut,
    DeletedOut,
    DocumentOut,
    ErrorOut,
    IndexOut,
    PoolIn,
    SearchIn,
    SearchOut,
    StatusOut,
)
from coder_ir.serve.service import Service

ANY = "anything"  # name of the path converter whose values may hold slashes and line ends
Split = Annotated[bool, Query(description="Cut long texts into passages, or truncate them.")]
_BEARER = Security(HTTPBearer(auto_error=False, description="The read or the write token."))
_REFUSALS = {
    401: "No token that the server knows",
    403: "The token, or the server, reads only",
    404: "No such document or path",
    413: "Larger than the server's limits",
    415: "A body of another kind",
    422: "The input cannot be used",
    500: "The server failed",
    503: "Too much waits, and Retry-After says when to come back; or the index cannot be used",
    504: "It took too long",
}
_LINES_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            LINES: {
                "schema": {"type": "string", "format": "binary"},
                "example": '{"_id": "d1", "text": "Back rooms are silent.", "title": "", '
                '"metadata": {"stars": 4}}\n{"_id": "d2", "text": "Club downstairs until 4."}\n',
            }
        },
    }
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a path may refuse, for its description."""
    return {
        status: {"model": ErrorOut, "description": _REFUSALS[status]}
        for status in (401, 403, *statuses, 500, 503, 504)
    }


def json_answer(value: BaseModel) -> Response:
    """Written by pydantic at once, without a second look at what it has just checked."""
    return Response(value.model_dump_json(), media_type=JSON)


def search_routes(service: Service) -> APIRouter:
    """Paths that search."""
    router = APIRouter(tags=["search"], dependencies=[_BEARER])
    examples: Any = {
        "constraint": {"summary": "A constraint in the query", "value": EXAMPLE},
        "explicit": {"summary": "Constraints beside the query", "value": FILTERED},
    }

    @router.post(SEARCH, response_model=SearchOut, responses=refusals(413, 415, 422))
    async def search(
        wanted: Annotated[SearchIn, Body(openapi_examples=examples)],
    ) -> Response:
        """Search; concurrent searches are encoded together."""
        (answer,) = await service.answers([wanted])
        return json_answer(SearchOut.of(answer))

    @router.post(BATCH, response_model=BatchOut, responses=refusals(413, 415, 422))
    async def search_batch(wanted: BatchIn) -> Response:
        """Several searches in one request; one that cannot be used refuses them all."""
        most = service.settings.limits.batch
        if len(wanted.searches) > most:
            raise InvalidValue(
                f"a batch is limited to {most} searches on this server, got {len(wanted.searches)}"
            )
        answers = await service.answers(wanted.searches)

        def written() -> Response:
            return json_answer(BatchOut(results=[SearchOut.of(answer) for answer in answers]))

        return await service.aside(written)  # it may be megabytes, and others want to be heard

    @router.post(POOL, response_model=PoolOut, responses=refusals(413, 415, 422))
    async def pool(wanted: PoolIn) -> Response:
        """Candidates with every score, for a caller that ranks them itself; the page does."""
        found = await service.pool(wanted)
        return await service.aside(lambda: json_answer(found))

    return router


def document_routes(service: Service) -> APIRouter:
    """Paths that read and change documents."""
    router = APIRouter(tags=["documents"], dependencies=[_BEARER])

    @router.put(
        DOCUMENTS,
        response_model=AddedOut,
        responses=refusals(413, 415, 422),
        openapi_extra=_LINES_BODY,
    )
    async def put_documents(request: Request, split: Split = True) -> Response:
        """Add or update documents, a JSON object a line; committed as they come.

        A bad line ends it with an error whose details name the line and what was committed before.
        """
        added = await service.upload(request.stream(), split=split)
        return json_answer(AddedOut(written=added.written, unchanged=added.unchanged))

    one = f"{DOCUMENTS}/{{doc_id:{ANY}}}"

    @router.get(one, response_model=DocumentOut, responses=refusals(404, 422))
    async def get_document(doc_id: str) -> Response:
        """A document by its id, which may hold any characters, percent-encoded."""
        try:
            document = await service.aside(lambda: service.retriever.get(doc_id))
        except NotFound as error:
            raise _absent(doc_id) from error
        return json_answer(DocumentOut.of(document))

    @router.delete(one, response_model=DeletedOut, responses=refusals(404, 422))
    async def delete_document(doc_id: str) -> Response:
        """Remove a document; committed before the answer."""
        deleted = await service.delete(doc_id)
        if not deleted:
            raise _absent(doc_id)
        return json_answer(DeletedOut(deleted=deleted))

    return router


def status_routes(service: Service) -> APIRouter:
    """Paths that tell how the server is."""
    router = APIRouter(tags=["status"])

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz", response_model=StatusOut)
    async def healthz() -> Response:
        """The process runs."""
        return json_answer(StatusOut(status="ok"))

    @router.head("/readyz", include_in_schema=False)
    @router.get("/readyz", response_model=StatusOut, responses={503: {"model": ErrorOut}})
    async def readyz() -> Response:
        """The index can be read and its vectors are in memory."""
        await service.aside(lambda: len(service.retriever))
        return json_answer(StatusOut(status="ready"))

    @router.get("/v1/index", response_model=IndexOut, responses=refusals(), dependencies=[_BEARER])
    async def index() -> Response:
        """Number of documents, model and settings."""
        return json_answer(await service.aside(service.described))

    @router.get("/metrics", response_class=Response, responses=refusals(), dependencies=[_BEARER])
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        page = await service.aside(service.metrics.page)
        return Response(page, headers={"content-type": CONTENT_TYPE})

    return router


def _absent(doc_id: str) -> NotFound:
    return NotFound(f"no document {doc_id!r} in this index")
