"""The command line: arguments in, one call, print."""

import sys

from coder_ir.errors import CoderError, InvalidValue

__all__ = ["main"]


def main() -> None:
    """Run a command; 0 done, 1 failed, 2 misused."""
    from coder_ir.cli.app import app

    try:
        app()
    except CoderError as error:
        sys.stderr.write(f"coder-ir: {error}\n")
        sys.exit(2 if isinstance(error, InvalidValue) else 1)
