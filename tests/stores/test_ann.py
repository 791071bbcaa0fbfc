"""A large index: its sidecar finds what exact search finds, and may be lost, torn or stale."""

import json
import logging
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from coder_ir import Document, Retriever
from coder_ir.conditions import parse_condition
from coder_ir.errors import StoreError
from coder_ir.stores import SqliteStore, open_store, settle
from coder_ir.stores.address import STORES
from coder_ir.stores.sqlite import approximate, building, covered, filters, sidecar
from coder_ir.stores.sqlite.settings import Scale
from coder_ir.stores.sqlite.sidecar import ANN, MANIFEST, Manifest, only_builder, parts
from coder_ir.stores.sqlite.store import FILE
from coder_ir.types import Candidates, Condition, ModelStamp, Record, Span, VectorPair
from coder_ir.vectors import cosine, unit_rows
from tests.conftest import Command, FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.test_durability import lock, public, without_privileges

__all__ = ["public"]  # a fixture

DIMENSIONS, DOCUMENTS, CLUSTERS = 24, 2000, 25
SCALE = Scale(least=500, tail=100)
BOTH = ("topical", "compatibility")


def clustered(rows: int, seed: int) -> VectorPair:
    """Rows around centres that are the same for every seed."""

    def one(space: int):
        centres = np.random.default_rng(space).normal(size=(CLUSTERS, DIMENSIONS))
        draw = np.random.default_rng([seed, space])
        noise = 0.6 * draw.normal(size=(rows, DIMENSIONS))
        return unit_rows(centres[draw.integers(CLUSTERS, size=rows)] + noise)

    return VectorPair(one(1), one(2))


def records(first: int, count: int, seed: int, *, word: str = "text") -> list[Record]:
    vectors = clustered(count, seed)
    return [
        record(f"d{first + i:05}", vectors.topical[i], vectors.compatibility[i], first + i, word)
        for i in range(count)
    ]


def record(doc_id: str, topical, compatibility, number: int = 0, word: str = "text") -> Record:
    metadata = {"number": number, "half": number % 2, "tenth": number % 10 == 0}
    pair = VectorPair(np.atleast_2d(topical), np.atleast_2d(compatibility))
    spans = [Span(i, i + 1) for i in range(len(pair.topical))]
    return Record(Document(doc_id, word, "", metadata), f"{word} {doc_id}", spans, pair)


