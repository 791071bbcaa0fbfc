"""The embedded store: round trips, transactions, other processes, and search against numpy."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from coder_ir.conditions import parse_condition
from coder_ir.errors import NotFound, StoreError
from coder_ir.stores import SqliteStore, open_store
from coder_ir.stores.sqlite.store import FILE, SCHEMA_VERSION
from coder_ir.types import (
    Candidates,
    Condition,
    Document,
    Json,
    ModelStamp,
    Record,
    Span,
    VectorPair,
)
from coder_ir.vectors import unit_rows

DIMENSIONS = 8
BOTH = ("topical", "compatibility")


def pair(topical: Sequence[float], compatibility: Sequence[float] | None = None) -> VectorPair:
    """One row a space, padded with zeros to the full width."""
    rows = [np.pad(row, (0, DIMENSIONS - len(row))) for row in (topical, compatibility or topical)]
    return VectorPair(*(unit_rows(row[None, :]) for row in rows))


NORTH = pair([1, 0])
EAST = pair([0, 1])


def record(
    doc_id: str,
    vectors: VectorPair = NORTH,
    *,
    text: str = "text",
    title: str = "",
    metadata: dict[str, Json] | None = None,
    digest: str = "digest",
) -> Record:
    spans = [Span(i, i + 1) for i in range(len(vectors.topical))]
    return Record(Document(doc_id, text, title, metadata or {}), digest, spans, vectors)


def ids(store: SqliteStore, query: VectorPair = NORTH, n: int = 100, *where: str) -> list[str]:
    conditions = [parse_condition(text) for text in where]
    found = store.candidates(query, n=n, spaces=["topical"], where=conditions)
    return list(found.doc_ids)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(folder)
    yield opened
    opened.close()


@pytest.fixture
def reader(store: SqliteStore, folder: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(folder, read_only=True)
    yield opened
    opened.close()


# --- documents in, documents out


@pytest.mark.parametrize(
    "document",
    [
        Document("a", "plain"),
        Document("a", "text", "title", {"year": 2019, "tags": ["x", None, 1.5], "deep": {"a": 1}}),
        Document("ключ 🗝", "naïve 日本語 🗝", "Über", {"größe": "ß"}),
        Document("a", "before\0after", "ti\0tle", {"a": "b\0c"}),
        Document("a", ""),
        Document("a", "line\r\nbreak\ttab ' \" ; --", "$.x"),
    ],
    ids=["plain", "metadata", "unicode", "null bytes", "empty text", "control characters"],
)
def test_a_document_comes_back_as_it_was_written(store, document):
    store.write([Record(document, "digest", [Span(0, 1)], NORTH)])
    assert store.get([document.doc_id]) == [document]


def test_a_document_survives_closing_and_reopening(folder):
    first = SqliteStore(folder)
    first.write([record("a", text="kept", metadata={"x": 1})])
    first.close()
    second = SqliteStore(folder)
    assert second.get(["a"]) == [Document("a", "kept", "", {"x": 1})]
    second.close()


def test_documents_come_in_the_order_asked_for(store):
    store.write([record(f"d{i}") for i in range(1200)])
    asked = [f"d{i}" for i in (1100, 3, 700, 3)]
    assert [document.doc_id for document in store.get(asked)] == asked


def test_an_unknown_id_is_not_found_and_named(store):
    store.write([record("a")])
    with pytest.raises(NotFound, match="no document 'b'"):
        store.get(["a", "b"])


def test_count_is_the_number_of_documents_and_not_of_passages(store):
    vectors = VectorPair(unit_rows(np.eye(3, DIMENSIONS)), unit_rows(np.eye(3, DIMENSIONS)))
    store.write([record("a", vectors), record("b")])
    assert store.count() == 2


def test_digests_lists_the_present_ones_only(store):
    store.write([record("a", digest="one"), record("b", digest="two")])
    assert store.digests(["b", "c"]) == {"b": "two"}


def test_writing_an_id_again_replaces_all_of_it(store):
    vectors = VectorPair(unit_rows(np.eye(3, DIMENSIONS)), unit_rows(np.eye(3, DIMENSIONS)))
    store.write([record("a", vectors, text="old", metadata={"x": 1}, digest="old")])
    store.write([record("a", EAST, text="new", digest="new")])
    assert store.get(["a"]) == [Document("a", "new", "", {})]
    assert store.digests(["a"]) == {"a": "new"}
    assert store.count() == 1
    found = store.candidates(NORTH, n=10, spaces=BOTH)
    assert (found.doc_ids, found.topical.tolist()) == (["a"], [0.0])


def test_delete_returns_how_many_were_there(store):
    store.write([record("a"), record("b"), record("c")])
    assert store.delete(["a", "c", "unknown", "a"]) == 2
    assert ids(store) == ["b"]


def test_delete_of_nothing_deletes_nothing(store):
    store.write([record("a")])
    assert store.delete([]) == 0
    assert store.count() == 1


def test_a_deleted_document_leaves_no_passage_behind(store, folder):
    store.write([record("a"), record("b")])
    store.delete(["a"])
    with sqlite3.connect(folder / FILE) as other:
        assert other.execute("SELECT count(*) FROM passages").fetchone() == (1,)
    other.close()


def test_a_new_store_has_no_stamp(store):
    assert store.stamp() is None


def test_the_first_stamp_stays(store):
    store.set_stamp(ModelStamp("print", "spec"))
    store.set_stamp(ModelStamp("other", "other"))
    assert store.stamp() == ModelStamp("print", "spec")


# --- all or nothing


def test_a_batch_with_a_bad_record_leaves_nothing_of_itself(store):
    store.write([record("old")])
    two_rows = VectorPair(np.eye(2, DIMENSIONS, dtype=np.float32), NORTH.compatibility)
    with pytest.raises(ValueError, match="shorter"):
        store.write([record("a"), record("old", EAST), record("b", two_rows)])
    assert ids(store) == ["old"]
    assert store.candidates(NORTH, n=1, spaces=["topical"]).topical.tolist() == [1.0]


def test_a_batch_interrupted_half_way_leaves_nothing_of_itself(store, monkeypatch):
    store.write([record("old")])
    insert, seen = store._insert, []

    def interrupted(one: Record) -> None:
        seen.append(one)
        if len(seen) == 3:
            raise KeyboardInterrupt
        insert(one)

    monkeypatch.setattr(store, "_insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write([record(f"d{i}") for i in range(5)])
    assert (store.count(), ids(store)) == (1, ["old"])


def test_the_store_takes_the_next_batch_after_one_that_failed(store):
    with pytest.raises(StoreError):
        store.write([record("a"), record(None)])
    store.write([record("b")])
    assert ids(store) == ["b"]


def test_two_records_of_one_id_in_a_batch_are_refused_whole(store):
    with pytest.raises(StoreError, match="UNIQUE"):
        store.write([record("a"), record("b"), record("a")])
    assert store.count() == 0


def test_writes_are_journalled_ahead_and_synced_in_full(store):
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_index_that_is_reopened_is_still_synced_in_full(folder):
    SqliteStore(folder).close()
    store = SqliteStore(folder)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


# --- what is no index


def test_an_index_of_another_schema_is_refused_with_both_versions(folder):
    SqliteStore(folder).close()
    with sqlite3.connect(folder / FILE) as other:
        other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    other.close()
    with pytest.raises(StoreError, match=f"version {SCHEMA_VERSION + 1}.*reads {SCHEMA_VERSION}"):
        SqliteStore(folder)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_refused(folder, read_only):
    folder.mkdir()
    (folder / FILE).write_bytes(b"these are no tables, " * 500)
    with pytest.raises(StoreError, match="is not an index, or is damaged"):
        SqliteStore(folder, read_only=read_only)


def test_a_file_that_is_no_database_is_left_as_it_was(folder):
    folder.mkdir()
    (folder / FILE).write_bytes(b"these are no tables, " * 500)
    with pytest.raises(StoreError):
        SqliteStore(folder)
    assert (folder / FILE).read_bytes() == b"these are no tables, " * 500


def test_a_refused_file_is_not_kept_open(folder):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to see which files are open")
    folder.mkdir()
    (folder / FILE).write_bytes(b"these are no tables, " * 500)
    with pytest.raises(StoreError) as refusal:
        SqliteStore(folder)
    open_files = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
    assert refusal.value is not None  # still held, as a caller that logs it would
    assert str(folder / FILE) not in open_files


def test_a_database_of_another_program_is_refused_and_left_alone(folder):
    folder.mkdir()
    with sqlite3.connect(folder / FILE) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match="not an index"):
        SqliteStore(folder)
    with sqlite3.connect(folder / FILE) as other:
        tables = other.execute("SELECT name FROM sqlite_master").fetchall()
    other.close()
    assert tables == [("theirs",)]


def test_a_folder_of_other_files_is_refused(folder):
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"not an index and not empty \(it holds 'notes.txt'\)"):
        SqliteStore(folder)
    assert [entry.name for entry in folder.iterdir()] == ["notes.txt"]


def test_an_empty_folder_becomes_an_index(folder):
    folder.mkdir()
    store = SqliteStore(folder)
    assert store.count() == 0
    store.close()


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot use .* as an index folder"):
        SqliteStore(tmp_path / "file" / "index")


def test_reading_an_index_that_is_not_there_creates_nothing(folder):
    with pytest.raises(NotFound, match="coder-ir index"):
        SqliteStore(folder, read_only=True)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "c#", "ü", "a&mode=rw"])
def test_a_folder_with_an_odd_name_is_read(tmp_path, name):
    writer = SqliteStore(tmp_path / name)
    writer.write([record("a")])
    reader = SqliteStore(tmp_path / name, read_only=True)
    assert ids(reader) == ["a"]
    reader.close()
    writer.close()


def test_a_closed_store_says_so(folder):
    store = SqliteStore(folder)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.count()


def test_an_address_of_an_unknown_store_is_refused():
    with pytest.raises(ValueError, match="no store is known for redis:// addresses"):
        open_store("redis://localhost/x")


# --- reading while another writes


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
def test_a_read_only_store_refuses_to_change(store, reader, change):
    store.write([record("a")])
    with pytest.raises(StoreError, match="read-only"):
        change(reader)
    assert (ids(store), store.stamp()) == (["a"], None)


def test_a_reader_sees_adds_replacements_and_deletes_at_its_next_search(store, reader):
    store.write([record("a"), record("b")])
    assert ids(reader) == ["a", "b"]
    store.write([record("c")])
    assert ids(reader) == ["a", "b", "c"]
    store.write([record("a", EAST)])
    assert ids(reader, EAST, 1) == ["a"]
    store.delete(["b"])
    assert ids(reader) == ["a", "c"]


def test_a_reader_sees_nothing_of_a_batch_before_it_is_committed(store, reader, monkeypatch):
    store.write([record("a")])
    insert, seen = store._insert, []

    def looked_at(one: Record) -> None:
        insert(one)
        seen.append((ids(reader), reader.count()))

    monkeypatch.setattr(store, "_insert", looked_at)
    store.write([record("b"), record("c")])
    assert seen == [(["a"], 1), (["a"], 1)]
    assert ids(reader) == ["a", "b", "c"]


READING = """
import sys
from pathlib import Path
import numpy as np
from coder_ir.stores import SqliteStore
from coder_ir.types import VectorPair

