"""POST /v1/search and /v1/search/batch."""

import json
import math

import pytest
from fastapi.testclient import TestClient

from coder_ir import Condition, Retriever, SearchOptions, Sequential, Union
from coder_ir.serve import Limits, ServeSettings
from coder_ir.types import UNSCORED, Constraint, Hit, Passage, Ranking, Span
from tests.conftest import FakeParser
from tests.serve.conftest import HOTELS, Open

HIT_FIELDS = {
    *("rank", "doc_id", "score", "topical", "compatibility", "text"),
    *("risk", "title", "metadata", "passage", "reason", "decisive", "scoring", "reading"),
}


def found(answer) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [hit["doc_id"] for hit in answer.json()["hits"]]


def test_a_search_answers_hits_filtered_constraint_and_timing(api: TestClient, hotels: Retriever):
    hotels.parser = FakeParser()
    answer = api.post("/v1/search", json={"query": "hotel without club"})
    assert set(answer.json()) == {"hits", "filtered", "constraint", "timing"}
    assert all(set(hit) == HIT_FIELDS for hit in answer.json()["hits"])
    assert set(answer.json()["timing"]) == {"queued", "encode", "search", "total"}
    constraint = answer.json()["constraint"]
    assert set(constraint) == {"probability", "excluded", "required", "topic", "spans"}
    assert (constraint["probability"], constraint["topic"]) == (1, "hotel")
    assert (constraint["excluded"], constraint["required"]) == (["club"], [])
    marks = [
        (mark["role"], mark["start"], mark["end"], mark["text"]) for mark in constraint["spans"]
    ]
    assert marks == [("cue", 6, 13, "without"), ("excluded", 14, 18, "club")]


def test_a_hit_tells_what_the_retriever_tells(api: TestClient, hotels: Retriever):
    row = api.post("/v1/search", json={"query": "quiet garden", "k": 1}).json()["hits"][0]
    hit = hotels.search("quiet garden", k=1)[0]
    assert row == {
        "rank": 1,
        "doc_id": "quiet-one",
        "score": hit.score,
        "topical": hit.topical,
        "compatibility": hit.compatibility,
        "risk": None,
        "reason": hit.reason,
        "text": "quiet+ hotel with a garden",
        "title": "Rose",
        "metadata": {"stars": 4, "year": 2020},
        "passage": {"number": 0, "start": 0, "end": len("Rose quiet+ hotel with a garden")},
        "decisive": "",
        "scoring": hit.scoring,
        "reading": None,
    }