def queries(count: int = 12) -> list[VectorPair]:
    drawn = clustered(count, seed=999)
    return [
        VectorPair(drawn.topical[i : i + 1], drawn.compatibility[i : i + 1]) for i in range(count)
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """An index with a sidecar that covers all of it."""
    folder = tmp_path_factory.mktemp("built") / "index"
    store = SqliteStore(folder, scale=SCALE)
    store.set_stamp(ModelStamp("fingerprint", "spec"))
    store.write(records(0, DOCUMENTS, seed=1))
    assert store.settle()
    store.close()
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy to work on."""
    return Path(shutil.copytree(built, tmp_path / "index"))


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(folder, scale=SCALE)
    yield opened
    opened.close()


def exact_store(folder: Path) -> SqliteStore:
    """The same documents with no sidecar in sight."""
    bare = folder.with_name(f"{folder.name}-bare")
    shutil.rmtree(bare, ignore_errors=True)
    bare.mkdir()
    source, copy = sqlite3.connect(folder / FILE), sqlite3.connect(bare / FILE)
    source.backup(copy)
    source.close()
    copy.close()
    return SqliteStore(bare, exact=True)


def ask(store: SqliteStore, query: VectorPair, n: int = 10, *where: str, spaces=BOTH):
    conditions = [parse_condition(text) for text in where]
    return store.candidates(query, n=n, spaces=spaces, where=conditions)


def flat(found: Candidates) -> list[tuple]:
    numbers = [passage.number for passage in found.passages]
    return list(zip(found.doc_ids, numbers, found.topical, found.compatibility, strict=True))


def answers(store: SqliteStore, n: int = 10, *where: str) -> list[list[tuple]]:
    return [flat(ask(store, query, n, *where)) for query in queries()]


def recall(store: SqliteStore, true: SqliteStore, space: str, n: int, *where: str) -> float:
    shares = []
    for query in queries():
        right = set(ask(true, query, n, *where, spaces=[space]).doc_ids)
        seen = set(ask(store, query, n, *where, spaces=[space]).doc_ids)
        shares.append(len(right & seen) / len(right))
    return float(np.mean(shares))


def generation(folder: Path) -> str:
    return Manifest.load(folder).generation


@pytest.fixture
def by_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of rows asked for, at every search by codes.

    In an index of this size it would cost less to look at the rows themselves.
    """
    monkeypatch.setattr(covered, "_READ", 0.0)
    asked: list[int] = []
    top = approximate.ApproximateIndex.top

    def counted(self, query, n, allowed):
        asked.append(n)
        return top(self, query, n, allowed)

    monkeypatch.setattr(approximate.ApproximateIndex, "top", counted)
    return asked


# --- what is found


@pytest.mark.parametrize("space", BOTH)
@pytest.mark.parametrize("n", [10, 100])
def test_codes_find_nearly_all_that_exact_search_finds(store, folder, by_codes, n, space):
    assert recall(store, exact_store(folder), space, n) >= 0.97
    assert by_codes


def test_codes_bring_as_many_rows_as_were_settled_when_they_were_built(store, by_codes):
    ask(store, queries()[0], 10, spaces=["topical"])
    assert by_codes == [approximate.DEPTH * store.info().width["topical"]]


def test_scores_are_true_cosines(store, folder):
    found = ask(store, queries()[0])
    stored = dict(zip((f"d{i:05}" for i in range(DOCUMENTS)), range(DOCUMENTS), strict=True))
    vectors = clustered(DOCUMENTS, seed=1)
    places = [stored[doc_id] for doc_id in found.doc_ids]
    expected = cosine(vectors.topical[places], queries()[0].topical[0])
    assert found.topical.tolist() == expected.tolist()


def test_recall_is_measured_when_it_is_built_and_is_what_was_asked_for(built):
    codes = Manifest.load(built).codes
    assert set(codes) == set(BOTH)
    assert all(approximate.LEAST_RECALL <= each.recall <= 1 for each in codes.values())


def test_recall_as_measured_is_that_of_a_second_count():
    rows = clustered(DOCUMENTS, seed=1).topical
    index = approximate.build_codes(rows)
    asked = np.arange(0, DOCUMENTS, 20)
    measured = approximate._recalls(index, rows, asked)
    for width in (2, 4):
        shares = []
        for own in asked:
            best = np.argsort(-(rows @ rows[own]), kind="stable")
            best = best[best != own][: approximate.DEPTH]
            _, [found] = index.search(rows[own : own + 1], width * approximate.DEPTH + 1)
            shares.append(len(set(best) & set(found)) / len(best))
        assert measured[width] == pytest.approx(np.mean(shares), abs=0.002)
    assert measured[2] < measured[4] <= measured[32]


@pytest.mark.parametrize("dimensions", [5, 24, 768])
def test_vectors_of_any_length_have_codes(dimensions):
    rows = unit_rows(np.random.default_rng(0).normal(size=(400, dimensions)))
    index = approximate.build_codes(rows)
    scores, found = index.search(rows[:1], 400)
    assert sorted(found[0]) == list(range(400))
    assert np.corrcoef(scores[0], rows[found[0]] @ rows[0])[0, 1] > 0.8


def test_the_same_vectors_give_the_same_codes():
    rows = clustered(DOCUMENTS, seed=1).topical
    first, second = (approximate.build_codes(rows) for _ in range(2))
    assert approximate.tuned(first, rows) == approximate.tuned(second, rows)
    for one, other in zip(first.search(rows[:9], 50), second.search(rows[:9], 50), strict=True):
        assert one.tolist() == other.tolist()


def test_exact_search_ignores_the_codes_and_equals_an_index_without_a_sidecar(folder, by_codes):
    store = SqliteStore(folder, exact=True)
    assert answers(store, 50) == answers(exact_store(folder), 50)
    assert by_codes == []
    assert store.info().search == "exact"
    store.close()


def test_answers_are_the_same_after_reopening(store, folder):
    again = SqliteStore(folder, read_only=True)
    assert answers(again, 50) == answers(store, 50)
    again.close()


def test_more_hits_than_codes_are_good_for_are_found_exactly(store, folder, by_codes):
    assert answers(store, DOCUMENTS)[0] == answers(exact_store(folder), DOCUMENTS)[0]
    assert by_codes == []


def test_equal_scores_at_the_cut_go_to_the_lowest_ids(store, by_codes):
    query = queries()[3]
    copies = [record(f"c{i:03}", query.topical, query.compatibility) for i in range(300)]
    store.write([copies[i] for i in np.random.default_rng(0).permutation(300)])
    assert store.settle()
    found = ask(store, query, 5, spaces=["topical"])
    assert found.doc_ids == [f"c{i:03}" for i in range(5)]
    assert by_codes


def test_a_document_of_many_passages_takes_one_place(store, by_codes):
    query = queries()[3]
    near = unit_rows(query.topical + 0.01 * np.random.default_rng(5).normal(size=(250, DIMENSIONS)))
    store.write([record("many", near, near)])
    assert store.settle()
    found = ask(store, query, 10, spaces=["topical"])
    best = int(np.argmax(cosine(near, query.topical[0])))
    assert len(set(found.doc_ids)) == 10
    numbers = dict(zip(found.doc_ids, found.passages, strict=True))
    assert numbers["many"].number == best
    assert by_codes


def test_named_documents_join_whether_the_sidecar_covers_them_or_not(store):
    store.write(records(DOCUMENTS, 1, seed=2))
    named = ["d00007", f"d{DOCUMENTS:05}"]
    query = queries()[0]
    alone = set(ask(store, query, 5, spaces=["topical"]).doc_ids)
    found = store.candidates(query, n=5, spaces=["topical"], also=named)
    assert set(found.doc_ids) == alone | set(named)


# --- filters


def test_a_narrow_filter_is_answered_exactly(store, folder, by_codes):
    assert answers(store, 10, "number<40") == answers(exact_store(folder), 10, "number<40")
    assert by_codes == []


@pytest.mark.parametrize("space", BOTH)
def test_a_wide_filter_keeps_recall(store, folder, by_codes, space):
    assert recall(store, exact_store(folder), space, 10, "half=1") >= 0.97
    assert by_codes


def test_a_filter_is_kept_to(store):
    for query in queries():
        found = ask(store, query, 10, "half=1")
        assert {int(doc_id[1:]) % 2 for doc_id in found.doc_ids} == {1}


def test_a_filter_on_documents_far_from_the_query_finds_them(store, folder, by_codes):
    query = queries()[0]
    scores = clustered(DOCUMENTS, seed=1).topical @ query.topical[0]
    allowed = scores < np.median(scores)
    found = [
        each._current_table(query).candidates(
            query, n=10, spaces=["topical"], allowed=allowed, also=np.empty(0, dtype=np.int64)
        )
        for each in (store, exact_store(folder))
    ]
    assert flat(found[0]) == flat(found[1])
    assert len(by_codes) > 1  # many of the best came late


def test_a_filter_that_nothing_passes_finds_nothing(store):
    assert len(ask(store, queries()[0], 10, "number=-1")) == 0


# --- documents that come and go


def test_added_documents_are_found_without_a_rebuild(store, folder):
    before = generation(folder)
    query = queries()[0]
    store.write(records(DOCUMENTS, 50, seed=2))
    store.write([record("new", query.topical, query.compatibility)])
    assert not store.settle()
    assert "new" in ask(store, query).doc_ids
    assert (generation(folder), store.info().tail) == (before, 51)


def test_a_tail_and_a_sidecar_are_searched_as_one(store, folder):
    store.write(records(DOCUMENTS, 90, seed=2))
    assert recall(store, exact_store(folder), "topical", 20) >= 0.97
    forced = SqliteStore(folder, exact=True)
    assert answers(forced, 20) == answers(exact_store(folder), 20)
    forced.close()


def test_a_tail_that_has_grown_long_is_taken_into_a_new_sidecar(store, folder):
    before = generation(folder)
    store.write(records(DOCUMENTS, 201, seed=2))
    assert store.settle()
    assert generation(folder) != before
    assert (store.info().tail, Manifest.load(folder).rows) == (0, DOCUMENTS + 201)
    assert recall(store, exact_store(folder), "topical", 20) >= 0.97


def test_a_new_sidecar_is_used_also_after_a_look_at_it(store, folder):
    ask(store, queries()[0])
    store.write(records(DOCUMENTS, 201, seed=2))
    assert store.settle()
    assert store.info().tail == 0
    ask(store, queries()[0])
    table = store._current._table
    assert (table.tail, table.covered.manifest.generation) == (0, generation(folder))


def test_files_of_an_earlier_sidecar_are_taken_away(store, folder):
    store.write(records(DOCUMENTS, 201, seed=2))
    assert store.settle()
    names = {path.name for path in (folder / ANN).iterdir()}
    assert names == {MANIFEST, "lock", *(f"{generation(folder)}.{part}" for part in parts())}


def test_a_deleted_document_is_not_found_and_others_take_its_place(store, folder):
    query = queries()[0]
    first = list(ask(store, query, 10, spaces=["topical"]).doc_ids)
    store.delete(first)
    found = ask(store, query, 10, spaces=["topical"])
    assert len(found) == 10
    assert not set(first) & set(found.doc_ids)
    assert store.info().deleted == 10
    assert recall(store, exact_store(folder), "topical", 10) >= 0.97


def test_a_deletion_is_known_after_reopening(store, folder):
    query = queries()[0]
    gone = ask(store, query, 3).doc_ids[0]
    store.delete([gone])
    again = SqliteStore(folder, read_only=True)
    assert gone not in ask(again, query, 10).doc_ids
    again.close()


def test_an_updated_document_is_found_by_what_it_says_now(store):
    here, there = queries()[0], queries()[1]
    changed = ask(store, here, 1, spaces=["topical"]).doc_ids[0]
    store.write([record(changed, there.topical, there.compatibility)])
    assert changed not in ask(store, here, 10, spaces=["topical"]).doc_ids
    assert ask(store, there, 1, spaces=["topical"]).doc_ids == [changed]


def test_many_deletions_lead_to_a_new_sidecar(store, folder):
    store.delete([f"d{i:05}" for i in range(300)])
    assert store.settle()
    assert (Manifest.load(folder).rows, store.info().deleted) == (DOCUMENTS - 300, 0)


def test_an_index_that_has_become_small_goes_without_a_sidecar(store, folder):
    store.delete([f"d{i:05}" for i in range(DOCUMENTS - 100)])
    assert store.settle()
    assert Manifest.load(folder) is None
    assert not list((folder / ANN).glob("*.f32"))
    assert (store.info().search, len(ask(store, queries()[0], 200))) == ("exact", 100)


def test_compacting_gives_back_what_the_sidecar_kept_of_deleted_documents(store, folder):
    store.delete(["d00001"])
    store.compact()
    assert Manifest.load(folder).rows == DOCUMENTS - 1


def test_a_small_index_has_no_sidecar(tmp_path):
    store = SqliteStore(tmp_path / "small", scale=SCALE)
    store.write(records(0, 499, seed=1))
    assert not store.settle()
    assert not (tmp_path / "small" / ANN).exists()
    store.close()


def test_adding_through_a_retriever_builds_the_sidecar(tmp_path):
    words = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(words, size=4)) for _ in range(600)]
    store = SqliteStore(tmp_path / "index", scale=SCALE)
    with Retriever(FakeEncoder(words), store, verifier=FakeVerifier()) as retriever:
        retriever.add([Document(f"{i:03}", text) for i, text in enumerate(texts)])
        assert store.info().search == "approximate"
        hit = retriever.search("quiet garden", k=1, policy="topical")[0]
        assert hit.text == retriever.get(hit.doc_id).text


