"""Attaching to a pgvector table of a user's own, on a real server."""

import subprocess
from collections.abc import Mapping

import numpy as np
import pytest

from coder_ir.attached import Attachment, attach, open_source
from coder_ir.attached.pgvector import _NEAREST, PgvectorSource
from coder_ir.attached.source import BATCH
from coder_ir.errors import InvalidValue, ModelMismatch, NotFound, StoreError
from tests.attached.spaces import FakeSpace, attaching
from tests.postgres import PASSWORD, Postgres, fresh

psycopg = pytest.importorskip("psycopg", reason="needs the extra pgvector")

TEXTS = {"a": "quiet hotel", "b": "noisy club", "c": "sea garden"}
VECTORS = ("[1,0]", "[0,1]", "[3,4]")


class Theirs:
    """A user's table."""

    def __init__(self, server: Postgres, name: str, columns: str) -> None:
        self.server, self.name = server, name
        server.execute("CREATE EXTENSION IF NOT EXISTS vector")
        server.execute(f'CREATE TABLE "{name}" ({columns})')

    def address(self, **more: str) -> str:
        given = {"id": "id", "text": "body", "vector": "embedding", **more}
        return self.server.address(given.pop("table", self.name), **given)

    def put(self, texts: Mapping[str, str | None], vectors: tuple[str, ...] = VECTORS) -> None:
        with self.connect() as connection:
            for i, (doc_id, text) in enumerate(texts.items()):
                connection.execute(
                    f'INSERT INTO "{self.name}" (id, body, embedding) VALUES (%s, %s, %s)',
                    [doc_id, text, vectors[i % len(vectors)]],
                )

    def connect(self) -> "psycopg.Connection":
        conninfo = self.server.address("t").partition("?")[0]
        return psycopg.connect(conninfo, autocommit=True)

    def do(self, statement: str) -> list[tuple]:
        return self.server.execute(statement.replace("ITEMS", f'"{self.name}"'))

    def checksum(self) -> list[tuple]:
        """Every row, who wrote it last and where it lies; and indexes and triggers on the table."""
        rows = self.do("SELECT ctid::text, xmin::text, t::text FROM ITEMS t ORDER BY ctid")
        hangs = self.do(
            f"SELECT 'index', indexdef FROM pg_indexes WHERE tablename = '{self.name}' UNION ALL "
            f"SELECT 'trigger', tgname::text FROM pg_trigger WHERE tgrelid = '\"{self.name}\"'"
            "::regclass ORDER BY 1, 2"
        )
        return rows + hangs

    def side(self) -> dict[str, tuple[str, list[float]]]:
        rows = self.do(f'SELECT id::text, digest, compatibility::text FROM "{self.name}_coder"')
        return {i: (digest, [float(x) for x in v[1:-1].split(",")]) for i, digest, v in rows}

    def holds(self, texts: Mapping[str, str]) -> None:
        side = self.side()
        assert sorted(side) == sorted(texts)
        expected = FakeSpace().rows(list(texts.values()))
        found = np.array([side[doc_id][1] for doc_id in texts], np.float32)
        assert np.array_equal(found, expected)


@pytest.fixture
def items(postgres: Postgres) -> Theirs:
    table = Theirs(
        postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector(2), note int"
    )
    table.put(TEXTS)
    return table


def filled(address: str, encoder: FakeSpace | None = None) -> Attachment:
    source = open_source(address)
    try:
        return attach(source, encoder or FakeSpace(), spec="fake")
    finally:
        source.close()


def test_every_item_gets_a_vector_and_the_table_stays_as_it_was(items):
    before = items.checksum()
    assert filled(items.address()) == Attachment(encoded=3)
    items.holds(TEXTS)
    assert items.checksum() == before


def test_only_what_changed_is_encoded_and_what_is_gone_is_removed(items):
    filled(items.address())
    items.do("UPDATE ITEMS SET body = 'quiet sea' WHERE id = 'b'")
    items.do("UPDATE ITEMS SET note = 1 WHERE id = 'a'")
    items.do("DELETE FROM ITEMS WHERE id = 'c'")
    items.put({"d": "club"})
    before, encoder = items.checksum(), FakeSpace()
    found = filled(items.address(), encoder)
    assert found == Attachment(encoded=2, unchanged=1, removed=1)
    assert encoder.encoded == ["text", "quiet sea", "club"]
    items.holds({"a": "quiet hotel", "b": "quiet sea", "d": "club"})
    assert items.checksum() == before
    assert filled(items.address()) == Attachment(unchanged=3)


