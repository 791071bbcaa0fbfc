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
    started = Batcher(retriever, Limits(**{"workers": 1, **limits}), lambda asked, timing: None)
    started.start()
    return started


def submit(queries: Batcher, retriever: Retriever, *questions: Question) -> list[Any]:
    return queries.submit(questions, retriever.answer)


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def question(query: str, **options: Any) -> Question:
    return Question(query, SearchOptions(**options))


def test_searches_that_wait_share_one_call_of_the_encoder(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    futures = submit(queries, hotels, question("sea"))
    held.entered.wait(10)
    futures += submit(queries, hotels, question("quiet", k=1))
    futures += submit(queries, hotels, question("hotel", policy="union"))
    both = (question("garden", exclude=("club",)), question("noisy"))
    futures += submit(queries, hotels, *both)
    held.gate.set()
    found = [future.result(10).value for future in futures]
    queries.close()
    assert held.calls[0] == ["sea"]
    assert set(held.calls[1]) == {"quiet", "hotel", "garden", "noisy"}
    # What options say comes after, in words with the query and then as phrases.
    assert held.calls[2:] == [["garden, without club"], ["club"]]
    assert found == [
        hotels.search("sea"),
        hotels.search("quiet", k=1),
        hotels.search("hotel", policy="union"),
        hotels.search("garden", exclude=("club",)),
        hotels.search("noisy"),
    ]


def test_workers_share_what_waits(hotels: Retriever, held: Held):
    queries = batcher(hotels, workers=2)
    futures = submit(queries, hotels, question("sea"), question("hotel"))
    until(lambda: len(held.calls) == 2)  # both are busy
    futures += submit(queries, hotels, *map(question, ("quiet", "noisy", "club", "garden")))
    held.gate.set()
    for future in futures:
        assert future.result(10)
    queries.close()
    assert held.calls[2] == ["quiet", "noisy"]  # half of the four, whoever came first
    assert max(map(len, held.calls)) == 2


def test_a_batch_does_not_grow_past_its_size(hotels: Retriever, held: Held):
    queries = batcher(hotels, together=2)
    futures = submit(queries, hotels, question("sea"))
    held.entered.wait(10)
    futures += submit(queries, hotels, *map(question, ("quiet", "noisy", "club")))
    held.gate.set()
    for future in futures:
        future.result(10)
    queries.close()
    assert [len(call) for call in held.calls] == [1, 2, 1]


def test_past_the_queue_s_length_a_search_is_sent_away(hotels: Retriever, held: Held):
    queries = batcher(hotels, waiting=2)
    futures = submit(queries, hotels, question("sea"))
    held.entered.wait(10)
    futures += submit(queries, hotels, question("sea"), question("sea"))
    with pytest.raises(Busy, match="2 searches wait already"):
        submit(queries, hotels, question("sea"))
    held.gate.set()
    assert all(future.result(10) for future in futures)
    queries.close()


def test_a_cancelled_search_that_waits_costs_nothing(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    [first] = submit(queries, hotels, question("sea"))
    held.entered.wait(10)
    gone, kept = submit(queries, hotels, question("quiet"), question("club"))
    assert gone.cancel()
    held.gate.set()
    first.result(10)
    kept.result(10)
    queries.close()
    assert held.calls == [["sea"], ["club"]]


def test_closing_answers_what_waits_and_takes_no_more(hotels: Retriever, held: Held):
    queries = batcher(hotels)
    futures = submit(queries, hotels, *[question("sea")] * 5)
    held.entered.wait(10)
    closing = threading.Thread(target=queries.close)
    closing.start()
    until(lambda: queries._closing)
    with pytest.raises(Busy, match="shutting down"):
        submit(queries, hotels, question("sea"))
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
    [first] = submit(queries, hotels, question("sea"))
    held.entered.wait(10)
    bad, worse, good = submit(queries, hotels, *map(question, ("quiet", "noisy", "club")))
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


def test_a_batch_that_takes_too_long_leaves_the_workers_to_others(
    served: Open, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    api = served(ServeSettings(limits=Limits(workers=1, timeout=0.3)))
    held = Held(hotels, monkeypatch)
    wanted = [{"query": word} for word in ("sea", "quiet", "club") * 10]
    assert api.post("/v1/search/batch", json={"searches": wanted}).status_code == 504
    held.gate.set()
    assert api.post("/v1/search", json={"query": "garden"}).status_code == 200
    asked = [text for call in held.calls for text in call]
    assert len(asked) <= 5  # what a worker had taken, and the garden


def test_closing_does_not_wait_for_work_that_nobody_waits_for(hotels: Retriever, held: Held):
    queries = batcher(hotels, together=1)
    first, *rest = submit(queries, hotels, *[question("sea")] * 20)
    held.entered.wait(10)
    assert all(future.cancel() for future in rest)
    held.gate.set()
    began = time.monotonic()
    queries.close()
    assert first.result(0).value.hits
    assert len(held.calls) == 1
    assert time.monotonic() - began < 4


def test_a_pool_waits_in_the_same_queue(
    served: Open, hotels: Retriever, monkeypatch: pytest.MonkeyPatch
):
    api = served(ServeSettings(limits=Limits(workers=1, waiting=1)))
    held = Held(hotels, monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(api.post, "/v1/search", json={"query": "sea"})
        held.entered.wait(10)
        second = pool.submit(api.post, "/v1/pool", json={"query": "sea"})
        until(lambda: "coder_ir_waiting_searches 1.0" in api.get("/metrics").text)
        refused = api.post("/v1/pool", json={"query": "sea"})
        held.gate.set()
        assert (first.result().status_code, second.result().status_code) == (200, 200)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


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
