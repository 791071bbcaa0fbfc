"""The component for Haystack, in Haystack's own pipelines."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("haystack", reason="needs Haystack: the extra haystack")

from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.core.errors import DeserializationError
from haystack.utils import Secret

from coder_ir import Condition, Document, Sequential
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.integrations.haystack import CoderRetriever
from coder_ir.policies import POLICIES
from coder_ir.retriever import Retriever
from tests.integrations.conftest import GatedEncoder
from tests.integrations.gate import while_the_loop_runs
from tests.serve.live import Server

QUERY = "hotel by the sea"
SNACKS = [
    Document("nuts", "A bar with roasted nuts."),
    Document("oats", "A bar of oats and honey, free of nuts."),
]


def ids(found) -> list[str]:
    return [document.id for document in found["documents"]]


def alone(component: CoderRetriever) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("retriever", component)
    return pipeline


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder, built with the built-in model."""
    folder = tmp_path_factory.mktemp("snacks") / "index"
    with Retriever.open(folder) as retriever:
        retriever.add(SNACKS)
    return str(folder)


def test_documents_come_in_the_order_of_the_search_with_its_scores(hotels: Retriever):
    found = CoderRetriever(hotels).run(QUERY)
    ranking = hotels.search(QUERY)
    assert ids(found) == [hit.doc_id for hit in ranking]
    assert [document.score for document in found["documents"]] == [hit.score for hit in ranking]


def test_a_document_has_the_text_and_says_why_it_is_there(hotels: Retriever):
    [found] = CoderRetriever(hotels, k=1).run(QUERY)["documents"]
    assert found.content == "hotel by the sea"
    assert found.meta["stars"] == 5
    assert found.meta["coder_reason"] == hotels.search(QUERY, k=1)[0].reason


def test_a_pipeline_passes_documents_on(hotels: Retriever):
    pipeline = alone(CoderRetriever(hotels, k=1))
    template = "{% for d in documents %}{{ d.content }}{% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    answer = pipeline.run({"retriever": {"query": QUERY}})
    assert answer["prompt"]["prompt"] == "hotel by the sea"


def test_a_run_can_change_options_for_itself(hotels: Retriever):
    pipeline = alone(CoderRetriever(hotels, k=3))
    changed = {"query": QUERY, "exclude": ["sea"], "mode": "hard", "where": ["stars>3"]}
    assert ids(pipeline.run({"retriever": changed})["retriever"]) == ["rose"]
    assert len(ids(pipeline.run({"retriever": {"query": QUERY}})["retriever"])) == 3


def test_a_mistyped_keyword_is_an_error(hotels: Retriever):
    with pytest.raises(InvalidValue, match="no option 'top_k'"):
        CoderRetriever(hotels, top_k=3)


def test_a_mistyped_input_is_an_error(hotels: Retriever):
    with pytest.raises(InvalidValue, match="no option 'top_k'"):
        CoderRetriever(hotels).run(QUERY, top_k=3)
    with pytest.raises(ValueError, match="top_k"):
        alone(CoderRetriever(hotels)).run({"retriever": {"query": QUERY, "top_k": 3}})


def test_an_async_run_leaves_the_loop_free(hotels: Retriever, gated: GatedEncoder):
    component = CoderRetriever(hotels, k=2)
    found = while_the_loop_runs(gated, lambda: component.run_async(QUERY))
    assert found == component.run(QUERY)


def test_an_async_pipeline_leaves_the_loop_free(hotels: Retriever, gated: GatedEncoder):
    pipeline = alone(CoderRetriever(hotels, k=2))
    asked = {"retriever": {"query": QUERY}}
    found = while_the_loop_runs(gated, lambda: pipeline.run_async(asked))
    assert found == pipeline.run(asked)


