"""The Milvus store against Milvus Lite, as a file and as a server: addresses, errors, kills."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from coder_ir.errors import InvalidValue, MissingExtra, NotFound, StoreError
from coder_ir.stores import SqliteStore, open_store
from coder_ir.stores.milvus import connections as milvus_connections
from coder_ir.stores.milvus import schema as milvus_schema
from coder_ir.stores.milvus import search as milvus_search
from coder_ir.stores.milvus import store as module
from coder_ir.stores.milvus.address import CollectionSettings, Settings
from coder_ir.stores.milvus.rows import batch_of, meta_row
from coder_ir.stores.milvus.store import MilvusStore
from coder_ir.stores.milvus.where import MOST_LABELS, _sortable, expression
from coder_ir.types import Condition, Document, Record, Span, VectorPair
from coder_ir.vectors import unit_rows
from tests.conformance.test_stores import (
    BATCH,
    TOTAL,
    VALUES,
    ids,
    ingesting,
    random_condition,
    same,
    worked_over,
)
from tests.milvus import Milvus, free_port, fresh
from tests.small_disk import small_disk
from tests.stores.test_sqlite import BOTH, DIMENSIONS, EAST, NORTH, random_pair, record

pymilvus = pytest.importorskip("pymilvus", reason="needs the extra milvus")
pytest.importorskip("milvus_lite", reason="needs the extra milvus")
pytestmark = pytest.mark.large


@pytest.fixture
def collection() -> str:
    return fresh()


@pytest.fixture
def index(milvus: Milvus, collection: str) -> str:
    return milvus.address(collection)


@pytest.fixture
def store(index: str) -> Iterator[MilvusStore]:
    opened = MilvusStore(index)
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"milvus-lite:{tmp_path}/index.db?collection=papers"


def rows(milvus: Milvus, collection: str, condition: str = "") -> int:
    """How many rows a collection has, whether they count or not."""
    client = milvus.client()
    found = client.query(collection, filter=condition, output_fields=["count(*)"])
    client.close()
    return found[0]["count(*)"]


# --- the address


GOOD = "milvus://me:secret@h:1/c"


def test_an_address_is_read_whole():
    address = "milvus://me:s%40c@h:1/C_1?db=d&tls=true&index=HNSW&m=8&ef=50&shards=2&replicas=3"
    settings = Settings.from_address(f"{address}&consistency=Bounded&ef_construction=90")
    shape = settings.shape
    assert (settings.uri, settings.collection, settings.file) == ("https://h:1", "C_1", None)
    assert (settings.token, settings.database) == ("me:s@c", "d")
    assert (shape.shards, shape.replicas, shape.consistency) == (2, 3, "Bounded")
    assert shape.build_parameters() == {"M": 8, "efConstruction": 90}
    assert shape.search_parameters("HNSW", 10) == {"ef": 50}
    assert shape.search_parameters("HNSW", 80) == {"ef": 80}


def test_a_file_is_read_whole():
    settings = Settings.from_address("milvus-lite:/a%20b/c.db?collection=x&index=IVF_FLAT&nlist=7")
    assert (settings.file, settings.collection) == (Path("/a b/c.db"), "x")
    assert settings.shape.build_parameters() == {"nlist": 7}


def test_without_a_port_it_is_that_of_milvus():
    assert Settings.from_address("milvus://h/c").uri == "http://h:19530"
    assert Settings.from_address("milvus://[::1]/c").uri == "http://[::1]:19530"


def test_the_token_comes_from_the_address_or_else_from_the_environment(monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", "from outside")
    assert Settings.from_address("milvus://h/c?token=a%26b").token == "a&b"
    assert Settings.from_address("milvus://me:pass@h/c").token == "me:pass"
    assert Settings.from_address("milvus://h/c").token == "from outside"
    assert Settings.from_address("milvus-lite:f?collection=c").token == ""


@pytest.mark.parametrize("address", [GOOD, "milvus://h/c?token=secret"])
def test_settings_do_not_show_password_or_token(address):
    settings = Settings.from_address(address)
    assert "secret" not in repr(settings)
    assert "secret" not in settings.place


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("/c", ""), "names no collection: milvus://host"),
        (("/c", "/a b"), "got 'a b'"),
        (("/c", "/1a"), "got '1a'"),
        (("/c", "/" + "a" * 201), "at most 200 letters"),
        (("/c", "/c?tls=yes"), "tls of .* is true or false, got 'yes'"),
        (("/c", "/c?index=FAST"), "index of .* is one of FLAT, .* got 'FAST'"),
        (("/c", "/c?index=FLAT&m=3"), "an index FLAT has no m"),
        (("/c", "/c?shards=0"), "shards of .* from 1 to 65536, got '0'"),
        (("/c", "/c?consistency=strong"), "consistency of .* is one of Strong, .* got 'strong'"),
        (("/c", "/c?colection=d"), "unknown parameter 'colection'"),
        (("/c", "/c?db=a&db=b"), "'db' twice"),
        (("/c", "/c?token=secret"), "both a user and a token"),
        (("secret", "sec/ret"), "cannot be read as milvus://user:password@host"),
        (("secret", "sec@ret"), "cannot be read"),
        (("secret", "sec?ret"), "cannot be read"),
        (("h:1", "h:one"), "cannot be read"),
        (("h:1", ""), "cannot be read"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[1][-16:] or "none",
)
def test_a_bad_address_is_refused_with_the_value_and_without_the_password(change, said):
    with pytest.raises(InvalidValue, match=said) as refusal:
        open_store(GOOD.replace(*change))
    assert "sec" not in str(refusal.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("milvus-lite:f.db", r"names no collection; add one at the end: \?collection=NAME"),
        ("milvus-lite:f.db?collection=", "names no collection"),
        ("milvus-lite:?collection=c", "names no file"),
        ("milvus-lite:f.db?collection=c&tls=true", "unknown parameter 'tls'"),
    ],
)
def test_a_bad_file_address_is_refused(address, said):
    with pytest.raises(InvalidValue, match=said):
        open_store(address)


@pytest.mark.parametrize(
    ("package", "address"),
    [("pymilvus", GOOD), ("milvus_lite.adapter.grpc.server", "milvus-lite:f.db?collection=c")],
)
def test_without_the_driver_the_extra_is_named(monkeypatch, tmp_path, package, address):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"coder-ir\[milvus\]"):
        open_store(address)
    assert list(tmp_path.iterdir()) == []


class Recorder:
    """Takes the place of a connection, and keeps what was asked of the server."""

    def __init__(self, *, lite: bool) -> None:
        self.lite = lite
        self.read_only = False
        self.settings = Settings.from_address("milvus://h/c?index=HNSW&shards=4&replicas=2&m=9")
        self.asked: dict[str, dict] = {}

    def call(self, work: Callable) -> object:
        return work(self)

    def has_collection(self, name: str, **_: object) -> bool:
        return False

    def list_indexes(self, name: str, **_: object) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **options: self.asked.__setitem__(name, {"args": args, **options})


@pytest.mark.parametrize("lite", [True, False], ids=["lite", "cluster"])
def test_shards_replicas_and_consistency_go_to_a_cluster_only(lite):
    server = Recorder(lite=lite)
    shape = server.settings.shape
    milvus_schema._make(server, "c", {"pk": 32}, {"topical": 8}, shape)
    milvus_schema._load(server, "c", ["topical"], shape=shape)
    made, loaded = server.asked["create_collection"], server.asked["load_collection"]
    assert made.get("num_shards") == (None if lite else 4)
    assert made.get("consistency_level") == (None if lite else "Strong")
    assert loaded.get("replica_number") == (None if lite else 2)
    assert milvus_search.consistency(server).get("consistency_level") == (
        None if lite else "Strong"
    )
    (parameters,) = server.asked["create_index"]["args"][1]
    assert parameters.get_index_configs()["index_type"] == "HNSW"
    assert parameters.get_index_configs()["M"] == 9


# --- what is refused


def refused(address: str, said: str, error: type[Exception] = StoreError) -> None:
    with pytest.raises(error, match=said) as refusal:
        MilvusStore(address)
    assert "wr0ng" not in str(refusal.value)


def test_a_server_that_is_not_there_is_named_with_what_to_check():
    started = time.monotonic()
    refused("milvus://u:wr0ng@127.0.0.1:1/c", "cannot reach milvus://127.0.0.1:1/c: .*check that")
    assert time.monotonic() - started < 5


@pytest.fixture
def guarded() -> Iterator[int]:
    """Port of a server that takes no token."""
    import grpc
    from pymilvus.grpc_gen import milvus_pb2_grpc

    class Guard(milvus_pb2_grpc.MilvusServiceServicer):
        def Connect(self, request, context):
            token = dict(context.invocation_metadata()).get("authorization", "")
            said = f"auth check failure, please check api key {token} wr0ng is correct"
            context.abort(grpc.StatusCode.UNAUTHENTICATED, said)

    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        milvus_pb2_grpc.add_MilvusServiceServicer_to_server(Guard(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield port
        server.stop(0).wait()


@pytest.mark.parametrize("account", ["u:wr0ng@", ""], ids=["password", "token"])
def test_a_wrong_password_or_token_is_refused_and_not_shown(guarded, account):
    token = "" if account else "?token=wr0ng"
    refused(
        f"milvus://{account}127.0.0.1:{guarded}/c{token}",
        r"milvus://127.0.0.1:\d+/c: the server refuses user, password or token; .* MILVUS_TOKEN",
    )


@pytest.mark.parametrize("suffix", ["", "_documents"], ids=["passages", "documents"])
def test_a_collection_of_another_program_is_refused_and_left_alone(milvus, collection, suffix):
    client = milvus.client()
    client.create_collection(f"{collection}{suffix}", dimension=4)
    refused(milvus.address(collection), "another program's; name a new collection")
    there = [name for name in client.list_collections() if name.startswith(collection)]
    assert there == [f"{collection}{suffix}"]
    client.close()


def test_reading_a_collection_that_is_not_there_creates_nothing(milvus, index, collection):
    with pytest.raises(NotFound, match="no index in milvus://"):
        MilvusStore(index, read_only=True)
    client = milvus.client()
    assert not [name for name in client.list_collections() if name.startswith(collection)]
    client.close()


def test_reading_a_file_that_is_not_there_creates_nothing(file, tmp_path):
    with pytest.raises(NotFound, match="no index in milvus-lite:"):
        open_store(file, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_an_index_of_a_later_version_is_refused_with_both_versions(store, index):
    store._upsert([meta_row("schema", "99")])
    refused(index, "schema version 99; this coder-ir reads 1$")


def test_another_index_than_the_collection_has_is_refused(store, milvus, collection):
    store.write([record("a")])
    refused(
        milvus.address(collection, index="HNSW"),
        "says index=HNSW, but its collection was made with FLAT",
        InvalidValue,
    )


def test_a_file_or_folder_of_another_program_is_refused_and_left_alone(tmp_path):
    plain, folder = tmp_path / "plain", tmp_path / "folder"
    plain.write_text("x")
    folder.mkdir()
    (folder / "notes.txt").write_text("x")
    refused(f"milvus-lite:{plain}?collection=c", "is not a database of Milvus Lite 3")
    refused(f"milvus-lite:{folder}?collection=c", r"not empty \(it holds 'notes.txt'\)")
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_file_that_another_process_uses_is_refused_with_the_way_out(file, tmp_path):
    from milvus_lite.db import MilvusLite

    holder = MilvusLite(f"{tmp_path}/index.db")  # a second lock of one process is refused as well
    refused(file, "one process at a time may use it: .* milvus-lite server")
    holder.close()
    open_store(file).close()


def test_two_stores_share_a_file_and_the_last_lets_go_of_it(file, tmp_path):
    from milvus_lite.db import MilvusLite

    first, second = open_store(file), open_store(file)
    first.write([record("a")])
    first.close()
    first.close()
    assert ids(second) == ["a"]
    second.close()
    MilvusLite(f"{tmp_path}/index.db").close()


def test_a_process_that_closes_nothing_ends_and_loses_nothing(file):
    code = "import sys; from coder_ir.stores import open_store\n"
    code += "from tests.stores.test_sqlite import record\n"
    code += "open_store(sys.argv[1]).write([record('a')])"
    done = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    store = open_store(file)
    assert ids(store) == ["a"]
    store.close()


def test_nothing_but_our_own_words_reaches_the_standard_error(file):
    code = (
        "import sys\nfrom coder_ir.errors import StoreError\n"
        "from coder_ir.stores import open_store\n"
        "from coder_ir.stores.milvus.search import query\n"
        "for work in (lambda: open_store('milvus://127.0.0.1:1/c'),\n"
        "             lambda: query(store._connections, 'papers_documents', 'a b', [])):\n"
        "    store = open_store(sys.argv[1])\n"
        "    try: work()\n"
        "    except StoreError as error: print(type(error).__name__)\n"
        "    store.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["StoreError", "StoreError"], "")


def test_vectors_of_other_dimensions_are_refused_with_both(store, index):
    other = MilvusStore(index)  # opened before there are any
    store.write([record("a")])
    narrow = VectorPair(NORTH.topical, NORTH.compatibility[:, :5].copy())
    for one in (store, other):
        with pytest.raises(StoreError, match=r"of 8 and 8 dimensions, document 'b' has 8 and 5"):
            one.write([record("b", narrow)])
        with pytest.raises(StoreError, match="of 8 and 8 dimensions, the query has 8 and 5"):
            one.candidates(narrow, n=5, spaces=BOTH)
    other.close()
    assert store.count() == 1


# In a process of its own: Milvus Lite leaves the file open that could not grow.
FILLING = """
import json, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
from coder_ir.errors import StoreError
from coder_ir.stores.milvus.store import MilvusStore
from tests.stores.test_sqlite import BOTH, NORTH, record

