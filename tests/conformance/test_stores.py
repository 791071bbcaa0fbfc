"""What holds for every store: the same documents and queries give what the embedded one gives.

Another store is one more entry of PLACES.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coder_ir.conditions import parse_condition
from coder_ir.errors import NotFound, StoreError
from coder_ir.lexical import StoredLexical
from coder_ir.policies import POLICIES
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.stores import SqliteStore, open_store
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    Json,
    ModelStamp,
    Record,
    Span,
    Store,
    VectorPair,
)
from coder_ir.vectors import unit_rows
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.postgres import fresh
from tests.stores.test_sqlite import BOTH, DIMENSIONS, EAST, NORTH, pair, random_pair, record

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
Place = Callable[[pytest.FixtureRequest, Path], str]


def embedded(request: pytest.FixtureRequest, folder: Path) -> str:
    return str(folder)


def pgvector(request: pytest.FixtureRequest, folder: Path) -> str:
    return request.getfixturevalue("postgres").address(fresh(), exact="true")


def milvus(request: pytest.FixtureRequest, folder: Path) -> str:
    return request.getfixturevalue("milvus").address(fresh())


def milvus_lite(request: pytest.FixtureRequest, folder: Path) -> str:
    for package in ("pymilvus", "milvus_lite"):
        pytest.importorskip(package, reason="needs the extra milvus")
    return f"milvus-lite:{folder}.db?collection={fresh()}"


PLACES: dict[str, Place] = {
    "embedded": embedded,
    "pgvector": pgvector,
    "milvus": milvus,
    "milvus-lite": milvus_lite,
}


LARGE = ("milvus", "milvus-lite")  # Lite is written in Python, and takes its time


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.large] * (name in LARGE)) for name in PLACES]
)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new INDEX of each store."""
    return PLACES[request.param](request, tmp_path / "index")


@pytest.fixture
def store(index: str) -> Iterator[Store]:
    opened = open_store(index)
    yield opened
    opened.close()


def ids(store: Store, query: VectorPair = NORTH, n: int = 100, *where: str) -> list[str]:
    conditions = [parse_condition(text) for text in where]
    return list(store.candidates(query, n=n, spaces=["topical"], where=conditions).doc_ids)


def same(found: Candidates, expected: Candidates) -> bool:
    """Whether two pools are equal to the last bit."""
    return (
        list(found.doc_ids) == list(expected.doc_ids)
        and list(found.passages) == list(expected.passages)
        and np.array_equal(found.topical, expected.topical)
        and np.array_equal(found.compatibility, expected.compatibility)
        and np.array_equal(found.rows, expected.rows)
    )


# --- documents in, documents out


@pytest.mark.parametrize(
    "document",
    [
        Document("a", "text", "title", {"tags": ["x", None, 1.5, True], "deep": {"a": [1]}}),
        Document("ключ 🗝", "naïve 日本語 🗝", "Über", {"größe": "ß", "b": 1, "a": 2}),
        Document("a", "", "", {"big": 10**30, "bigger": 1e300, "near": 2**53 + 1, "one": 1.0}),
        Document("a", "line\r\nbreak\ttab ' \" ; -- \\N \\. \x01", "$.x", {"\\u0000": "\\u0000"}),
    ],
    ids=["metadata", "unicode", "numbers", "control characters"],
)
def test_a_document_comes_back_as_it_was_written(store, document):
    store.write([Record(document, "digest", [Span(0, 1)], NORTH)])
    assert repr(store.get([document.doc_id])) == repr([document])


def test_documents_come_in_the_order_asked_for(store):
    store.write([record(f"d{i}") for i in range(700)])
    asked = [f"d{i}" for i in (610, 3, 555, 3)]
    assert [document.doc_id for document in store.get(asked)] == asked


def test_an_unknown_id_is_not_found_and_named(store):
    store.write([record("a")])
    with pytest.raises(NotFound, match="no document 'b'"):
        store.get(["a", "b"])
    with pytest.raises(NotFound, match="no document"):
        store.get(["a\0"])


def test_all_documents_come_in_the_order_of_code_points(store):
    names = ["a", "B", "ä", "Z", "z", "_", "10", "9", "é", "日", "🗝", "\uffee", "a b", "a-b", "ab"]
    names += [f"n{i:04}" for i in range(600)]
    store.write([record(name) for name in names])
    assert [document.doc_id for document in store.documents()] == sorted(names)


def test_writing_an_id_again_replaces_all_of_it(store):
    rows = unit_rows(np.eye(3, DIMENSIONS))
    store.write([record("a", VectorPair(rows, rows), metadata={"x": 1}, digest="old")])
    store.write([record("a", EAST, text="new", digest="new")])
    assert store.get(["a"]) == [Document("a", "new", "", {})]
    assert (store.digests(["a", "b"]), store.count()) == ({"a": "new"}, 1)
    found = store.candidates(NORTH, n=10, spaces=BOTH)
    assert (list(found.doc_ids), found.topical.tolist()) == (["a"], [0.0])


