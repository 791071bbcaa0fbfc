"""A user's Milvus collection as a source; vectors go into a collection beside it."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from coder_ir.attached.source import BATCH, Held, Item, Row, digest_of, other_model
from coder_ir.errors import InvalidValue, MissingExtra, NotFound, StoreError
from coder_ir.stores.address import flag, shown, split_query
from coder_ir.stores.pool import Found, best_documents, passage_row, widths
from coder_ir.types import Floats, ModelStamp
from coder_ir.vectors import cosine, unit_rows

SUFFIX, META = "_coder", "_coder_meta"
_OWN = ("collection", "text", "vector", "database", "secure")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST = 16_384  # rows that Milvus gives to one search
_LONGEST_ID = 65_535
_MODEL = "model"  # the one key in our second collection
_ROOMY = 60_000  # characters of what is kept there


@dataclass(frozen=True, slots=True)
class Address:
    """What a source's address says."""

    uri: str  # of the server, or a file of Milvus Lite
    token: str = field(repr=False)  # user:password, or ""
    place: str
    collection: str
    text: str
    vector: str
    database: str

    @classmethod
    def read(cls, address: str) -> "Address":
        """`milvus://HOST:PORT/COLLECTION?…` or `milvus-lite:FILE?collection=COLLECTION&…`.

        Both take `text=FIELD&vector=FIELD`; a server also `database=NAME` and `secure=true`.
        """
        base, own, rest = split_query(address, _OWN)
        place = shown(address) if address.startswith("milvus://") else address
        if rest:
            raise InvalidValue(f"{place} has an unknown parameter {rest!r}; there are {_OWN}")
        uri, token = base.partition(":")[2], ""
        if base.startswith("milvus://"):
            token, _, server = uri.removeprefix("//").rpartition("@")
            server, _, own["collection"] = server.partition("/")
            secure = flag(own.get("secure", "false"), "secure", where=place)
            uri = f"{'https' if secure else 'http'}://{server}"
        elif not Path(uri).is_file() and not Path(uri).is_dir():
            raise NotFound(f"there is no Milvus Lite file {uri}")
        for name in ("collection", "text", "vector"):
            if not _NAME.fullmatch(own.get(name, "")):
                raise InvalidValue(
                    f"{place} needs {name}=, a name of letters, digits and underscores, got "
                    f"{own.get(name, '')!r}; a source is milvus://HOST:PORT/COLLECTION"
                    "?text=FIELD&vector=FIELD"
                )
        return cls(
            uri=uri,
            token=unquote(token),
            place=place,
            collection=own["collection"],
            text=own["text"],
            vector=own["vector"],
            database=own.get("database", ""),
        )


