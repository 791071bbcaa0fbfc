"""The adapter for LangChain, in LangChain's own hands."""

import asyncio
from dataclasses import fields

import pytest

pytest.importorskip("langchain_core", reason="needs LangChain: the extra langchain")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError

from coder_ir import AsyncClient, Client, TopicalOnly
from coder_ir.errors import InvalidValue
from coder_ir.integrations.langchain import CoderRetriever
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from tests.integrations.conftest import GatedEncoder
from tests.integrations.gate import while_the_loop_runs
from tests.serve.live import Server

QUERY = "hotel by the sea"


def ids(documents) -> list[str]:
    return [document.id for document in documents]


def test_the_fields_are_the_search_options():
    named = {field.name: field.default for field in fields(SearchOptions)}
    own = CoderRetriever.model_fields
    assert {name: own[name].default for name in named} == named


def test_documents_come_in_the_order_of_the_search(hotels: Retriever):
    found = CoderRetriever(retriever=hotels).invoke(QUERY)
    assert ids(found) == [hit.doc_id for hit in hotels.search(QUERY)]


def test_a_document_has_the_text_and_says_why_it_is_there(hotels: Retriever):
    [found] = CoderRetriever(retriever=hotels, k=1).invoke(QUERY)
    [hit] = hotels.search(QUERY, k=1)
    assert found.page_content == "hotel by the sea"
    assert found.metadata["stars"] == 5
    assert found.metadata["coder_reason"] == hit.reason
    assert found.metadata["coder_topical"] == hit.topical


def test_fields_say_how_to_search(hotels: Retriever):
    adapter = CoderRetriever(
        retriever=hotels, where=["stars>3"], exclude=["sea"], mode="hard", policy=TopicalOnly()
    )
    assert ids(adapter.invoke(QUERY)) == ["rose"]


def test_a_call_can_change_an_option_for_itself(hotels: Retriever):
    adapter = CoderRetriever(retriever=hotels, k=3)
    assert ids(adapter.invoke(QUERY, exclude=["sea"], mode="hard")) == ["rose", "club"]
    assert len(adapter.invoke(QUERY)) == 3


def test_a_mistyped_field_is_an_error(hotels: Retriever):
    with pytest.raises(ValidationError, match="exlude"):
        CoderRetriever(retriever=hotels, exlude=["sea"])


def test_a_mistyped_option_of_a_call_is_an_error(hotels: Retriever):
    with pytest.raises(InvalidValue, match="no option 'top_k'"):
        CoderRetriever(retriever=hotels).invoke(QUERY, top_k=3)


@pytest.mark.parametrize(
    "wrong", [{"policy": "best"}, {"k": 0}, {"where": ["stars"]}, {"mode": "hard"}], ids=str
)
def test_a_value_that_cannot_work_is_refused_at_once(hotels: Retriever, wrong):
    with pytest.raises(ValidationError):
        CoderRetriever(retriever=hotels, **wrong)


def test_an_async_call_leaves_the_loop_free(hotels: Retriever, gated: GatedEncoder):
    adapter = CoderRetriever(retriever=hotels, k=2)
    found = while_the_loop_runs(gated, lambda: adapter.ainvoke(QUERY))
    assert found == adapter.invoke(QUERY)


def test_an_async_call_can_change_an_option_for_itself(hotels: Retriever):
    found = asyncio.run(CoderRetriever(retriever=hotels).ainvoke(QUERY, k=1))
    assert ids(found) == ["sea"]


def test_many_async_calls_at_once_get_each_their_own_answer(hotels: Retriever):
    adapter = CoderRetriever(retriever=hotels, k=1)
    queries = ["quiet garden", "noisy club", "sea"] * 4

    async def together():
        return await asyncio.gather(*(adapter.ainvoke(query) for query in queries))

    found = asyncio.run(together())
    assert [ids(documents) for documents in found] == [["rose"], ["club"], ["sea"]] * 4


def test_it_is_a_step_of_a_chain(hotels: Retriever):
    chain = CoderRetriever(retriever=hotels, k=1) | RunnableLambda(lambda found: ids(found)[0])
    assert chain.batch(["quiet garden", "sea"]) == ["rose", "sea"]


def test_callbacks_hear_of_a_search(hotels: Retriever):
    heard = []

    class Listener(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, **more):
            heard.append(query)

        def on_retriever_end(self, documents, **more):
            heard.append(ids(documents))

    adapter = CoderRetriever(retriever=hotels, k=1)
    adapter.invoke("sea", config={"callbacks": [Listener()]})
    assert heard == ["sea", ["sea"]]


def test_a_client_answers_as_the_index_does(hotels: Retriever, server: Server):
    with Client(server.url) as client:
        remote = CoderRetriever(retriever=client, k=2).invoke(QUERY)
    assert remote == CoderRetriever(retriever=hotels, k=2).invoke(QUERY)


def test_an_async_client_is_awaited(hotels: Retriever, server: Server):
    async def search():
        async with AsyncClient(server.url) as client:
            return await CoderRetriever(retriever=client, k=2).ainvoke(QUERY)

    assert asyncio.run(search()) == CoderRetriever(retriever=hotels, k=2).invoke(QUERY)