def test_a_hit_that_was_read_tells_what_was_read(api: TestClient, hotels: Retriever):
    wanted = {"query": "hotel", "exclude": ["club"]}
    rows = {row["doc_id"]: row for row in api.post("/v1/search", json=wanted).json()["hits"]}
    club = rows["club-one"]
    assert club["reason"] == "Goes against “no club”: “noisy hotel above a club”"
    assert club["decisive"] == "noisy hotel above a club"
    assert club["reading"] == {
        **{"satisfies": 0.06, "violates": 0.9, "silent": 0.04, "risk": 0.95},
        "decisive": {"start": 0, "end": len("noisy hotel above a club")},
    }
    assert rows["quiet-one"]["reading"]["decisive"] is None
    unread = api.post("/v1/search", json={**wanted, "verify": 0}).json()["hits"]
    assert {row["reading"] for row in unread} == {None}


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"policy": "topical"}, {"policy": "topical"}),
        ({"policy": "compatibility"}, {"policy": "compatibility"}),
        ({"policy": "seq", "alpha": 0.9, "tau": 0.4}, {"policy": Sequential(0.9, 0.4)}),
        ({"policy": "union", "alpha": 0.1, "p": 0.6}, {"policy": Union(alpha=0.1, p=0.6)}),
        ({"exclude": ["club"], "mode": "hard"}, {"exclude": ["club"], "mode": "hard"}),
        ({"require": ["sea"]}, {"require": ["sea"]}),
        ({"where": ["stars>=4"]}, {"where": ["stars>=4"]}),
        (
            {"where": [{"field": "stars", "operator": "in", "values": [3, 5]}]},
            {"where": [Condition("stars", "in", (3, 5))]},
        ),
        ({"n": 1, "k": 1, "explain": True}, {"n": 1, "k": 1, "explain": True}),
        ({"exclude": ["club"], "verify": 1}, {"exclude": ["club"], "verify": 1}),
        ({"exclude": ["club"], "verify": 0}, {"exclude": ["club"], "verify": 0}),
        ({"exclude": ["club"], "verify": None}, {"exclude": ["club"]}),
    ],
    ids=[
        *("topical", "compatibility", "seq", "union", "hard", "require", "where", "in", "explain"),
        *("one read", "none read", "as many as by default"),
    ],
)
def test_every_setting_reaches_the_retriever(api: TestClient, hotels: Retriever, asked, options):
    answer = api.post("/v1/search", json={"query": "quiet hotel", **asked}).json()
    ranking = hotels.search("quiet hotel", **options)
    assert [(h["doc_id"], h["score"], h["reason"], h["decisive"]) for h in answer["hits"]] == [
        (h.doc_id, h.score, h.reason, h.decisive) for h in ranking
    ]
    assert [(f["doc_id"], f["reason"]) for f in answer["filtered"]] == [
        (f.doc_id, f.reason) for f in ranking.filtered
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "   "},
        {"query": 5},
        {"query": None},
        {"query": "hotel", "k": 0},
        {"query": "hotel", "k": "5"},
        {"query": "hotel", "k": 2.5},
        {"query": "hotel", "k": True},
        {"query": "hotel", "k": 10**30},
        {"query": "hotel", "k": 101},
        {"query": "hotel", "n": 1001},
        {"query": "hotel", "verify": 101},
        {"query": "hotel", "verify": -1},
        {"query": "hotel", "verify": 1, "policy": "union"},
        {"query": "hotel", "verify": 0, "exclude": ["sea"], "mode": "hard"},
        {"query": "hotel", "policy": "best"},
        {"query": "hotel", "policy": "auto", "alpha": 0.5},
        {"query": "hotel", "policy": "seq", "p": 0.5},
        {"query": "hotel", "policy": "seq", "alpha": 1.5},
        {"query": "hotel", "where": "stars=4"},
        {"query": "hotel", "where": ["stars"]},
        {"query": "hotel", "where": [{"field": "stars", "operator": "~", "values": [1]}]},
        {"query": "hotel", "where": [{"field": "stars", "operator": "<", "values": ["x"]}]},
        {"query": "hotel", "where": [{"field": "s", "operator": "=", "values": [[1]]}]},
        {"query": "hotel", "where": [{"field": "s", "operator": "in", "values": [1] * 201}]},
        {"query": "hotel", "where": ["stars=4"] * 33},
        {"query": "hotel", "where": ["s in " + ",".join("1" * 201)]},
        {"query": "hotel", "exclude": "club"},
        {"query": "hotel", "exclude": [""]},
        {"query": "hotel", "exclude": ["club"] * 33},
        {"query": "hotel", "mode": "hard"},
        {"query": "hotel", "mode": "harder"},
        {"query": "hotel", "max_risk": 2},
        {"query": "hotel", "max_risk": 0.5},
        {"query": "hotel", "unknown": 1},
        {"query": "x" * 2001},
        {"query": "hotel", "exclude": ["x" * 2001]},
        [],
        "hotel",
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_input_that_cannot_be_used_is_422(api: TestClient, body):
    answer = api.post("/v1/search", json=body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]) == {"code", "message", "advice", "request_id"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b'{"query": "hotel", "k": NaN}',
        b'{"query": "hotel", "max_risk": NaN}',
        b'{"query": "hotel", "max_risk": -Infinity}',
        b'{"query": "hotel", "k": 1e400}',
        b'{"query": "hotel", "k": ' + b"9" * 5000 + b"}",
        b'{"query": "\\ud800"}',
        b'{"query": "hotel", "where": ["\\ud800=1"]}',
        b'{"query": "hotel", "where": ["stars=\\ud800"]}',
        b'{"query": "hotel", "exclude": ["\\ud800"]}',
        b'{"query": "\xff"}',
        b"[" * 50_000,
        b'{"query": ' + b"[" * 50_000,
        b'{"query": "hotel", "where": ["a<' + b"[" * 1900 + b'"]}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_is_no_usable_json_is_422(api: TestClient, body: bytes):
    headers = {"content-type": "application/json"}
    answer = api.post("/v1/search", content=body, headers=headers)
    assert (answer.status_code, set(answer.json())) == (422, {"error"})


@pytest.mark.parametrize(
    "condition",
    [
        "stars=4'; DROP TABLE documents; --",
        "stars' OR '1'='1",
        "1=1",
        'x") OR 1=1 --=3',
        "stars<" + "9" * 400,
        "stars>-" + "9" * 400,
        "stars=1e308",
        "stars in 1,2,3' UNION SELECT 1",
    ],
)
def test_sql_in_a_filter_is_only_text(api: TestClient, condition: str):
    answer = api.post("/v1/search", json={"query": "hotel", "where": [condition]})
    assert answer.status_code in (200, 422)
    assert api.get("/v1/index").json()["documents"] == 3


def test_script_tags_come_back_as_json_text(api: TestClient, hotels: Retriever):
    script = "<script>alert('hotel')</script>"
    line = json.dumps({"_id": script, "title": script, "text": f"hotel {script}"})
    api.put("/v1/documents", content=line, headers={"content-type": "application/x-ndjson"})
    answer = api.post("/v1/search", json={"query": f"hotel {script}", "k": 4})
    hit = next(hit for hit in answer.json()["hits"] if hit["doc_id"] == script)
    assert (hit["title"], hit["text"]) == (script, f"hotel {script}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_score_that_there_is_none_of_is_null(
    api: TestClient, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    unscored = Hit(
        "d", 1, math.inf, UNSCORED, UNSCORED, None, "", "text", "", {}, Passage(0, Span(0, 4))
    )
    ranking = Ranking("hotel", "own", (unscored,), (), Constraint(0.0))
    monkeypatch.setattr(hotels, "answer", lambda asked: ranking)
    answer = api.post("/v1/search", json={"query": "hotel"})
    assert "NaN" not in answer.text
    hit = answer.json()["hits"][0]
    assert (hit["score"], hit["topical"], hit["compatibility"]) == (None, None, None)


def test_a_batch_answers_each_search_with_its_own_settings(api: TestClient, hotels: Retriever):
    searches = [{"query": "quiet", "k": 1}, {"query": "sea", "k": 2, "policy": "topical"}]
    results = api.post("/v1/search/batch", json={"searches": searches}).json()["results"]
    assert [[hit["doc_id"] for hit in result["hits"]] for result in results] == [
        [hit.doc_id for hit in hotels.search("quiet", k=1)],
        [hit.doc_id for hit in hotels.search("sea", k=2, policy="topical")],
    ]


def test_a_batch_with_one_bad_search_names_it(api: TestClient):
    searches = [{"query": "quiet"}, {"query": " "}]
    answer = api.post("/v1/search/batch", json={"searches": searches})
    assert answer.status_code == 422
    assert "search 2: the query is empty" in answer.json()["error"]["message"]


@pytest.mark.parametrize("size", [0, 3])
def test_a_batch_outside_its_limits_is_422(served: Open, size: int):
    api = served(ServeSettings(limits=Limits(batch=2)))
    answer = api.post("/v1/search/batch", json={"searches": [{"query": "sea"}] * size})
    assert answer.status_code == 422


def test_an_empty_index_answers_an_empty_list(retriever: Retriever, served: Open):
    retriever.delete([document.doc_id for document in list(retriever.store.documents())])
    answer = served().post("/v1/search", json={"query": "hotel"})
    assert (found(answer), answer.json()["filtered"]) == ([], [])


def test_prepared_queries_with_options_of_their_own_rank_like_single_ones(hotels: Retriever):
    options = [SearchOptions(k=1), SearchOptions(exclude=("club",)), SearchOptions(policy="union")]
    queries = ["quiet", "hotel", "hotel -sea"]
    together = [hotels.answer(asked) for asked in hotels.prepare(queries, options)]
    alone = [hotels.search_many([q], o)[0] for q, o in zip(queries, options, strict=True)]
    assert together == alone


def test_a_condition_of_nothing_but_brackets_is_text(api: TestClient):
    wanted = {"query": "hotel", "where": ["a=" + "[" * 1900]}
    answer = api.post("/v1/search", json=wanted)
    assert (answer.status_code, answer.json()["hits"]) == (200, [])


def test_an_answer_with_too_much_text_is_refused_and_fewer_hits_are_not(served: Open):
    size = sum(len(hotel.text) for hotel in HOTELS)
    api = served(ServeSettings(limits=Limits(answer_characters=size - 1)))
    refused = api.post("/v1/search", json={"query": "hotel"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert "ask for fewer hits" in refused.json()["error"]["message"]
    assert api.post("/v1/search", json={"query": "hotel", "k": 2}).status_code == 200
