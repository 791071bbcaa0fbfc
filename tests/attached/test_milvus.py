"""Attaching to a Milvus collection, on Milvus Lite, which is a file."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from coder_ir.attached import Attached, Attachment, attach, open_source
from coder_ir.attached.milvus import Address
from coder_ir.attached.source import BATCH
from coder_ir.errors import InvalidValue, MissingExtra, ModelMismatch, NotFound, StoreError
from tests.attached.spaces import FakeSpace, attaching

pymilvus = pytest.importorskip("pymilvus", reason="needs the extra milvus")
server_manager_instance = pytest.importorskip(
    "milvus_lite.server_manager", reason="needs milvus-lite"
).server_manager_instance

pytestmark = pytest.mark.large
TEXTS = {"a": "quiet hotel", "b": "noisy club", "c": "sea garden"}
VECTORS = ([1.0, 0.0], [0.0, 1.0], [3.0, 4.0])


class Theirs:
    """A user's collection, in a file of its own."""

    def __init__(self, path: Path, *, whole: bool = False, metric: str = "COSINE") -> None:
        self.path = path
        with self.client() as client:
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            kind = pymilvus.DataType.INT64 if whole else pymilvus.DataType.VARCHAR
            schema.add_field("pk", kind, is_primary=True, **({} if whole else {"max_length": 99}))
            schema.add_field("body", pymilvus.DataType.VARCHAR, max_length=999, nullable=True)
            schema.add_field("emb", pymilvus.DataType.FLOAT_VECTOR, dim=2)
            index = client.prepare_index_params()
            index.add_index("emb", index_type="FLAT", metric_type=metric)
            client.create_collection("items", schema=schema, index_params=index)

    def client(self) -> "Closing":
        return Closing(pymilvus.MilvusClient(str(self.path)))

    def address(self, **more: str) -> str:
        given = {"collection": "items", "text": "body", "vector": "emb", **more}
        return f"milvus-lite:{self.path}?" + "&".join(f"{k}={v}" for k, v in given.items())

    def put(self, texts: Mapping[str | int, str | None], vectors=VECTORS) -> None:
        rows = [
            {"pk": key, "body": text, "emb": vectors[i % len(vectors)]}
            for i, (key, text) in enumerate(texts.items())
        ]
        with self.client() as client:
            for start in range(0, len(rows), 500):
                client.upsert("items", rows[start : start + 500])

    def drop(self, where: str) -> None:
        with self.client() as client:
            client.delete("items", filter=where)

    def rows(self, name: str, fields: list[str]) -> list[dict]:
        with self.client() as client:
            client.load_collection(name)
            found = client.query(
                name, filter="", limit=16000, output_fields=fields, consistency_level="Strong"
            )
            return sorted(map(dict, found), key=lambda row: str(row[fields[0]]))

    def checksum(self) -> list[dict]:
        return self.rows("items", ["pk", "body", "emb"])

    def holds(self, texts: Mapping[str | int, str]) -> None:
        rows = {row["id"]: row for row in self.rows("items_coder", ["id", "compatibility"])}
        assert set(rows) == set(texts)
        found = np.array([rows[key]["compatibility"] for key in texts], np.float32)
        assert np.array_equal(found, FakeSpace().rows(list(texts.values())))


class Closing:
    def __init__(self, client) -> None:
        self._client = client

    def __enter__(self):
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


@pytest.fixture
def items(tmp_path) -> Iterator[Theirs]:
    collection = Theirs(tmp_path / "m.db")
    collection.put(TEXTS)
    yield collection


def filled(address: str, encoder: FakeSpace | None = None) -> Attachment:
    source = open_source(address)
    try:
        return attach(source, encoder or FakeSpace(), spec="fake")
    finally:
        source.close()


def test_every_item_gets_a_vector_and_the_collection_stays_as_it_was(items):
    before = items.checksum()
    assert filled(items.address()) == Attachment(encoded=3)
    items.holds(TEXTS)
    assert items.checksum() == before


def test_only_what_changed_is_encoded_and_what_is_gone_is_removed(items):
    filled(items.address())
    items.put({"b": "quiet sea", "d": "club", "n": None})
    items.drop('pk == "c"')
    before = items.checksum()
    assert filled(items.address()) == Attachment(encoded=3, unchanged=1, removed=1)
    items.holds({"a": "quiet hotel", "b": "quiet sea", "d": "club", "n": ""})
    assert items.checksum() == before
    assert filled(items.address()) == Attachment(unchanged=4)


ODD = ["a b", "é", "'; drop", "tab\there", "line\nend", "{1,2}", '"', "%s", "\\", "雪", "\\\"' or"]