def test_what_takes_long_is_announced_where_it_is_due_and_only_there(folder):
    shutil.rmtree(folder / ANN)
    store, said = SqliteStore(folder, scale=SCALE), []
    assert settle(store, begin=lambda: said.append("building"))
    assert not settle(store, begin=lambda: said.append("again"))
    assert said == ["building"]
    store.close()


# --- a sidecar that is lost, torn, or of something else


def assert_exact_until_settled(folder: Path) -> None:
    """A reader passes over the sidecar; a writer builds another."""
    reader = SqliteStore(folder, read_only=True)
    assert reader.info().search == "exact"
    assert answers(reader) == answers(exact_store(folder))
    writer = SqliteStore(folder, scale=SCALE)
    assert writer.settle()
    assert writer.info().search == "approximate"
    assert recall(reader, exact_store(folder), "topical", 10) >= 0.97
    assert reader.info().search == "approximate"
    reader.close()
    writer.close()


def test_a_lost_sidecar_is_built_again(folder):
    shutil.rmtree(folder / ANN)
    assert_exact_until_settled(folder)


def test_a_sidecar_that_is_lost_while_mapped_still_answers(store, folder):
    before = answers(store)
    shutil.rmtree(folder / ANN)
    assert answers(store) == before
    assert store.settle()
    assert answers(store) == before


