"""What the adapters share."""

import asyncio
import math
from dataclasses import fields, replace

import pytest

from coder_ir.errors import InvalidValue
from coder_ir.integrations.asking import Options, ask, ask_async, changed, metadata
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import Hit, Ranking
from tests.integrations.conftest import GatedEncoder
from tests.integrations.gate import while_the_loop_runs


def best(retriever: Retriever, query: str) -> Hit:
    return retriever.search(query, k=1)[0]


class Awaited:
    """A retriever whose answers are awaited."""

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever

    async def search_many(self, queries: list[str], options: SearchOptions) -> list[Ranking]:
        return self.retriever.search_many(queries, options)


def test_the_keywords_are_the_search_options():
    assert list(Options.__annotations__) == [field.name for field in fields(SearchOptions)]


def test_options_are_changed_by_name():
    assert changed(SearchOptions(n=7), {"k": 3}) == SearchOptions(k=3, n=7)


def test_an_unknown_option_is_refused():
    with pytest.raises(InvalidValue, match="no option 'exlude'; the options are k, policy"):
        changed(SearchOptions(), {"exlude": ["nuts"]})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"policy": "best"}, "policy must be one of"),
        ({"where": ["stars"]}, "a condition reads"),
        ({"k": 0}, "k must be at least 1"),
        ({"exclude": "nuts"}, "exclude takes a list"),
    ],
    ids=["policy", "condition", "number", "text for a list"],
)
def test_an_option_that_cannot_work_is_refused_before_any_search(changes, said):
    with pytest.raises(InvalidValue, match=said):
        changed(SearchOptions(), changes)


def test_a_hit_tells_what_the_search_found(hotels: Retriever):
    hit = best(hotels, "hotel by the sea")
    assert metadata(hit) == {
        "stars": 5,
        "coder_doc_id": "sea",
        "coder_title": "",
        "coder_rank": 1,
        "coder_score": hit.score,
        "coder_topical": hit.topical,
        "coder_compatibility": hit.compatibility,
        "coder_risk": None,
        "coder_reason": hit.reason,
    }


def test_a_document_keeps_its_own_key(hotels: Retriever):
    told = metadata(best(hotels, "quiet garden"))
    assert (told["coder_doc_id"], told["coder_rank"]) == ("rose", "own")


def test_the_deciding_sentence_is_told_where_it_was_looked_for(hotels: Retriever):
    [hit] = hotels.search("hotel by the sea", k=1, explain=True)
    assert metadata(hit)["coder_decisive"] == "hotel by the sea"


def test_a_score_that_is_not_there_is_none(hotels: Retriever):
    hit = replace(best(hotels, "sea"), compatibility=math.nan)
    assert metadata(hit)["coder_compatibility"] is None


def test_a_search_leaves_the_loop_free(hotels: Retriever, gated: GatedEncoder):
    options = SearchOptions(k=1)
    ranking = while_the_loop_runs(gated, lambda: ask_async(hotels, "hotel by the sea", options))
    assert ranking == ask(hotels, "hotel by the sea", options)


def test_an_awaited_retriever_is_awaited(hotels: Retriever):
    options = SearchOptions(k=1)
    ranking = asyncio.run(ask_async(Awaited(hotels), "sea", options))
    assert ranking == ask(hotels, "sea", options)


def test_an_awaited_retriever_is_refused_in_a_plain_call(hotels: Retriever):
    with pytest.raises(InvalidValue, match="Awaited answers awaited calls alone"):
        ask(Awaited(hotels), "sea", SearchOptions())