disk, draw, written = Path(sys.argv[2]), np.random.default_rng(3), 0
(disk / "ballast").write_bytes(bytes(6_000_000))
store = MilvusStore(f"milvus-lite:{disk}/db?collection=c")
try:
    while written < 80:
        batch = [record(f"{written}-{i}", text=draw.bytes(1000).hex()) for i in range(100)]
        store.write(batch)
        written += 1
except StoreError as error:
    said, kept = str(error), store.count()
(disk / "ballast").unlink()
store.write(batch)
hits = len(store.candidates(NORTH, n=5, spaces=BOTH))
print(json.dumps([said, written, kept, store.count(), hits]))
store.close()
"""


def test_a_full_disk_is_a_clear_error_that_keeps_earlier_batches(tmp_path):
    with small_disk(tmp_path / "disk", 12) as disk:
        command = [sys.executable, "-c", FILLING, str(Path(__file__).parents[2]), str(disk)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    said, written, *counts = json.loads(done.stdout)
    assert re.search(r"disk of the server is full.*Earlier batches are kept", said)
    assert 0 < written < 80
    assert counts == [100 * written, 100 * written + 100, 5]


def test_a_collection_dropped_behind_its_back_is_said_to_be_gone(store, milvus, collection):
    store.write([record("a")])
    client = milvus.client()
    client.drop_collection(collection)
    client.close()
    with pytest.raises(StoreError, match="dropped since it was opened"):
        store.candidates(NORTH, n=5, spaces=BOTH)


# --- what can be stored


def long_document(doc_id: str, letter: str) -> Document:
    """Past Milvus' limit of a field, with characters of several bytes at every place of a cut."""
    return Document(doc_id, f"{letter}🗝é" * 40_000, f"{letter} title", {"long": "日" * 30_000})


