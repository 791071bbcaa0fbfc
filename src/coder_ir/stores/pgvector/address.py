"""The address of a PostgreSQL store, read and checked before anything is connected to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.stores.address import flag, shown, split_query

_OWN = ("table", "exact", "halfvec")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")  # PostgreSQL cuts at 63; suffixes take some
_DEFAULTS = {"connect_timeout": "10", "application_name": "coder-ir", "client_encoding": "utf8"}


@dataclass(frozen=True, slots=True)
class Server:
    """Where an address leads."""

    conninfo: str = field(repr=False)  # for libpq, password included
    password: str = field(repr=False)  # "": none in the address
    place: str  # the address as messages name it, without user and password

    @classmethod
    def reached_by(cls, address: str, own: Sequence[str]) -> tuple["Server", dict[str, str]]:
        """Read an address: the server, and those of its parameters that are not libpq's."""
        place = shown(address)
        if "@" in address.partition("?")[2]:  # then a password holds the question mark
            raise _unreadable(place)
        base, found, rest = split_query(address, own)
        parts = _libpq(f"{base}?{rest}" if rest else base, place, own)
        conninfo = _conninfo({**_DEFAULTS, **parts})
        return Server(conninfo, str(parts.get("password") or ""), place), found


@dataclass(frozen=True, slots=True)
class Settings(Server):
    """What the address of a store says."""

    table: str
    exact: bool  # never an approximate index
    halfvec: bool | None  # half precision; None: as the table is, or full for a new one

    @classmethod
    def from_address(cls, address: str) -> "Settings":
        """Read `postgresql://user:password@host:port/database?table=NAME`.

        `exact`, `halfvec` and whatever libpq knows may follow `table`.
        """
        server, own = Server.reached_by(address, _OWN)
        place = server.place
        return cls(
            conninfo=server.conninfo,
            password=server.password,
            place=place,
            table=_table(own.get("table"), place),
            exact=flag(own.get("exact", "false"), "exact", where=place),
            halfvec=flag(own["halfvec"], "halfvec", where=place) if "halfvec" in own else None,
        )


def _table(name: str | None, place: str) -> str:
    if not name:
        raise InvalidValue(f"{place} names no table; add one at the end: ?table=NAME")
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"a table's name is at most 40 letters, digits and underscores and begins with no "
            f"digit, got {name!r}"
        )
    return name


def _libpq(uri: str, place: str, own: Sequence[str]) -> dict[str, Any]:
    """The parts of a URI; what libpq says of a bad one could quote the password, so it is not."""
    psycopg = import_psycopg()
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    names = [part.partition("=")[0] for part in uri.partition("?")[2].split("&") if part]
    if unknown := next((name for name in names if name not in known), None):
        raise InvalidValue(
            f"{place} has an unknown parameter {unknown!r}; there are {', '.join(own)} and "
            "those of libpq, such as sslmode"
        )
    try:
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(uri)
    except psycopg.ProgrammingError:
        raise _unreadable(place) from None
    ports = str(parts.get("port") or "1").split(",")
    if "@" in str(parts.get("host", "")) or not all(port.isdigit() for port in ports):
        raise _unreadable(place)
    return parts


def _unreadable(place: str) -> InvalidValue:
    return InvalidValue(
        f"{place} cannot be read as postgresql://user:password@host:port/database?table=NAME; "
        "in user and password, write / ? @ : % as %2F %3F %40 %3A %25"
    )


def _conninfo(parts: dict[str, Any]) -> str:
    made: str = import_psycopg().conninfo.make_conninfo(**parts)
    return made


def import_psycopg() -> Any:
    """The driver, or word of how to install it."""
    try:
        import psycopg
        import psycopg.conninfo
        import psycopg.pq
    except ImportError as error:
        raise MissingExtra("The PostgreSQL store", extra="pgvector") from error
    return psycopg
