"""Metadata conditions, asked of a real store with one document a case."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from coder_ir.conditions import parse_condition
from coder_ir.errors import InvalidValue
from coder_ir.stores import SqliteStore
from coder_ir.types import Condition, Document, Json, Record, Span, VectorPair
from coder_ir.vectors import unit_rows

ONE = VectorPair(unit_rows(np.ones((1, 2))), unit_rows(np.ones((1, 2))))

METADATA: dict[str, dict[str, Json]] = {
    "int": {"year": 2019},
    "float": {"year": 2020.5},
    "text-number": {"year": "2019"},
    "text": {"year": "soon"},
    "true": {"year": True},
    "false": {"year": False},
    "null": {"year": None},
    "list": {"year": [2018, "2021", 2022]},
    "empty-list": {"year": []},
    "missing": {"month": 5},
}


def make_store(folder: Path, metadata: dict[str, dict[str, Json]]) -> SqliteStore:
    store = SqliteStore(folder)
    store.write(
        [
            Record(Document(doc_id, "text", "", fields), "digest", [Span(0, 4)], ONE)
            for doc_id, fields in metadata.items()
        ]
    )
    return store


def passing(store: SqliteStore, *where: str | Condition) -> set[str]:
    conditions = [parse_condition(w) if isinstance(w, str) else w for w in where]
    return set(store.candidates(ONE, n=100, spaces=["topical"], where=conditions).doc_ids)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = make_store(tmp_path / "index", METADATA)
    yield opened
    opened.close()


@pytest.fixture
def found(tmp_path: Path):
    """Ids passing the conditions among documents with the given metadata, named 0, 1, …"""
    opened: list[SqliteStore] = []

    def ask(metadata: Sequence[dict[str, Json]], *where: str | Condition) -> set[str]:
        rows = {str(number): fields for number, fields in enumerate(metadata)}
        opened.append(make_store(tmp_path / str(len(opened)), rows))
        return passing(opened[-1], *where)

    yield ask
    for one in opened:
        one.close()


EQUAL = {
    "year=2019": {"int", "text-number"},
    "year = 2019": {"int", "text-number"},
    "year=2019.0": {"int"},
    "year=2020.5": {"float"},
    "year=soon": {"text"},
    "year=Soon": set(),
    "year=true": {"true"},
    "year=false": {"false"},
    "year=null": {"null"},
    "year=2022": {"list"},
    "year=2021": {"list"},
    "year=1": set(),
    "year=0": set(),
}


@pytest.mark.parametrize(("condition", "expected"), EQUAL.items(), ids=EQUAL)
def test_equals_matches_the_value_and_its_type(store, condition, expected):
    assert passing(store, condition) == expected


ORDERED = {
    "year<2019": {"list"},
    "year<=2019": {"int", "list"},
    "year>2019": {"float", "list"},
    "year>=2020.5": {"float", "list"},
    "year>2022": set(),
    "year>-1e300": {"int", "float", "list"},
}


@pytest.mark.parametrize(("condition", "expected"), ORDERED.items(), ids=ORDERED)
def test_order_compares_numbers_and_only_numbers(store, condition, expected):
    assert passing(store, condition) == expected


UNEQUAL = {
    "year!=2019": {"int", "text-number"},
    "year!=soon": {"text"},
    "year!=true": {"true"},
    "year!=null": {"null"},
    "year!=2022": {"list"},
}


@pytest.mark.parametrize(("condition", "failing"), UNEQUAL.items(), ids=UNEQUAL)
def test_unequal_passes_all_that_equals_does_not_a_missing_field_included(
    store, condition, failing
):
    assert passing(store, condition) == METADATA.keys() - failing


IN = {
    "year in 2019,soon": {"int", "text-number", "text"},
    "year in 2018, 2020.5": {"float", "list"},
    "year in true,null": {"true", "null"},
    "year in nothing": set(),
}


@pytest.mark.parametrize(("condition", "expected"), IN.items(), ids=IN)
def test_in_passes_any_of_its_values(store, condition, expected):
    assert passing(store, condition) == expected


@pytest.mark.parametrize("operator", ["=", "!=", "in"])
def test_a_missing_field_meets_no_condition_but_unequal(store, operator):
    expected = set(METADATA) if operator == "!=" else set()
    assert passing(store, Condition("nowhere", operator, ("x",))) == expected


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_a_missing_field_is_neither_above_nor_below_a_number(store, operator):
    assert passing(store, Condition("nowhere", operator, (0,))) == set()


def test_all_conditions_must_hold(store):
    assert passing(store, "year>=2019", "year!=2022") == {"int", "float"}


def test_a_text_number_is_not_compared_by_size(found):
    assert found([{"n": "10"}, {"n": 10}], "n>9") == {"1"}


@pytest.mark.parametrize(
    "value",
    ["' OR 1=1 --", "x'); DROP TABLE documents; --", '" OR "1"="1', "$.*", "%", "?", "a,b"],
)
def test_a_value_with_sql_in_it_is_only_a_value(store, value):
    assert passing(store, Condition("year", "=", (value,))) == set()
    assert store.count() == len(METADATA)


def test_a_value_with_sql_in_it_is_found_where_it_is_the_value(found):
    attack = "x'); DROP TABLE documents; --"
    assert found([{"f": attack}, {"f": "x"}], Condition("f", "=", (attack,))) == {"0"}


@pytest.mark.parametrize("field", ["year') OR 1=1 --", "$.year", "year[0]", "*", "#-1"])
def test_a_field_with_sql_or_a_path_in_it_is_only_a_name(store, field):
    assert passing(store, Condition(field, "=", (2019,))) == set()
    assert store.count() == len(METADATA)


@pytest.mark.parametrize("operator", ["like", "> 0 OR 1 <", "; DROP TABLE documents; --", ""])
def test_an_operator_that_is_none_is_refused(operator):
    with pytest.raises(InvalidValue, match="operator"):
        Condition("year", operator, (3,))


@pytest.mark.parametrize(
    "field",
    ["a.b", "a b", "größe", "a[0]", "$", "it's", "a\\b", "a\tb"],
    ids=["dot", "space", "umlaut", "brackets", "dollar", "apostrophe", "backslash", "tab"],
)
def test_a_field_name_is_taken_as_it_is(found, field):
    assert found([{field: 3}, {"a": {"b": 3}}, {"a": [3]}], Condition(field, "=", (3,))) == {"0"}


@pytest.mark.parametrize("field", ["", 'a"b', "a\0b"], ids=["empty", "quote", "null byte"])
def test_a_field_name_no_store_could_look_up_is_refused(field):
    with pytest.raises(InvalidValue, match="needs a name"):
        Condition(field, "=", (1,))


@pytest.mark.parametrize("value", ["x", True, None], ids=["text", "bool", "null"])
def test_order_with_anything_but_a_number_is_refused(value):
    with pytest.raises(InvalidValue, match="year < compares numbers"):
        Condition("year", "<", (value,))


@pytest.mark.parametrize("text", ["year", "=3", "", "year ~ 3", "yearin 3"])
def test_what_is_no_condition_is_refused_with_the_text_seen(text):
    with pytest.raises(InvalidValue, match=f"got '{text}'"):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ['"1.10"', '"1e3"', "007", "+5", "1_000", "NaN", "Infinity", "a=b"]
)
def test_a_text_is_found_by_exactly_the_text_it_is(found, text):
    assert found([{"v": text.strip('"')}], f"v={text}") == {"0"}


@pytest.mark.parametrize("value", [10**19, -(10**19)], ids=["above", "below"])
@pytest.mark.parametrize("operator", ["=", ">"])
def test_a_number_past_64_bits_is_compared_and_not_an_error(found, operator, value):
    expected = {"0"} if operator == ">" and value < 0 else set()
    assert found([{"n": 5}], Condition("n", operator, (value,))) == expected


def test_a_field_that_holds_an_object_equals_none_of_the_values_inside(found):
    assert found([{"size": {"width": 3}}], "size=3") == set()


def test_a_list_inside_a_list_is_not_searched(found):
    assert found([{"n": [[3]]}, {"n": [3]}], "n=3") == {"1"}
