"""search and run with a verifier: what is read, what is ranked, and how commands exit.

The fake encoder and a verifier that looks for one word make every order one to work out by hand.
"""

from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path

import numpy as np
import pytest

from coder_ir import Document, Ranking, Retriever, Sequential
from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidValue
from coder_ir.searching import SearchOptions
from coder_ir.stores import SqliteStore
from coder_ir.types import Scores
from tests.conftest import Command, FakeEncoder, FakeParser


class Reader:
    """A verifier that finds a bar in the words, whatever the vectors say.

    It is so sure that its logits are worth nine tenths of cosine.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    def read(self, query: str, passages: Sequence[str]) -> Scores:
        self.calls.append((query, list(passages)))
        return np.array([-30.0 if "bar" in text else 30.0 for text in passages])


WORDS = ["hotel", "sea", "garden"]
HOTELS = [
    Document("first", "hotel hotel hotel. A bar is below."),
    Document("second", "hotel hotel sea-. All is still."),
    Document("third", "hotel hotel sea- garden-. All is still."),
]
QUERY = "hotel without noise"
TYPED = "hotel -noise"  # certain, whatever the trained parser that commands use makes of the rest


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Three hotels in this topical order."""
    with Retriever(FakeEncoder(WORDS), SqliteStore(tmp_path / "index")) as retriever:
        retriever.add(HOTELS)
    return tmp_path / "index"


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def hotels(index: Path, reader: Reader) -> Iterator[Retriever]:
    store, parser = SqliteStore(index), FakeParser()
    with Retriever(FakeEncoder(WORDS), store, verifier=reader, parser=parser) as retriever:
        yield retriever


def found(ranking: Ranking) -> list[str]:
    return [hit.doc_id for hit in ranking]


class TestRetriever:
    def test_a_verifier_puts_down_what_the_vectors_could_not(self, hotels: Retriever):
        assert found(hotels.search(QUERY)) == ["first", "second", "third"]
        assert found(hotels.search(QUERY, verify=3)) == ["second", "third", "first"]

    def test_a_verified_hit_carries_the_reading_as_compatibility(self, hotels: Retriever):
        hits = {hit.doc_id: hit for hit in hotels.search(QUERY, verify=2)}
        plain = {hit.doc_id: hit for hit in hotels.search(QUERY)}
        # Each has the query's one word in the compatibility space: a cosine of 1, but for 0.00002.
        assert hits["first"].compatibility == pytest.approx(1 - 0.9, abs=1e-4)
        assert hits["second"].compatibility == 1
        assert hits["third"].compatibility == plain["third"].compatibility

    def test_the_first_documents_are_read_once_with_the_query(
        self, hotels: Retriever, reader: Reader
    ):
        hotels.search(QUERY, verify=2)
        [(query, passages)] = reader.calls
        assert query == QUERY
        assert sorted(passages) == [HOTELS[0].text, HOTELS[1].text]

    def test_a_phrase_given_beside_the_query_is_read_with_it(
        self, hotels: Retriever, reader: Reader
    ):
        hotels.search("hotel", exclude=["bar"], verify=1)
        assert reader.calls[0][0] == "hotel, without bar"

    def test_without_verify_nothing_is_read(self, hotels: Retriever, reader: Reader):
        hotels.search(QUERY)
        assert reader.calls == []

    @pytest.mark.parametrize("verify", [3, 4, 1000])
    def test_more_than_the_index_holds_means_all(self, hotels: Retriever, verify: int):
        assert found(hotels.search(QUERY, verify=verify)) == ["second", "third", "first"]

    def test_what_is_past_k_may_be_read_into_the_hits(self, hotels: Retriever):
        assert found(hotels.search(QUERY, k=1, verify=2)) == ["second"]

    def test_where_nothing_is_found_nothing_is_read(self, hotels: Retriever, reader: Reader):
        assert found(hotels.search(QUERY, where=["stars>4"], verify=5)) == []
        assert reader.calls == []

    def test_a_policy_that_drops_goes_by_the_reading(self, hotels: Retriever):
        ranking = hotels.search(QUERY, policy=Sequential(tau=0.5), verify=3)
        assert found(ranking) == ["second", "third"]
        assert [gone.doc_id for gone in ranking.filtered] == ["first"]

    def test_max_risk_goes_by_the_reading(self, index: Path, reader: Reader):
        # 1/4 before it is read; 9/10 where it reads badly (0.1), 1/10 where it reads well (1).
        fitted = Calibration(
            Logistic((0.0, 0.0, 0.0), -log(3)),
            read_risk=Logistic((0.0, -log(81) / 0.9, 0.0), log(9) + log(81) / 9),
        )
        opened = Retriever(
            FakeEncoder(WORDS),
            SqliteStore(index),
            calibration=fitted,
            verifier=reader,
            parser=FakeParser(),
        )
        with opened as hotels:
            assert len(hotels.search(QUERY, max_risk=0.5)) == 3
            ranking = hotels.search(QUERY, max_risk=0.5, verify=3)
        assert found(ranking) == ["second", "third"]
        assert [gone.risk for gone in ranking.filtered] == pytest.approx([0.9], abs=1e-4)

    def test_searching_many_reads_each_query_by_itself(self, hotels: Retriever, reader: Reader):
        together = hotels.search_many([QUERY, "hotel sea without bar"], SearchOptions(verify=3))
        assert [query for query, _ in reader.calls] == [QUERY, "hotel sea without bar"]
        assert together[0] == hotels.search(QUERY, verify=3)


