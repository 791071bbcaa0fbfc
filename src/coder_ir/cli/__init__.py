"""The command line: arguments in, one call, print."""

import sys
from collections.abc import Sequence

from coder_ir.errors import CoderError, InvalidValue

__all__ = ["main"]


def main() -> None:
    """Run a command; 0 done, 1 failed, 2 misused."""
    from coder_ir.cli.app import app

    try:
        app(completed(sys.argv[1:]))
    except CoderError as error:
        sys.stderr.write(f"coder-ir: {error}\n")
        sys.exit(2 if isinstance(error, InvalidValue) else 1)


def completed(words: Sequence[str]) -> list[str]:
    """A command line in which `index ... --ray` without an address says that of this machine."""
    found: list[str] = []
    for word, following in zip(words, [*words[1:], "-"], strict=False):
        found.append(word)
        if word == "--ray" and words[0] == "index" and following.startswith("-"):
            found.append("local")
    return found
