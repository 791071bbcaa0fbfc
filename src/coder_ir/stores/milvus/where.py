"""Metadata conditions as Milvus expressions in which no name or value of a user ever stands.

Milvus and Milvus Lite compare JSON in ways of their own, and Lite takes no parameters apart from
the expression. So each passage carries what conditions ask for in a form that both compare alike:

- `labels`, an array: a hash for each field and item, equal exactly where `stores.where` finds the
  items equal. `=`, `!=` and `in` ask whether the array holds a hash.
- `extremes`, a JSON object: for each field with numbers its least and its greatest one, written so
  that texts sort as the numbers do. One item is past a limit exactly when an extreme is.

An expression holds hexadecimal digits and fixed words only.
"""

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence

from coder_ir.errors import InvalidValue
from coder_ir.stores.pgvector.where import comparable
from coder_ir.types import Condition, Json

MOST_LABELS = 4096
"""Milvus' limit of an array."""
MOST_EXTREMES = 400
"""Fields with numbers that Milvus' limit of a JSON value, 64 KB, has room for."""
_NOTHING = "start < 0"  # a test no passage meets


def hashed(*parts: str) -> str:
    """A name of 32 hexadecimal digits; the same for the same texts only."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def labels(metadata: Mapping[str, Json]) -> list[str]:
    """One hash for each field and item, sorted."""
    found = {
        label
        for name, value in metadata.items()
        for item in _items(value)
        for label in _label(name, item)
    }
    if len(found) > MOST_LABELS:
        raise InvalidValue(
            f"Milvus can filter by at most {MOST_LABELS} metadata values a document, got "
            f"{len(found)}; shorten the lists"
        )
    return sorted(found)


def extremes(metadata: Mapping[str, Json]) -> dict[str, str]:
    """The least and the greatest number of each field that has one."""
    made: dict[str, str] = {}
    for name, value in metadata.items():
        numbers = [_sortable(item) for item in _items(value) if _is_number(item)]
        if numbers:
            made[f"{hashed(name)}_low"] = min(numbers)
            made[f"{hashed(name)}_high"] = max(numbers)
    if len(made) > 2 * MOST_EXTREMES:
        raise InvalidValue(
            f"Milvus can filter by at most {MOST_EXTREMES} metadata fields with numbers a "
            f"document, got {len(made) // 2}; join some into lists"
        )
    return made


def expression(where: Sequence[Condition]) -> str:
    """A test of a passage that its document meets all conditions; empty where there are none."""
    return " and ".join(f"({_test(condition)})" for condition in where)


def any_of(name: str, keys: Sequence[str]) -> str:
    """A test that a field holds one of these; `keys` are this package's own words."""
    return f"{name} in {json.dumps(list(keys))}"


def _test(condition: Condition) -> str:
    if condition.operator in ("=", "!=", "in"):
        wanted = sorted(
            {label for v in condition.values for label in _equal_to(condition.field, v)}
        )
        test = f"array_contains_any(labels, {json.dumps(wanted)})"
        return f"not {test}" if condition.operator == "!=" else test
    limit = condition.values[0]
    if not _is_number(limit):
        return _NOTHING
    # The operator is one of four literals that Condition has checked.
    end = "low" if condition.operator in ("<", "<=") else "high"
    path = f'extremes["{hashed(condition.field)}_{end}"]'
    return f'{path} {condition.operator} "{_sortable(limit)}"'


def _items(value: Json) -> Iterator[Json]:
    """What a condition looks at: the value, or the items of a list; no deeper."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, list | dict):
            yield item


def _label(field: str, item: Json) -> list[str]:
    if item is None or isinstance(item, bool):
        return [hashed(field, "word", str(item))]
    if isinstance(item, str):
        return [hashed(field, "text", item)]
    return [hashed(field, "number", _sortable(item))] if _is_number(item) else []


def _equal_to(field: str, value: Json) -> list[str]:
    """The labels of the items a value equals: a number also the text that reads like it."""
    if value is None or isinstance(value, bool):
        return _label(field, value)
    return [hashed(field, "text", str(value)), *(_label(field, value) if _is_number(value) else ())]


def _is_number(value: Json) -> bool:
    """Whether it has a place among all numbers; what is not a number has none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (isinstance(value, float) and math.isnan(value))


def _sortable(value: Json) -> str:
    """A number as 20 digits that sort as it does: its double, then what the double leaves over."""
    number = comparable(value)
    assert isinstance(number, int | float)
    try:
        double = float(number) + 0.0  # no negative zero
    except OverflowError:
        double = math.inf if number > 0 else -math.inf
    # An integer of 64 bits is at most 512 away from its double.
    over = int(number) - int(double) if 2**53 <= abs(double) < math.inf else 0
    (bits,) = struct.unpack(">Q", struct.pack(">d", double))
    bits = bits ^ (2**64 - 1) if bits >> 63 else bits | 2**63
    return f"{bits:016x}{over + 0x8000:04x}"