class TestLoading:
    @pytest.fixture
    def plain(self, index: Path) -> Iterator[Retriever]:
        """A model that has no verifier."""
        with Retriever(FakeEncoder(WORDS), SqliteStore(index)) as retriever:
            yield retriever

    def test_a_model_without_a_verifier_says_so(self, plain: Retriever):
        said = "verify needs a model with a verifier, which 'fake' is not; leave it out"
        with pytest.raises(InvalidValue, match=said):
            plain.search(QUERY, verify=5)

    def test_it_says_so_even_where_nothing_is_found(self, plain: Retriever):
        with pytest.raises(InvalidValue, match="verify needs a model with a verifier"):
            plain.search(QUERY, where=["stars>4"], verify=5)

    def test_it_is_loaded_at_the_first_search_that_asks_for_it_and_kept(
        self, plain: Retriever, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ):
        loaded: list[object] = []
        monkeypatch.setattr(
            "coder_ir.retriever.load_verifier", lambda encoder: loaded.append(encoder) or reader
        )
        plain.search(QUERY)
        assert loaded == []
        plain.search(QUERY, verify=1)
        plain.search(QUERY, verify=1)
        assert loaded == [plain.encoder]


class TestCommands:
    @pytest.fixture(autouse=True)
    def model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        encoder = FakeEncoder(WORDS)
        monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda spec, runtime: encoder)
        monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda encoder: Reader())

    def test_search_verifies_as_many_as_it_is_told(self, cli: Command, index: Path):
        done = cli("search", index, TYPED, "--verify", 2, "--json")
        assert (done.code, done.err) == (0, "")
        assert [row["doc_id"] for row in done.rows] == ["second", "first", "third"]
        assert done.rows[0]["compatibility"] == 1

    def test_run_orders_as_search_does(self, cli: Command, index: Path, tmp_path: Path):
        (tmp_path / "queries.jsonl").write_text(f'{{"_id": "q", "text": "{TYPED}"}}\n')
        output = tmp_path / "run.trec"
        done = cli("run", index, tmp_path / "queries.jsonl", "-o", output, "--verify", 3)
        assert (done.code, done.out) == (0, ""), done.err
        lines = output.read_text().splitlines()
        assert [line.split()[2] for line in lines] == ["second", "third", "first"]

    def test_a_negative_number_exits_2(self, cli: Command, index: Path):
        done = cli("search", index, QUERY, "--verify", -1)
        assert (done.code, done.out) == (2, "")
        assert "verify must not be negative, got -1" in done.err


def test_a_model_without_a_verifier_exits_2(
    cli: Command, index: Path, monkeypatch: pytest.MonkeyPatch
):
    encoder = FakeEncoder(WORDS)
    monkeypatch.setattr("coder_ir.retriever.load_encoder", lambda spec, runtime: encoder)
    done = cli("search", index, QUERY, "--verify", 5)
    assert (done.code, done.out) == (2, "")
    assert "verify needs a model with a verifier, which 'fake' is not" in done.err
