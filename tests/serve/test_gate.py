"""What every request passes, the status paths, figures, logs and the description."""

import json
import logging
import random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from coder_ir import Document, Retriever
from coder_ir.errors import CoderError, StoreError
from coder_ir.serve import Limits, ServeSettings
from coder_ir.serve.logs import JsonLines
from coder_ir.serve.problems import problem_of
from tests.serve.conftest import LINES, Open, jsonl

SHAPE = {"code", "message", "advice", "request_id"}


def test_health_and_readiness(api: TestClient):
    assert api.get("/healthz").json() == {"status": "ok"}
    assert api.get("/readyz").json() == {"status": "ready"}


def test_an_index_that_cannot_be_read_is_not_ready(
    api: TestClient, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    def gone() -> int:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(hotels.store, "count", gone)
    assert api.get("/readyz").status_code == 503
    assert api.get("/healthz").status_code == 200


def test_the_index_is_described(api: TestClient, hotels: Retriever):
    told = api.get("/v1/index").json()
    assert told["documents"] == 3
    assert told["model"] == {"spec": "fake", "fingerprint": hotels.encoder.fingerprint}
    assert told["settings"]["policy"] == "auto"
    assert told["settings"]["limits"]["k"] == 100
    assert (told["settings"]["read_only"], told["settings"]["hybrid"]) == (False, False)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/documents", 405),
        ("GET", "/v1/search", 405),
        ("PUT", "/v1/search", 405),
        ("DELETE", "/v1/index", 405),
        ("PATCH", "/v1/documents/quiet-one", 405),
        ("POST", "/v1/nothing", 404),
        ("GET", "/v1/../etc/passwd", 404),
        ("GET", "//v1/index", 404),
        ("GET", "/docs", 404),
    ],
)
def test_what_is_not_served_has_the_shape_of_every_error(
    api: TestClient, method: str, path: str, status: int
):
    answer = api.request(method, f"http://127.0.0.1:8000{path}")
    assert (answer.status_code, set(answer.json()["error"])) == (status, SHAPE)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_a_search_in_another_kind_of_body_is_415(api: TestClient, kind: str):
    body = json.dumps({"query": "sea"})
    answer = api.post("/v1/search", content=body, headers={"content-type": kind})
    assert (answer.status_code, set(answer.json()["error"])) == (415, SHAPE)


def test_a_body_past_the_limit_is_413_whether_it_says_its_length_or_not(served: Open):
    api = served(ServeSettings(limits=Limits(body_bytes=100)))
    body, headers = json.dumps({"query": "x" * 200}).encode(), {"content-type": "application/json"}
    told = api.post("/v1/search", content=body, headers=headers)
    untold = api.post("/v1/search", content=iter([body[:90], body[90:]]), headers=headers)
    assert (told.status_code, untold.status_code) == (413, 413)
    assert set(told.json()["error"]) == set(untold.json()["error"]) == SHAPE


def test_a_request_id_is_kept_where_it_is_harmless(api: TestClient):
    assert api.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    odd = api.get("/nothing", headers={"x-request-id": "a b<script>"})
    assert odd.headers["x-request-id"] == odd.json()["error"]["request_id"] != "a b<script>"


def test_a_read_only_server_says_why_it_does_not_write(served: Open, hotels: Retriever):
    api = served(ServeSettings(read_only="another server (process 7) writes this index"))
    put = api.put("/v1/documents", content=jsonl(Document("a", "x")), headers=LINES)
    delete = api.delete("/v1/documents/quiet-one")
    assert (put.status_code, delete.status_code, len(hotels)) == (403, 403, 3)
    assert "another server (process 7) writes this index" in put.json()["error"]["message"]
    assert api.post("/v1/search", json={"query": "sea"}).status_code == 200
    assert api.get("/v1/index").json()["settings"]["read_only"] is True


def test_metrics_count_searches_constraints_documents_and_errors(api: TestClient):
    api.post("/v1/search", json={"query": "sea"})
    api.post("/v1/search", json={"query": "hotel", "exclude": ["club"]})
    api.post("/v1/search", json={"query": ""})
    api.put("/v1/documents", content=jsonl(Document("a", "x")), headers=LINES)
    api.put("/v1/documents", content=jsonl(Document("b", "x")) + b"{", headers=LINES)
    api.delete("/v1/documents/b")
    api.get("/v1/documents/secret-id")
    page = api.get("/metrics")
    for line in (
        'coder_ir_queries_total{policy="auto"} 2.0',
        "coder_ir_constraint_queries_total 1.0",
        "coder_ir_documents 4.0",
        "coder_ir_documents_written_total 2.0",
        "coder_ir_documents_deleted_total 1.0",
        'coder_ir_errors_total{code="invalid_input"} 1.0',
        'coder_ir_requests_total{method="POST",path="/v1/search",status="200"} 2.0',
        'coder_ir_search_seconds_count{stage="encode"} 2.0',
        'coder_ir_search_seconds_count{stage="search"} 2.0',
        'coder_ir_search_seconds_count{stage="total"} 2.0',
    ):
        assert line in page.text.splitlines()
    assert "secret-id" not in page.text
    assert page.headers["content-type"].startswith("text/plain")


