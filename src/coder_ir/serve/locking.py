"""One server at a time writes an index."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from coder_ir.encoders.onnx import Runtime
from coder_ir.errors import StoreError
from coder_ir.retriever import Retriever
from coder_ir.stores import index_folder
from coder_ir.stores.sqlite.store import FILE

LOCK = f"{FILE}.serve-lock"
_AS_ASKED = "the server was started with --read-only"


class Opened(NamedTuple):
    """An index, open for a server."""

    retriever: Retriever
    read_only: str  # why nothing can be written; "": it can


@contextmanager
def opened(
    index: str,
    *,
    model: str | None = None,
    runtime: Runtime | None = None,
    hybrid: bool = False,
    exact: bool = False,
    read_only: bool = False,
    verifier: str | None = None,
) -> Iterator[Opened]:
    """Open an index to write, or read-only where another server already writes it."""
    wanted = not read_only
    # A store behind an address keeps its writers apart itself.
    folder = index_folder(index)
    lock = _unlocked(wanted) if folder is None else writer_lock(folder, wanted=wanted)
    with lock as reason:
        retriever = Retriever.open(
            index,
            model=model,
            read_only=bool(reason),
            runtime=runtime,
            hybrid=hybrid,
            exact=exact,
            verifier=verifier,
        )
        with retriever:
            yield Opened(retriever, reason)


@contextmanager
def writer_lock(folder: Path, *, wanted: bool = True) -> Iterator[str]:
    """Hold the right to write; the value says why it was not to be had, or is empty.

    The system gives the right back when the process ends, however it ends.
    """
    if not wanted:
        yield _AS_ASKED
        return
    if folder.is_dir() and any(folder.iterdir()) and not any(folder.glob(f"{FILE}*")):
        yield ""  # not an index; opening it says so, and nothing is put into it
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        yield f"the folder {folder} cannot be written to"
        return
    except OSError as error:
        raise StoreError(f"cannot use {folder} as an index folder: {error.strerror}") from error
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _unlocked(wanted: bool) -> AbstractContextManager[str]:
    return nullcontext("" if wanted else _AS_ASKED)


def _locked(descriptor: int) -> str:
    """Take the lock, or say who has it."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return "this system has no file locks that would keep two servers apart"
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
        return f"another server (process {owner}) writes this index"
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return ""