def test_a_process_killed_in_the_middle_and_run_again_completes_exactly(postgres):
    items = Theirs(postgres, fresh("items"), "id int PRIMARY KEY, body text, embedding vector(2)")
    count = 6 * BATCH
    items.do(
        "INSERT INTO ITEMS SELECT i, repeat('quiet ', i %% 7) || 'hotel ' || repeat('sea ', i %% 5)"
        f", '[1,2]' FROM generate_series(1, {count}) i".replace("%%", "%")
    )
    texts = {str(i): f"{'quiet ' * (i % 7)}hotel {'sea ' * (i % 5)}" for i in range(1, count + 1)}
    before = items.checksum()
    with subprocess.Popen(
        attaching(items.address(), 0.2), stdout=subprocess.PIPE, text=True
    ) as process:
        for _ in range(2):
            assert process.stdout.readline() == f"{BATCH}\n"
        process.kill()
    done = items.do(f'SELECT count(*) FROM "{items.name}_coder"')[0][0]
    assert done % BATCH == 0
    assert 2 * BATCH <= done < count
    assert filled(items.address()) == Attachment(encoded=count - done, unchanged=done)
    items.holds(texts)
    assert items.checksum() == before


ODD = [
    "a b",
    "é",
    "'; DROP TABLE x",
    "tab\there",
    "line\nend",
    "{1,2}",
    '"',
    "%s",
    "\\",
    "雪",
    "NULL",
]


def test_ids_may_hold_any_character(postgres):
    items = Theirs(postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector(2)")
    texts = {doc_id: "sea " * i for i, doc_id in enumerate(ODD)}
    items.put(texts)
    assert filled(items.address()) == Attachment(encoded=len(ODD))
    items.holds(texts)
    source = open_source(items.address(), read_only=True)
    assert {held.doc_id: held.text for held in source.fetch([*ODD, "nobody", "nul\0"])} == texts
    assert sorted(source.nearest(np.array([1, 1], np.float32), 50)) == sorted(ODD)
    source.close()


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("bigint", ["-5", "12345678901"]),
        ("uuid", ["0b51a5a2-0000-4000-8000-000000000001", "fb51a5a2-0000-4000-8000-000000000000"]),
        ("character varying(8)", ["x", "yy"]),
        ("character(4)", ["ab", "c"]),
        ("numeric(6,2)", ["1.50", "20.00"]),
    ],
)
def test_ids_may_be_of_any_type(postgres, kind, ids):
    columns = f"id {kind} PRIMARY KEY, body text, embedding halfvec(2)"
    items = Theirs(postgres, fresh("items"), columns)
    items.put(dict(zip(ids, ["quiet", "sea"], strict=True)))
    assert filled(items.address()) == Attachment(encoded=2)
    source = open_source(items.address())
    assert sorted(held.doc_id for held in source.fetch(ids)) == sorted(ids)
    nearest = source.nearest(np.array([1, 0], np.float32), 2)
    assert nearest == {ids[0]: 1.0, ids[1]: 0.0}
    source.close()
    assert filled(items.address()) == Attachment(unchanged=2)


def test_names_of_table_and_columns_may_be_odd_and_in_a_schema(postgres):
    schema = fresh("s")
    postgres.execute(f'CREATE SCHEMA "{schema}"')
    postgres.execute(
        f'CREATE TABLE "{schema}"."My-Items" ("The Id" int PRIMARY KEY, "a""b" text, '
        '"V %s {x}" vector(2))'
    )
    postgres.execute(f"INSERT INTO \"{schema}\".\"My-Items\" VALUES (1, 'sea', '[1,1]')")
    address = postgres.address(
        f"{schema}.My-Items", id="The Id", text='a"b', vector="V %s {x}", foreign_key="true"
    )
    for expected in (Attachment(encoded=1), Attachment(unchanged=1)):
        assert filled(address) == expected
    source = open_source(address)
    assert source.nearest(np.ones(2, np.float32), 1) == {"1": 1.0}
    source.close()


def test_a_text_that_is_null_counts_as_empty(items):
    items.do("UPDATE ITEMS SET body = NULL WHERE id = 'a'")
    assert filled(items.address()) == Attachment(encoded=3)
    items.holds({**TEXTS, "a": ""})