store = SqliteStore(Path(sys.argv[1]), read_only=True)
one = np.eye(1, int(sys.argv[2]), dtype=np.float32)
print("ready", flush=True)
for line in sys.stdin:
    found = store.candidates(VectorPair(one, one), n=100, spaces=["topical"])
    print(*found.doc_ids, flush=True)
"""


def test_a_reading_process_sees_each_commit_of_this_one_at_its_next_search(store, folder):
    def answer() -> str:
        process.stdin.write("search\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    command = [sys.executable, "-c", READING, str(folder), str(DIMENSIONS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        seen = []
        for change in (
            lambda: store.write([record("a"), record("b")]),
            lambda: store.write([record("c")]),
            lambda: store.delete(["a", "b"]),
            store.compact,
        ):
            change()
            seen.append(answer())
        process.stdin.close()
    assert seen == ["a b", "a b c", "c", "c"]


def test_two_writers_at_once_both_succeed(folder):
    def write_all(name: str) -> None:
        mine = SqliteStore(folder)
        for start in range(0, 60, 5):
            mine.write([record(f"{name}{i:02}") for i in range(start, start + 5)])
        mine.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write_all, "ab"))
    store = SqliteStore(folder, read_only=True)
    assert ids(store, NORTH, 200) == [f"{name}{i:02}" for name in "ab" for i in range(60)]
    store.close()


WRITING = """
import sys
from pathlib import Path
import numpy as np
from coder_ir.stores import SqliteStore
from coder_ir.types import Document, Record, Span, VectorPair