def test_delete_returns_how_many_were_there(store):
    store.write([record("a"), record("b"), record("c")])
    assert store.delete(["a", "c", "unknown", "a", "\0"]) == 2
    assert store.delete([]) == 0
    assert (ids(store), store.count()) == (["b"], 1)


def test_a_batch_with_a_bad_record_leaves_nothing_of_itself(store):
    store.write([record("old")])
    two_rows = VectorPair(np.eye(2, DIMENSIONS, dtype=np.float32), NORTH.compatibility)
    with pytest.raises(ValueError, match="shorter"):
        store.write([record("a"), record("old", EAST), record("b", two_rows)])
    with pytest.raises(StoreError):
        store.write([record("a"), record(None)])
    with pytest.raises(StoreError, match="UNIQUE"):
        store.write([record("a"), record("b"), record("a")])
    assert (ids(store), store.count()) == (["old"], 1)
    store.write([record("next")])
    assert ids(store) == ["next", "old"]


def test_the_first_stamp_stays(store, index):
    assert store.stamp() is None
    store.set_stamp(ModelStamp("print", "spec"))
    store.set_stamp(ModelStamp("other", "other"))
    reader = open_store(index, read_only=True)
    assert reader.stamp() == ModelStamp("print", "spec")
    reader.close()


def test_the_state_changes_with_every_write_and_delete_and_never_comes_back(store, index):
    other = open_store(index)
    seen = [store.state()]
    for change in (
        lambda: store.write([record("a")]),
        lambda: other.write([record("a", text="other")]),
        lambda: store.delete(["a"]),
        lambda: other.write([record("a")]),
    ):
        change()
        seen.append(store.state())
        assert other.state() == seen[-1]
    other.close()
    assert len(set(seen)) == len(seen)


# --- opening and closing


def test_documents_survive_closing_and_reopening(index):
    first = open_store(index)
    first.write([record("a", text="kept", metadata={"x": 1}), record("b", EAST)])
    pool, state = first.candidates(NORTH, n=5, spaces=BOTH), first.state()
    first.close()
    second = open_store(index, read_only=True)
    assert second.get(["a"]) == [Document("a", "kept", "", {"x": 1})]
    assert second.state() == state
    assert same(second.candidates(NORTH, n=5, spaces=BOTH), pool)
    second.close()


def test_reading_an_index_that_is_not_there_is_not_found_and_creates_nothing(index):
    for _ in range(2):
        with pytest.raises(NotFound, match="coder-ir index"):
            open_store(index, read_only=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.write([record("b")]),
        lambda store: store.delete(["a"]),
        lambda store: store.set_stamp(ModelStamp("f", "s")),
        lambda store: store.compact(),
    ],
    ids=["write", "delete", "set_stamp", "compact"],
)
def test_a_read_only_store_refuses_to_change(store, index, change):
    store.write([record("a")])
    reader = open_store(index, read_only=True)
    with pytest.raises(StoreError, match="read-only"):
        change(reader)
    reader.close()
    assert (ids(store), store.stamp()) == (["a"], None)


def test_a_closed_store_says_so(index):
    store = open_store(index)
    store.count()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.count()


def test_a_compacted_store_still_answers_and_takes_documents(store):
    store.compact()
    store.write([record(f"{i:02}") for i in range(30)])
    store.delete([f"{i:02}" for i in range(5, 30)])
    store.compact()
    store.write([record("new")])
    assert ids(store) == ["00", "01", "02", "03", "04", "new"]


# --- the pool


def test_a_search_of_an_empty_store_finds_nothing(store):
    found = store.candidates(NORTH, n=5, spaces=BOTH, also=["a"])
    assert (len(found), found.topical.shape, found.compatibility.shape) == (0, (0,), (0,))
    store.write([record("a")])
    store.delete(["a"])
    assert ids(store) == []


def test_equal_scores_at_the_cut_go_to_the_lowest_ids(store):
    tied = pair([1, 1])
    store.write([record(f"{i:03}", tied) for i in np.random.default_rng(1).permutation(300)])
    store.write([record("z1"), record("z2")])
    assert ids(store, NORTH, 5) == ["000", "001", "002", "z1", "z2"]


def test_one_document_of_many_passages_takes_one_place_of_the_n(store):
    many = unit_rows(np.eye(1, DIMENSIONS).repeat(400, axis=0))
    store.write([record("a", VectorPair(many, many)), record("b", pair([1, 1])), record("c", EAST)])
    assert ids(store, NORTH, 2) == ["a", "b"]


