"""Who may ask: tokens for reading and writing, and addresses for servers without them."""

import hmac
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from coder_ir.errors import InvalidFile, InvalidValue, NotFound

Access = Literal["read", "write"]
LOCAL = ("127.0.0.1", "localhost", "::1")
ENVIRONMENT = {"read": "CODER_IR_READ_TOKEN", "write": "CODER_IR_WRITE_TOKEN"}
_SHORTEST = 16  # characters


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a caller shows to read and to write; the one for writing also reads."""

    read: str = field(default="", repr=False)  # "": the one for writing is needed
    write: str = field(default="", repr=False)  # "": nobody may write, where there is one to read

    def __post_init__(self) -> None:
        """Refuse tokens that can be guessed or do not fit a header; never quote one."""
        for name, token in (("read", self.read), ("write", self.write)):
            if token and len(token) < _SHORTEST:
                raise InvalidValue(
                    f"the {name} token must have at least {_SHORTEST} characters, got {len(token)}"
                )
            if not all("!" <= character <= "~" for character in token):
                raise InvalidValue(f"the {name} token must be ASCII without spaces")
        if self.read and self.read == self.write:
            raise InvalidValue("the read and the write token are the same; make two of them")

    def __bool__(self) -> bool:
        """Whether any token is asked for."""
        return bool(self.read or self.write)

    def allows(self, shown: str, access: Access) -> bool:
        """Whether a token opens this; takes the same time for every wrong one."""
        known = [self.write] if access == "write" else [self.read, self.write]
        seen = shown.encode("utf-8", "replace")
        found = [hmac.compare_digest(seen, token.encode()) for token in known if token]
        return any(found)


def load_tokens(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Tokens:
    """Tokens of a file and of the environment; a token named in both is refused.

    The file has lines `read=TOKEN` and `write=TOKEN`; lines that begin with # are comments.
    """
    environment = os.environ if environment is None else environment
    found = dict(_lines(file)) if file else {}
    for name, variable in ENVIRONMENT.items():
        if token := environment.get(variable, "").strip():
            if name in found:
                raise InvalidValue(
                    f"the {name} token is in {file} and in {variable}; keep one of them"
                )
            found[name] = token
    return Tokens(**found)


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"no token file {file}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"the token file {file} cannot be read: {error}") from error
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, token = (part.strip() for part in line.partition("="))
        if name not in ENVIRONMENT or not equals or not token or name in seen:
            raise InvalidFile(
                f"{file}:{number} should read read=TOKEN or write=TOKEN, each once"
            )  # the line itself may hold a token
        seen.add(name)
        yield name, token
    if not seen:
        raise InvalidFile(f"{file} holds no token; write a line read=TOKEN or write=TOKEN")


def check_address(host: str, tokens: Tokens) -> None:
    """Refuse to be reached from elsewhere without a token."""
    if not tokens and host not in LOCAL:
        raise InvalidValue(
            f"listening on {host} needs a token, since others can reach it; give --token-file, or "
            f"set {' and '.join(ENVIRONMENT.values())}, or listen on 127.0.0.1"
        )


def names_this_machine(host: str) -> bool:
    """Whether a Host header names this machine; a web page elsewhere cannot send such a one."""
    name = host.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return name in LOCAL
