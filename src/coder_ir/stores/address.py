"""What a user gives as INDEX: a folder, or the address of a store.

An address begins with the scheme of a store that is known, `postgresql://…` for one, or with any
word and `://`. All else is a folder.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from coder_ir.errors import InvalidValue

STORES = {
    "postgresql": "coder_ir.stores.pgvector.store:PgvectorStore",
    "postgres": "coder_ir.stores.pgvector.store:PgvectorStore",
    "milvus": "coder_ir.stores.milvus.store:MilvusStore",
    "milvus-lite": "coder_ir.stores.milvus.store:MilvusStore",
}
"""Scheme to module and class, loaded when an address asks for it; called as
`Class(address, read_only=…)`, with `exact=True` where nothing approximate is wanted."""

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>//)?")
_SECRET = ("password", "sslpassword", "token")
_FILES = ("milvus-lite",)  # schemes before a path, which may hold an @


def scheme_of(index: str | Path) -> str | None:
    """The scheme of an address, in small letters; None where the index is a folder."""
    match = _SCHEME.match(index) if isinstance(index, str) else None
    if match is None:
        return None
    scheme = match["scheme"].lower()
    return scheme if match["slashes"] or scheme in STORES else None


def index_folder(index: str | Path) -> Path | None:
    """The folder of an index; None where it is behind an address."""
    return Path(index) if scheme_of(index) is None else None


def shown(index: str | Path) -> str:
    """An index as messages may name it: without user and password."""
    if scheme_of(index) is None:
        return str(index)
    scheme, _, rest = str(index).partition(":")
    slashes = "//" if rest.startswith("//") else ""
    if scheme.lower() in _FILES:
        return str(index)
    # The last @ there is: a password that was not percent-encoded may hold any character.
    place, mark, query = rest.removeprefix("//").rpartition("@")[2].partition("?")
    kept = [(name, value) for name, value in _pairs(query) if name.lower() not in _SECRET]
    return f"{scheme}:{slashes}{place}{mark if kept else ''}{_query(kept)}"


def split_query(address: str, own: Sequence[str]) -> tuple[str, dict[str, str], str]:
    """An address without its parameters, those named in `own`, and the rest as a query again.

    A parameter that comes twice is refused.
    """
    base, _, query = address.partition("?")
    pairs = _pairs(query)
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidValue(f"{shown(address)} says {twice!r} twice; once is enough")
    ours = {name: value for name, value in pairs if name in own}
    return base, ours, _query([pair for pair in pairs if pair[0] not in own])


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names and values; a plus sign is a plus sign, as in libpq, and not a blank."""
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name)}={quote(value, safe='/:,')}" for name, value in pairs)


def flag(value: str, name: str, *, where: str) -> bool:
    """A parameter that is true or false."""
    if value not in ("true", "false"):
        raise InvalidValue(f"{name} of {where} is true or false, got {value!r}")
    return value == "true"
