"""Metadata conditions as SQL over a JSON column; every value is a bound parameter."""

import math
import sys
from collections.abc import Sequence

from coder_ir.types import Condition, Json

Parameter = str | int | float


_ITEMS = """
    SELECT type, value FROM json_each(documents.metadata)
    WHERE key = ? AND type NOT IN ('array', 'object')
    UNION ALL
    SELECT inner.type, inner.value FROM json_each(documents.metadata) AS outer,
        json_each(CASE outer.type WHEN 'array' THEN outer.value ELSE '[]' END) AS inner
    WHERE outer.key = ?
"""


def document_ids_sql(where: Sequence[Condition]) -> tuple[str, list[Parameter]]:
    """Statement and parameters that select the row ids of documents meeting all conditions.

    A list-valued field meets a condition when one of its items does; `!=` when none equals.
    """
    tests: list[str] = []
    values: list[Parameter] = []
    for condition in where:
        test, parameters = _any_of(condition)
        exists = "NOT EXISTS" if condition.operator == "!=" else "EXISTS"
        tests.append(f"{exists} (SELECT 1 FROM ({_ITEMS}) AS i WHERE {test})")
        values += [condition.field, condition.field, *parameters]
    # Only the fixed pieces of this file enter the statement; fields and values are bound.
    return f"SELECT id FROM documents WHERE {' AND '.join(tests)}", values


def _any_of(condition: Condition) -> tuple[str, list[Parameter]]:
    if condition.operator in ("=", "!=", "in"):
        tests = [_equals(value) for value in condition.values]
    else:
        # The operator is one of four literals that Condition has checked.
        number = "i.type IN ('integer', 'real') AND i.value"
        tests = [(f"({number} {condition.operator} ?)", [_number(condition.values[0])])]
    return " OR ".join(test for test, _ in tests), [v for _, values in tests for v in values]


def _equals(value: Json) -> tuple[str, list[Parameter]]:
    if value is None:
        return "(i.type = 'null')", []
    if isinstance(value, bool):
        return "(i.type = ?)", ["true" if value else "false"]
    if isinstance(value, int | float):
        number = "(i.type IN ('integer', 'real') AND i.value = ?)"
        return f"({number} OR (i.type = 'text' AND i.value = ?))", [_number(value), str(value)]
    return "(i.type = 'text' AND i.value = ?)", [str(value)]


def _number(value: Json) -> Parameter:
    assert isinstance(value, int | float)  # Condition refuses anything else
    if abs(value) < 2**63:  # SQLite's integers end there
        return value
    if abs(value) > sys.float_info.max:  # compares like the largest there is
        return math.inf if value > 0 else -math.inf
    return float(value)