@pytest.mark.parametrize("part", parts())
def test_a_truncated_file_is_noticed(folder, part):
    path = Manifest.load(folder).path(folder, part)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    assert_exact_until_settled(folder)


@pytest.mark.parametrize("part", ["topical.codes", "ids"])
def test_a_missing_file_is_noticed(folder, part):
    Manifest.load(folder).path(folder, part).unlink()
    assert_exact_until_settled(folder)


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_a_changed_byte_is_noticed(folder):
    path = Manifest.load(folder).path(folder, "topical.f32")
    flip(path, path.stat().st_size // 2)
    assert_exact_until_settled(folder)


@pytest.mark.parametrize("place", [0, -1], ids=["first byte", "last byte"])
def test_both_ends_of_a_large_file_are_looked_at(folder, monkeypatch, place):
    monkeypatch.setattr(sidecar, "_WHOLE", 1)
    monkeypatch.setattr(sidecar, "_BLOCK", 16)
    path = Manifest.load(folder).path(folder, "topical.f32")
    before = sidecar.mark_of(path)
    flip(path, place)
    assert sidecar.mark_of(path) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(f'"rows": {DOCUMENTS}', f'"rows": {DOCUMENTS - 1}'),
        lambda text: text.replace('"format": 2', '"format": 3'),
        lambda _: "[]",
        lambda _: "",
    ],
    ids=["half of it", "another count", "another format", "no object", "empty"],
)
def test_a_manifest_that_was_changed_is_noticed(folder, change):
    path = folder / ANN / MANIFEST
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    assert_exact_until_settled(folder)