folder, name, dimensions = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = SqliteStore(folder)
one = np.eye(1, dimensions, dtype=np.float32)
for i in range(20):
    document = Document(f"{name}{i:02}", "text")
    store.write([Record(document, "digest", [Span(0, 4)], VectorPair(one, one))])
store.close()
"""


def test_two_processes_may_create_and_fill_one_index_at_once(folder):
    commands = [[sys.executable, "-c", WRITING, folder, name, str(DIMENSIONS)] for name in "ab"]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(c, stdin=pipe, stdout=pipe, text=True) for c in commands]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0]
    store = SqliteStore(folder, read_only=True)
    assert ids(store) == [f"{name}{i:02}" for name in "ab" for i in range(20)]
    store.close()


def test_opening_waits_for_a_process_that_is_just_creating_the_index(folder):
    folder.mkdir()
    other = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    release.start()
    try:
        store = SqliteStore(folder)
        assert store.count() == 0
        store.close()
    finally:
        release.join()
        other.close()


def test_threads_may_search_while_another_writes(store):
    store.write([record("a")])

    def search_often(_: int) -> set[int]:
        return {len(ids(store)) for _ in range(40)}

    with ThreadPoolExecutor(3) as threads:
        searches = [threads.submit(search_often, i) for i in range(2)]
        for i in range(20):
            store.write([record(f"d{i:02}x"), record(f"d{i:02}y")])
        lengths = set().union(*(search.result() for search in searches))
    assert all(length % 2 == 1 for length in lengths)
    assert len(ids(store)) == 41


# --- searching


def test_a_search_of_an_empty_store_finds_nothing(store):
    found = store.candidates(NORTH, n=5, spaces=BOTH)
    assert (len(found), found.topical.shape, found.compatibility.shape) == (0, (0,), (0,))


def test_a_search_after_the_last_document_is_deleted_finds_nothing(store):
    store.write([record("a")])
    assert ids(store) == ["a"]
    store.delete(["a"])
    assert ids(store) == []


def test_a_filter_applies_before_the_cut(store):
    records = []
    for i in range(500):
        angle = i * np.pi / 1000  # the higher the number, the worse the score
        vectors = pair([np.cos(angle), np.sin(angle)])
        records.append(record(f"{i:03}", vectors, metadata={"rare": i >= 497}))
    store.write(records)
    assert ids(store, NORTH, 5) == ["000", "001", "002", "003", "004"]
    assert ids(store, NORTH, 5, "rare=true") == ["497", "498", "499"]


def test_a_filter_that_nothing_passes_finds_nothing(store):
    store.write([record("a", metadata={"x": 1})])
    assert ids(store, NORTH, 5, "x=2") == []


def test_equal_scores_at_the_cut_go_to_the_lowest_ids(store):
    order = np.random.default_rng(0).permutation(300)
    store.write([record(f"{i:03}") for i in order])
    assert ids(store, NORTH, 10) == [f"{i:03}" for i in range(10)]


def test_equal_scores_below_better_ones_go_to_the_lowest_ids(store):
    tied = pair([1, 1])
    store.write([record(f"{i:03}", tied) for i in np.random.default_rng(1).permutation(300)])
    store.write([record("z1"), record("z2")])
    assert ids(store, NORTH, 5) == ["000", "001", "002", "z1", "z2"]


def test_equal_passages_of_a_document_go_to_the_earlier_one(store):
    rows = unit_rows(np.vstack([np.eye(1, DIMENSIONS, 1), np.eye(1, DIMENSIONS).repeat(3, axis=0)]))
    store.write([record("a", VectorPair(rows, rows))])
    found = store.candidates(NORTH, n=1, spaces=["topical"])
    assert [passage.number for passage in found.passages] == [1]


def test_one_document_of_many_passages_takes_one_place_of_the_n(store):
    many = unit_rows(np.eye(1, DIMENSIONS).repeat(400, axis=0))
    store.write([record("a", VectorPair(many, many)), record("b", pair([1, 1])), record("c", EAST)])
    assert ids(store, NORTH, 2) == ["a", "b"]


def test_the_best_passage_of_each_space_is_a_candidate(store):
    topical = unit_rows(np.eye(2, DIMENSIONS))
    store.write([record("a", VectorPair(topical, topical[::-1].copy()))])
    found = store.candidates(NORTH, n=1, spaces=BOTH)
    assert found.doc_ids == ["a", "a"]
    assert [(p.number, p.span) for p in found.passages] == [(0, Span(0, 1)), (1, Span(1, 2))]
    assert (found.topical.tolist(), found.compatibility.tolist()) == ([1, 0], [0, 1])


class BruteForce:
    """The same store in a dict: scores everything, then sorts."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}

    def candidates(self, query: VectorPair, n: int, spaces: Sequence[str], parity: int | None):
        kept = {
            doc_id: one
            for doc_id, one in self.records.items()
            if parity is None or one.document.metadata["parity"] == parity
        }
        pool: set[tuple[str, int]] = set()
        for space in spaces:
            best = {}
            for doc_id, one in kept.items():
                scores = self._scores(one, query, space)
                best[doc_id] = (-scores.max(), doc_id, int(scores.argmax()))
            pool |= {(doc_id, number) for _, doc_id, number in sorted(best.values())[:n]}
        return [
            (
                doc_id,
                number,
                self._scores(kept[doc_id], query, "topical")[number],
                self._scores(kept[doc_id], query, "compatibility")[number],
            )
            for doc_id, number in sorted(pool)
        ]

    def _scores(self, one: Record, query: VectorPair, space: str):
        rows, vector = one.vectors.space(space), query.space(space)[0]
        return np.round(rows.astype(np.float64) @ vector.astype(np.float64), 6)


