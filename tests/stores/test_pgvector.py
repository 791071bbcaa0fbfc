"""The PostgreSQL store against a real server: addresses, errors, conditions, kills, the index."""

import json
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import numpy as np
import pytest

from coder_ir.datasets.sample import sample_documents_file
from coder_ir.errors import InvalidValue, MissingExtra, NotFound, StoreError
from coder_ir.stores import SqliteStore, open_store
from coder_ir.stores.pgvector import connections as pgvector_connections
from coder_ir.stores.pgvector import store as module
from coder_ir.stores.pgvector.address import Settings
from coder_ir.stores.pgvector.schema import SCHEMA_VERSION
from coder_ir.stores.pgvector.store import PgvectorStore
from coder_ir.stores.pgvector.where import comparable
from coder_ir.types import Condition, Document, Record, Span, VectorPair
from coder_ir.vectors import unit_rows
from tests.conformance.test_stores import BATCH, TOTAL, VALUES, ids, ingesting, same
from tests.postgres import PASSWORD, USER, Postgres, account, fresh, running
from tests.small_disk import small_disk
from tests.stores.test_sqlite import BOTH, EAST, NORTH, record

psycopg = pytest.importorskip("psycopg", reason="needs the extra pgvector")


@pytest.fixture
def table() -> str:
    return fresh()


@pytest.fixture
def store(postgres: Postgres, table: str) -> Iterator[PgvectorStore]:
    opened = PgvectorStore(postgres.address(table))
    yield opened
    opened.close()


# --- the address


GOOD = "postgresql://me:secret@h:1/db?table=t"


def test_an_address_is_read_whole():
    address = "postgres://me:s%40c@h:1/db?sslmode=require&table=T_1&exact=true&halfvec=false"
    settings = Settings.from_address(address)
    parts = psycopg.conninfo.conninfo_to_dict(settings.conninfo)
    assert (settings.table, settings.exact, settings.halfvec) == ("T_1", True, False)
    assert {parts[k] for k in ("user", "password", "host", "port", "dbname", "sslmode")} == {
        *("me", "s@c", "h", "1", "db", "require")
    }


def test_settings_do_not_show_the_password():
    assert "secret" not in repr(Settings.from_address(GOOD))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("?table=t", ""), "names no table; add one at the end: \\?table=NAME"),
        (("table=t", "table="), "names no table"),
        (("table=t", "table=a%20b"), "got 'a b'"),
        (("table=t", "table=1a"), "got '1a'"),
        (("table=t", "table=a%22%3B--"), "got 'a\";--'"),
        (("table=t", "table=" + "a" * 41), "at most 40 letters"),
        (("table=t", "table=t&exact=yes"), "exact of .* is true or false, got 'yes'"),
        (("table=t", "table=t&halfvec=1"), "halfvec of .* is true or false, got '1'"),
        (("table=t", "table=t&tabel=u"), "unknown parameter 'tabel'"),
        (("table=t", "table=t&table=u"), "'table' twice"),
        (("secret", "sec/ret"), "cannot be read as postgresql://user:password@host"),
        (("secret", "sec@ret"), "cannot be read"),
        (("secret", "sec?ret"), "cannot be read"),
        (("secret", "sec%ret"), "cannot be read"),
        (("secret", "sec?r=et&x=1"), "cannot be read"),
        (("h:1", "h:one"), "cannot be read"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[1][-12:] or "none",
)
def test_a_bad_address_is_refused_with_the_value_and_without_the_password(change, said):
    with pytest.raises(InvalidValue, match=said) as refusal:
        open_store(GOOD.replace(*change))
    assert "sec" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"coder-ir\[pgvector\]"):
        open_store(GOOD)


# --- what the server refuses


def refused(address: str, said: str, error: type[Exception] = StoreError) -> None:
    with pytest.raises(error, match=said) as refusal:
        PgvectorStore(address)
    trace = "".join(traceback.format_exception(refusal.value))
    assert PASSWORD not in trace
    assert "wr0ng" not in trace.replace('"wr0ng"', "")  # the line of the test itself


def test_a_wrong_password_is_refused_and_not_shown(postgres, table):
    address = postgres.address_of(USER, "wr0ng", table)
    refused(address, r"127.0.0.1:\d+/postgres\?table=.* refuses user or password; correct them")


