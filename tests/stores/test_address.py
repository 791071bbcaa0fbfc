"""What is a folder, what is an address, and what of an address may be shown."""

from pathlib import Path

import pytest

from coder_ir.errors import InvalidValue
from coder_ir.stores import index_folder, open_store, shown
from coder_ir.stores.address import STORES, split_query


@pytest.mark.parametrize(
    "index",
    ["index", "./a b", "/data/index", "C:\\index", "notes: old", "2024:index", "a?b=c", "~/x@y"],
)
def test_what_has_no_scheme_is_a_folder(index):
    assert index_folder(index) == Path(index)


@pytest.mark.parametrize("index", ["postgresql://h/db", "POSTGRES://h/db", "redis://h", "a+b://x"])
def test_what_has_a_scheme_is_no_folder(index):
    assert index_folder(index) is None


def test_a_path_is_always_a_folder():
    assert index_folder(Path("postgresql:/x")) == Path("postgresql:/x")


def test_a_known_scheme_needs_no_slashes_and_an_unknown_one_is_then_a_folder(monkeypatch):
    monkeypatch.setitem(STORES, "boxed", "nowhere:Store")
    assert index_folder("boxed:file.db?collection=x") is None
    assert index_folder("unboxed:file.db") == Path("unboxed:file.db")


def test_every_scheme_names_a_store_that_is_there():
    for scheme in STORES:
        with pytest.raises(InvalidValue, match=r"names no (table|collection)"):
            open_store(f"{scheme}://localhost")


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(InvalidValue, match=r"no store is known for redis:// .* postgresql:"):
        open_store("redis://localhost/x")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("some/folder@home", "some/folder@home"),
        ("postgresql://me:secret@h:1/db?table=t", "postgresql://h:1/db?table=t"),
        ("postgresql://me:sec/ret@h/db?table=t", "postgresql://h/db?table=t"),
        ("postgresql://me:sec?r@et@h/db?table=t", "postgresql://h/db?table=t"),
        ("postgresql://h/db?password=secret&table=t", "postgresql://h/db?table=t"),
        ("postgresql:///db?host=/run/pg&password=secret", "postgresql:///db?host=/run/pg"),
        ("postgresql://h/db?Password=secret", "postgresql://h/db"),
        ("milvus://me:sec@ret@h:1/c?db=d&token=secret", "milvus://h:1/c?db=d"),
        ("milvus-lite:~/x@y.db?collection=c", "milvus-lite:~/x@y.db?collection=c"),
    ],
)
def test_an_address_is_shown_without_user_and_password(index, expected):
    assert shown(index) == expected


def test_a_parameter_that_comes_twice_is_refused():
    with pytest.raises(InvalidValue, match="'table' twice"):
        split_query("postgresql://h/db?table=a&table=b", ["table"])


def test_parameters_of_others_are_handed_on_as_they_were():
    base, own, rest = split_query(
        "postgresql://h/db?sslmode=require&table=a%20b&x=%2F+%26", ["table"]
    )
    assert (base, own, rest) == ("postgresql://h/db", {"table": "a b"}, "sslmode=require&x=/%2B%26")
