"""Which passages a verifier is given, and what becomes of the order; over a fake one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coder_ir import Document, Retriever
from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Auto, TopicalOnly
from coder_ir.search.verify import DEPTH, best_passages, read_first, takes_readings
from coder_ir.stores import SqliteStore
from coder_ir.types import Candidates, Constraint, Order, Passage, Ranking, Reading, Span, Verdict
from tests.conftest import FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier, satisfying, silent, violating

STATED = Constraint(1.0, ("noise",))
AUTO = Auto(strength=0, exclusion=0, firmness=0)


def pool_of(
    topical: Sequence[float],
    *,
    ids: Sequence[str] | None = None,
    constraint: Constraint | None = STATED,
    near_duplicates: tuple[tuple[int, int], ...] = (),
) -> Candidates:
    names = ids or [f"d{i:02}" for i in range(len(topical))]
    return Candidates(
        names,
        [Passage(0, Span(0, 1))] * len(names),
        np.array(topical, dtype=np.float64),
        np.zeros(len(names)),
        constraint,
        near_duplicates=near_duplicates,
    )


class Reader:
    """Reads what it is told of each position, and keeps which it was given."""

    def __init__(self, said: dict[int, Reading] | None = None) -> None:
        self.said = said or {}
        self.given: list[int] = []

    def __call__(self, positions: Sequence[int]) -> list[Reading]:
        self.given += positions
        return [self.said.get(position, silent()) for position in positions]


def read(
    pool: Candidates, reader: Reader, *, policy: Auto = AUTO, depth: int = DEPTH
) -> tuple[Candidates, list[int]]:
    found, order = read_first(pool, policy.order(pool), policy, reader, depth=depth)
    return found, [verdict.position for verdict in order.kept]


def test_under_a_constraint_the_first_passages_are_read_best_first():
    reader = Reader()
    read(pool_of([0.3, 0.9, 0.5]), reader)
    assert reader.given == [1, 2, 0]


def test_no_more_are_read_than_the_depth():
    reader = Reader()
    pool, _ = read(pool_of([0.3, 0.9, 0.5]), reader, depth=2)
    assert reader.given == [1, 2]
    assert list(pool.readings) == [None, silent(), silent()]


def test_of_a_document_its_best_passage_alone_is_read():
    reader = Reader()
    read(pool_of([0.3, 0.9, 0.5], ids=["a", "a", "b"]), reader, depth=2)
    assert reader.given == [1, 2]


def test_the_order_is_that_of_what_was_read():
    pool, order = read(pool_of([0.9, 0.85, 0.84]), Reader({0: violating(), 2: satisfying()}))
    assert order == [2, 1, 0]
    assert list(pool.readings) == [violating(), silent(), satisfying()]


def test_a_document_past_the_depth_keeps_its_score():
    pool = pool_of([0.9, 0.8, 0.7, 0.2, 0.1])
    reader = Reader(dict.fromkeys(range(5), violating()))
    _, order = read_first(pool, AUTO.order(pool), AUTO, reader, depth=1)
    scores = {verdict.position: verdict.score for verdict in order.kept}
    assert [scores[i] for i in (1, 2, 3, 4)] == pytest.approx([0.8, 0.7, 0.2, 0.1])
    assert scores[0] < 0.7


@pytest.mark.parametrize("constraint", [None, Constraint(0.4, ("noise",))], ids=["-", "0.4"])
def test_without_a_constraint_only_near_duplicates_are_read(constraint: Constraint | None):
    reader = Reader({2: satisfying(), 1: violating()})
    pool = pool_of([0.6, 0.9, 0.7, 0.8], constraint=constraint, near_duplicates=((1, 2),))
    found, order = read(pool, reader)
    assert reader.given == [1, 2]
    assert order == [2, 1, 3, 0]
    assert list(found.readings) == [None, violating(), satisfying(), None]


def test_no_more_near_duplicates_are_read_than_the_depth():
    reader = Reader()
    pairs = ((0, 1), (2, 3))
    read(pool_of([0.6, 0.9, 0.7, 0.8], constraint=None, near_duplicates=pairs), reader, depth=3)
    assert reader.given == [0, 1, 2]


@pytest.mark.parametrize(
    ("pool", "depth"),
    [
        (pool_of([0.9, 0.8], constraint=None), 20),
        (pool_of([0.9, 0.8]), 0),
        (pool_of([0.9, 0.8], constraint=None, near_duplicates=((0, 1),)), 0),
        (pool_of([]), 20),
    ],
    ids=["nothing near", "depth 0", "depth 0, near-duplicates", "empty"],
)
def test_where_nothing_is_to_be_read_the_order_stands(pool: Candidates, depth: int):
    order = AUTO.order(pool)
    reader = Reader()
    assert read_first(pool, order, AUTO, reader, depth=depth) == (pool, order)
    assert reader.given == []


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "auto"])
def test_for_a_policy_that_uses_no_readings_nothing_is_read(name: str):
    pool, policy, reader = pool_of([0.9, 0.8]), POLICIES[name], Reader()
    order = policy.order(pool)
    assert read_first(pool, order, policy, reader, depth=20) == (pool, order)
    assert reader.given == []


def test_a_policy_says_itself_whether_it_uses_readings():
    assert takes_readings(Auto())
    assert not takes_readings(replace(Auto(), uses_readings=False))
    assert not takes_readings(TopicalOnly())


def test_the_best_passage_of_a_document_is_its_first_kept_one():
    pool = pool_of([0.1, 0.2, 0.3, 0.4], ids=["a", "a", "b", "c"])
    kept = [Verdict(2, 0.3, ""), Verdict(1, 0.2, ""), Verdict(0, 0.1, "")]
    assert best_passages(Order(kept, [Verdict(3, 0.4, "")]), pool) == [2, 1]


# --- in a search

ROOMS = [
    Document("loud", "hotel hotel hotel garden. The street brings noise."),
    Document("calm", "hotel hotel garden. There is no noise."),
    Document("mute", "hotel hotel garden. Nothing else."),
]


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Retriever]:
    encoder, store = FakeEncoder(["hotel", "garden", "sea"]), SqliteStore(tmp_path / "index")
    with Retriever(encoder, store, parser=FakeParser(), verifier=FakeVerifier()) as opened:
        opened.add(ROOMS)
        yield opened


def ids(ranking: Ranking) -> list[str]:
    return [hit.doc_id for hit in ranking]


def asked(retriever: Retriever) -> list[tuple[str, list[str]]]:
    assert isinstance(retriever.verifier, FakeVerifier)
    return retriever.verifier.asked


def test_a_search_under_a_constraint_has_its_first_hits_read(rooms: Retriever):
    ranking = rooms.search("hotel without noise", policy=AUTO)
    assert ids(ranking) == ["calm", "mute", "loud"]
    ((query, texts),) = asked(rooms)
    assert query == "hotel without noise"
    assert sorted(texts) == sorted(document.content for document in ROOMS)
    assert {hit.doc_id: hit.reason for hit in ranking} == {
        "calm": "Fits “no noise”: “There is no noise.”",
        "mute": "Says nothing about “noise”.",
        "loud": "Goes against “no noise”: “The street brings noise.”",
    }


def test_options_enter_what_the_verifier_is_asked(rooms: Retriever):
    rooms.search("hotel", exclude=["noise"], require=["a lift"])
    assert [query for query, _ in asked(rooms)] == ["hotel, without noise, with a lift"]


def test_twenty_documents_are_read_and_a_named_number_instead(rooms: Retriever):
    rooms.add([Document(f"more-{i}", f"hotel sea number {i}") for i in range(30)])
    rooms.search("hotel without noise")
    rooms.search("hotel without noise", verify=2)
    rooms.search("hotel without noise", verify=25)
    assert [len(texts) for _, texts in asked(rooms)] == [20, 2, 25]


@pytest.mark.parametrize(
    "options",
    [{"verify": 0}, {"policy": "seq"}, {"policy": "union"}, {"policy": "topical"}],
    ids=str,
)
def test_a_search_that_does_without_reads_nothing(rooms: Retriever, options: dict[str, object]):
    ranking = rooms.search("hotel without noise", **options)  # type: ignore[arg-type]
    assert asked(rooms) == []
    assert {hit.reading for hit in ranking} == {None}


def test_a_search_without_a_constraint_reads_nothing_unless_near_duplicates(rooms: Retriever):
    assert ids(rooms.search("hotel")) == ["loud", "calm", "mute"]
    assert asked(rooms) == []
    rooms.add([Document("mute again", "hotel hotel garden. Nothing else at all.")])
    rooms.search("hotel")
    assert asked(rooms) == [
        ("hotel", ["hotel hotel garden. Nothing else.", "hotel hotel garden. Nothing else at all."])
    ]


def test_near_duplicates_are_told_apart_and_only_they(rooms: Retriever):
    class Exact(FakeVerifier):
        def _read(self, query: str, passage: str) -> Reading:
            return satisfying() if "late" in passage else violating()

    rooms.verifier = Exact()
    pair = [
        Document("early", "hotel hotel garden. The bar opens early on all days."),
        Document("late", "hotel hotel hotel garden garden. The bar opens late on all days."),
    ]
    rooms.add(pair)
    before = rooms.search("hotel", verify=0)
    after = rooms.search("hotel")
    assert ids(before) == ["loud", "calm", "early", "mute", "late"]
    assert [doc_id for doc_id in ids(after) if doc_id in ("early", "late")] == ["late", "early"]
    old, new = ({hit.doc_id: hit.score for hit in ranking} for ranking in (before, after))
    assert new["late"] == old["early"]
    assert new["early"] < old["early"]
    assert all(new[doc_id] == old[doc_id] for doc_id in ("loud", "calm", "mute"))


def test_a_title_is_read_with_the_text(rooms: Retriever):
    rooms.add([Document("named", "hotel.", "No noise")])
    rooms.search("hotel without noise")
    assert "No noise hotel." in asked(rooms)[0][1]


def test_a_policy_that_uses_no_readings_refuses_a_named_number(rooms: Retriever):
    with pytest.raises(InvalidValue, match="takes no account of a verifier's word"):
        rooms.search("hotel", policy="seq", verify=5)
