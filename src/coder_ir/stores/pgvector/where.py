"""Metadata conditions as SQL over a JSONB column; every name and value is a bound parameter.

The meaning is that of `stores.where`, to the last number: JSONB compares numbers as decimals, the
embedded store as 64-bit integers and doubles, so numbers are brought into one form on both sides.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence

from coder_ir.types import Condition, Json

_INFINITE = 10**400  # stands for what is past every double
_ITEMS = """
    SELECT 1 FROM jsonb_array_elements(
        CASE WHEN jsonb_typeof(d.fields -> %({field})s) = 'array' THEN d.fields -> %({field})s
             ELSE jsonb_build_array(d.fields -> %({field})s) END
    ) AS item
    WHERE CASE jsonb_typeof(item) WHEN 'number'
          THEN item::numeric {operator} %({value})s::numeric ELSE false END
"""


def comparable(value: Json) -> Json:
    """A value as conditions see it: a number past 64 bits is a double, and a double is exact."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else _whole(value)
    if isinstance(value, float):
        # Below 2**53 the shortest decimal stands where the double does among all integers.
        return _whole(value) if abs(value) >= 2**53 else value
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return {name: comparable(item) for name, item in value.items()}


def _whole(value: float) -> int:
    if abs(value) > sys.float_info.max:
        return _INFINITE if value > 0 else -_INFINITE
    return int(float(value))


def fields_json(metadata: Mapping[str, Json]) -> str:
    """What a document's `fields` column holds."""
    return json.dumps(comparable(dict(metadata)))


def condition_sql(where: Sequence[Condition]) -> tuple[str, dict[str, str]]:
    """A test of the documents row `d` that all conditions hold, and its parameters."""
    tests: list[str] = []
    values: dict[str, str] = {}
    for place, condition in enumerate(where):
        if condition.operator in ("=", "!=", "in"):
            test, bound = _equals(condition, f"where{place}")
        else:
            test, bound = _ordered(condition, f"where{place}")
        tests.append(f"NOT ({test})" if condition.operator == "!=" else f"({test})")
        values |= bound
    # Only the fixed pieces of this file enter the statement; fields and values are bound.
    return " AND ".join(tests) or "true", values


def _equals(condition: Condition, name: str) -> tuple[str, dict[str, str]]:
    """`@>` looks into a list, not into a list inside a list; it can use the index on `fields`."""
    bound: dict[str, str] = {}
    for value in condition.values:
        for one in _equal_to(value):
            if storable(one) and storable(condition.field):
                bound[f"{name}_{len(bound)}"] = json.dumps({condition.field: one})
                bound[f"{name}_{len(bound)}"] = json.dumps({condition.field: [one]})
    tests = [f"d.fields @> %({parameter})s::jsonb" for parameter in bound]
    return " OR ".join(tests) or "false", bound


def _equal_to(value: Json) -> list[Json]:
    """The items a value equals: a number also the text that reads like it."""
    if value is None or isinstance(value, bool | str):
        return [value]
    if isinstance(value, int) or (isinstance(value, float) and not math.isnan(value)):
        return [comparable(value), str(value)]
    return [str(value)]


def _ordered(condition: Condition, name: str) -> tuple[str, dict[str, str]]:
    limit = condition.values[0]
    if not storable(condition.field) or limit != limit:  # noqa: PLR0124 - not a number
        return "false", {}
    field, value = f"{name}_field", f"{name}_value"
    # The operator is one of four literals that Condition has checked.
    items = _ITEMS.format(field=field, value=value, operator=condition.operator)
    bound = {field: condition.field, value: json.dumps(comparable(limit))}
    return f"EXISTS ({items})", bound


def storable(value: Json) -> bool:
    """Whether PostgreSQL could hold this as text or in it; what it cannot, no document has."""
    if isinstance(value, list):
        return all(map(storable, value))
    if isinstance(value, dict):
        return all(map(storable, (*value, *value.values())))
    if not isinstance(value, str):
        return True
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False
