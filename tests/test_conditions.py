import time

import pytest

from coder_ir.conditions import parse_condition, parse_value
from coder_ir.errors import InvalidValue
from coder_ir.types import Condition


class TestParseCondition:
    @pytest.mark.parametrize(
        ("text", "operator", "value"),
        [
            ("stars=4", "=", 4),
            ("stars!=4", "!=", 4),
            ("stars<4", "<", 4),
            ("stars<=4", "<=", 4),
            ("stars>4", ">", 4),
            ("stars>=4", ">=", 4),
            ("stars in 4", "in", 4),
        ],
        ids=lambda value: value if isinstance(value, str) else None,
    )
    def test_every_operator_is_read(self, text: str, operator: str, value: int):
        assert parse_condition(text) == Condition("stars", operator, (value,))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("written", "value"),
        [
            ("4", 4),
            ("-4", -4),
            ("4.5", 4.5),
            ("1e3", 1000.0),
            ("true", True),
            ("false", False),
            ("null", None),
            ("Alvena", "Alvena"),
            ("New York", "New York"),
            ('"4"', "4"),
            ('"true"', "true"),
            ('" padded "', " padded "),
            ("007", "007"),
            ("True", "True"),
            ("", ""),
            ("[1]", "[1]"),
            ("{}", "{}"),
            ("b=c", "b=c"),
            ("a<b", "a<b"),
            ("a,b", "a,b"),
            ("line one\nline two", "line one\nline two"),
        ],
        ids=repr,
    )
    def test_a_value_is_json_where_it_reads_as_a_json_scalar_and_text_elsewhere(
        self, written: str, value: object
    ):
        parsed = parse_condition(f"field={written}").values[0]
        assert parsed == value
        assert type(parsed) is type(value)

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_what_no_store_could_keep_as_a_number_stays_text(self, text: str):
        assert parse_condition(f"field={text}").values == (text,)

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("city in Alvena,Lindhaven", ("Alvena", "Lindhaven")),
            ("city in Alvena , Lindhaven", ("Alvena", "Lindhaven")),
            ("city in 1,two,null,true", (1, "two", None, True)),
            ('city in "1","two words"', ("1", "two words")),
            ("city in a=b,c", ("a=b", "c")),
        ],
        ids=["two", "spaced", "mixed kinds", "quoted", "holding an operator"],
    )
    def test_in_takes_a_list(self, text: str, values: tuple[object, ...]):
        assert parse_condition(text) == Condition("city", "in", values)  # type: ignore[arg-type]

    def test_a_comma_inside_quotes_does_not_split_a_list(self):
        assert parse_condition('city in "Alvena, north",Lindhaven').values == (
            "Alvena, north",
            "Lindhaven",
        )

    @pytest.mark.parametrize(
        "text", ["city=Alvena", "  city = Alvena  ", "city\t=\tAlvena"], ids=repr
    )
    def test_space_around_the_parts_does_not_count(self, text: str):
        assert parse_condition(text) == Condition("city", "=", ("Alvena",))

    @pytest.mark.parametrize("field", ["spin", "in", "opening hours", "städte", "a.b"])
    def test_a_field_name_may_hold_spaces_dots_and_the_letters_of_in(self, field: str):
        assert parse_condition(f"{field}=3") == Condition(field, "=", (3,))
        assert parse_condition(f"{field} in 3,4") == Condition(field, "in", (3, 4))

    @pytest.mark.parametrize("text", ["", "city", "=Alvena", "city in", "<3", "!city"], ids=repr)
    def test_text_that_is_no_condition_is_refused_and_shown(self, text: str):
        with pytest.raises(InvalidValue, match="a condition reads field=value") as caught:
            parse_condition(text)
        assert repr(text) in str(caught.value)

    def test_a_doubled_equals_sign_does_not_become_part_of_the_value(self):
        assert parse_condition("city==Alvena") == Condition("city", "=", ("Alvena",))

    @pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
    @pytest.mark.parametrize("value", ["cheap", "true", "null", '"3"', ""], ids=repr)
    def test_an_order_compares_numbers_only(self, operator: str, value: str):
        with pytest.raises(InvalidValue, match=f"price {operator} compares numbers"):
            parse_condition(f"price{operator}{value}")

    @pytest.mark.parametrize("field", ["", 'a"b', "a\0b"], ids=["empty", "quote", "null byte"])
    def test_a_field_name_no_store_can_hold_is_refused(self, field: str):
        with pytest.raises(InvalidValue, match="a metadata field needs a name without quotes"):
            Condition(field, "=", ("x",))

    @pytest.mark.parametrize(
        ("operator", "values"),
        [("=", ()), ("=", (1, 2)), ("<", (1, 2)), ("in", ())],
        ids=["= none", "= two", "< two", "in none"],
    )
    def test_a_wrong_number_of_values_is_refused(self, operator: str, values: tuple[int, ...]):
        with pytest.raises(InvalidValue, match=f"stars {operator} needs a value"):
            Condition("stars", operator, values)  # type: ignore[arg-type]


def test_parse_value_trims_text_but_not_what_is_quoted():
    assert parse_value("  quiet ") == "quiet"
    assert parse_value('" quiet "') == " quiet "


def test_blanks_without_end_are_refused_at_once():
    start = time.perf_counter()
    with pytest.raises(InvalidValue, match="a condition reads"):
        parse_condition(" " * 5000)
    assert time.perf_counter() - start < 1


def test_brackets_nested_by_the_thousand_are_text():
    assert parse_value("[" * 100_000) == "[" * 100_000