def test_a_missing_password_is_asked_for(postgres, table):
    refused(postgres.address(table).replace(":p%40ss", ":%20").replace("%20/", ""), "password")
    without = f"postgresql://{USER}@127.0.0.1:{postgres.port}/postgres?table={table}"
    refused(without, "needs a password: .* PGPASSWORD")


def test_a_server_that_is_not_there_is_named_with_what_to_check(table):
    address = f"postgresql://u:wr0ng@127.0.0.1:1/db?table={table}"
    refused(address, r"cannot reach postgresql://127.0.0.1:1/db\?table=.*check that the server")


def test_a_database_that_is_not_there_is_named(postgres, table):
    refused(postgres.address(table, database="nowhere"), 'database "nowhere" does not exist')


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """A new database, without the extension."""
    name = fresh("db")
    postgres.execute(f"CREATE DATABASE {name}")
    yield name
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_server_without_pgvector_is_told_how_to_get_it(postgres, table, database):
    nowhere = "-c extension_control_path=/nowhere"
    address = postgres.address(table, database=database, options=nowhere)
    refused(address, "has no pgvector; install it there")


def test_a_user_who_may_not_add_the_extension_is_told_who_can(postgres, table, database):
    role = fresh("role")
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'")
    address = postgres.address_of(role, "plain", table, database=database)
    refused(address, "an administrator run there: CREATE EXTENSION vector")
    postgres.execute("CREATE EXTENSION vector", database=database)
    refused(address, "permission denied for schema public; have the owner")
    postgres.execute(f"DROP ROLE {role}")


def test_a_database_in_another_encoding_is_refused(postgres, table):
    name = fresh("db")
    postgres.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    refused(postgres.address(table, database=name), "encoded in LATIN1; texts need one in UTF8")
    postgres.execute(f"DROP DATABASE {name}")


def test_a_table_of_another_program_is_refused_and_left_alone(postgres, table):
    postgres.execute(f"CREATE TABLE {table} (x integer)")
    refused(postgres.address(table), "another program's; name a new table")
    assert postgres.execute(f"SELECT * FROM {table}") == []
    assert tables(postgres, table) == [table]


def tables(postgres: Postgres, prefix: str) -> list[str]:
    found = postgres.execute(
        f"SELECT tablename FROM pg_tables WHERE starts_with(tablename, '{prefix}') ORDER BY 1"
    )
    return [name for (name,) in found]


def test_reading_a_table_that_is_not_there_creates_nothing(postgres, table):
    with pytest.raises(NotFound, match="no index in postgresql://"):
        PgvectorStore(postgres.address(table), read_only=True)
    assert tables(postgres, table) == []


def test_a_read_only_store_can_write_nothing_even_by_mistake(store, postgres, table):
    reader = PgvectorStore(postgres.address(table), read_only=True)
    reader.read_only = False
    with pytest.raises(StoreError, match="read-only"):
        reader.write([record("a")])
    reader.close()
    assert store.count() == 0


def test_tables_of_a_later_version_are_refused_with_both_versions(store, postgres, table):
    postgres.execute(f"UPDATE {table}_meta SET value = '99' WHERE key = 'version'")
    refused(postgres.address(table), f"schema version 99; this coder-ir reads {SCHEMA_VERSION}$")


def test_tables_of_an_earlier_version_are_brought_up_to_date_by_a_writer_only(
    store, postgres, table, monkeypatch
):
    store.write([record("a")])
    schema = sys.modules["coder_ir.stores.pgvector.schema"]
    step = ("ALTER TABLE {documents} ADD COLUMN note text",)
    monkeypatch.setattr(schema, "_STEPS", (*schema._STEPS, step))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with pytest.raises(StoreError, match="open it once to write"):
        PgvectorStore(postgres.address(table), read_only=True)
    for _ in range(2):
        PgvectorStore(postgres.address(table)).close()
    reader = PgvectorStore(postgres.address(table), read_only=True)
    assert reader.count() == 1
    reader.close()
    assert postgres.execute(f"SELECT note FROM {table}") == [(None,)]


def test_many_may_create_one_index_at_once(postgres, database, table):
    def create() -> None:
        try:
            opened = PgvectorStore(postgres.address(table, database=database))
            opened.write([record("a")])
            opened.close()
        except Exception as error:
            failures.append(error)

    failures: list[Exception] = []
    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    reader = PgvectorStore(postgres.address(table, database=database), read_only=True)
    assert (reader.count(), ids(reader)) == (1, ["a"])
    reader.close()


# --- what can be stored