def test_the_sidecar_of_another_index_is_not_used(folder, tmp_path):
    other = SqliteStore(tmp_path / "other", scale=SCALE)
    other.set_stamp(ModelStamp("fingerprint", "spec"))
    other.write(records(0, DOCUMENTS, seed=7))
    assert other.settle()
    other.close()
    shutil.rmtree(folder / ANN)
    shutil.copytree(tmp_path / "other" / ANN, folder / ANN)
    assert_exact_until_settled(folder)


def test_a_database_put_back_from_a_copy_does_not_get_the_vectors_of_later_rows(folder, tmp_path):
    shutil.copy(folder / FILE, tmp_path / "copy.sqlite")
    writer = SqliteStore(folder, scale=SCALE)
    writer.write(records(DOCUMENTS, 300, seed=2))
    assert writer.settle()
    writer.close()
    for path in folder.glob(f"{FILE}*"):
        path.unlink()
    shutil.copy(tmp_path / "copy.sqlite", folder / FILE)
    writer = SqliteStore(folder, scale=SCALE)
    writer.write(records(DOCUMENTS, 300, seed=3))
    writer.close()
    assert_exact_until_settled(folder)


def test_a_database_put_back_from_a_copy_is_older_than_its_sidecar(folder, tmp_path):
    shutil.copy(folder / FILE, tmp_path / "copy.sqlite")
    writer = SqliteStore(folder, scale=SCALE)
    writer.write(records(DOCUMENTS, 300, seed=2))
    assert writer.settle()
    writer.close()
    for path in folder.glob(f"{FILE}*"):
        path.unlink()
    shutil.copy(tmp_path / "copy.sqlite", folder / FILE)
    assert_exact_until_settled(folder)


def test_a_sidecar_of_another_model_is_not_used(folder):
    connection = sqlite3.connect(folder / FILE)
    connection.execute("""UPDATE meta SET value = '{"fingerprint": "x", "spec": "y"}'
        WHERE key = 'model'""")
    connection.commit()
    connection.close()
    assert_exact_until_settled(folder)