def test_with_a_foreign_key_the_database_removes_our_row(items):
    filled(items.address())
    items.do("DELETE FROM ITEMS WHERE id = 'a'")  # before there is a key
    assert filled(items.address(foreign_key="true")) == Attachment(unchanged=2)
    items.do("DELETE FROM ITEMS WHERE id = 'b'")
    items.holds({"c": "sea garden"})
    assert filled(items.address(foreign_key="true")) == Attachment(unchanged=1)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"table": "nowhere"}, NotFound, "no table 'nowhere' in postgresql://"),
        ({"id": "ID"}, InvalidValue, "no column 'ID' for id=; it has id, body, embedding, note"),
        ({"text": "texxt"}, InvalidValue, "no column 'texxt' for text="),
        ({"vector": "body"}, InvalidValue, "'body' of table .* is of type text"),
        ({"id": "note"}, InvalidValue, "'note' .* does not tell items apart"),
        ({"vector": ""}, InvalidValue, "does not say vector="),
        ({"foreign_key": "yes"}, InvalidValue, "foreign_key of .* true or false"),
        ({"tabel": "x"}, InvalidValue, "unknown parameter 'tabel'"),
        ({"table": "t" * 58}, InvalidValue, "_coder is too long"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_a_wrong_address_is_refused_with_what_there_is(items, change, error, said):
    with pytest.raises(error, match=said) as refusal:
        open_source(items.address(**change))
    assert PASSWORD not in str(refusal.value)


def test_a_file_of_texts_beside_a_table_is_refused(items, tmp_path):
    with pytest.raises(InvalidValue, match="texts come from the collection itself"):
        open_source(items.address(), texts=tmp_path / "docs.jsonl")


def test_a_table_of_another_program_in_our_place_is_left_alone(items):
    items.do(f'CREATE TABLE "{items.name}_coder" (x int)')
    with pytest.raises(StoreError, match="_coder already, and it is another program's"):
        filled(items.address())
    assert items.do(f'SELECT * FROM "{items.name}_coder"') == []


def test_another_model_is_refused(items):
    filled(items.address())
    with pytest.raises(ModelMismatch, match=r"drop the table public\.items"):
        filled(items.address(), FakeSpace(name="other"))
    items.holds(TEXTS)


def test_a_query_of_other_dimensions_is_refused_with_both(items):
    source = open_source(items.address())
    with pytest.raises(InvalidValue, match="has 2 dimensions, the query's vector has 3"):
        source.nearest(np.ones(3, np.float32), 1)
    source.close()


def test_a_column_of_any_dimensions_is_searched_where_they_agree(postgres):
    items = Theirs(postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector")
    items.put(TEXTS)
    source = open_source(items.address())
    assert source.nearest(np.array([0, 2], np.float32), 1) == {"b": 1.0}
    with pytest.raises(StoreError, match="different vector dimensions"):
        source.nearest(np.ones(3, np.float32), 1)
    source.close()


def test_items_without_a_vector_and_with_an_empty_one_are_never_candidates(items):
    items.do("UPDATE ITEMS SET embedding = NULL WHERE id = 'a'")
    items.do("UPDATE ITEMS SET embedding = '[0,0]' WHERE id = 'b'")
    source = open_source(items.address())
    assert source.nearest(np.array([1, 0], np.float32), 9) == {"c": 0.6}
    source.close()


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("method", ["hnsw", "ivfflat"])
def test_the_users_own_index_decides_the_measure_and_is_used(postgres, metric, method):
    items = Theirs(postgres, fresh("items"), "id int PRIMARY KEY, body text, embedding vector(8)")
    draw = np.random.default_rng(0)
    rows = (draw.normal(size=(1500, 8)) * draw.uniform(1, 3, size=(1500, 1))).astype(np.float32)
    query = draw.normal(size=8).astype(np.float32)
    with items.connect().cursor() as cursor:
        values = [(i, "", str(row.tolist())) for i, row in enumerate(rows)]
        cursor.executemany(f'INSERT INTO "{items.name}" VALUES (%s, %s, %s)', values)
        cursor.connection.close()
    exactly = " WITH (lists = 1)" if method == "ivfflat" else ""
    items.do(f"CREATE INDEX ON ITEMS USING {method} (embedding vector_{metric}_ops){exactly}")
    # So small a table is scanned unless that is forbidden.
    source = PgvectorSource(items.address(options="-c enable_seqscan=off"))
    found = source.nearest(query, 100)
    bound = {"query": str(query.tolist()), "wanted": 116}
    plan = source._connections.read(
        lambda c: str(c.execute(source._table.sql(f"EXPLAIN {_NEAREST}"), bound).fetchall())
    )
    source.close()
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    nearness = {
        "cosine": rows @ query / lengths,
        "ip": rows @ query,
        "l2": -np.linalg.norm(rows - query, axis=1),
    }
    best = {name: str(int(values.argmax())) for name, values in nearness.items()}
    assert len(set(best.values())) == 3  # so that each measure shows
    assert "Index Scan" in plan
    assert "Seq Scan" not in plan
    assert next(iter(found)) == best[metric]
    assert found[best[metric]] == pytest.approx(nearness["cosine"][int(best[metric])], abs=1e-5)
    assert len(found) == 100


def test_ties_at_the_cut_go_by_ascending_id(postgres):
    items = Theirs(postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector(2)")
    items.do(
        "INSERT INTO ITEMS SELECT lpad((500 - i)::text, 3, '0'), '', '[1,1]' "
        "FROM generate_series(1, 400) i"
    )
    source = open_source(items.address())
    assert list(source.nearest(np.ones(2, np.float32), 3)) == ["100", "101", "102"]
    source.close()


def test_a_reader_needs_no_more_than_the_right_to_read(items):
    filled(items.address())
    role = fresh("role")
    items.do(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'")
    items.do(f'GRANT SELECT ON ITEMS, "{items.name}_coder" TO {role}')
    address = items.address().replace(
        items.server.address("t").split("@")[0], f"postgresql://{role}:plain"
    )
    source = open_source(address, read_only=True)
    assert [held.text for held in source.fetch(["a"])] == ["quiet hotel"]
    source.close()
    items.do(f"DROP OWNED BY {role}")
    items.do(f"DROP ROLE {role}")