@pytest.mark.parametrize(
    "document",
    [
        Document("a", "nul\0l"),
        Document("a", "text", "ti\0tle"),
        Document("a", "text", "", {"x": ["b\0c"]}),
        Document("a", "text", "", {"x": {"b\0c": 1}}),
        Document("a\0", "text"),
        Document("a", "text", "", {"x": "\ud800"}),
    ],
    ids=["text", "title", "metadata", "name in metadata", "id", "surrogate"],
)
def test_a_null_character_is_refused_and_nothing_of_the_batch_is_written(store, document):
    bad = Record(document, "digest", [Span(0, 1)], NORTH)
    with pytest.raises(InvalidValue, match=r"no null characters .* of document"):
        store.write([record("good"), bad])
    assert store.count() == 0


def test_jsonb_alone_would_not_give_metadata_back(store, postgres, table):
    """Why the text of the metadata is kept beside it."""
    metadata = {"b": 1e23, "a": [10**30, 1.0]}
    store.write([record("a", metadata=metadata)])
    assert repr(store.get(["a"])[0].metadata) == repr(metadata)
    text = json.dumps(metadata)
    ((normalised,),) = postgres.execute(f"SELECT '{text}'::jsonb")
    assert repr(normalised) != repr(metadata)
    assert normalised["b"] != 1e23


def test_vectors_of_other_dimensions_are_refused_with_both(store):
    store.write([record("a")])
    narrow = VectorPair(NORTH.topical, NORTH.compatibility[:, :5].copy())
    with pytest.raises(StoreError, match="vectors of 8 and 8 dimensions, document 'b' has 8 and 5"):
        store.write([record("c"), record("b", narrow)])
    assert store.count() == 1


def test_a_query_of_other_dimensions_is_refused(store):
    store.write([record("a")])
    narrow = NORTH.topical[:, :5].copy()
    with pytest.raises(StoreError, match=r"vectors of other dimensions .*different vector dim"):
        store.candidates(VectorPair(narrow, narrow), n=5, spaces=BOTH)


@pytest.fixture
def cramped() -> Iterator[Postgres]:
    """A server whose tablespace `small` is a disk of six megabytes.

    Not the server of the other tests: once the disk is gone, it could not be started again.
    """
    with running() as server, small_disk(server.folder / "disk", 6) as disk:
        shutil.chown(disk, *account())
        server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        yield server


def test_a_full_disk_of_the_server_is_a_clear_error_that_keeps_earlier_batches(cramped):
    ballast = cramped.folder / "disk" / "ballast"
    ballast.write_bytes(bytes(4_000_000))
    place = cramped.address(fresh(), options="-c default_tablespace=small")
    store, written = PgvectorStore(place), 0
    draw = np.random.default_rng(3)
    batches = [
        [record(f"{batch}-{i}", text=draw.bytes(1000).hex()) for i in range(100)]
        for batch in range(20)
    ]
    with pytest.raises(StoreError, match=r"disk of the server is full.*Earlier batches are kept"):
        for written, batch in enumerate(batches):  # noqa: B007
            store.write(batch)
    assert 0 < written < len(batches)
    assert store.count() == 100 * written
    ballast.unlink()
    store.write(batches[written])
    assert store.count() == 100 * (written + 1)
    assert len(store.candidates(NORTH, n=5, spaces=BOTH)) == 5
    store.close()


def test_half_precision_finds_the_same_documents_and_scores_what_it_keeps(postgres, tmp_path):
    address = postgres.address(fresh(), halfvec="true", exact="true")
    half, full = PgvectorStore(address), SqliteStore(tmp_path / "index")
    random = np.random.default_rng(5)
    records = [
        record(f"{i:03}", VectorPair(*(unit_rows(random.normal(size=(2, 8))) for _ in range(2))))
        for i in range(100)
    ]
    for store in (half, full):
        store.write(records)
    query = records[0].vectors
    one = VectorPair(query.topical[:1], query.compatibility[:1])
    found, expected = (store.candidates(one, n=300, spaces=BOTH) for store in (half, full))
    np.testing.assert_allclose(found.topical, expected.topical, atol=1e-3)
    assert (list(found.doc_ids), found.rows.dtype) == (list(expected.doc_ids), np.float32)
    assert not np.array_equal(found.rows, expected.rows)
    half.close()
    full.close()
    kept = PgvectorStore(
        address.replace("halfvec=true", "exact=true").replace("&exact=true", "", 1)
    )
    assert same(kept.candidates(one, n=300, spaces=BOTH), found)
    kept.close()
    with pytest.raises(InvalidValue, match="says halfvec=false, but its table was made with half"):
        PgvectorStore(address.replace("halfvec=true", "halfvec=false"))


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
        (Condition("x", "=", ("1') OR true --",)), []),
    ],
    ids=["null", "not null", "in", "surrogate", "field", "nan", "below nan", "inf", "sql"],
)
def test_a_value_that_cannot_be_stored_is_in_no_document(store, condition, expected):
    store.write([record("a", metadata={"x": 1}), record("b", metadata={"x": "one"})])
    found = store.candidates(NORTH, n=5, spaces=["topical"], where=[condition])
    assert list(found.doc_ids) == expected


