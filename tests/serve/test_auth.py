"""Tokens, addresses and host names."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from coder_ir import Document, Retriever
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.serve import ServeSettings, Tokens, load_tokens
from coder_ir.serve.auth import check_address, names_this_machine
from tests.serve.conftest import LINES, Open, jsonl

READ, WRITE = "read-token-0123456789", "write-token-0123456789"
BOTH = Tokens(READ, WRITE)
BODY = jsonl(Document("new", "x"))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def guarded(served: Open) -> TestClient:
    return served(ServeSettings(tokens=BOTH))


def statuses(api: TestClient, headers: dict[str, str]) -> list[int]:
    """Of reading and of writing."""
    return [
        api.post("/v1/search", json={"query": "sea"}, headers=headers).status_code,
        api.get("/v1/documents/quiet-one", headers=headers).status_code,
        api.get("/v1/index", headers=headers).status_code,
        api.get("/metrics", headers=headers).status_code,
        api.put("/v1/documents", content=BODY, headers={**LINES, **headers}).status_code,
        api.delete("/v1/documents/new", headers=headers).status_code,
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer("wrong"),
        bearer(READ[:-1]),
        bearer(READ + "x"),
        bearer(READ.upper()),
        {"authorization": READ},
        {"authorization": f"Basic {READ}"},
        {"authorization": f"Bearer{READ}"},
        {"authorization": "Bearer \xff\xfe".encode("latin-1").decode("latin-1")},
        {"x-api-key": READ},
    ],
    ids=repr,
)
def test_without_a_known_token_all_is_401(guarded: TestClient, hotels: Retriever, headers):
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    assert statuses(guarded, encoded) == [401] * 6
    answer = guarded.get("/v1/index", headers=encoded)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "unauthorised"
    assert len(hotels) == 3


def test_the_read_token_reads_and_may_not_write(guarded: TestClient, hotels: Retriever):
    assert statuses(guarded, bearer(READ)) == [200, 200, 200, 200, 403, 403]
    assert len(hotels) == 3


def test_the_write_token_does_both(guarded: TestClient):
    assert statuses(guarded, bearer(WRITE)) == [200] * 6


def test_a_lone_write_token_is_needed_for_reading_too(served: Open):
    api = served(ServeSettings(tokens=Tokens(write=WRITE)))
    assert statuses(api, bearer(WRITE)) == [200] * 6
    assert statuses(api, {}) == [401] * 6


def test_a_lone_read_token_lets_nobody_write(served: Open):
    api = served(ServeSettings(tokens=Tokens(read=READ)))
    assert statuses(api, bearer(READ)) == [200, 200, 200, 200, 403, 403]


def test_a_bad_token_is_refused_before_the_body_is_looked_at(guarded: TestClient):
    headers = {"content-type": "application/json"}
    assert guarded.post("/v1/search", content=b"{", headers=headers).status_code == 401
    assert guarded.get("/v1/nothing").status_code == 401


def test_health_and_description_need_no_token(guarded: TestClient):
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert guarded.get(path).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_a_server_without_tokens_answers_only_to_its_own_name(api: TestClient, host: str):
    answer = api.get("/v1/index", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "[::1]:9", "LOCALHOST"])
def test_the_names_of_this_machine_are_known(host: str):
    assert names_this_machine(host)


def test_a_server_with_tokens_answers_under_any_name(guarded: TestClient):
    headers = {**bearer(READ), "host": "search.example"}
    assert guarded.get("/v1/index", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_another_address_needs_a_token(host: str):
    with pytest.raises(InvalidValue, match="needs a token"):
        check_address(host, Tokens())
    check_address(host, Tokens(read=READ))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_needs_none(host: str):
    check_address(host, Tokens())


def test_tokens_come_from_a_file(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"# ours\nread = {READ}\n\nwrite={WRITE}\n")
    assert load_tokens(file, {}) == BOTH


def test_tokens_come_from_the_environment():
    environment = {"CODER_IR_READ_TOKEN": READ, "CODER_IR_WRITE_TOKEN": WRITE}
    assert load_tokens(None, environment) == BOTH
    assert not load_tokens(None, {"CODER_IR_READ_TOKEN": " "})


def test_a_file_and_the_environment_add_up_but_may_not_disagree(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"read={READ}\n")
    assert load_tokens(file, {"CODER_IR_WRITE_TOKEN": WRITE}) == BOTH
    with pytest.raises(InvalidValue, match="keep one of them"):
        load_tokens(file, {"CODER_IR_READ_TOKEN": READ})


@pytest.mark.parametrize(
    "text",
    ["", "# none\n", READ, "admin=xyz", "read=", f"read={READ}\nread={WRITE}"],
    ids=["empty", "comment", "bare", "unknown", "no value", "twice"],
)
def test_a_token_file_that_cannot_be_read_is_refused_unquoted(tmp_path: Path, text: str):
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(InvalidFile) as refused:
        load_tokens(file, {})
    assert READ not in str(refused.value)


def test_an_absent_token_file_is_refused(tmp_path: Path):
    with pytest.raises(NotFound, match="no token file"):
        load_tokens(tmp_path / "none", {})


@pytest.mark.parametrize(
    ("read", "write", "says"),
    [
        ("short", "", "at least 16 characters"),
        ("", "with a space in between", "ASCII without spaces"),
        ("", "ümlaut-ümlaut-ümlaut", "ASCII without spaces"),
        (READ, READ, "the same"),
    ],
)
def test_weak_tokens_are_refused(read: str, write: str, says: str):
    with pytest.raises(InvalidValue, match=says):
        Tokens(read, write)


def test_tokens_do_not_show_in_a_representation():
    assert READ not in repr(ServeSettings(tokens=BOTH))
