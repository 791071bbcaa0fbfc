"""Errors as a caller over HTTP sees them: one shape, whatever went wrong."""

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coder_ir.errors import (
    AccessDenied,
    Busy,
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    ModelMismatch,
    NotFound,
    StoreError,
    TimedOut,
    TooLarge,
    UploadStopped,
)

_SCHEMA = "Compare the request with the description at /openapi.json."


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong and what to do about it."""

    status: int
    code: str  # one word for programs
    message: str
    advice: str
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def body(self, request_id: str) -> bytes:
        """The answer's JSON, in ASCII, for what is quoted may be no text."""
        error: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "advice": self.advice,
            "request_id": request_id,
        }
        if self.details:
            error["details"] = dict(self.details)
        return json.dumps({"error": error}).encode()


INTERNAL = Problem(
    500,
    "internal",
    "the server failed in a way that nobody foresaw",
    "Report it with the request id, under which the server's log says where.",
)
# The first kind that fits counts.
_KINDS: tuple[tuple[type[CoderError], int, str, str], ...] = (
    (TooLarge, 413, "too_large", "Send less at a time; GET /v1/index names the limits."),
    (InvalidValue, 422, "invalid_value", _SCHEMA),
    (
        InvalidFile,
        422,
        "invalid_line",
        "A line is one JSON object with _id and text and, if you like, title and metadata. Correct "
        "the line and send the rest; what is already there costs nothing.",
    ),
    (DuplicateId, 422, "duplicate_id", "Name each document once a request."),
    (NotFound, 404, "not_found", "Check the id; ids are case-sensitive and percent-encoded."),
    (AccessDenied, 403, "forbidden", "Use the server that may write."),
    (Busy, 503, "busy", "Ask again after the seconds that Retry-After names."),
    (TimedOut, 504, "timed_out", "Ask for less (k, n, explain, verify), or again later."),
    (
        ModelMismatch,
        503,
        "model_mismatch",
        "The index was rebuilt with another model; restart the server.",
    ),
    (StoreError, 503, "store_refused", "Ask again later; the server's log names the cause."),
)
_STORE = "the index cannot be read or written at the moment"


def problem_of(error: CoderError) -> Problem:
    """How an error of this package is answered."""
    if isinstance(error, UploadStopped):
        counts = {"line": error.line, "written": error.written, "unchanged": error.unchanged}
        problem = problem_of(error.cause)
        message = (
            f"line {error.line}: {problem.message}; {error.written} documents before it were "
            f"written, {error.unchanged} were unchanged"
        )
        return replace(problem, message=message, details=counts)
    for kind, status, code, advice in _KINDS:
        if isinstance(error, kind):
            # A store's message names files of this machine, which is for its log.
            message = _STORE if kind is StoreError else str(error)
            headers = {"retry-after": str(error.retry_after)} if isinstance(error, Busy) else {}
            return Problem(status, code, message, advice, headers)
    return INTERNAL


def problem_of_input(errors: list[Any]) -> Problem:
    """The first thing that is wrong with a body, and how many more are."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"]) or "body"
    message = f"{place}: {first['msg']}"
    if first["type"] != "json_invalid" and "input" in first:
        message += f", got {reprlib.repr(first['input'])}"
    if len(errors) > 1:
        message += f" (and {len(errors) - 1} more)"
    return Problem(422, "invalid_input", message, _SCHEMA)


def problem_of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """What the router itself refuses."""
    known = {
        400: (422, "invalid_input", "the body cannot be read as JSON", _SCHEMA),
        404: (404, "not_found", "nothing is served at this path", _SCHEMA),
        405: (405, "method_not_allowed", "this path does not answer this method", _SCHEMA),
    }
    if status not in known:
        return INTERNAL
    code, name, message, advice = known[status]
    return Problem(code, name, message, advice, dict(headers or {}))


def unauthorised() -> Problem:
    """No token, or one that nobody knows."""
    return Problem(
        401,
        "unauthorised",
        "this server asks for a token, and none that it knows was sent",
        "Send the header Authorization: Bearer TOKEN.",
        {"www-authenticate": "Bearer"},
    )


def forbidden(message: str, advice: str) -> Problem:
    """A caller that is known but may not do this."""
    return Problem(403, "forbidden", message, advice)


def unsupported(wanted: str) -> Problem:
    """A body of another kind than the path reads."""
    return Problem(
        415,
        "unsupported_media_type",
        f"this path reads {wanted}",
        f"Send the header Content-Type: {wanted}.",
    )
