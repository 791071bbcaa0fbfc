"""The address of a Milvus store, read and checked before anything is connected to."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from coder_ir.errors import InvalidValue
from coder_ir.stores.address import flag, shown, split_query

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")  # Milvus ends at 255; suffixes take some
_PORT = 19530
_COUNTS = ("shards", "replicas", "m", "ef_construction", "ef", "nlist", "nprobe", "search_list")
_SHAPE = ("index", "consistency", *_COUNTS)
_SERVER = ("db", "tls", "token")
INDEXES: Mapping[str, tuple[str, ...]] = {
    "FLAT": (),
    "AUTOINDEX": (),
    "HNSW": ("m", "ef_construction", "ef"),
    "IVF_FLAT": ("nlist", "nprobe"),
    "DISKANN": ("search_list",),
}
"""Kinds of index and the parameters that go with each."""
_CONSISTENCY = ("Strong", "Bounded", "Session", "Eventually")
_DEFAULTS = {"m": 16, "ef_construction": 200, "ef": 200, "nlist": 1024, "nprobe": 64}
_DEFAULTS |= {"search_list": 200}
_BUILD = {"m": "M", "ef_construction": "efConstruction", "nlist": "nlist"}  # Milvus' own names


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """How the collections of an index are made and searched; Milvus Lite has one shard, one copy.

    `index`, `shards` and what an index is built with count when the collection is made.
    """

    index: str | None = None  # one of INDEXES; None: as the collection is, FLAT for a new one
    shards: int = 1  # parts that writes are spread over
    replicas: int = 1  # copies in the memory of query nodes
    consistency: str = "Strong"  # a search finds all that was written before it
    numbers: Mapping[str, int] = field(default_factory=dict)  # m, ef_construction, ef, nlist, …

    @property
    def kind(self) -> str:
        """The index of a new collection."""
        return self.index or "FLAT"

    def build_parameters(self) -> dict[str, int]:
        """What the index is built with, in Milvus' words."""
        return {_BUILD[name]: self._number(name) for name in INDEXES[self.kind] if name in _BUILD}

    def search_parameters(self, kind: str, limit: int) -> dict[str, int]:
        """What a search for `limit` passages needs; Milvus asks for as much breadth as results."""
        breadth = {"HNSW": "ef", "DISKANN": "search_list"}.get(kind)
        if breadth:
            return {breadth: max(self._number(breadth), limit)}
        return {"nprobe": self._number("nprobe")} if kind == "IVF_FLAT" else {}

    def _number(self, name: str) -> int:
        return self.numbers.get(name, _DEFAULTS[name])


@dataclass(frozen=True, slots=True)
class Settings:
    """What an address says."""

    place: str  # the address as messages name it, without user, password and token
    collection: str
    file: Path | None  # of Milvus Lite; None: a server
    uri: str  # of the server; "": Milvus Lite
    token: str = field(repr=False)  # "user:password", or a key; "": none
    database: str  # "": the default one
    shape: CollectionSettings

    @property
    def secrets(self) -> list[str]:
        """What no message may hold."""
        return [part for part in (self.token, self.token.partition(":")[2]) if part]

    @classmethod
    def from_address(cls, address: str) -> "Settings":
        """Read `milvus://user:password@host:port/COLLECTION` or `milvus-lite:FILE?collection=NAME`.

        Parameters of CollectionSettings may follow; at a server also `db`, `tls` and `token`.
        """
        if address.partition(":")[0].lower() == "milvus-lite":
            return cls._of_file(address)
        return cls._of_server(address)

    @classmethod
    def _of_file(cls, address: str) -> "Settings":
        base, own, rest = split_query(address, ("collection", *_SHAPE))
        place = f"{base}?collection={own.get('collection', '')}"
        _refuse_unknown(rest, place, ("collection", *_SHAPE))
        file = unquote(base.partition(":")[2])
        if not file:
            raise InvalidValue(f"{place} names no file: milvus-lite:FILE?collection=NAME")
        if not own.get("collection"):
            raise InvalidValue(f"{base} names no collection; add one at the end: ?collection=NAME")
        name = _collection(own["collection"])
        return cls(place, name, Path(file), "", token="", database="", shape=_shape(own, place))

    @classmethod
    def _of_server(cls, address: str) -> "Settings":
        place = shown(address)
        if "@" in address.partition("?")[2]:  # then a password holds the question mark
            raise _unreadable(place)
        base, own, rest = split_query(address, (*_SERVER, *_SHAPE))
        _refuse_unknown(rest, place, (*_SERVER, *_SHAPE))
        parts = _split(base, place)
        name = parts.path.strip("/")
        if not name:
            raise InvalidValue(f"{place} names no collection: milvus://host:port/COLLECTION")
        scheme = "https" if flag(own.get("tls", "false"), "tls", where=place) else "http"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(
            place=place,
            collection=_collection(unquote(name)),
            file=None,
            uri=f"{scheme}://{host}:{parts.port or _PORT}",
            token=_token(parts, own.get("token", ""), place),
            database=own.get("db", ""),
            shape=_shape(own, place),
        )


def _split(base: str, place: str) -> Any:
    """The parts of a URI; what a parser says of a bad one could quote the password."""
    try:
        parts = urlsplit(base)
        readable = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        readable = False
    if not readable or "@" in base.partition("//")[2].partition("/")[2] or base.count("@") > 1:
        raise _unreadable(place)
    return parts


def _unreadable(place: str) -> InvalidValue:
    return InvalidValue(
        f"{place} cannot be read as milvus://user:password@host:port/COLLECTION; in user and "
        "password, write / ? @ : % as %2F %3F %40 %3A %25"
    )


def _token(parts: Any, token: str, place: str) -> str:
    if parts.username is not None and token:
        raise InvalidValue(f"{place} has both a user and a token; keep one of them")
    if parts.username is not None:
        return f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return token or os.environ.get("MILVUS_TOKEN", "")


def _collection(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            "a collection's name is at most 200 letters, digits and underscores and begins with no "
            f"digit, got {name!r}"
        )
    return name


def _refuse_unknown(rest: str, place: str, known: tuple[str, ...]) -> None:
    if rest:
        unknown = unquote(rest.partition("=")[0])
        raise InvalidValue(
            f"{place} has an unknown parameter {unknown!r}; there are {', '.join(known)}"
        )


def _shape(own: Mapping[str, str], place: str) -> CollectionSettings:
    index, consistency = own.get("index"), own.get("consistency", "Strong")
    if index is not None and index not in INDEXES:
        raise InvalidValue(f"index of {place} is one of {', '.join(INDEXES)}, got {index!r}")
    if consistency not in _CONSISTENCY:
        raise InvalidValue(
            f"consistency of {place} is one of {', '.join(_CONSISTENCY)}, got {consistency!r}"
        )
    numbers = {name: _count(own[name], name, place) for name in _COUNTS if name in own}
    shards, replicas = numbers.pop("shards", 1), numbers.pop("replicas", 1)
    for name in numbers:
        if index is not None and name not in INDEXES[index]:
            raise InvalidValue(f"{place}: an index {index} has no {name}; leave it out")
    return CollectionSettings(index, shards, replicas, consistency, numbers)


def _count(value: str, name: str, place: str) -> int:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) <= 65536:
        raise InvalidValue(f"{name} of {place} is a number from 1 to 65536, got {value!r}")
    return int(value)