def flat(found: Candidates):
    numbers = [passage.number for passage in found.passages]
    return list(zip(found.doc_ids, numbers, found.topical, found.compatibility, strict=True))


def random_pair(random: np.random.Generator, rows: int) -> VectorPair:
    # Few distinct values, so that exact ties occur.
    return VectorPair(
        unit_rows(random.integers(-1, 2, size=(rows, DIMENSIONS)) + 0.01),
        unit_rows(random.integers(-1, 2, size=(rows, DIMENSIONS)) + 0.01),
    )


@pytest.fixture(scope="module")
def worked_over(tmp_path_factory) -> Iterator[tuple[SqliteStore, BruteForce]]:
    """A store and its double after adds, replacements and deletes with searches in between."""
    random = np.random.default_rng(42)
    store, double = SqliteStore(tmp_path_factory.mktemp("worked") / "index"), BruteForce()
    for _ in range(12):
        chosen = random.choice(400, size=50, replace=False)
        batch = [
            record(
                f"d{i}",
                random_pair(random, int(random.integers(1, 5))),
                metadata={"parity": int(i) % 2},
            )
            for i in chosen
        ]
        store.write(batch)
        double.records.update({one.document.doc_id: one for one in batch})
        gone = [f"d{i}" for i in random.choice(400, size=20, replace=False)]
        expected = sum(double.records.pop(doc_id, None) is not None for doc_id in gone)
        assert store.delete(gone) == expected
        ids(store)  # so that the memory is brought up to date in steps
    yield store, double
    store.close()


