"""The adapter for LlamaIndex, in LlamaIndex's own hands."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs LlamaIndex: the extra llama-index")

from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MetadataMode

from coder_ir import Client, Document
from coder_ir.errors import InvalidValue
from coder_ir.integrations.llama_index import CoderRetriever
from coder_ir.retriever import Retriever
from tests.integrations.conftest import GatedEncoder
from tests.integrations.gate import while_the_loop_runs
from tests.serve.live import Server

QUERY = "hotel by the sea"
OFFLINE = """
import socket, sys
def refuse(*_): raise OSError("the network was asked for")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from coder_ir import Document, Retriever
from coder_ir.integrations.llama_index import CoderRetriever
from coder_ir.stores import SqliteStore
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
store = SqliteStore(__import__("pathlib").Path(sys.argv[1]))
with Retriever(FakeEncoder(["sea"]), store, verifier=FakeVerifier()) as own:
    own.add([Document("sea", "by the sea")])
    sys.stdout.write(CoderRetriever(own).retrieve("sea")[0].node.node_id)
"""


def ids(nodes) -> list[str]:
    return [node.node.node_id for node in nodes]


def test_nodes_come_in_the_order_of_the_search_with_its_scores(hotels: Retriever):
    found = CoderRetriever(hotels).retrieve(QUERY)
    ranking = hotels.search(QUERY)
    assert ids(found) == [hit.doc_id for hit in ranking]
    assert [node.score for node in found] == [hit.score for hit in ranking]


def test_a_node_has_the_text_and_says_why_it_is_there(hotels: Retriever):
    [found] = CoderRetriever(hotels, k=1).retrieve(QUERY)
    assert found.text == "hotel by the sea"
    assert found.metadata["stars"] == 5
    assert found.metadata["coder_reason"] == hotels.search(QUERY, k=1)[0].reason


@pytest.mark.parametrize("mode", [MetadataMode.LLM, MetadataMode.EMBED], ids=["llm", "embed"])
@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("quiet garden", {"stars: 4", "coder_rank: own", "coder_title: Rose"}),
        ("sea", {"stars: 5"}),
    ],
    ids=["titled", "untitled"],
)
def test_a_model_reads_the_documents_own_metadata_and_a_title_alone(
    hotels: Retriever, mode: MetadataMode, query: str, read: set[str]
):
    [found] = CoderRetriever(hotels, k=1).retrieve(query)
    assert set(found.node.get_metadata_str(mode).splitlines()) == read


def test_two_documents_with_one_text_both_come_back(hotels: Retriever):
    hotels.add([Document("sea again", "hotel by the sea", "", {"stars": 5})])
    assert ids(CoderRetriever(hotels, k=2).retrieve(QUERY)) == ["sea", "sea again"]


def test_keywords_say_how_to_search(hotels: Retriever):
    found = CoderRetriever(hotels, where=["stars>3"], exclude=["sea"], mode="hard").retrieve(QUERY)
    assert ids(found) == ["rose"]


def test_a_mistyped_keyword_is_an_error(hotels: Retriever):
    with pytest.raises(InvalidValue, match="no option 'similarity_top_k'"):
        CoderRetriever(hotels, similarity_top_k=3)


def test_an_async_call_leaves_the_loop_free(hotels: Retriever, gated: GatedEncoder):
    adapter = CoderRetriever(hotels, k=2)
    found = while_the_loop_runs(gated, lambda: adapter.aretrieve(QUERY))
    assert found == adapter.retrieve(QUERY)


def test_a_query_engine_reads_what_it_finds(hotels: Retriever):
    model = MockLLM()
    engine = RetrieverQueryEngine(CoderRetriever(hotels, k=1), get_response_synthesizer(llm=model))
    answer = engine.query(QUERY)
    assert ids(answer.source_nodes) == ["sea"]
    assert "hotel by the sea" in str(answer)


def test_callbacks_hear_of_a_search(hotels: Retriever):
    listener = LlamaDebugHandler(print_trace_on_end=False)
    CoderRetriever(hotels, callback_manager=CallbackManager([listener])).retrieve(QUERY)
    assert len(listener.get_event_pairs(CBEventType.RETRIEVE)) == 1


def test_a_client_answers_as_the_index_does(hotels: Retriever, server: Server):
    with Client(server.url) as client:
        remote = CoderRetriever(client, k=2).retrieve(QUERY)
    assert remote == CoderRetriever(hotels, k=2).retrieve(QUERY)


def test_neither_import_nor_search_asks_for_the_network(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path / "index")],
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("sea", 0), done.stderr
