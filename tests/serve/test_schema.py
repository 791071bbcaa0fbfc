"""Requests made up from a real server's own description, and what it answers to them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, CheckContext, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from coder_ir import Client, Document, Retriever
from coder_ir.stores import SqliteStore
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.serve.conftest import HOTELS
from tests.serve.fake_server import WORDS
from tests.serve.live import Server, fake_server

pytestmark = pytest.mark.large
SEED = 2026
CASES = 130  # of each operation in each mode: data that fit the description, and data that do not
SPARE = [Document(f"spare-{n}", f"{WORDS[n % 6]} hotel", "", {"stars": n}) for n in range(40)]
NOTHING_TO_GET_WRONG = {"GET /healthz", "GET /readyz"}  # they take neither parameters nor a token
SHAPE = {"code", "message", "advice", "request_id"}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
lines = st.fixed_dictionaries(
    {"_id": st.sampled_from([d.doc_id for d in SPARE]) | st.text(), "text": st.text()},
    optional={"title": st.text(), "metadata": st.dictionaries(st.text(), values | st.text())},
).map(lambda row: json.dumps(row).encode())
bodies = st.lists(lines, max_size=4).map(b"\n".join) | st.lists(lines | st.binary()).map(b"\n".join)
schemathesis.openapi.media_type("application/x-ndjson", bodies)


@dataclass(frozen=True)
class Asked:
    operation: str
    mode: GenerationMode
    changes: bytes  # the id or the body of a request that changes documents
    status: int


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "index"
    with Retriever(FakeEncoder(WORDS), SqliteStore(folder), verifier=FakeVerifier()) as retriever:
        retriever.add([*HOTELS, *SPARE])
    with fake_server(folder) as running:
        yield running


def test_generated_requests_get_documented_answers_and_leave_other_documents_alone(server: Server):
    described = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [found.ok() for found in described.get_all_operations()]
    asked = [
        one for mode in GenerationMode for operation in operations for one in ask(operation, mode)
    ]
    assert len(asked) >= 2000
    labels = {operation.label for operation in operations}
    assert asked_of(asked, GenerationMode.POSITIVE) == labels
    assert asked_of(asked, GenerationMode.NEGATIVE) == labels - NOTHING_TO_GET_WRONG
    assert {one.operation for one in asked if one.status == 200} == labels
    never_named = [d for d in HOTELS if not any(d.doc_id.encode() in one.changes for one in asked)]
    assert never_named
    with Client(server.url) as client:
        assert [client.get(hotel.doc_id) for hotel in never_named] == never_named
        assert len(client.search("hotel", k=1)) == 1
    assert server.stop() == 0
    assert [row for row in server.log if row["level"] != "info"] == []


def asked_of(asked: list[Asked], mode: GenerationMode) -> set[str]:
    return {one.operation for one in asked if one.mode is mode}


def ask(operation: APIOperation, mode: GenerationMode) -> list[Asked]:
    """Send an operation what its description allows, or does not, and check each answer."""
    asked: list[Asked] = []

    @seed(SEED)
    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests_to(operation, mode))
    def one(case: Case) -> None:
        answer = case.call()
        asked.append(Asked(operation.label, mode, changed_by(case), answer.status_code))
        case.validate_response(answer, checks=CHECKS)

    if mode is GenerationMode.NEGATIVE and operation.label in NOTHING_TO_GET_WRONG:
        with pytest.raises(Unsatisfiable):
            one()
    else:
        one()
    return asked


def requests_to(operation: APIOperation, mode: GenerationMode) -> st.SearchStrategy[Case]:
    """What the description leads to, and some that also name what there is and keep the limits."""
    made_up = operation.as_strategy(mode)
    if "{doc_id}" in operation.path:
        return made_up | st.sampled_from(SPARE).flatmap(
            lambda spare: operation.as_strategy(mode, path_parameters={"doc_id": spare.doc_id})
        )
    if operation.method == "post" and mode is GenerationMode.POSITIVE:
        return made_up | made_up.map(moderate)
    return made_up


def moderate(case: Case) -> Case:
    """The same request without what the limits or the model of this server refuse."""
    for search in case.body.get("searches", [case.body]):
        for name in {"k", "n"} & set(search):
            search[name] = 1 + int(search[name]) % 100
        for name in {"exclude", "require"} & set(search):
            search[name] = [phrase for phrase in search[name] if phrase.strip()]
        for name in {"verify", "max_risk", "alpha", "tau", "p"} & set(search):
            del search[name]
    return case


def changed_by(case: Case) -> bytes:
    if case.method == "DELETE":
        return unquote(str(case.path_parameters["doc_id"])).encode("utf-8", "replace")
    return case.body if case.method == "PUT" and isinstance(case.body, bytes) else b""


def has_the_one_error_shape(_: CheckContext, answer: Response, case: Case) -> None:
    if answer.status_code >= 400:
        error: dict[str, Any] = answer.json()["error"]
        assert set(error) - {"details"} == SHAPE, case
        assert all(isinstance(error[name], str) and error[name] for name in SHAPE), case
        assert [error["request_id"]] == answer.headers["x-request-id"]


CHECKS: list[Callable[..., Any]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    has_the_one_error_shape,
]