def test_a_text_past_the_limit_of_a_field_comes_back_whole(store, milvus, collection):
    first, second = long_document("a", "x"), long_document("b", "xy")
    store.write([Record(d, "digest", [Span(0, 9)], NORTH) for d in (first, second)])
    assert store.get(["b", "a"]) == [second, first]
    assert list(store.documents()) == [first, second]
    parts = rows(milvus, f"{collection}_documents", "part > 0")
    changed = long_document("a", "z")
    store.write([Record(changed, "digest", [Span(0, 9)], NORTH)])
    assert store.get(["a", "b"]) == [changed, second]
    assert rows(milvus, f"{collection}_documents", "part > 0") == parts
    assert store.delete(["a"]) == 1
    assert store.get(["b"]) == [second]
    store.write([record("b")])
    assert rows(milvus, f"{collection}_documents", "part > 0") == 0


@pytest.mark.parametrize("size", [3_000, 4_096, 4_097, 59_990, 60_000, 60_001, 120_000])
def test_a_text_of_any_size_comes_back(store, size):
    document = Document("a", "é" * (size // 2))
    store.write([Record(document, "digest", [Span(0, 1)], NORTH)])
    assert store.get(["a"]) == [document]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document("é" * 40_000, "text"), "at most 65535 bytes in a field; the id"),
        (Document("a\ud800", "text"), "id of document .* half a character"),
        (Document("a", "te\ud800xt"), "text of document 'a' holds half a character"),
        (
            Document("a", "", "", {"x": list(range(MOST_LABELS + 1))}),
            "at most 4096 metadata values",
        ),
        (Document("a", "", "", {f"{i}": i for i in range(500)}), "at most 400 metadata fields"),
    ],
    ids=["id", "half an id", "half a text", "values", "fields"],
)
def test_what_milvus_cannot_hold_is_refused_and_nothing_of_the_batch_is_written(
    store, document, said
):
    with pytest.raises(InvalidValue, match=said):
        store.write([record("good"), Record(document, "digest", [Span(0, 1)], NORTH)])
    assert store.count() == 0


