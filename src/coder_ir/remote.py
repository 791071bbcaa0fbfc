"""Values of this package as HTTP calls, and a server's answers as values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from coder_ir.errors import (
    AccessDenied,
    Busy,
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    MissingExtra,
    ModelMismatch,
    NotFound,
    ServiceError,
    StoreError,
    TimedOut,
    TooLarge,
)
from coder_ir.intake import Added, check_text
from coder_ir.policies import Auto, CompatibilityOnly, Sequential, TopicalOnly, Union
from coder_ir.searching import SearchOptions
from coder_ir.types import (
    UNSCORED,
    Condition,
    Constraint,
    Document,
    Filtered,
    Hit,
    Mark,
    Passage,
    Policy,
    Ranking,
    Reading,
    Span,
)

if TYPE_CHECKING:
    import httpx

_DOCUMENTS = "/v1/documents"
_LONGEST_PAUSE = 30.0  # seconds
_WRITING = 330.0  # seconds for documents; a server may give a batch of them 300
_ERRORS: dict[str, type[CoderError]] = {
    "too_large": TooLarge,
    "invalid_value": InvalidValue,
    "invalid_input": InvalidValue,
    "unsupported_media_type": InvalidValue,
    "invalid_line": InvalidFile,
    "duplicate_id": DuplicateId,
    "not_found": NotFound,
    "unauthorised": AccessDenied,
    "forbidden": AccessDenied,
    "busy": Busy,
    "timed_out": TimedOut,
    "model_mismatch": ModelMismatch,
    "store_refused": StoreError,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str  # percent-encoded
    sent: dict[str, Any] = field(default_factory=dict)  # what httpx is given beside them


def http(kind: str, url: str, token: str | None, timeout: float) -> Any:
    """An httpx client of this kind for a server."""
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra("The client", extra="client") from error
    if not url.startswith(("http://", "https://")):
        raise InvalidValue(f"a server's url begins with http:// or https://, got {url!r}")
    if token and not all("!" <= character <= "~" for character in token):
        raise InvalidValue("a token is ASCII without spaces; check the one that was given")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        return getattr(httpx, kind)(base_url=url.rstrip("/"), headers=headers, timeout=timeout)
    except httpx.InvalidURL as error:
        raise InvalidValue(f"{url!r} is no address of a server: {error}") from error


def batch_call(queries: Sequence[str], options: SearchOptions) -> Call:
    """Searches under the same options."""
    wanted = {
        **_policy(options.policy),
        "k": options.k,
        "n": options.n,
        "where": [_condition(condition) for condition in options.conditions],
        "exclude": list(options.exclude),
        "require": list(options.require),
        "mode": options.mode,
        "max_risk": options.max_risk,
        "verify": options.verify,
        "explain": options.explain,
    }
    for query in queries:
        check_text(query, "the query")
    searches = [{"query": query, **wanted} for query in queries]
    return Call("POST", "/v1/search/batch", {"json": {"searches": searches}})


def _policy(policy: str | Policy) -> dict[str, Any]:
    """A policy by its name and settings; only those of this package can go over."""
    if isinstance(policy, str):
        return {"policy": policy}
    if isinstance(policy, Sequential):
        return {"policy": "seq", "alpha": policy.alpha, "tau": policy.tau}
    if isinstance(policy, Union):
        return {"policy": "union", "alpha": policy.alpha, "p": policy.p}
    if policy in (Auto(), TopicalOnly(), CompatibilityOnly()):
        return {"policy": policy.name}
    raise InvalidValue(
        f"a server knows auto, topical, compatibility, seq and union, with the settings alpha, tau "
        f"and p; it cannot be sent {policy!r}"
    )


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "field": condition.field,
        "operator": condition.operator,
        "values": list(condition.values),
    }


def put_call(documents: Sequence[Document], *, split: bool) -> Call:
    """Documents as jsonl."""
    rows = (
        {"_id": d.doc_id, "title": d.title, "text": d.text, "metadata": dict(d.metadata)}
        for d in documents
    )
    body = "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows).encode()
    headers = {"content-type": "application/x-ndjson"}
    params = {"split": "true" if split else "false"}
    sent = {"content": body, "headers": headers, "params": params, "timeout": _WRITING}
    return Call("PUT", _DOCUMENTS, sent)


def get_call(doc_id: str) -> Call:
    """One document."""
    return Call("GET", _place(doc_id))


def delete_call(doc_id: str) -> Call:
    """Remove one document."""
    return Call("DELETE", _place(doc_id))


def _place(doc_id: str) -> str:
    check_text(doc_id, "a document id")
    if not doc_id:
        raise NotFound("no document has an empty id")
    # Dots are escaped too: a path of `..` would be taken as a step up.
    return f"{_DOCUMENTS}/{quote(doc_id, safe='').replace('.', '%2E')}"


def rankings_in(
    answer: dict[str, Any], queries: Sequence[str], options: SearchOptions
) -> list[Ranking]:
    """One ranking a query."""
    name = options.chosen_policy.name
    return [
        Ranking(
            query,
            name,
            tuple(_hit(hit) for hit in found["hits"]),
            tuple(_filtered(gone) for gone in found["filtered"]),
            _constraint(found["constraint"]),
        )
        for query, found in zip(queries, answer["results"], strict=True)
    ]


def _hit(row: dict[str, Any]) -> Hit:
    return Hit(
        doc_id=row["doc_id"],
        rank=row["rank"],
        score=_score(row["score"]),
        topical=_score(row["topical"]),
        compatibility=_score(row["compatibility"]),
        risk=row["risk"],
        reason=row["reason"],
        text=row["text"],
        title=row["title"],
        metadata=row["metadata"],
        passage=_passage(row["passage"]),
        decisive=row["decisive"],
        scoring=row["scoring"],
        reading=_reading(row["reading"]),
    )


def _filtered(row: dict[str, Any]) -> Filtered:
    return Filtered(
        doc_id=row["doc_id"],
        score=_score(row["score"]),
        topical=_score(row["topical"]),
        compatibility=_score(row["compatibility"]),
        risk=row["risk"],
        reason=row["reason"],
        passage=_passage(row["passage"]),
    )


def _reading(row: dict[str, Any] | None) -> Reading | None:
    if row is None:
        return None
    span = row["decisive"]
    decisive = None if span is None else Span(span["start"], span["end"])
    return Reading(row["satisfies"], row["violates"], row["silent"], row["risk"], decisive)


def _score(value: float | None) -> float:
    return UNSCORED if value is None else float(value)


def _passage(row: dict[str, int]) -> Passage:
    return Passage(row["number"], Span(row["start"], row["end"]))


def _constraint(row: dict[str, Any]) -> Constraint:
    return Constraint(
        probability=row["probability"],
        excluded=tuple(row["excluded"]),
        required=tuple(row["required"]),
        topic=row["topic"],
        marks=tuple(map(_mark, row["spans"])),
    )


def _mark(row: dict[str, Any]) -> Mark:
    span = Span(row["start"], row["end"])
    return Mark(span, row["role"], row["text"], tuple(row["names"]), row["probability"])


def document_in(answer: dict[str, Any]) -> Document:
    """One document."""
    return Document(**answer)


def added_in(answer: dict[str, int]) -> Added:
    """What an upload did."""
    return Added(**answer)


def answer_in(response: "httpx.Response") -> Any:
    """What a server answered; raises the error that it told of instead."""
    if not response.is_success:
        raise error_in(response)
    try:
        return response.json()
    except ValueError as error:
        raise _stranger(response) from error


def _stranger(response: "httpx.Response") -> ServiceError:
    return ServiceError(
        f"{response.url} answered {response.status_code} and is no coder-ir server; check the "
        "address"
    )


def error_in(response: "httpx.Response") -> CoderError:
    """The error that an answer tells of, in this package's words."""
    try:
        told = response.json()["error"]
        code, message = str(told["code"]), f"{told['message']} ({told['advice']})"
    except (ValueError, KeyError, TypeError):
        return _stranger(response)
    kind = _ERRORS.get(code, ServiceError)
    return kind(f"{message} [request {told.get('request_id')}]")


def unreachable(url: Any, error: Exception) -> CoderError:
    """The error where no answer came."""
    return ServiceError(
        f"no answer from {url} ({type(error).__name__}: {error}); check that the server runs there"
    )


def pause(response: "httpx.Response", attempt: int) -> float:
    """Seconds to wait before asking again: what the server names, then longer each time."""
    named = response.headers.get("retry-after", "")
    least = float(named) if named.isdecimal() else 0.1
    return min(_LONGEST_PAUSE, least * 1.5**attempt)