def test_a_number_keeps_its_place_among_all_others_where_it_is_made_comparable():
    numbers = sorted(v for v in VALUES if isinstance(v, int | float) and abs(v) < 10**300)
    made = [comparable(v) for v in numbers]
    assert made == sorted(made)


# --- connections that break


def terminate(postgres: Postgres, table: str) -> int:
    """Break every connection of the store; returns how many there were."""
    found = postgres.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        f"WHERE application_name = '{table}'"
    )
    return len(found)


@pytest.fixture
def named(postgres: Postgres, table: str) -> Iterator[PgvectorStore]:
    """A store whose connections a test can tell from others."""
    opened = PgvectorStore(postgres.address(table, application_name=table))
    opened.write([record("a"), record("b", EAST)])
    yield opened
    opened.close()


def test_a_search_after_its_connection_was_dropped_is_answered(named, postgres, table):
    expected = named.candidates(NORTH, n=5, spaces=BOTH)
    for _ in range(3):
        assert terminate(postgres, table) > 0
        assert same(named.candidates(NORTH, n=5, spaces=BOTH), expected)


def test_a_search_dropped_in_the_middle_is_answered(named, postgres, table, monkeypatch):
    expected = named.candidates(NORTH, n=5, spaces=BOTH)
    search, calls = module.search, []

    def dropped(connection, *args, **options):
        calls.append(connection)
        if len(calls) == 1:
            with connection.transaction():
                connection.execute("SELECT 1")
                assert terminate(postgres, table) > 0
                connection.execute("SELECT 1")
        return search(connection, *args, **options)

    monkeypatch.setattr(module, "search", dropped)
    assert same(named.candidates(NORTH, n=5, spaces=BOTH), expected)
    assert len(calls) == 2


def test_a_write_dropped_in_the_middle_is_written_once(named, postgres, table, monkeypatch):
    copy, calls = module._copy, []

    def dropped(connection, *args):
        copy(connection, *args)
        calls.append(args[0])
        if len(calls) == 2:
            assert terminate(postgres, table) > 0

    monkeypatch.setattr(module, "_copy", dropped)
    named.write([record("b", text="new"), record("c")])
    assert len(calls) == 4
    assert [(d.doc_id, d.text) for d in named.documents()] == [
        *(("a", "text"), ("b", "new"), ("c", "text"))
    ]
    assert ids(named) == ["a", "b", "c"]


def test_a_write_that_is_dropped_every_time_is_given_up_and_leaves_nothing(
    named, postgres, table, monkeypatch
):
    calls = []

    def dropped(connection, *args):
        calls.append(terminate(postgres, table))
        connection.execute("SELECT 1")

    monkeypatch.setattr(module, "_copy", dropped)
    with pytest.raises(StoreError, match=r"cannot reach postgresql://127.0.0.1.*check that"):
        named.write([record("c")])
    assert len(calls) == 2
    assert named.count() == 2


def test_a_delete_that_was_committed_though_the_answer_was_lost_counts_what_it_deleted(
    named, postgres, table, monkeypatch
):
    committed = []
    real = psycopg.Connection.transaction

    def lost(self, *args, **options):
        from contextlib import contextmanager

        @contextmanager
        def around():
            with real(self, *args, **options) as transaction:
                yield transaction
            if not committed:
                committed.append(self)
                raise psycopg.OperationalError("the connection is lost")

        return around()

    monkeypatch.setattr(psycopg.Connection, "transaction", lost)
    assert named.delete(["a", "b"]) == 2
    assert (len(committed), named.count()) == (1, 0)