def test_the_most_metadata_that_is_let_through_fits(store):
    fields = {f"field {i}": [i, i + 0.5] for i in range(400)}
    store.write(
        [
            record("a", metadata={"x": list(range(MOST_LABELS))}),
            record("b", metadata=fields),
        ]
    )
    assert ids(store, NORTH, 5, "x=4095") == ["a"]
    assert ids(store, NORTH, 5, "field 399>399") == ["b"]


def test_a_large_batch_goes_in_several_requests(store, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SEND", 5_000)
    monkeypatch.setattr(module, "_COMMIT", 7)
    reference = SqliteStore(tmp_path / "reference")
    random = np.random.default_rng(0)
    records = [record(f"{i:03}", random_pair(random, 3)) for i in range(50)]
    for one in (store, reference):
        one.write(records)
        one.delete([f"{i:03}" for i in range(0, 50, 3)])
    query = random_pair(random, 1)
    assert same(*(one.candidates(query, n=9, spaces=BOTH) for one in (store, reference)))
    reference.close()


# --- conditions, against the embedded store


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("x", "=", ("a\0b",)), []),
        (Condition("x", "!=", ("a\0b",)), ["a", "b"]),
        (Condition("x", "in", ("a\0b", 1)), ["a"]),
        (Condition("x", "=", ("\ud800",)), []),
        (Condition("\ud800", ">", (1,)), []),
        (Condition("x", "=", (float("nan"),)), []),
        (Condition("x", "<", (float("nan"),)), []),
        (Condition("x", "<", (float("inf"),)), ["a"]),
        (Condition("x", "=", ('"]) or start >= 0 or ("" in [""',)), []),
        (Condition("x'] > 0 or start >= 0 #", ">", (0,)), []),
    ],
    ids=[
        "null",
        "not null",
        "in",
        "surrogate",
        "field",
        "nan",
        "below nan",
        "inf",
        "value",
        "name",
    ],
)
def test_no_value_or_name_can_leave_its_place(store, condition, expected):
    store.write([record("a", metadata={"x": 1}), record("b", metadata={"x": "one"})])
    found = store.candidates(NORTH, n=5, spaces=["topical"], where=[condition])
    assert list(found.doc_ids) == expected


