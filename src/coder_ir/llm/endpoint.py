"""Where a model answers and how it is asked, from code or from TOML."""

import math
import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args
from urllib.parse import urlsplit

from coder_ir.errors import InvalidFile, InvalidValue, NotFound

_OPENAI = "api.openai.com"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
Structured = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model of one server, without the key."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = ""  # environment variable; "": OPENAI_API_KEY for OpenAI, none elsewhere
    structured: Structured = "json_schema"  # how a schema is sent, besides in the prompt
    timeout: float = 60.0  # seconds, for one try
    retries: int = 4  # of a call that failed on the way
    corrections: int = 2  # further asks after an answer that does not fit
    concurrency: int = 4  # calls at once
    max_tokens: int = 1024  # of one answer
    prompt_price: float = 0.0  # dollars a million tokens
    completion_price: float = 0.0  # dollars a million tokens

    def __post_init__(self) -> None:
        """Refuse what no server could be asked with."""
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidValue(f"model must name a model, got {self.model!r}")
        _check_url(self.base_url)
        # The value is not shown: it may be a key that was put here by mistake.
        if self.key_variable and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", str(self.key_variable)):
            raise InvalidValue(
                "key_variable must name an environment variable in capitals, like OPENAI_API_KEY, "
                f"got {len(str(self.key_variable))} other characters; export the key under a name"
            )
        if self.structured not in get_args(Structured):
            modes = ", ".join(get_args(Structured))
            raise InvalidValue(f"structured must be one of {modes}, got {self.structured!r}")
        leasts = {"retries": 0, "corrections": 0, "concurrency": 1, "max_tokens": 1}
        for name, least in leasts.items():
            _check_whole(name, getattr(self, name), least=least)
        for name in ("timeout", "prompt_price", "completion_price"):
            _check_amount(name, getattr(self, name), zero=name != "timeout")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file: these names flat, prices also as `prompt`, `completion` of [price]."""
        settings = _settings(path)
        known = [each.name for each in fields(cls)]
        for name in settings:
            if name not in known:
                raise InvalidFile(
                    f"{path}: {name!r} is none of the settings {', '.join(known)}; "
                    "keys come from the environment only, see key_variable"
                )
        if "model" not in settings:
            raise InvalidFile(f'{path} names no model; add a line: model = "name"')
        try:
            return cls(**settings)
        except InvalidValue as error:
            raise InvalidFile(f"{path}: {error}") from error

    @property
    def variable(self) -> str:
        """The environment variable that is looked at; "" for none."""
        openai = urlsplit(self.base_url).hostname == _OPENAI
        return self.key_variable or ("OPENAI_API_KEY" if openai else "")

    def key(self) -> str:
        """The key in the environment, "" where there is none."""
        key = os.environ.get(self.variable, "").strip() if self.variable else ""
        parts = urlsplit(self.base_url)
        if key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise InvalidValue(
                f"base_url {self.base_url} would carry the key in {self.variable} in plain text "
                "over the network; use https"
            )
        if not re.fullmatch(r"[!-~]*", key):
            raise InvalidValue(
                f"the key in {self.variable} has a space, a line break or an accent, "
                "which no key has; copy it again"
            )
        return key


def _settings(path: Path) -> dict[str, Any]:
    """The file's names and values, with those of [price] made flat."""
    if not path.is_file():
        raise NotFound(f"no language model settings {path}")
    try:
        flat = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} is not TOML: {error}") from error
    prices = flat.pop("price", {})
    if not isinstance(prices, dict):
        raise InvalidFile(f"{path}: price must be a table [price], got {prices!r}")
    for name, value in prices.items():
        if f"{name}_price" in flat:
            raise InvalidFile(f"{path} sets {name}_price and {name} under [price]; keep one")
        flat[f"{name}_price"] = value
    return flat


def _check_url(url: str) -> None:
    # The value is not shown: it may hold a secret.
    if "@" in str(url) or "?" in str(url):
        raise InvalidValue(
            "base_url must hold no name, password or query, as messages show it; "
            "keys come from the environment only, see key_variable"
        )
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        good = False
    if not good:
        raise InvalidValue(f"base_url must look like http://127.0.0.1:8000/v1, got {url!r}")


def _check_whole(name: str, value: object, *, least: int) -> None:
    if type(value) is not int or value < least:
        raise InvalidValue(f"{name} must be a whole number from {least} up, got {value!r}")


def _check_amount(name: str, value: Any, *, zero: bool) -> None:
    number = type(value) in (int, float)
    if not number or not 0 <= value < math.inf or not (zero or value):
        least = "0 or more" if zero else "above 0"
        raise InvalidValue(f"{name} must be {least}, got {value!r}")