def test_a_disk_that_refuses_leaves_the_index_as_it_was(folder, monkeypatch, caplog):
    shutil.rmtree(folder / ANN)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(building, "_write_codes", full)
    store = SqliteStore(folder, scale=SCALE)
    with caplog.at_level(logging.WARNING):
        assert not store.settle()
    assert "no space left" in caplog.text
    assert [path.name for path in (folder / ANN).iterdir()] == ["lock"]
    assert answers(store) == answers(exact_store(folder))
    store.close()


# --- other processes

BUILDING = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from coder_ir.stores import SqliteStore
from coder_ir.stores.sqlite import building
from tests.stores.test_ann import SCALE

def wait(*_):
    print("here", flush=True)
    time.sleep(60)

if sys.argv[3] == "codes":
    building._write_codes = wait
else:
    building.Manifest.save = wait
SqliteStore(Path(sys.argv[2]), scale=SCALE).settle()
"""
ROOT = str(Path(__file__).parents[2])


@pytest.mark.parametrize("moment", ["codes", "manifest"])
@pytest.mark.parametrize("earlier", [True, False], ids=["over an earlier one", "the first"])
def test_a_build_that_is_killed_leaves_what_was_there(folder, moment, earlier):
    if earlier:
        writer = SqliteStore(folder, scale=SCALE)
        writer.write(records(DOCUMENTS, 300, seed=2))
        writer.close()
    else:
        shutil.rmtree(folder / ANN)
    before = generation(folder) if earlier else None
    command = [sys.executable, "-c", BUILDING, ROOT, str(folder), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        process.kill()
    left = {path.name.partition(".")[0] for path in (folder / ANN).glob("*.f32")}
    assert len(left - {before}) == 1  # what the killed build had written
    reader = SqliteStore(folder, read_only=True)
    assert recall(reader, exact_store(folder), "topical", 10) >= 0.97
    assert (generation(folder) if earlier else None) == before
    writer = SqliteStore(folder, scale=SCALE)
    assert writer.settle()
    left = {path.name.partition(".")[0] for path in (folder / ANN).glob("*.f32")}
    assert left == {generation(folder)}
    reader.close()
    writer.close()


READING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from coder_ir.stores import SqliteStore
from tests.stores.test_ann import ask, queries

store = SqliteStore(Path(sys.argv[2]), read_only=True)
for line in sys.stdin:
    found = ask(store, queries()[0], 5, spaces=["topical"])
    print(store._current._table.covered.manifest.generation, *found.doc_ids, flush=True)
"""