def test_a_server_that_stays_away_is_given_up(named, postgres, monkeypatch):
    monkeypatch.setattr(pgvector_connections, "_PATIENCE", 0.5)
    away = PgvectorStore(postgres.address(named.settings.table))
    postgres.stop()
    try:
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"cannot reach postgresql://127.0.0.1"):
            away.count()
        assert time.monotonic() - started < 5
    finally:
        postgres.start()
        away.close()
    assert named.count() == 2


def test_a_server_killed_in_the_middle_leaves_every_document_once_after_a_second_run(
    postgres, table
):
    index = postgres.address(table)
    pipe = subprocess.PIPE
    with subprocess.Popen(ingesting(index), stdout=pipe, stderr=pipe, text=True) as process:
        for _ in range(3):
            process.stdout.readline()
        postgres.kill()
        try:
            time.sleep(0.2)
            process.kill()  # it would wait for the server and go on
        finally:
            postgres.start()
    store = PgvectorStore(index)
    kept = store.count()
    assert kept % BATCH == 0
    assert 0 < kept < TOTAL
    subprocess.run(ingesting(index), check=True, stdout=subprocess.DEVNULL, timeout=60)
    expected = [f"d{i:04}" for i in range(TOTAL)]
    assert [document.doc_id for document in store.documents()] == expected
    assert postgres.execute(f"SELECT count(*) FROM {table}_passages") == [(4 * TOTAL,)]
    store.close()


def test_a_client_goes_on_by_itself_where_the_server_comes_back(postgres, table):
    store = PgvectorStore(postgres.address(table))
    store.write([record("a")])
    postgres.kill()
    postgres.start()
    store.write([record("b")])
    assert ids(store) == ["a", "b"]
    store.close()


# --- the approximate index

CLUSTERED, WIDTH = 5000, 48


def clustered(seed: int, rows: int) -> VectorPair:
    """Unit rows around 50 centres, which are the same for every seed."""
    random = np.random.default_rng(seed)
    made = []
    for space in range(2):
        centres = np.random.default_rng(space).normal(size=(50, WIDTH))
        noise = random.normal(size=(rows, WIDTH))
        made.append(unit_rows(centres[random.integers(50, size=rows)] + 0.5 * noise))
    return VectorPair(*made)


@pytest.fixture(scope="module")
def large(postgres: Postgres) -> Iterator[tuple[PgvectorStore, PgvectorStore]]:
    """One table, opened to be searched by the index and to be searched exactly."""
    table = fresh()
    store = PgvectorStore(postgres.address(table))
    rows = clustered(1, CLUSTERED)
    store.write(
        [
            record(
                f"{i:04}",
                VectorPair(rows.topical[i : i + 1], rows.compatibility[i : i + 1]),
                metadata={"rare": i % 500 == 0, "part": i % 4},
            )
            for i in range(CLUSTERED)
        ]
    )
    store.compact()
    exact = PgvectorStore(postgres.address(table, exact="true"), read_only=True)
    yield store, exact
    store.close()
    exact.close()


def index_scans(postgres: Postgres, store: PgvectorStore) -> int:
    """How often the store's connection has used an HNSW index."""
    store._rows("SELECT pg_stat_force_next_flush()")
    found = postgres.execute(
        "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE starts_with(indexrelname, "
        f"'{store.settings.table}') AND indexrelname LIKE '%hnsw'"
    )
    return int(found[0][0] or 0)


def recall(large: tuple[PgvectorStore, PgvectorStore], where: tuple[Condition, ...] = ()) -> float:
    """Mean share of the exact pool that the index finds, over 20 queries."""
    shares = []
    queries = clustered(2, 20)
    for i in range(20):
        query = VectorPair(queries.topical[i : i + 1], queries.compatibility[i : i + 1])
        found, expected = (
            set(store.candidates(query, n=100, spaces=BOTH, where=where).doc_ids) for store in large
        )
        shares.append(len(found & expected) / len(expected))
    return float(np.mean(shares))


def test_the_index_finds_what_an_exact_search_finds(large, postgres):
    before = index_scans(postgres, large[0])
    share = recall(large)
    assert index_scans(postgres, large[0]) - before == 40  # each query, each space
    assert index_scans(postgres, large[1]) - before == 40  # none of the exact ones
    assert share >= 0.98


@pytest.mark.parametrize(
    "condition", [Condition("part", "=", (1,)), Condition("rare", "=", (True,))], ids=str
)
def test_a_condition_does_not_cost_the_index_its_recall(large, condition):
    assert recall(large, (condition,)) >= 0.98


