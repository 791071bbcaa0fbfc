"""POST /v1/pool: what a policy needs to rank elsewhere, with what `auto` has read."""

from typing import Any

from fastapi.testclient import TestClient

from coder_ir import Document, Retriever
from coder_ir.policies import Auto
from coder_ir.types import Reading
from tests.conftest import FakeParser
from tests.fake_verifier import FakeVerifier, satisfying, violating

PAIR = (
    Document("bar one", "quiet hotel. The bar opens early on all days."),
    Document("bar two", "quiet hotel. The bar opens late on all days."),
)


def pool(api: TestClient, **wanted: Any) -> dict[str, dict[str, Any]]:
    """Candidates by document."""
    answer = api.post("/v1/pool", json=wanted)
    assert answer.status_code == 200, answer.text
    return {one["doc_id"]: one for one in answer.json()["candidates"]}


def test_what_auto_reads_is_told_of_each_passage(api: TestClient, hotels: Retriever):
    found = pool(api, query="hotel", exclude=["club"])
    ranking = hotels.search("hotel", exclude=["club"])
    assert {hit.doc_id: hit.reading is not None for hit in ranking} == dict.fromkeys(found, True)
    for hit in ranking:
        assert hit.reading is not None
        told = found[hit.doc_id]["reading"]
        assert (told["satisfies"], told["violates"]) == (
            hit.reading.satisfies,
            hit.reading.violates,
        )


def test_a_passage_that_only_another_policy_brings_was_not_read(api: TestClient, hotels: Retriever):
    # With a pool of one `auto` sees the best by topic alone.
    hotels.parser = FakeParser()
    found = pool(api, query="club- quiet+ without tram", n=1)
    assert {doc_id: one["reading"] is None for doc_id, one in found.items()} == {
        "club-one": False,
        "quiet-one": True,
    }


def test_near_duplicates_are_named_by_position_and_read_without_a_constraint(
    api: TestClient, hotels: Retriever
):
    class Late(FakeVerifier):
        def _read(self, query: str, passage: str) -> Reading:
            return satisfying() if "late" in passage else violating()

    hotels.verifier = Late()
    hotels.add(PAIR)
    found = pool(api, query="quiet hotel")
    place = {doc_id: i for i, doc_id in enumerate(found)}
    assert list(found) == sorted(found)
    assert found["bar one"]["near_duplicates"] == [place["bar two"]]
    assert found["bar two"]["near_duplicates"] == [place["bar one"]]
    assert {d for d, one in found.items() if one["reading"]} == {"bar one", "bar two"}
    assert found["bar two"]["reading"]["satisfies"] == satisfying().satisfies


def test_without_a_constraint_and_near_duplicates_nothing_is_read(
    api: TestClient, hotels: Retriever
):
    found = pool(api, query="hotel")
    assert {(one["reading"], *one["near_duplicates"]) for one in found.values()} == {(None,)}
    assert isinstance(hotels.verifier, FakeVerifier)
    assert hotels.verifier.asked == []


def test_the_settings_say_that_auto_uses_readings(api: TestClient):
    policies = api.get("/v1/index").json()["settings"]["policies"]
    assert {name for name, own in policies.items() if own.get("uses_readings")} == {"auto"}
    assert policies["auto"]["denial"] == Auto().denial


def test_the_words_are_forms_of_what_is_ruled_out(api: TestClient, hotels: Retriever):
    hotels.add([Document("clubs", "Two clubs and a sea of clubbing people.")])
    answer = api.post("/v1/pool", json={"query": "hotel", "exclude": ["a club"]})
    assert answer.json()["words"] == ["club", "clubs"]