def test_a_filter_applies_before_the_cut(store):
    angles = np.linspace(0, np.pi / 2, 300)  # the higher the number, the worse the score
    store.write(
        [
            record(f"{i:03}", pair([np.cos(a), np.sin(a)]), metadata={"rare": i >= 297})
            for i, a in enumerate(angles)
        ]
    )
    assert ids(store, NORTH, 5, "rare=true") == ["297", "298", "299"]
    assert ids(store, NORTH, 5, "rare=true", "rare=false") == []


def worked_over(store: Store) -> None:
    """Adds, replacements and deletes, with ties and long documents."""
    random = np.random.default_rng(42)
    for _ in range(6):
        chosen = random.choice(200, size=50, replace=False)
        store.write(
            [
                record(
                    f"d{i}",
                    random_pair(random, int(random.integers(1, 5))),
                    metadata={"parity": int(i) % 2, "tags": [int(i) % 3, "x"]},
                )
                for i in chosen
            ]
        )
        store.delete([f"d{i}" for i in random.choice(200, size=15, replace=False)])


def test_the_pool_is_that_of_the_embedded_store(store, tmp_path):
    reference = SqliteStore(tmp_path / "reference")
    worked_over(reference)
    worked_over(store)
    random = np.random.default_rng(7)
    compared = 0
    for n in (1, 10, 60, 500):
        for spaces in ((), BOTH[:1], BOTH[1:], BOTH):
            for where in ((), ("parity=1",), ("tags=2", "parity!=0"), ("tags>5",)):
                query = random_pair(random, 1)
                also = [f"d{i}" for i in random.integers(0, 220, size=12)]
                for joining in ((), also):
                    asked = {"n": n, "spaces": spaces, "also": joining}
                    asked["where"] = [parse_condition(text) for text in where]
                    expected = reference.candidates(query, **asked)
                    assert same(store.candidates(query, **asked), expected), asked
                    compared += len(expected)
    reference.close()
    assert compared > 2500


# --- under a retriever


def corpus() -> list[Document]:
    """Texts of marked and unmarked words, some past the encoder's limit, many alike."""
    random = np.random.default_rng(3)
    found = []
    for number in range(60):
        size = int(random.integers(2, 14))
        marks = random.choice(["", "+", "-"], size=size)
        words = [f"{w}{m}" for w, m in zip(random.choice(WORDS, size=size), marks, strict=True)]
        metadata = {"year": 2000 + number % 7, "tags": [WORDS[number % 6]]}
        found.append(Document(f"d{number:02}", " ".join(words), metadata=metadata))
    return found


@pytest.fixture
def both(store: Store, tmp_path: Path) -> Iterator[tuple[Retriever, Retriever]]:
    """A retriever over the store and one over an embedded one, with the same history."""
    reference = SqliteStore(tmp_path / "reference")
    pair = tuple(
        Retriever(FakeEncoder(WORDS, limit=4), one, lexical=None, verifier=FakeVerifier())
        for one in (store, reference)
    )
    for retriever in pair:
        retriever.add(corpus())
        changed = [replace(d, text=f"{d.text} sea+ garden") for d in corpus()[5:20]]
        retriever.add(changed)
        retriever.delete(["d07", "d31", "d32"])
    yield pair
    reference.close()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_ranks_as_over_the_embedded_store(both, policy):
    queries = ["hotel quiet+", "garden sea without noisy", "noisy- club+ hotel", "sea"]
    for where in ((), ("year>2003",), ("tags=sea",), ("year in 2001,2002", "tags!=club")):
        for n in (5, 100):
            options = SearchOptions(k=10, policy=policy, n=n, where=where, exclude=("club",))
            found, expected = (retriever.search_many(queries, options) for retriever in both)
            assert found == expected
            assert any(len(ranking) for ranking in expected)


def test_hybrid_search_ranks_as_over_the_embedded_store(both):
    pytest.importorskip("bm25s", reason="needs the extra hybrid")
    rankings = []
    for retriever in both:
        retriever.lexical = StoredLexical(retriever.store, None)
        rankings.append([retriever.search(q, n=5) for q in ("quiet garden", "hotel sea club")])
    assert rankings[0] == rankings[1]


# --- several at once, and killed in the middle


def test_two_writers_of_the_same_ids_both_succeed(index):
    open_store(index).close()

    def write_all(number: int) -> None:
        mine = open_store(index)
        random = np.random.default_rng(number)
        for turn in range(12):
            order = random.permutation(30)
            rows = random_pair(random, 2)
            mine.write([record(f"d{i:02}", rows, text=f"{number} {turn}") for i in order])
            mine.delete([f"d{i:02}" for i in order[:3]])
        mine.write([record(f"d{i:02}", text=f"{number} last") for i in range(30)])
        mine.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write_all, range(2)))
    store = open_store(index, read_only=True)
    assert [document.doc_id for document in store.documents()] == [f"d{i:02}" for i in range(30)]
    assert ids(store) == [f"d{i:02}" for i in range(30)]
    assert len({document.text for document in store.documents()}) == 1
    store.close()


