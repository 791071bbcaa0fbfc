"""The command line: arguments in, one call, print."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from coder_ir.errors import CoderError, InvalidValue

__all__ = ["main"]
_ASKING = ("search", "parse")  # commands that take a query
_MISUSED = 2


def main() -> None:
    """Run a command; 0 done, 1 failed, 2 misused."""
    from coder_ir.cli.app import app

    words = completed(sys.argv[1:])
    try:
        with _naming_eaten_operators(words):
            app(words)
    except CoderError as error:
        sys.stderr.write(f"coder-ir: {error}\n")
        sys.exit(2 if isinstance(error, InvalidValue) else 1)


@contextmanager
def _naming_eaten_operators(words: Sequence[str]) -> Iterator[None]:
    """Say how to write a query such as `-pool hotel`, which a command takes for an option."""
    try:
        yield
    except SystemExit as stopped:
        eaten = [word for word in words[: _end_of_options(words)] if _like_a_query(word)]
        if stopped.code == _MISUSED and words[0] in _ASKING and eaten:
            sys.stderr.write(
                f"coder-ir: {eaten[0]!r} was read as an option; a query that starts with - goes "
                f"behind --, after all options: coder-ir {words[0]} … -- {eaten[0]!r}\n"
            )
        raise


def _end_of_options(words: Sequence[str]) -> int:
    return list(words).index("--") if "--" in words else len(words)


def _like_a_query(word: str) -> bool:
    """`-pool hotel`, `-pool`, `-"a pool"`; not `-k`, `--json`."""
    return word.startswith("-") and not word.startswith("--") and len(word) > len("-k")


def completed(words: Sequence[str]) -> list[str]:
    """A command line in which `index ... --ray` without an address says that of this machine."""
    found: list[str] = []
    for word, following in zip(words, [*words[1:], "-"], strict=False):
        found.append(word)
        if word == "--ray" and words[0] == "index" and following.startswith("-"):
            found.append("local")
    return found