def test_a_pipeline_that_was_written_to_yaml_finds_the_same(index: str):
    component = CoderRetriever(
        index=index,
        k=1,
        policy=Sequential(alpha=0.4),
        where=["year!=2019", Condition("year", "!=", (2020,))],
        exclude=["nuts"],
        max_risk=0.9,
    )
    first = alone(component)
    second = Pipeline.loads(first.dumps(), allowed_modules=["coder_ir.integrations.haystack"])
    asked = {"retriever": {"query": "a bar without nuts"}}
    copy = second.get_component("retriever")
    assert isinstance(copy, CoderRetriever)
    assert copy.options.policy == Sequential(alpha=0.4)
    assert second.dumps() == first.dumps()
    assert ids(second.run(asked)["retriever"]) == ids(first.run(asked)["retriever"]) == ["oats"]
    component.close()
    copy.close()


def test_haystack_asks_for_leave_to_load_it(index: str):
    text = alone(CoderRetriever(index=index)).dumps()
    with pytest.raises(DeserializationError, match=r"coder_ir\.integrations\.haystack"):
        Pipeline.loads(text)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_policy_survives_a_file(policy):
    component = CoderRetriever(index="somewhere", policy=policy)
    assert CoderRetriever.from_dict(component.to_dict()).options == component.options


def test_a_policy_of_ones_own_cannot_be_written():
    class Mine:
        name = "mine"
        spaces = ("topical",)

        def order(self, pool):
            raise NotImplementedError

    with pytest.raises(InvalidValue, match="can hold the policies auto, topical"):
        CoderRetriever(index="somewhere", policy=Mine()).to_dict()


def test_a_policy_setting_that_is_not_there_is_an_error():
    data = CoderRetriever(index="somewhere", policy=Sequential()).to_dict()
    data["init_parameters"]["policy"]["beta"] = 1
    with pytest.raises(InvalidValue, match=r"policy seq: .*beta"):
        CoderRetriever.from_dict(data)


def test_an_open_retriever_cannot_be_written(hotels: Retriever):
    with pytest.raises(InvalidValue, match="cannot hold a Retriever; name the place with index="):
        CoderRetriever(hotels).to_dict()


def test_a_token_is_written_as_the_name_of_its_variable():
    component = CoderRetriever(url="http://localhost:1", token=Secret.from_env_var("CODER_TOKEN"))
    assert component.to_dict()["init_parameters"]["token"]["env_vars"] == ["CODER_TOKEN"]
    assert CoderRetriever.from_dict(component.to_dict()).token == component.token


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({}, "name one place"),
        ({"index": "a", "url": "http://b"}, "name one place"),
        ({"url": "http://b", "hybrid": True}, "say how to open an index"),
        ({"index": "a", "token": Secret.from_token("t")}, "token is for a server"),
    ],
    ids=["none", "two", "hybrid of a server", "token of a folder"],
)
def test_places_that_do_not_go_together_are_refused(places, said):
    with pytest.raises(InvalidValue, match=said):
        CoderRetriever(**places)


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path):
    component = CoderRetriever(index=str(tmp_path / "absent"))
    with pytest.raises(NotFound, match="no index in"):
        component.warm_up()
    assert not (tmp_path / "absent").exists()


def test_many_first_runs_at_once_open_one_index(index: str, monkeypatch: pytest.MonkeyPatch):
    opened = []
    real = Retriever.open

    def counted(*args, **options):
        opened.append(real(*args, **options))
        return opened[-1]

    monkeypatch.setattr(Retriever, "open", counted)
    component = CoderRetriever(index=index, k=1)

    async def together():
        return await asyncio.gather(*(component.run_async("bar of oats") for _ in range(4)))

    assert [ids(found) for found in asyncio.run(together())] == [["oats"]] * 4
    assert len(opened) == 1
    component.close()


def test_a_server_answers_as_the_index_does(hotels: Retriever, server: Server):
    component = CoderRetriever(url=server.url, k=2)
    assert component.run(QUERY) == CoderRetriever(hotels, k=2).run(QUERY)
    component.close()