def test_a_reading_process_sees_new_rows_and_then_the_new_sidecar(store, folder):
    query = queries()[0]

    def answer() -> list[str]:
        process.stdin.write("search\n")
        process.stdin.flush()
        return process.stdout.readline().split()

    command = [sys.executable, "-c", READING, ROOT, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        first = generation(folder)
        assert answer()[0] == first
        store.write([record("new", query.topical, query.compatibility)])
        assert (seen := answer())[0] == first
        assert "new" in seen[1:]
        store.write(records(DOCUMENTS, 300, seed=2))
        assert store.settle()
        assert (seen := answer())[0] == generation(folder) != first
        assert "new" in seen[1:]
        store.delete(["new"])
        assert "new" not in answer()[1:]
        shutil.rmtree(folder / ANN)
        assert "new" not in answer()[1:]
        process.stdin.close()
    assert process.returncode == 0


def test_only_one_process_builds_at_a_time(folder):
    shutil.rmtree(folder / ANN)
    store = SqliteStore(folder, scale=SCALE)
    with only_builder(folder) as alone:
        assert alone
        assert not store.settle()
    assert store.settle()
    store.close()


def test_documents_may_be_written_while_a_sidecar_is_built(folder, monkeypatch):
    shutil.rmtree(folder / ANN)
    store = SqliteStore(folder, scale=SCALE)
    write_codes, query = building._write_codes, queries()[0]

    def writing(*args):
        name = f"w{len(list((folder / ANN).glob('*.codes')))}"
        store.write([record(name, query.topical, query.compatibility)])
        return write_codes(*args)

    monkeypatch.setattr(building, "_write_codes", writing)
    assert store.settle()
    assert {"w0", "w1"} <= set(ask(store, query, 10).doc_ids)
    assert store.info().tail == 2
    store.close()


def test_a_read_only_store_builds_nothing(folder):
    shutil.rmtree(folder / ANN)
    reader = SqliteStore(folder, read_only=True, scale=SCALE)
    assert not reader.settle()
    assert answers(reader) == answers(exact_store(folder))
    assert not (folder / ANN).exists()
    reader.close()


@pytest.mark.parametrize("there", [True, False], ids=["with a sidecar", "without"])
def test_a_folder_that_may_not_be_written_is_searched(built, public, there):
    index = Path(shutil.copytree(built, public / "index"))
    expected = answers(SqliteStore(built, read_only=True, exact=not there))
    if there:
        for path in (index / ANN).iterdir():
            path.chmod(0o444)
    else:
        shutil.rmtree(index / ANN)
    lock(index)
    if there:
        (index / ANN).chmod(0o555)
    with without_privileges():
        reader = SqliteStore(index, read_only=True, scale=SCALE)
        assert reader.info().search == ("approximate" if there else "exact")
        assert answers(reader) == expected
        reader.close()


# --- the way that costs least


@pytest.mark.parametrize(
    ("allowed", "width", "codes"),
    [
        (1_000_000, 700, True),
        (200_000, 700, True),
        (20_000, 700, False),
        (1_000_000, 200_000, False),
    ],
    ids=["no filter", "a wide one", "a narrow one", "many hits"],
)
def test_codes_are_used_where_that_costs_less(store, monkeypatch, allowed, width, codes):
    ask(store, queries()[0])
    table = store._current._table.covered
    monkeypatch.setattr(type(table), "__len__", lambda _: 1_000_000)
    assert table._cheaper(width, allowed) == codes


# --- info


def test_info_tells_of_an_approximate_index(folder, cli: Command):
    store = SqliteStore(folder)
    store.write(records(DOCUMENTS, 3, seed=2))
    store.delete(["d00000"])
    store.close()
    done = cli("info", folder, "--json")
    [row] = done.rows
    assert done.code == 0
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert row.pop("recall").keys() == set(BOTH)
    codes = Manifest.load(folder).codes
    assert row.pop("width") == {space: codes[space].width for space in BOTH}
    assert abs(row.pop("bytes") - size) < 1e6
    assert row == {
        "documents": DOCUMENTS + 2,
        "passages": DOCUMENTS + 2,
        "model": "spec",
        "fingerprint": "fingerprint",
        "search": "approximate",
        "kind": Manifest.load(folder).codes["topical"].kind,
        "tail": 3,
        "deleted": 1,
    }


def test_info_for_people_names_recall_and_the_tail(folder, cli: Command):
    done = cli("info", folder)
    assert done.code == 0
    assert f"search approximate ({Manifest.load(folder).codes['topical'].kind})" in done.words
    value = Manifest.load(folder).codes["topical"].recall
    assert f"recall@100 topical {value:.3f}" in done.words
    assert f"width topical {Manifest.load(folder).codes['topical'].width}," in done.words
    assert "tail 0 newer passages" in done.words


def test_info_of_a_small_index_says_exact(tmp_path, cli: Command):
    store = SqliteStore(tmp_path / "small")
    store.write(records(0, 3, seed=1))
    store.close()
    done = cli("info", tmp_path / "small", "--json")
    assert (done.code, done.rows[0]["search"], done.rows[0]["kind"]) == (0, "exact", None)
    assert "model none yet" in cli("info", tmp_path / "small").words


def test_info_of_what_is_not_there_fails(tmp_path, cli: Command):
    done = cli("info", tmp_path / "nothing")
    assert (done.code, done.out) == (1, "")
    assert "no index in" in done.err
    assert not (tmp_path / "nothing").exists()


def test_info_of_an_address_is_a_misuse(cli: Command):
    done = cli("info", "postgresql://me:secret@localhost/db?table=t")
    assert (done.code, done.out) == (2, "")
    assert "secret" not in done.err


# --- asking for exact search


@pytest.mark.parametrize("given", [True, False], ids=["--exact", "without"])
@pytest.mark.parametrize("command", ["search", "run", "serve"])
def test_the_option_reaches_the_store(monkeypatch, tmp_path, cli: Command, command, given):
    seen = []

    def opening(index: object, *, read_only: bool, exact: bool) -> None:
        seen.append(exact)
        raise StoreError("far enough")

    monkeypatch.setattr("coder_ir.retriever.open_store", opening)
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "hotel"}\n')
    rest = {
        "search": ["hotel"],
        "run": [tmp_path / "queries.jsonl", "-o", tmp_path / "run.trec"],
        "serve": [],
    }[command]
    done = cli(command, tmp_path / "index", *rest, *(["--exact"] if given else []))
    assert (done.code, seen) == (1, [given])
    assert "far enough" in done.err