def test_the_log_tells_requests_apart_and_holds_no_text(
    api: TestClient, hotels: Retriever, caplog: pytest.LogCaptureFixture, monkeypatch: Any
):
    caplog.set_level(logging.INFO, "coder_ir.serve")
    api.post("/v1/search", json={"query": "confidential club"}, headers={"x-request-id": "r1"})
    api.post("/v1/search", json={"query": "confidential", "k": -1})
    api.put("/v1/documents", content=b'{"_id": "confidential-id", "text": 5}\n', headers=LINES)
    api.get("/v1/documents/confidential-id")

    def broken(asked: Any) -> Any:
        raise RuntimeError(asked.query)

    monkeypatch.setattr(hotels, "answer", broken)
    api.post("/v1/search", json={"query": "confidential"})
    lines = [JsonLines().format(record) for record in caplog.records]
    rows = [json.loads(line) for line in lines]
    assert "confidential" not in "".join(lines)
    requests = [row for row in rows if row["message"] == "request"]
    assert [(r["method"], r["path"], r["status"]) for r in requests] == [
        ("POST", "/v1/search", 200),
        ("POST", "/v1/search", 422),
        ("PUT", "/v1/documents", 422),
        ("GET", "/v1/documents/{doc_id}", 404),
        ("POST", "/v1/search", 500),
    ]
    assert requests[0]["request_id"] == "r1"
    assert all(row["milliseconds"] >= 0 for row in requests)
    failed = next(row for row in rows if row["message"] == "request failed")
    assert failed["error"] == "RuntimeError" and "broken" in failed["trace"][-1]


def test_the_description_has_every_path_with_examples_and_one_error_shape(api: TestClient):
    told = api.get("/openapi.json").json()
    assert set(told["paths"]) == {
        *("/v1/search", "/v1/search/batch", "/v1/pool", "/v1/documents", "/v1/documents/{doc_id}"),
        *("/v1/index", "/healthz", "/readyz", "/metrics"),
    }
    search = told["paths"]["/v1/search"]["post"]
    assert set(search["requestBody"]["content"]["application/json"]["examples"]) == {
        "constraint",
        "explicit",
    }
    assert {"401", "403", "413", "415", "422", "500", "503", "504"} <= set(search["responses"])
    refusal = search["responses"]["422"]["content"]["application/json"]["schema"]
    assert refusal == {"$ref": "#/components/schemas/ErrorOut"}
    assert "HTTPValidationError" not in told["components"]["schemas"]
    assert told["paths"]["/v1/documents"]["put"]["requestBody"]["content"]["application/x-ndjson"]


def test_the_examples_of_the_description_work(api: TestClient):
    told = api.get("/openapi.json").json()
    body = told["paths"]["/v1/search"]["post"]["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():
        assert api.post("/v1/search", json=example["value"]).status_code == 200
    put = told["paths"]["/v1/documents"]["put"]["requestBody"]["content"]["application/x-ndjson"]
    answer = api.put("/v1/documents", content=put["example"], headers=LINES)
    assert answer.json() == {"written": 2, "unchanged": 0}


def test_every_error_of_the_package_has_an_answer():
    kinds = [CoderError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in kinds:
        if kind.__name__ not in ("MissingExtra", "UploadStopped"):
            assert problem_of(kind("x")).status >= 400


def _odd(chance: random.Random, depth: int = 0) -> Any:
    """Some JSON, more or less like a search."""
    texts = ("", "sea", "hotel", "\0", "<b>", "x" * 50, "stars=4", "' OR 1", "🙂", "in", "a in ,")
    plain = (None, True, 0, -1, 5, 1e308, 2**70, 0.5, "auto", "seq", "hard", *texts)
    kind = chance.random()
    if depth > 2 or kind < 0.6:
        return chance.choice(plain)
    if kind < 0.8:
        return [_odd(chance, depth + 1) for _ in range(chance.randrange(4))]
    names = ("query", "k", "policy", "alpha", "tau", "p", "n", "where", "exclude", "require")
    names = (*names, "mode", "max_risk", "verify", "explain", "field", "operator", "values", "odd")
    return {chance.choice(names): _odd(chance, depth + 1) for _ in range(chance.randrange(7))}


def test_no_json_makes_the_server_fail(api: TestClient):
    chance = random.Random(7)
    seen = set()
    for number in range(600):
        body = _odd(chance)
        if isinstance(body, dict) and number % 2:
            body["query"] = "hotel"
        path = "/v1/search/batch" if number % 5 == 0 else "/v1/search"
        if number % 5 == 0:
            body = {"searches": [body]}
        content = json.dumps(body).encode()
        if number % 7 == 0 and content:
            place = chance.randrange(len(content))
            content = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        headers = {"content-type": "application/json"}
        answer = api.post(path, content=content, headers=headers)
        seen.add(answer.status_code)
        assert answer.status_code in (200, 422), (content, answer.text)
    assert seen == {200, 422}