class MilvusSource:
    """A collection with a primary key, a text field and a vector field.

    Ours is named like it, with `_coder` at the end; one more, `_coder_meta`, names the model. The
    search is Milvus's own, by the measure of the user's index.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        """Connect and check the fields; nothing is written yet."""
        self._address = Address.read(address)
        self.read_only = read_only
        self._side = self._address.collection + SUFFIX
        self._meta = self._address.collection + META
        self._loaded: set[str] = set()
        with self._said():
            self._client = _client(self._address)
            self._key, self._whole = self._fields()

    def _fields(self) -> tuple[str, bool]:
        """Name of the primary key, and whether it is a number."""
        from pymilvus import DataType

        asked = self._address
        if not self._client.has_collection(asked.collection):
            raise NotFound(f"there is no collection {asked.collection!r} in {asked.place}")
        found = {f["name"]: f for f in self._client.describe_collection(asked.collection)["fields"]}
        for name, kinds in (
            (asked.text, (DataType.VARCHAR,)),
            (asked.vector, (DataType.FLOAT_VECTOR,)),
        ):
            if name not in found or found[name]["type"] not in kinds:
                raise InvalidValue(
                    f"collection {asked.collection!r} has no field {name!r} of type "
                    f"{kinds[0].name}; it has {', '.join(found)}"
                )
        key = next(f for f in found.values() if f.get("is_primary"))
        self._dimensions = int(found[asked.vector]["params"]["dim"])
        return key["name"], key["type"] == DataType.INT64

    @property
    def place(self) -> str:
        """The address without user and password."""
        return self._address.place

    def count(self) -> int:
        """Number of entities."""
        rows = self._query(self._address.collection, "", ["count(*)"])
        return int(rows[0]["count(*)"])

    def stamp(self) -> ModelStamp | None:
        """As our second collection says; another program's collection is refused."""
        with self._said():
            side, meta = (self._client.has_collection(name) for name in (self._side, self._meta))
        rows = self._query(self._meta, f"id == {json.dumps(_MODEL)}", ["value"]) if meta else []
        if side and not rows:
            raise StoreError(
                f"there is a collection {self._side} already, and it is another program's; rename "
                "or drop it"
            )
        return ModelStamp(**json.loads(rows[0]["value"])) if rows else None

    def prepare(self, stamp: ModelStamp, dimensions: int) -> None:
        """Make our collections; the one that names the model first."""
        if self.read_only:
            raise StoreError(f"{self.place} was opened read-only")
        kept = self.stamp()
        if kept is not None and kept.fingerprint != stamp.fingerprint:
            undo = f"drop the collections {self._side} and {self._meta}"
            raise other_model(self.place, kept, stamp, undo=undo)
        with self._said():
            if kept is None:
                self._create(self._meta, {"value": _ROOMY}, 2, whole=False)
                value = json.dumps({"fingerprint": stamp.fingerprint, "spec": stamp.spec})
                row = {"id": _MODEL, "value": value, "compatibility": [0.0, 1.0]}
                self._client.upsert(self._meta, [row])
            self._create(self._side, {"digest": 64}, dimensions, whole=self._whole)

    def _create(self, name: str, texts: dict[str, int], dimensions: int, *, whole: bool) -> None:
        """A collection with a key, texts of some length and a vector, unless it is there."""
        from pymilvus import DataType

        if self._client.has_collection(name):
            return
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        if whole:
            schema.add_field("id", DataType.INT64, is_primary=True)
        else:
            schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=_LONGEST_ID)
        for field_name, length in texts.items():
            schema.add_field(field_name, DataType.VARCHAR, max_length=length)
        schema.add_field("compatibility", DataType.FLOAT_VECTOR, dim=dimensions)
        index = self._client.prepare_index_params()
        index.add_index("compatibility", index_type="FLAT", metric_type="IP")
        self._client.create_collection(name, schema=schema, index_params=index)

    def items(self) -> Iterator[list[Item]]:
        """In ascending order of key, a page at a time."""
        for rows in self._pages(self._address.collection, self._key, [self._address.text]):
            kept = self._kept([row[self._key] for row in rows], ["digest"])
            yield [
                Item(str(key), None if kept.get(key, {}).get("digest") == digest_of(text) else text)
                for key, text in ((row[self._key], self._text(row)) for row in rows)
            ]

    def _pages(self, name: str, key: str, fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        # pymilvus's own iterator puts keys into its conditions without escaping them.
        here = ""
        while rows := self._query(name, here, [key, *fields], limit=BATCH, iterator="True"):
            yield rows
            here = f"{key} > {_literal(max(row[key] for row in rows))}"

    def _kept(self, keys: Sequence[Any], fields: list[str]) -> dict[Any, dict[str, Any]]:
        rows = self._query(self._side, f"id in {_literal(list(keys))}", ["id", *fields])
        return {row["id"]: row for row in rows}

    def _text(self, row: dict[str, Any]) -> str:
        return row[self._address.text] or ""

    def write(self, rows: Sequence[Row]) -> None:
        """One upsert."""
        entities = [
            {
                "id": int(row.doc_id) if self._whole else row.doc_id,
                "digest": row.digest,
                "compatibility": row.vector.tolist(),
            }
            for row in rows
        ]
        with self._said():
            self._client.upsert(self._side, entities)

    def remove_gone(self) -> int:
        """Goes through our collection, a page at a time."""
        removed = 0
        collection, key = self._address.collection, self._key
        for rows in self._pages(self._side, "id", []):
            ids = [row["id"] for row in rows]
            there = self._query(collection, f"{key} in {_literal(ids)}", [key])
            if gone := sorted(set(ids) - {row[key] for row in there}):
                with self._said():
                    self._client.delete(self._side, filter=f"id in {_literal(gone)}")
                removed += len(gone)
        return removed

    def nearest(self, vector: Floats, n: int) -> dict[str, float]:
        """The n best of Milvus's search; ties at the cut go by ascending id as far as it goes."""
        if len(vector) != self._dimensions:
            raise InvalidValue(
                f"field {self._address.vector!r} of {self.place} has {self._dimensions} "
                f"dimensions, the query's vector has {len(vector)}"
            )
        for wanted in widths(n):
            limit = min(wanted, _MOST)
            rows = self._search(vector, limit)
            names = [passage_row(i, str(row["id"]), i, (0, 0, 0)) for i, row in enumerate(rows)]
            vectors = np.array([row["vector"] for row in rows], np.float32)
            vectors = vectors.reshape(len(rows), self._dimensions)
            # Higher is nearer, but for distances; their sign makes it so.
            sign = -1.0 if self._metric() == "L2" else 1.0
            scores = np.round([sign * row["distance"] for row in rows], 6)
            seen_all = len(rows) < limit or limit == _MOST
            floor = -np.inf if seen_all or not rows else float(scores.min())
            best = best_documents(Found(names, scores, floor), n)
            if best is not None:
                similar = cosine(unit_rows(vectors), unit_rows(vector[None])[0])
                return {names[i].doc_id: float(similar[i]) for i in best}
        raise AssertionError("unreachable: the widest search is taken as it is")

    def _search(self, vector: Floats, limit: int) -> list[dict[str, Any]]:
        with self._said():
            self._load(self._address.collection)
            found = self._client.search(
                self._address.collection,
                data=[vector.tolist()],
                anns_field=self._address.vector,
                limit=limit,
                output_fields=[self._key, self._address.vector],
                consistency_level="Strong",
            )
        return [
            {
                "id": hit["entity"][self._key],
                "vector": hit["entity"][self._address.vector],
                "distance": hit["distance"],
            }
            for hit in found[0]
        ]

    def _metric(self) -> str:
        with self._said():
            names = self._client.list_indexes(self._address.collection)
            described = [
                self._client.describe_index(self._address.collection, name) for name in names
            ]
        kinds = [d["metric_type"] for d in described if d["field_name"] == self._address.vector]
        return str(kinds[0]).upper() if kinds else "COSINE"

    def fetch(self, doc_ids: Sequence[str]) -> list[Held]:
        """Entities of both collections."""
        wanted = [self._as_key(doc_id) for doc_id in doc_ids]
        if not wanted:
            return []
        fields = [self._key, self._address.text]
        there = self._query(self._address.collection, f"{self._key} in {_literal(wanted)}", fields)
        kept = self._kept([row[self._key] for row in there], ["digest", "compatibility"])
        return [self._held(row, kept.get(row[self._key])) for row in there]

    def _held(self, row: dict[str, Any], kept: dict[str, Any] | None) -> Held:
        key, text = str(row[self._key]), self._text(row)
        if kept is None:
            return Held(key, text, "", None)
        return Held(key, text, kept["digest"], np.array(kept["compatibility"], np.float32))

    def _as_key(self, doc_id: str) -> int | str:
        if not self._whole:
            return doc_id
        try:
            return int(doc_id)
        except ValueError as error:
            raise InvalidValue(f"{self.place} has no such ids: {doc_id!r} is no number") from error

    def close(self) -> None:
        """Let the connection go."""
        self._client.close()

    def _query(self, name: str, where: str, fields: list[str], **more: Any) -> list[dict[str, Any]]:
        if where.endswith(" in []"):
            return []
        with self._said():
            self._load(name)
            return list(
                self._client.query(
                    name, filter=where, output_fields=fields, consistency_level="Strong", **more
                )
            )

    def _load(self, name: str) -> None:
        """Into Milvus's memory, where it may not be after a restart; once a process."""
        if name not in self._loaded:
            self._client.load_collection(name)
            self._loaded.add(name)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Errors of Milvus in this project's words; the password is in none."""
        try:
            from pymilvus.exceptions import MilvusException
        except ImportError as error:
            raise MissingExtra("A Milvus collection", extra="milvus") from error
        try:
            yield
        except MilvusException as error:
            words = " ".join(str(error.message).split())
            secret = self._address.token.partition(":")[2]
            words = words.replace(secret, "…") if secret else words
            raise StoreError(f"{self.place}: {words}") from error


def _client(address: Address) -> Any:
    from pymilvus import MilvusClient

    make: Callable[..., Any] = MilvusClient
    return make(address.uri, token=address.token, db_name=address.database, timeout=10)


def _literal(value: Any) -> str:
    """A value as a condition of Milvus writes it; what an id holds cannot end it."""
    return json.dumps(value, ensure_ascii=False)