INGEST = """
import sys
import numpy as np
from coder_ir.stores import open_store
from coder_ir.types import Document, Record, Span, VectorPair

store = open_store(sys.argv[1])
total, batch, width = map(int, sys.argv[2:])
rows = np.eye(4, width, dtype=np.float32)
spans = [Span(i, i + 1) for i in range(4)]
for start in range(0, total, batch):
    wanted = [f"d{i:04}" for i in range(start, start + batch)]
    known = store.digests(wanted)
    missing = [doc_id for doc_id in wanted if doc_id not in known]
    pair, text = VectorPair(rows, rows), "text " * 200
    store.write([Record(Document(d, text), "digest", spans, pair) for d in missing])
    print(start, flush=True)
store.close()
"""
TOTAL, BATCH = 2000, 20


def ingesting(index: str) -> Sequence[str]:
    return [sys.executable, "-c", INGEST, index, str(TOTAL), str(BATCH), str(DIMENSIONS)]


def test_a_client_killed_in_the_middle_and_run_again_leaves_every_document_once(index):
    with subprocess.Popen(ingesting(index), stdout=subprocess.PIPE, text=True) as process:
        for _ in range(3):
            process.stdout.readline()
        process.kill()
    store = open_store(index)
    kept = store.count()
    assert kept % BATCH == 0
    assert 0 < kept < TOTAL
    assert len(ids(store, NORTH, TOTAL)) == kept
    store.close()  # some files are for one process at a time
    subprocess.run(ingesting(index), check=True, stdout=subprocess.DEVNULL, timeout=60)
    expected = [f"d{i:04}" for i in range(TOTAL)]
    store = open_store(index)
    assert [document.doc_id for document in store.documents()] == expected
    assert ids(store, NORTH, TOTAL) == expected
    store.close()


# --- conditions

VALUES: list[Json] = [
    *(0, 1, -1, 2019, 1.0, 2019.0, 0.1, -0.0, 1.5, 2.5e-7, 1e22, 1e23, 10**23, 10**19, -(10**19)),
    *(2**53, 2**53 + 1, float(2**53), 2**63 - 1, 2**63, -(2**63), float(2**63), 10**400),
    *(1234567890123456768, 1.2345678901234568e18, 99999999999999991611392),
    *("", "1", "2019", "1.0", "1e+23", "soon", "Soon", "größe", "null", "true", "[1]", "🗝"),
    *(True, False, None),
]
FIELDS = ["a", "b.c", "größe", "$", "it's", "%s", "{x}"]
OPERATORS = ["=", "!=", "in", "<", "<=", ">", ">="]


def random_value(random: np.random.Generator, depth: int = 0) -> Json:
    kind = random.random()
    if kind < 0.25 and depth < 2:
        return [random_value(random, depth + 1) for _ in range(random.integers(0, 4))]
    if kind < 0.3 and depth < 2:
        return {"a": random_value(random, depth + 1)}
    return VALUES[random.integers(len(VALUES))]


def random_condition(random: np.random.Generator) -> Condition:
    field = FIELDS[random.integers(len(FIELDS))]
    operator = OPERATORS[random.integers(len(OPERATORS))]
    chosen = VALUES
    if operator in "<=>=" and operator != "=":
        chosen = [v for v in VALUES if isinstance(v, int | float) and not isinstance(v, bool)]
    count = int(random.integers(1, 4)) if operator == "in" else 1
    values = tuple(chosen[i] for i in random.integers(len(chosen), size=count))
    return Condition(field, operator, values)


def test_random_conditions_mean_what_they_mean_to_the_embedded_store(store, tmp_path):
    random = np.random.default_rng(12)
    records = []
    for i in range(250):
        names = random.choice(FIELDS, size=random.integers(0, 5), replace=False)
        metadata = {str(name): random_value(random) for name in names}
        records.append(record(f"{i:03}", metadata=metadata))
    reference = SqliteStore(tmp_path / "reference")
    for one in (store, reference):
        one.write(records)
    sizes = []
    for _ in range(150):
        where = [random_condition(random) for _ in range(random.choice([1, 1, 2]))]
        found, expected = (
            list(one.candidates(NORTH, n=500, spaces=["topical"], where=where).doc_ids)
            for one in (store, reference)
        )
        assert found == expected, where
        sizes.append(len(expected))
    reference.close()
    assert sum(0 < size < 250 for size in sizes) > 70