def test_ids_may_hold_any_character(tmp_path):
    items = Theirs(tmp_path / "m.db")
    texts = {doc_id: "sea " * i for i, doc_id in enumerate(ODD)}
    items.put(texts)
    assert filled(items.address()) == Attachment(encoded=len(ODD))
    items.holds(texts)
    source = open_source(items.address(), read_only=True)
    assert {held.doc_id: held.text for held in source.fetch([*ODD, "nobody"])} == texts
    assert sorted(source.nearest(np.array([1, 1], np.float32), 50)) == sorted(ODD)
    source.close()
    assert filled(items.address()) == Attachment(unchanged=len(ODD))


def test_a_process_killed_in_the_middle_and_run_again_completes_exactly(tmp_path):
    items = Theirs(tmp_path / "m.db", whole=True)
    texts = {i: f"{'quiet ' * (i % 7)}hotel {'sea ' * (i % 5)}" for i in range(-9, 6 * BATCH - 9)}
    items.put(texts)
    before = items.checksum()
    server_manager_instance.release_server(str(items.path))  # one process at a time has the file
    with subprocess.Popen(
        attaching(items.address(), 0.2), stdout=subprocess.PIPE, text=True
    ) as process:
        for _ in range(2):
            assert process.stdout.readline() == f"{BATCH}\n"
        process.kill()
    found = filled(items.address())
    assert found.encoded + found.unchanged == len(texts)
    assert found.unchanged >= 2 * BATCH
    assert found.encoded > 0
    items.holds(texts)
    assert items.checksum() == before


@pytest.mark.parametrize(
    ("metric", "order"),
    [("COSINE", ["1", "3", "2"]), ("IP", ["3", "1", "2"]), ("L2", ["2", "1", "3"])],
)
def test_the_users_own_index_decides_the_measure(tmp_path, metric, order):
    items = Theirs(tmp_path / "m.db", whole=True, metric=metric)
    # Against [1, 0]: 1 has the best cosine, 2 the least distance, 3 the largest product.
    items.put({1: "", 2: "", 3: ""}, ([9.0, 0.0], [0.9, 0.3], [90.0, 9.0]))
    source = open_source(items.address())
    found = source.nearest(np.array([1, 0], np.float32), 3)
    source.close()
    assert list(found) == order
    assert found == pytest.approx({"1": 1.0, "2": 0.948683, "3": 0.995037})


def test_seq_ranks_by_their_cosine_and_our_compatibility(items):
    filled(items.address())
    with Attached(open_source(items.address(), read_only=True), FakeSpace()) as attached:
        ranking = attached.search("sea", topical=[2.0, 0.0])
        assert [(hit.doc_id, hit.topical, hit.text) for hit in ranking] == [
            ("c", 0.6, "sea garden")
        ]
        assert [gone.doc_id for gone in ranking.filtered] == ["a", "b"]
        assert attached.rank("sea", {"c": 0.1, "a": 0.9})[0].doc_id == "c"


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"collection": "nowhere"}, NotFound, "no collection 'nowhere'"),
        ({"text": "texxt"}, InvalidValue, "no field 'texxt' of type VARCHAR; it has pk, body, emb"),
        ({"vector": "body"}, InvalidValue, "no field 'body' of type FLOAT_VECTOR"),
        ({"text": ""}, InvalidValue, "needs text="),
        ({"tabel": "x"}, InvalidValue, "unknown parameter 'tabel=x'"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_a_wrong_address_is_refused_with_what_there_is(items, change, error, said):
    with pytest.raises(error, match=said):
        open_source(items.address(**change))


def test_an_address_of_a_server_is_read_whole_and_shown_without_its_password():
    found = Address.read("milvus://me:s%40c@h:1/items?text=body&vector=emb&database=d&secure=true")
    assert (found.uri, found.token, found.collection) == ("https://h:1", "me:s@c", "items")
    assert found.database == "d"
    assert "s@c" not in repr(found)
    assert "s%40c" not in found.place
    with pytest.raises(NotFound, match="no Milvus Lite file nowhere"):
        Address.read("milvus-lite:nowhere?collection=c&text=t&vector=v")


def test_other_dimensions_models_and_programs_are_refused(items):
    source = open_source(items.address())
    with pytest.raises(InvalidValue, match="has 2 dimensions, the query's vector has 3"):
        source.nearest(np.ones(3, np.float32), 1)
    source.close()
    filled(items.address())
    with pytest.raises(ModelMismatch, match="drop the collections items_coder and"):
        filled(items.address(), FakeSpace(name="other"))
    with items.client() as client:
        client.drop_collection("items_coder_meta")
    with pytest.raises(StoreError, match="another program's"):
        filled(items.address())


def test_without_the_driver_the_extra_is_named(items, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus.exceptions", None)
    with pytest.raises(MissingExtra, match=r"coder-ir\[milvus\]"):
        open_source(items.address())
