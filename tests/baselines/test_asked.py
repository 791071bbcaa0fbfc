"""A language model that reads queries, asked over a real server on this machine."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coder_ir.baselines import HyDE
from coder_ir.baselines.asked import Asked
from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Intents, ParserDecomposer
from coder_ir.errors import MissingExtra
from coder_ir.retriever import Retriever
from coder_ir.types import Document
from tests.language_server import Desk, Reply

pytest.importorskip("openai", reason="needs the extra llm")

QUERY = "a quiet hotel, nothing near nightlife"
FORMULA = "∃x (Hotel(x) ∧ ¬Nightlife(x))"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Desk("sk-asked-0123456789", monkeypatch) as opened:
        yield opened


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "answers.sqlite"


def split(*positive: str, negative: tuple[str, ...] = ()) -> Reply:
    return Reply(json.dumps({"positive": positive, "negative": negative}))


class TestIntents:
    def test_they_are_what_the_answer_says(self, desk: Desk):
        server = desk.server(split("quiet hotel", "calm inn", negative=("nightlife",)))
        found = Asked(desk.model(server)).intents(QUERY)
        assert found == Intents(("quiet hotel", "calm inn"), ("nightlife",))

    def test_the_query_is_in_the_question_and_nothing_is_left_to_chance(self, desk: Desk):
        server = desk.server(split("hotel"))
        Asked(desk.model(server)).intents(QUERY)
        assert f"Query: {QUERY}\n" in server.prompts[0]
        assert server.requests[0]["temperature"] == 0

    def test_phrases_without_a_word_are_left_out(self, desk: Desk):
        server = desk.server(split(" ", " quiet hotel\n", negative=("", "nightlife ")))
        found = Asked(desk.model(server)).intents(QUERY)
        assert found == Intents(("quiet hotel",), ("nightlife",))

    @pytest.mark.parametrize("positive", [(), ("", "  ")], ids=["none", "blank ones"])
    def test_where_nothing_is_wanted_the_query_stands_for_itself(
        self, desk: Desk, positive: tuple[str, ...]
    ):
        server = desk.server(split(*positive, negative=("nightlife",)))
        assert Asked(desk.model(server)).intents(QUERY) == Intents((QUERY,), ("nightlife",))


class TestPassages:
    def test_each_is_a_draw_of_its_own_at_the_temperature(self, desk: Desk):
        server = desk.server(Reply("One."), Reply("Two."), Reply("Three."))
        asked = Asked(desk.model(server), temperature=0.9)
        assert asked.passages(QUERY, 3) == ["One.", "Two.", "Three."]
        assert [request["temperature"] for request in server.requests] == [0.9] * 3
        assert len(set(server.prompts)) == 1
        assert server.prompts[0].endswith(f"Query: {QUERY}")

    def test_draws_are_kept_apart(self, desk: Desk, cache: Path):
        server = desk.server(Reply("One."), Reply("Two."), Reply("Three."))
        Asked(desk.model(server, cache=cache)).passages(QUERY, 2)
        again = Asked(desk.model(server, cache=cache))
        assert again.passages(QUERY, 3) == ["One.", "Two.", "Three."]
        assert len(server.requests) == 3

    def test_another_temperature_is_another_draw(self, desk: Desk, cache: Path):
        server = desk.server(Reply("One."), Reply("Two."))
        Asked(desk.model(server, cache=cache), temperature=0.2).passages(QUERY, 1)
        other = Asked(desk.model(server, cache=cache), temperature=0.3)
        assert other.passages(QUERY, 1) == ["Two."]

    def test_hyde_searches_with_all_it_asked_for(self, desk: Desk, retriever: Retriever):
        retriever.add([Document("club", "club noisy"), Document("sea", "garden sea")])
        server = desk.server(Reply("garden"), Reply("sea"))
        base = Indexed(retriever.encoder, retriever.store)
        found = HyDE(base, Asked(desk.model(server)), n=3).search("club", 2)
        assert [hit.doc_id for hit in found] == ["sea", "club"]
        assert len(server.requests) == 3


class TestFormula:
    @pytest.mark.parametrize(
        ("read", "named"),
        [
            (lambda asked: asked.formula(QUERY), "this search query"),
            (lambda asked: asked.formulas([QUERY])[0], "this passage"),
        ],
        ids=["query", "document"],
    )
    def test_the_question_names_what_is_read(
        self, desk: Desk, read: Callable[[Asked], str], named: str
    ):
        server = desk.server(Reply(FORMULA))
        assert read(Asked(desk.model(server))) == FORMULA
        assert server.prompts[0].startswith(f"Translate {named} into first-order logic")
        assert server.prompts[0].endswith(f"\n\n{QUERY}")
        assert server.requests[0]["temperature"] == 0

    def test_a_document_is_read_up_to_its_two_thousandth_character(self, desk: Desk):
        server = desk.server(Reply(FORMULA))
        Asked(desk.model(server)).formulas(["x" * 1999 + "yz"])[0]
        assert server.prompts[0].endswith("xy")

    def test_a_document_is_asked_about_once_without_a_cache_too(self, desk: Desk):
        server = desk.server(Reply(FORMULA))
        asked = Asked(desk.model(server))
        assert asked.formulas(["one", "two", "one"]) == asked.formulas(["two", "one", "two"])
        assert len(server.requests) == 2

    def test_documents_are_read_by_their_words_without_a_request(self, desk: Desk):
        server = desk.server(Reply(FORMULA))
        asked = Asked(desk.model(server), documents=ParserDecomposer())
        text = "Back rooms are silent."
        assert asked.formulas([text])[0] == ParserDecomposer().formulas([text])[0]
        assert server.requests == []

    def test_reading_documents_so_leaves_queries_to_the_model(self, desk: Desk):
        server = desk.server(Reply(FORMULA))
        asked = Asked(desk.model(server), documents=ParserDecomposer())
        assert asked.formula(QUERY) == FORMULA
        assert len(server.requests) == 1


def test_what_was_answered_before_is_not_asked_again(desk: Desk, cache: Path):
    server = desk.server(split("hotel"), Reply("One."), Reply(FORMULA))

    def read() -> tuple[Intents, list[str], str]:
        asked = Asked(desk.model(server, cache=cache))
        return asked.intents(QUERY), asked.passages(QUERY, 1), asked.formula(QUERY)

    assert read() == read() == (Intents(("hotel",)), ["One."], FORMULA)
    assert len(server.requests) == 3


def test_tables_call_it_by_the_models_name(desk: Desk):
    assert Asked(desk.model(desk.server(Reply()))).name == "small"


def test_without_the_extra_the_message_says_what_to_install(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    model = desk.model(desk.server(Reply()))
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(MissingExtra, match=r"pip install 'coder-ir\[llm\]'"):
        Asked(model)