def test_the_run_of_another_system_refuses_the_option(tmp_path, cli: Command):
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "hotel"}\n')
    words = [tmp_path / "i", tmp_path / "queries.jsonl", "-o", tmp_path / "o", "--exact"]
    done = cli("run", *words, "--system", "bm25")
    assert done.code == 2
    assert "--exact is an option of system coder" in done.err


class Elsewhere:
    """A store behind an address, as far as opening goes."""

    def __init__(self, address: str, *, read_only: bool, exact: bool = False) -> None:
        self.opened = (address, read_only, exact)


@pytest.mark.parametrize("exact", [True, False])
def test_a_store_behind_an_address_is_told(monkeypatch, exact):
    monkeypatch.setitem(STORES, "elsewhere", f"{__name__}:Elsewhere")
    opened = open_store("elsewhere://x", exact=exact)
    assert opened.opened == ("elsewhere://x", False, exact)
    assert not settle(opened)


def test_the_manifest_is_plain_json(built):
    said = json.loads((built / ANN / MANIFEST).read_text())
    assert said["manifest"]["rows"] == DOCUMENTS


# --- filters that are known


def statements(store: SqliteStore) -> list[str]:
    """Grows by every statement that reads metadata."""
    seen: list[str] = []
    store._connection.set_trace_callback(lambda sql: "json_each" in sql and seen.append(sql))
    return seen


def test_a_filter_is_looked_up_once_until_something_is_written(store, folder):
    seen = statements(store)
    first = answers(store, 10, "half=1")
    assert answers(store, 10, "half=1") == first
    assert len(seen) == 1
    ask(store, queries()[0], 10, "half=0")
    assert len(seen) == 2
    query = queries()[0]
    store.write([record("new", query.topical, query.compatibility, number=7)])
    assert "new" in ask(store, query, 10, "half=1").doc_ids
    assert "new" not in ask(store, query, 10, "half=0").doc_ids
    assert len(seen) == 4


def test_a_filter_is_looked_up_again_after_another_process_has_written(store, folder):
    query = queries()[0]
    ask(store, query, 10, "half=1")
    other = SqliteStore(folder)
    other.write([record("new", query.topical, query.compatibility, number=7)])
    assert "new" in ask(store, query, 10, "half=1").doc_ids
    other.delete(["new"])
    assert "new" not in ask(store, query, 10, "half=1").doc_ids
    other.close()


def test_a_filter_holds_over_a_new_sidecar(store, folder):
    before = answers(store, 10, "half=1")
    store.compact()
    assert answers(store, 10, "half=1") == before == answers(exact_store(folder), 10, "half=1")


def test_filters_that_look_alike_are_told_apart(tmp_path):
    store = SqliteStore(tmp_path / "index")
    axis = np.eye(1, 4, dtype=np.float32)
    for name, value in (("yes", True), ("one", 1), ("text", "1")):
        pair, metadata = VectorPair(axis, axis), {"v": value}
        store.write([Record(Document(name, name, "", metadata), name, [Span(0, 1)], pair)])
    query = VectorPair(axis, axis)

    def found(value: object) -> set[str]:
        conditions = [Condition("v", "=", (value,))]
        return set(store.candidates(query, n=9, spaces=BOTH, where=conditions).doc_ids)

    assert [found(True), found(1), found("1")] == [{"yes"}, {"one", "text"}, {"text"}]
    store.close()


def test_only_the_last_filters_are_kept(store, monkeypatch):
    monkeypatch.setattr(filters, "_KEPT", 2)
    seen = statements(store)
    for condition in ("half=0", "half=1", "half=0", "number<9", "half=0", "half=1"):
        ask(store, queries()[0], 10, condition)
    assert len(seen) == 4  # half=1 had to go for number<9