def test_an_expression_holds_fixed_words_and_hashes_only():
    random = np.random.default_rng(3)
    words = {*"array_contains_any labels extremes start not and low high in".split(), ""}
    for _ in range(300):
        text = expression([random_condition(random), random_condition(random)])
        for mark in '()[]",_<>=0':
            text = text.replace(mark, " ")
        kept = {word for word in text.split() if not set(word) <= set("0123456789abcdef")}
        assert kept <= {*words, "array", "contains", "any"}


def test_numbers_sort_as_they_are_written():
    numbers = [v for v in VALUES if isinstance(v, int | float) and not isinstance(v, bool)]
    numbers += [-v for v in numbers] + [2**63 - k for k in range(1, 2000, 7)]
    numbers += [5e-324, -5e-324, 1.7976931348623157e308, 2**53 - 1, 2**53 + 3, float(2**53 + 2)]
    for left in numbers:
        for right in numbers[::5]:
            expected = (left > right) - (left < right)
            first, second = _sortable(left), _sortable(right)
            if abs(left) < 2**63 and abs(right) < 2**63:
                assert (first > second) - (first < second) == expected, (left, right)
            elif float_of(left) != float_of(right):
                assert (first > second) == (left > right), (left, right)


def float_of(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# --- never a mix of old and new


THREE = unit_rows(np.eye(3, DIMENSIONS))


class Killed(BaseException):
    """Stands for a process that is no more."""


def interrupted(store: MilvusStore, step: str, records: list[Record], monkeypatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, step, killed)
        with pytest.raises(Killed):
            store.write(records)


OLD = [record(name, VectorPair(THREE, THREE), text="old", digest="old") for name in "ab"]
NEW = [record(name, VectorPair(-THREE[:2], THREE[:2]), text="new", digest="new") for name in "abc"]


@pytest.mark.parametrize(
    ("step", "survives"), [("_upsert", "old"), ("_sweep", "new")], ids=["before", "after"]
)
def test_a_write_killed_around_its_one_request_leaves_old_or_new_and_no_mix(
    store, milvus, collection, tmp_path, monkeypatch, step, survives
):
    store.write(OLD)
    interrupted(store, step, NEW, monkeypatch)
    reference = SqliteStore(tmp_path / "reference")
    reference.write(OLD if survives == "old" else NEW)
    assert {d.text for d in store.documents()} == {survives}
    assert set(store.digests(["a", "b", "c"]).values()) == {survives}
    assert rows(milvus, collection) == 12
    for query in (NORTH, EAST):
        for also in ((), ("a", "c")):
            found, expected = (
                one.candidates(query, n=2, spaces=BOTH, also=also) for one in (store, reference)
            )
            assert same(found, expected)
    store.write(NEW)
    assert len(ids(store)) == store.count() == 3
    monkeypatch.setattr(module, "_GRACE", 0.0)
    store.compact()
    assert rows(milvus, collection) == 6
    reference.close()


def test_what_is_left_behind_stays_until_no_writer_can_be_on_its_way_with_it(
    store, milvus, collection, monkeypatch
):
    store.write(OLD)
    interrupted(store, "_upsert", NEW, monkeypatch)
    store.delete(["b"])
    store.compact()
    assert rows(milvus, collection) == 9
    assert rows(milvus, f"{collection}_documents", "part == -2") == 1
    monkeypatch.setattr(module, "_GRACE", 0.0)
    store.compact()
    assert rows(milvus, collection) == 3
    assert rows(milvus, f"{collection}_documents", "part == -2") == 0
    assert ids(store) == ["a"]


def test_of_two_writers_of_one_document_the_last_has_it_whole(store, index, monkeypatch):
    store.write(OLD)
    other, commit = MilvusStore(index), store._upsert

    def crossed(sent: list) -> None:
        monkeypatch.undo()
        other.write([record("a", EAST, text="other")])
        commit(sent)

    monkeypatch.setattr(store, "_upsert", crossed)
    store.write(NEW)
    for one in (store, other):
        assert {d.text for d in one.documents()} == {"new"}
        assert ids(one, NORTH, 9) == ["a", "b", "c"]
    other.close()


def test_a_document_replaced_while_it_is_searched_for_is_found_as_it_is_now(
    store, index, monkeypatch
):
    store.write(OLD)
    other, look, calls = MilvusStore(index), milvus_search.heads, []

    def replaced(*args, **options):
        calls.append(args)
        if len(calls) == 1:  # the passages of old have been found, and are gone now
            other.write(NEW)
        return look(*args, **options)

    monkeypatch.setattr(milvus_search, "heads", replaced)
    found = store.candidates(EAST, n=9, spaces=["topical"])
    assert list(found.doc_ids) == ["a", "b", "c"]
    assert found.topical.tolist() == [0.0, 0.0, 0.0]
    assert len(calls) > 1
    other.close()


def test_a_search_beside_a_writer_never_finds_a_mix(store, index):
    done = threading.Event()

    def replace_all() -> None:
        writer = MilvusStore(index)
        for turn in range(30):
            rows = THREE[turn % 3 :][:1]  # both vectors of a passage are the same
            writer.write([record(f"{i:02}", VectorPair(rows, rows)) for i in range(20)])
            time.sleep(0.03)
        writer.close()

    store.write([record(f"{i:02}", VectorPair(THREE[:1], THREE[:1])) for i in range(20)])
    sizes = []
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(replace_all)
        running.add_done_callback(lambda _: done.set())
        while not done.is_set():
            found = store.candidates(NORTH, n=50, spaces=BOTH, also=["03"])
            assert len(set(found.doc_ids)) == len(found.doc_ids)  # each by one passage
            assert np.array_equal(found.topical, found.compatibility)
            sizes.append(len(found))
        running.result()
    assert len(sizes) >= 3
    assert sizes.count(20) >= 0.8 * len(sizes)
    assert len(ids(store)) == 20


# --- more than one answer of Milvus holds


def test_past_the_most_results_every_passage_is_read(store, tmp_path, monkeypatch):
    monkeypatch.setattr(milvus_search, "MOST", 40)
    monkeypatch.setattr(milvus_search, "_PAGE", 64)
    reference = SqliteStore(tmp_path / "reference")
    worked_over(reference)
    worked_over(store)
    scans, every = [], milvus_search.Search._every
    monkeypatch.setattr(
        milvus_search.Search, "_every", lambda *args: scans.append(args) or every(*args)
    )
    random = np.random.default_rng(8)
    for n in (10, 60, 500):
        for where in ((), (Condition("parity", "=", (1,)),)):
            query = random_pair(random, 1)
            found, expected = (
                one.candidates(query, n=n, spaces=BOTH, where=where, also=["d3", "d4"])
                for one in (store, reference)
            )
            assert same(found, expected)
    assert len(scans) >= 8
    reference.close()


# --- connections that break


def test_a_client_goes_on_by_itself_where_the_server_comes_back(milvus, store):
    store.write([record("a")])
    milvus.kill()
    milvus.start()
    assert ids(store) == ["a"]
    store.write([record("b")])
    assert ids(store) == ["a", "b"]


def test_a_search_dropped_in_the_middle_is_answered(milvus, store, monkeypatch):
    store.write([record("a"), record("b", EAST)])
    expected = store.candidates(NORTH, n=5, spaces=BOTH)
    look, calls = milvus_search.heads, []

    def dropped(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            milvus.kill()
            threading.Timer(0.5, milvus.start).start()
        return look(*args, **options)

    monkeypatch.setattr(milvus_search, "heads", dropped)
    assert same(store.candidates(NORTH, n=5, spaces=BOTH), expected)
    assert len(calls) > 0


def test_a_server_that_stays_away_is_given_up(monkeypatch, tmp_path):
    server = Milvus(tmp_path, free_port())
    server.start()
    store = MilvusStore(server.address("c"))
    server.kill()
    monkeypatch.setattr(milvus_connections, "_PATIENCE", 0.5)
    started = time.monotonic()
    with pytest.raises(StoreError, match=r"cannot reach milvus://127.0.0.1"):
        store.count()
    assert time.monotonic() - started < 5
    store.close()


def test_a_server_killed_in_the_middle_leaves_every_document_once_after_a_second_run(
    milvus, index, collection, monkeypatch
):
    pipe = subprocess.PIPE
    with subprocess.Popen(ingesting(index), stdout=pipe, stderr=pipe, text=True) as process:
        for _ in range(3):
            process.stdout.readline()
        milvus.kill()
        try:
            time.sleep(0.2)
            process.kill()  # it would wait for the server and go on
        finally:
            milvus.start()
    store = MilvusStore(index)
    kept = store.count()
    assert kept % BATCH == 0
    assert 3 * BATCH <= kept < TOTAL  # all that was acknowledged
    subprocess.run(ingesting(index), check=True, stdout=subprocess.DEVNULL, timeout=60)
    expected = [f"d{i:04}" for i in range(TOTAL)]
    assert [document.doc_id for document in store.documents()] == expected
    monkeypatch.setattr(module, "_GRACE", 0.0)
    store.compact()
    assert rows(milvus, collection) == 4 * TOTAL
    assert rows(milvus, f"{collection}_documents", "part == 0") == TOTAL
    store.close()


HOLD = """
import sys
from coder_ir.stores import open_store

store = open_store(sys.argv[1])
with store._connections.writing():
    print("held", flush=True)
    sys.stdin.readline()
store.close()
"""


def test_processes_write_to_a_lite_server_one_after_the_other(store, index):
    """Its log is damaged by two at once, and what follows the damage is lost with a kill."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, index]
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder,
        ThreadPoolExecutor(1) as threads,
    ):
        assert holder.stdout.readline() == "held\n"
        waiting = threads.submit(store.write, [record("a")])
        time.sleep(0.3)
        assert (waiting.done(), store.count()) == (False, 0)
        holder.communicate("go on\n", timeout=30)
        waiting.result(timeout=30)
    assert ids(store) == ["a"]


def test_a_write_goes_on_where_the_server_comes_back_in_its_middle(milvus, store, monkeypatch):
    store.write(OLD)
    commit, calls = store._upsert, []

    def dropped(sent: list) -> None:
        if not calls:
            milvus.kill()
            threading.Timer(0.3, milvus.start).start()
        calls.append(sent)
        commit(sent)

    monkeypatch.setattr(store, "_upsert", dropped)
    store.write(NEW)
    assert {d.text for d in store.documents()} == {"new"}
    assert ids(store) == ["a", "b", "c"]


# --- approximate indexes


@pytest.mark.parametrize("kind", ["HNSW", "IVF_FLAT"])
def test_an_approximate_index_finds_what_an_exact_search_finds(milvus, tmp_path, kind):
    more = {"nlist": "32", "nprobe": "16"} if kind == "IVF_FLAT" else {"m": "16", "ef": "100"}
    store = MilvusStore(milvus.address(fresh(), index=kind, **more))
    exact = SqliteStore(tmp_path / "index")
    random = np.random.default_rng(1)
    centres = random.normal(size=(30, 32))

    def near(count: int) -> np.ndarray:
        noise = random.normal(size=(count, 32))
        return unit_rows(centres[random.integers(30, size=count)] + 0.5 * noise)

    made = [near(1200), near(1200)]
    records = [
        record(f"{i:04}", VectorPair(made[0][i : i + 1], made[1][i : i + 1])) for i in range(1200)
    ]
    for one in (store, exact):
        one.write(records)
    store.compact()  # Lite builds the index when it writes to disk
    shares = []
    for _ in range(15):
        query = VectorPair(near(1), near(1))
        found, expected = (
            set(one.candidates(query, n=50, spaces=BOTH).doc_ids) for one in (store, exact)
        )
        shares.append(len(found & expected) / len(expected))
    assert float(np.mean(shares)) >= 0.95
    store.close()
    exact.close()


def test_every_kind_of_index_has_parameters_that_can_be_asked_for():
    for kind in ("FLAT", "AUTOINDEX", "HNSW", "IVF_FLAT", "DISKANN"):
        shape = CollectionSettings(index=kind)
        assert all(value > 0 for value in shape.build_parameters().values())
        assert all(
            value >= 300 or name == "nprobe"
            for name, value in shape.search_parameters(kind, 300).items()
        )


def test_keys_of_a_batch_differ_and_hold_no_character_of_an_id():
    batch = batch_of([*OLD, record('"] or start >= 0')])
    keys = [row["pk"] for row in (*batch.passages, *batch.heads)]
    assert len(set(keys)) == len(keys)
    assert all(set(key) <= set("0123456789abcdef") for key in keys)
    assert json.dumps(keys).isascii()


@pytest.mark.parametrize(("kind", "fits"), [("FLAT", True), ("HNSW", False)])
def test_exact_search_is_refused_where_the_index_is_approximate(tmp_path, kind: str, fits: bool):
    place = f"milvus-lite:{tmp_path / 'kind.db'}?collection=c"
    store = open_store(f"{place}&index={kind}")
    store.write([record("a")])
    store.close()
    if fits:
        open_store(place, exact=True).close()
    else:
        with pytest.raises(InvalidValue, match="HNSW, which is not exact"):
            open_store(place, exact=True)
