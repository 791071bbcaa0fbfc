"""The two collections of the Milvus store: how they are made and checked.

COLLECTION holds passages, COLLECTION_documents documents and what is known of the index as a
whole. Milvus wants a vector in every collection, so documents have one of two numbers, unused.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from coder_ir.errors import InvalidValue, NotFound, StoreError
from coder_ir.stores.milvus.address import CollectionSettings
from coder_ir.stores.milvus.connections import TIMEOUT, Connections, documents_of, import_pymilvus
from coder_ir.stores.milvus.where import MOST_LABELS
from coder_ir.types import Space

SCHEMA_VERSION = 1
LONGEST = 65_535
"""Bytes of a text field, Milvus' limit."""
SPACES: tuple[Space, ...] = ("topical", "compatibility")
KEY, VERSION = 32, 24  # digits
_PASSAGES = {
    "pk": KEY,
    "document": KEY,
    "version": VERSION,
    "doc_id": LONGEST,
    "number": int,
    "start": int,
    "stop": int,
    "labels": list,
    "extremes": dict,
}
_DOCUMENTS = {
    "pk": KEY,
    "part": int,
    "doc_id": LONGEST,
    "version": VERSION,
    "digest": LONGEST,
    "parts": int,
    "body": LONGEST,
}
_UNUSED = 2  # dimensions of the vector that documents have to have


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Of the two vectors of a passage."""

    topical: int
    compatibility: int

    def of(self, space: Space) -> int:
        """Of one space."""
        return self.topical if space == "topical" else self.compatibility


@dataclass(frozen=True, slots=True)
class Passages:
    """The collection of passages as it is."""

    dimensions: Dimensions
    index: str  # its kind


def open_documents(connections: Connections, *, read_only: bool) -> None:
    """Check the collection of documents; make it unless read_only."""
    settings = connections.settings
    name = documents_of(settings.collection)
    if not _exists(connections, name):
        if _exists(connections, settings.collection):
            raise _foreign(connections, settings.collection)
        if read_only:
            raise NotFound(
                f"no index in {settings.place}; build one with: coder-ir index 'ADDRESS' DOCS"
            )
        _make(connections, name, _DOCUMENTS, {"unused": _UNUSED}, CollectionSettings())
    _check(connections, name, _DOCUMENTS, ("unused",))
    _load(connections, name, ("unused",), shape=CollectionSettings())


def find_passages(connections: Connections) -> Passages | None:
    """The collection of passages, loaded; None before the first write."""
    settings = connections.settings
    name = settings.collection
    if not _exists(connections, name):
        return None
    found = _check(connections, name, _PASSAGES, SPACES)
    _load(connections, name, SPACES, shape=settings.shape)
    described = connections.call(
        lambda client: client.describe_index(name, SPACES[0], timeout=TIMEOUT)
    )
    index = str(described["index_type"])
    if settings.shape.index not in (None, index):
        raise InvalidValue(
            f"{settings.place} says index={settings.shape.index}, but its collection was made with "
            f"{index}; leave index out, or name a new collection"
        )
    return Passages(Dimensions(*(found[space] for space in SPACES)), index)


def make_passages(connections: Connections, wanted: Dimensions) -> Passages:
    """The collection of passages, whose dimensions the first write decides."""
    settings = connections.settings
    if not _exists(connections, settings.collection):
        vectors: dict[str, int] = {space: wanted.of(space) for space in SPACES}
        _make(connections, settings.collection, _PASSAGES, vectors, settings.shape)
    found = find_passages(connections)
    assert found is not None
    return found


def _exists(connections: Connections, name: str) -> bool:
    return bool(connections.call(lambda client: client.has_collection(name, timeout=TIMEOUT)))


def _make(
    connections: Connections,
    name: str,
    fields: dict[str, Any],
    vectors: dict[str, int],
    shape: CollectionSettings,
) -> None:
    pymilvus = import_pymilvus()
    schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for field, kind in fields.items():
        schema.add_field(field, is_primary=field == "pk", **_field(pymilvus.DataType, kind))
    for field, dimensions in vectors.items():
        schema.add_field(field, pymilvus.DataType.FLOAT_VECTOR, dim=dimensions)
    # Milvus Lite has one shard, and its answers are never behind.
    more: dict[str, Any] = {}
    if not connections.lite:
        more = {"num_shards": shape.shards, "consistency_level": shape.consistency}

    def make(client: Any) -> None:
        if not client.has_collection(
            name, timeout=TIMEOUT
        ):  # another attempt, or process, may have made it
            client.create_collection(name, schema=schema, timeout=TIMEOUT, **more)

    with _made_by_another(pymilvus):
        connections.call(make)


@contextmanager
def _made_by_another(pymilvus: Any) -> Iterator[None]:
    """Two processes may make the same thing at once; both go on with what is there."""
    try:
        yield
    except StoreError as error:
        if not isinstance(error.__cause__, pymilvus.MilvusException):
            raise
        if "already" not in str(error) and "at most one distinct index" not in str(error):
            raise


def _field(types: Any, kind: Any) -> dict[str, Any]:
    if kind is int:
        return {"datatype": types.INT64}
    if kind is dict:
        return {"datatype": types.JSON}
    if kind is list:
        many = {"element_type": types.VARCHAR, "max_length": KEY, "max_capacity": MOST_LABELS}
        return {"datatype": types.ARRAY, **many}
    return {"datatype": types.VARCHAR, "max_length": kind}


def _check(
    connections: Connections, name: str, fields: dict[str, Any], vectors: tuple[str, ...]
) -> dict[str, int]:
    """Dimensions of each vector; a collection that is not ours is refused."""
    described = connections.call(lambda client: client.describe_collection(name, timeout=TIMEOUT))
    found = {field["name"]: field for field in described["fields"]}
    if set(found) != {*fields, *vectors} or not all("dim" in found[v]["params"] for v in vectors):
        raise _foreign(connections, name)
    return {vector: int(found[vector]["params"]["dim"]) for vector in vectors}


def _foreign(connections: Connections, name: str) -> StoreError:
    return StoreError(
        f"{connections.settings.place}: there is a collection {name!r} that is not an index but "
        "another program's; name a new collection"
    )


def _load(
    connections: Connections, name: str, vectors: Sequence[str], *, shape: CollectionSettings
) -> None:
    """Bring a collection into memory, with the indexes that nobody has come to make yet."""
    pymilvus = import_pymilvus()
    there = connections.call(lambda client: client.list_indexes(name, timeout=TIMEOUT))
    for vector in vectors:
        if vector in there or connections.read_only:
            continue
        index = pymilvus.MilvusClient.prepare_index_params()
        parameters = shape.build_parameters()
        index.add_index(
            vector,
            index_name=vector,
            index_type=shape.kind,
            metric_type="IP",
            params=parameters,
        )
        with _made_by_another(pymilvus):
            connections.call(partial(_make_index, name, index))
    more = {} if connections.lite else {"replica_number": connections.settings.shape.replicas}
    connections.call(lambda client: client.load_collection(name, timeout=TIMEOUT, **more))


def _make_index(name: str, index: Any, client: Any) -> None:
    client.create_index(name, index, sync=False, timeout=TIMEOUT)  # loading waits for it
