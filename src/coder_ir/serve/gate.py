"""What every request passes: an id, a token, limits, the log and the last error handler."""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coder_ir.errors import TimedOut, TooLarge
from coder_ir.serve.auth import Access, names_this_machine
from coder_ir.serve.logs import failure_fields, log
from coder_ir.serve.metrics import Metrics
from coder_ir.serve.problems import (
    INTERNAL,
    Problem,
    forbidden,
    problem_of,
    unauthorised,
    unsupported,
)
from coder_ir.serve.settings import ServeSettings

JSON, LINES = "application/json", "application/x-ndjson"
SEARCH, BATCH, POOL, DOCUMENTS = "/v1/search", "/v1/search/batch", "/v1/pool", "/v1/documents"
PAGE, FILES = "/", "/page"
OPEN = ("/healthz", "/readyz", "/openapi.json", PAGE)  # no token needed
_READS = {("POST", path): (JSON,) for path in (SEARCH, BATCH, POOL)}
_WRITES = {("PUT", DOCUMENTS): (LINES, "application/jsonl", "application/jsonlines")}
_BODIES = {**_READS, **_WRITES}
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # The page asks nobody but this server, and runs nothing that did not come in a file of its own.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class _Visit:
    """One request on its way; changes as it goes."""

    request_id: str
    began: float = field(default_factory=time.perf_counter)
    status: int = 0  # 0: nothing was answered yet
    code: str = ""  # of the error, if it was one


class Gate:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, settings: ServeSettings, metrics: Metrics) -> None:
        """Stand before `app`."""
        self.app = app
        self.settings = settings
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = Headers(scope=scope).get("x-request-id", "")
        visit = _Visit(sent if _ID.fullmatch(sent) else uuid.uuid4().hex)
        scope.setdefault("state", {})["visit"] = visit

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = visit.request_id
                headers.update(_HEADERS)
            await send(message)

        self.metrics.in_flight.inc()
        try:
            await self._pass(scope, receive, answer, visit)
        except ClientDisconnect:
            pass  # noted as 499
        except Exception as error:  # the last handler: nothing beyond it would say what happened
            log(
                "request failed",
                level=logging.ERROR,
                request_id=visit.request_id,
                **failure_fields(error),
            )
            if visit.status:
                raise
            await respond(INTERNAL, visit, answer)
        finally:
            self._note(scope, visit)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, visit: _Visit) -> None:
        problem = self._refusal(scope, Headers(scope=scope))
        if problem is None and (scope["method"], scope["path"]) in _READS:
            body = await self._whole_body(receive)
            if isinstance(body, Problem):
                problem = body
            else:
                receive = _replayed(body, receive)
        if problem is None:
            await self.app(scope, receive, send)
        else:
            await respond(problem, visit, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Problem | None:
        method, path = scope["method"], scope["path"]
        changes = method not in ("GET", "HEAD", "OPTIONS") and (method, path) not in _READS
        if not _is_open(path) and (
            problem := self._access("write" if changes else "read", headers)
        ):
            return problem
        if changes and self.settings.read_only and path.startswith(DOCUMENTS):
            return forbidden(
                f"this server is read-only: {self.settings.read_only}",
                "Write through the server that may, or restart this one once it may.",
            )
        if wanted := _BODIES.get((method, path)):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in wanted:
                return unsupported(wanted[0])
            most = self._most_bytes(method)
            length = headers.get("content-length", "")
            if length.isdecimal() and int(length[:20]) > most:
                return problem_of(TooLarge(f"a body may have {most} bytes, this one has {length}"))
        return None

    def _most_bytes(self, method: str) -> int:
        limits = self.settings.limits
        return limits.body_bytes if method == "POST" else limits.upload_bytes

    def _access(self, access: Access, headers: Headers) -> Problem | None:
        tokens = self.settings.tokens
        if not tokens:
            if names_this_machine(headers.get("host", "")):
                return None
            return forbidden(
                "a server without tokens answers only under the names 127.0.0.1, localhost and ::1",
                "Use one of these names, or start the server with a token.",
            )
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        shown = shown.strip() if scheme.lower() == "bearer" else ""
        if not tokens.allows(shown, "read"):
            return unauthorised()
        if tokens.allows(shown, access):
            return None
        why = "reads only" if tokens.write else "reads only, and this server has no token to write"
        return forbidden(f"this token {why}", "Send the token for writing.")

    async def _whole_body(self, receive: Receive) -> bytes | Problem:
        """The body of a search, or why it was not read to its end."""
        limits, body = self.settings.limits, bytearray()
        try:
            async with asyncio.timeout(limits.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        words = f"a body may have {limits.body_bytes} bytes, this one has more"
                        return problem_of(TooLarge(words))
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return problem_of(TimedOut(f"no whole body came within {limits.timeout:g} seconds"))

    def _note(self, scope: Scope, visit: _Visit) -> None:
        """One line of the log and the counts; the path as a template, for an id may be anything."""
        path = getattr(scope.get("route"), "path_format", "unmatched")
        if scope["path"].startswith(f"{FILES}/"):
            path = FILES
        elif scope["path"] in OPEN or (scope["method"], scope["path"]) in _BODIES:
            path = scope["path"]
        status = visit.status or 499  # the caller went away before an answer
        self.metrics.in_flight.dec()
        self.metrics.requested(scope["method"], path, status)
        if visit.code:
            self.metrics.refused(visit.code)
        extra: dict[str, Any] = {"code": visit.code} if visit.code else {}
        log(
            "request",
            request_id=visit.request_id,
            method=scope["method"] if scope["method"].isalpha() else "other",
            path=path,
            status=status,
            milliseconds=round(1000 * (time.perf_counter() - visit.began), 2),
            **extra,
        )


def _is_open(path: str) -> bool:
    """Whether anybody may read it: how the server is, and the page, which holds no document."""
    return path in OPEN or path.startswith(f"{FILES}/")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, and then what comes after it."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def visit_of(state: Mapping[str, Any]) -> _Visit:
    """The way of the request whose state this is."""
    visit: _Visit = state["visit"]
    return visit


async def respond(problem: Problem, visit: _Visit, send: Send) -> None:
    """Answer with the error shape."""
    visit.code = problem.code
    body = problem.body(visit.request_id)
    headers = {"content-type": JSON, "content-length": str(len(body)), **problem.headers}
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