def test_where_the_index_gives_up_on_a_narrow_condition_every_passage_is_looked_at(large, postgres):
    table = large[0].settings.table
    options = "-c enable_sort=off -c enable_bitmapscan=off -c hnsw.max_scan_tuples=50"
    forced = PgvectorStore(postgres.address(table, options=options), read_only=True)
    before = index_scans(postgres, forced)
    assert recall((forced, large[1]), (Condition("rare", "=", (True,)),)) == 1
    assert index_scans(postgres, forced) > before
    forced.close()


def test_ties_past_what_the_index_looks_at_are_all_seen(postgres, monkeypatch):
    store = PgvectorStore(postgres.address(fresh()))
    monkeypatch.setattr(sys.modules["coder_ir.stores.pgvector.search"], "_EF_MOST", 100)
    store.write([record(f"{i:03}") for i in np.random.default_rng(0).permutation(600)])
    store.compact()
    assert ids(store, NORTH, 10) == [f"{i:03}" for i in range(10)]
    store.close()


def test_the_write_that_makes_the_table_large_makes_the_index(postgres, table, monkeypatch):
    monkeypatch.setattr(module, "INDEX_FROM", 40)
    monkeypatch.setattr(module, "_COUNT_EVERY", 10)
    indexes = f"SELECT count(*) FROM pg_indexes WHERE tablename = '{table}_passages'"
    store, exact = (PgvectorStore(postgres.address(table, exact=e)) for e in ("false", "true"))
    seen = []
    for start, writer in ((0, store), (35, exact), (45, store), (50, store)):
        writer.write([record(f"{start + i:02}") for i in range(35 if start == 0 else 5)])
        seen.append(postgres.execute(indexes)[0][0])
    assert seen == [2, 2, 2, 4]  # two belong to the table itself
    assert ids(store, NORTH, 3) == ["00", "01", "02"]
    store.close()
    exact.close()


def test_vectors_too_wide_for_an_index_are_searched_exactly(postgres):
    store = PgvectorStore(postgres.address(fresh()))
    wide = unit_rows(np.eye(2, 2001))
    store.write([record("a", VectorPair(wide[:1], wide[:1]))])
    store.compact()
    found = store.candidates(VectorPair(wide[:1], wide[:1]), n=1, spaces=BOTH)
    assert list(found.doc_ids) == ["a"]
    store.close()


# --- from outside


def test_a_dump_that_is_restored_elsewhere_is_the_same_index(store, postgres, table, database):
    store.write([record("a", metadata={"x": 1e23}), record("b", EAST)])
    account = {"PGPASSWORD": PASSWORD, "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port)}
    names = [f"--table={table}{suffix}" for suffix in ("", "_passages", "_meta")]
    dump = subprocess.run(
        [postgres.programs / "pg_dump", "-U", USER, *names, "postgres"],
        env=account,
        check=True,
        capture_output=True,
    )
    subprocess.run(
        [
            *(postgres.programs / "psql", "-U", USER, "-d", database, "-v", "ON_ERROR_STOP=1"),
            *("-c", "CREATE EXTENSION IF NOT EXISTS vector", "-f", "-"),
        ],
        env=account,
        input=dump.stdout,
        check=True,
        capture_output=True,
    )
    other = PgvectorStore(postgres.address(table, database=database))
    assert list(other.documents()) == list(store.documents())
    assert other.state() == store.state()
    pools = [one.candidates(NORTH, n=5, spaces=BOTH) for one in (other, store)]
    assert same(*pools)
    other.write([record("c")])
    assert other.count() == 3
    other.close()


def test_the_command_line_takes_an_address_and_never_shows_its_password(
    cli, postgres, table, tmp_path
):
    lines = sample_documents_file().read_text(encoding="utf-8").splitlines()[:12]
    docs = tmp_path / "docs.jsonl"
    docs.write_text("\n".join(lines), encoding="utf-8")
    found = []
    for index in (postgres.address(table), str(tmp_path / "index")):
        done = cli("index", index, docs, "--threads", 1)
        assert (done.code, "12 documents written" in done.err) == (0, True)
        assert PASSWORD not in done.err and "p%40ss" not in done.err
        query = ("a quiet hotel, nothing near nightlife", "--json", "--threads", 1)
        found.append(cli("search", index, *query).rows)
        found.append(cli("search", index, *query, "--hybrid").rows)
    assert found[:2] == found[2:]
    assert len(found[0]) == 10