@pytest.mark.parametrize("parity", [None, 1], ids=["no filter", "filter"])
@pytest.mark.parametrize("spaces", [BOTH[:1], BOTH[1:], BOTH], ids="+".join)
@pytest.mark.parametrize("n", [1, 10, 90, 1000])
def test_candidates_equal_brute_force(worked_over, n, spaces, parity):
    store, double = worked_over
    where = [] if parity is None else [Condition("parity", "=", (parity,))]
    random = np.random.default_rng(n)
    for _ in range(5):
        query = random_pair(random, 1)
        found = store.candidates(query, n=n, spaces=spaces, where=where)
        assert flat(found) == double.candidates(query, n, spaces, parity)


def test_a_store_loaded_anew_answers_as_the_one_kept_in_step(worked_over):
    store, _ = worked_over
    query = random_pair(np.random.default_rng(7), 1)
    fresh = SqliteStore(store.path.parent, read_only=True)
    expected = flat(store.candidates(query, n=50, spaces=BOTH))
    assert flat(fresh.candidates(query, n=50, spaces=BOTH)) == expected
    fresh.close()


# --- compact


def test_compact_gives_back_the_space_of_deleted_documents(store):
    store.write([record(f"{i:03}", text="long " * 1000) for i in range(300)])
    store.delete([f"{i:03}" for i in range(10, 300)])
    store.compact()
    assert store.path.stat().st_size < 300_000  # 300 such documents take 1.5 MB


