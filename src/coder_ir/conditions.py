"""What a user types as a condition or a value, read."""

import json
import math
import re

from coder_ir.errors import InvalidValue
from coder_ir.types import Condition, Json

_CONDITION = re.compile(
    r"(?P<field>[^<>=!]+?)\s*(?P<op><=|>=|!=|==?|<|>|\sin\s)\s*(?P<value>.*)", re.DOTALL
)
_LISTED = re.compile(r'(?:^|(?<=,))((?:\s*"(?:[^"\\]|\\.)*"\s*(?=,|$))|[^,]*)', re.DOTALL)


def parse_condition(text: str) -> Condition:
    """Read `field=value`, `field!=value`, `field<3`, `field>=3` or `field in a,b`.

    A value that reads as a JSON number, true, false or null is that; all else is text.
    """
    match = _CONDITION.fullmatch(text.lstrip())
    if match is None:
        raise InvalidValue(
            f"a condition reads field=value, field<3, field>3 or field in a,b; got {text!r}"
        )
    operator = "=" if match["op"] == "==" else match["op"].strip()
    parts = _LISTED.findall(match["value"]) if operator == "in" else [match["value"]]
    return Condition(match["field"], operator, tuple(parse_value(part) for part in parts))  # type: ignore[arg-type]


def parse_value(text: str) -> Json:
    """A JSON number, true, false or null as such; all else is text."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):  # the latter where brackets are nested by the thousand
        return text.strip()
    # JSON has no NaN or Infinity, though Python reads them; no store could keep them.
    infinite = isinstance(value, float) and not math.isfinite(value)
    return text.strip() if infinite or isinstance(value, list | dict) else value
