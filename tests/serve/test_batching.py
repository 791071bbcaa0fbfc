"""Searches that come together are encoded together, and limits hold."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coder_ir import Retriever, SearchOptions
from coder_ir.errors import Busy, StoreError
from coder_ir.serve import Limits, ServeSettings
from coder_ir.serve.batching import Batcher, Question
from tests.serve.conftest import Open


class Held:
    """Holds an encoder's query calls back until it is let go, and notes what each was given."""

    def __init__(self, retriever: Retriever, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str]] = []
        self.entered, self.gate = threading.Event(), threading.Event()
        encode = retriever.encoder.encode

        def held(texts: Any, *, kind: Any, progress: Any = None) -> Any:
            if kind == "query":
                self.calls.append(list(texts))
                self.entered.set()
                assert self.gate.wait(20)
            return encode(texts, kind=kind, progress=progress)

        monkeypatch.setattr(retriever.encoder, "encode", held)


@pytest.fixture
def held(hotels: Retriever, monkeypatch: pytest.MonkeyPatch) -> Held:
    hotels.search("warm up")
    return Held(hotels, monkeypatch)


def batcher(retriever: Retriever, **limits: Any) -> Batcher:
    started = Batcher(retriever, Limits(**{"workers": 1, **limits}), lambda answer: None)
    started.start()
    return started


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def question(query: str, **options: Any) -> Question:
    return Question(query, SearchOptions(**options))


def test_searches_that_wait_share_one_call_of_the_encoder(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    first = queries.submit([question("sea")])
    held.entered.wait(10)
    rest = [
        queries.submit([question("quiet", k=1)]),
        queries.submit([question("hotel", policy="union")]),
        queries.submit([question("garden", exclude=("club",)), question("noisy")]),
    ]
    held.gate.set()
    found = [[answer.ranking for answer in one.result(10)] for one in (first, *rest)]
    queries.close()
    assert held.calls[0] == ["sea"]
    words = {"quiet", "hotel", "garden", "noisy", "garden, without club", "club"}
    assert set(held.calls[1]) == words
    assert len(held.calls) == 3  # the last one for the phrases of both batches
    assert found == [
        [hotels.search("sea")],
        [hotels.search("quiet", k=1)],
        [hotels.search("hotel", policy="union")],
        [hotels.search("garden", exclude=("club",)), hotels.search("noisy")],
    ]


def test_a_batch_does_not_grow_past_its_size(hotels: Retriever, held: Held):
    queries = batcher(hotels, together=2)
    futures = [queries.submit([question("sea")])]
    held.entered.wait(10)
    futures += [queries.submit([question(word)]) for word in ("quiet", "noisy", "club")]
    held.gate.set()
    for future in futures:
        future.result(10)
    queries.close()
    assert [len(call) for call in held.calls] == [1, 2, 1]


def test_past_the_queue_s_length_a_search_is_sent_away(hotels: Retriever, held: Held):
    queries = batcher(hotels, waiting=2)
    futures = [queries.submit([question("sea")])]
    held.entered.wait(10)
    futures += [queries.submit([question("sea")]) for _ in range(2)]
    with pytest.raises(Busy, match="2 searches wait already"):
        queries.submit([question("sea")])
    held.gate.set()
    assert all(future.result(10) for future in futures)
    queries.close()


def test_a_cancelled_search_that_waits_costs_nothing(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    first = queries.submit([question("sea")])
    held.entered.wait(10)
    gone, kept = queries.submit([question("quiet")]), queries.submit([question("club")])
    assert gone.cancel()
    held.gate.set()
    first.result(10)
    kept.result(10)
    queries.close()
    assert held.calls == [["sea"], ["club"]]


def test_closing_answers_what_waits_and_takes_no_more(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    futures = [queries.submit([question("sea")]) for _ in range(5)]
    held.entered.wait(10)
    closing = threading.Thread(target=queries.close)
    closing.start()
    until(lambda: queries._closing)
    with pytest.raises(Busy, match="shutting down"):
        queries.submit([question("sea")])
    held.gate.set()
    closing.join(10)
    assert all(future.result(0) for future in futures)


def test_one_search_that_fails_does_not_spoil_the_others(
    hotels: Retriever, held: Held, monkeypatch: pytest.MonkeyPatch
):
    prepare, answer = hotels.prepare, hotels.answer

    def broken(queries: Any, options: Any) -> Any:
        if "quiet" in queries:
            raise MemoryError
        return prepare(queries, options)

    def refusing(asked: Any) -> Any:
        if asked.query == "noisy":
            raise StoreError("locked")
        return answer(asked)

    monkeypatch.setattr(hotels, "prepare", broken)
    monkeypatch.setattr(hotels, "answer", refusing)
    queries = batcher(hotels)
    first = queries.submit([question("sea")])
    held.entered.wait(10)
    bad, worse = queries.submit([question("quiet")]), queries.submit([question("noisy")])
    good = queries.submit([question("club")])
    held.gate.set()
    assert first.result(10) and good.result(10)
    assert isinstance(bad.exception(10), MemoryError)
    assert isinstance(worse.exception(10), StoreError)
    queries.close()


def test_a_full_queue_is_503_with_retry_after(
    served: Open, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    api = served(ServeSettings(limits=Limits(workers=1, waiting=1, together=1)))
    held = Held(hotels, monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(api.post, "/v1/search", json={"query": "sea"})
        held.entered.wait(10)
        second = pool.submit(api.post, "/v1/search", json={"query": "sea"})
        until(lambda: "coder_ir_waiting_searches 1.0" in api.get("/metrics").text)
        third = api.post("/v1/search", json={"query": "sea"})
        held.gate.set()
        assert (first.result().status_code, second.result().status_code) == (200, 200)
    assert (third.status_code, third.headers["retry-after"]) == (503, "1")
    assert third.json()["error"]["code"] == "busy"


def test_a_search_that_takes_too_long_is_504(
    served: Open, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    api = served(ServeSettings(limits=Limits(timeout=0.2)))
    held = Held(hotels, monkeypatch)
    answer = api.post("/v1/search", json={"query": "sea"})
    held.gate.set()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timed_out")
    assert api.post("/v1/search", json={"query": "sea"}).status_code == 200


def test_an_unforeseen_failure_is_500_without_its_words(
    served: Open, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    def broken(asked: Any) -> Any:
        raise RuntimeError("secret text")

    api = served()
    monkeypatch.setattr(hotels, "answer", broken)
    answer = api.post("/v1/search", json={"query": "sea"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in answer.text
    monkeypatch.undo()
    assert api.post("/v1/search", json={"query": "sea"}).status_code == 200