def test_a_compacted_index_still_answers_and_takes_documents(store, reader):
    store.write([record(f"{i:02}") for i in range(30)])
    assert len(ids(store)) == len(ids(reader)) == 30
    store.delete([f"{i:02}" for i in range(5, 30)])
    store.compact()
    store.write([record("new")])
    expected = ["00", "01", "02", "03", "04", "new"]
    assert (ids(store), ids(reader)) == (expected, expected)


def test_all_documents_come_in_ascending_order_of_id(store):
    store.write([record("b", text="two"), record("a", text="one")])
    assert [(d.doc_id, d.text) for d in store.documents()] == [("a", "one"), ("b", "two")]


def test_the_state_changes_with_every_write_and_delete_and_never_comes_back(store):
    seen = [store.state()]
    for change in (
        lambda: store.write([record("a")]),
        lambda: store.write([record("a", text="other")]),
        lambda: store.delete(["a"]),
        lambda: store.write([record("a")]),
    ):
        change()
        seen.append(store.state())
    assert len(set(seen)) == len(seen)
    assert store.state() == seen[-1]


def test_named_documents_join_the_pool_whatever_their_scores(store):
    store.write([record("a"), record("b", EAST), record("c", EAST)])
    joined = store.candidates(NORTH, n=1, spaces=["topical"], also=["c", "unknown"])
    assert ids(store, NORTH, 1) == ["a"]
    assert list(joined.doc_ids) == ["a", "c"]


def test_a_named_document_that_fails_a_condition_stays_out(store):
    store.write([record("a", metadata={"x": 1}), record("c", EAST, metadata={"x": 2})])
    where = [parse_condition("x=1")]
    joined = store.candidates(NORTH, n=1, spaces=["topical"], where=where, also=["c"])
    assert list(joined.doc_ids) == ["a"]
