"""Folders that a baseline keeps its work in."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidFile, StoreError


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say of which folder the disk refused something."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error}") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time beside this folder, where the system has locks.

    It is the parent folder that is locked; the lock goes with its process.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with writing(folder):
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(folder.absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        yield
    finally:
        os.close(parent)


def check_ours(folder: Path, mark: str, *, what: str) -> None:
    """Refuse a file, and a folder that holds something but no file whose name fits `mark`."""
    if folder.exists() and not folder.is_dir():
        raise InvalidFile(f"{folder} is a file; name a folder for {what}")
    if folder.is_dir() and any(folder.iterdir()) and not any(folder.glob(mark)):
        other = min(entry.name for entry in folder.iterdir())
        raise InvalidFile(f"{folder} does not hold {what} (it holds {other!r}); name a new folder")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(value) + "\n", encoding="utf-8")
    partial.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """The object a file holds."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise damaged(path, str(error)) from error
    if not isinstance(value, dict):
        raise damaged(path, f"it holds no object but {type(value).__name__}")
    return value


def check_sha256(path: Path, expected: str) -> None:
    """Refuse a file that is not there or not as it was written."""
    if not path.is_file():
        raise damaged(path, "it is not there")
    if (seen := file_sha256(path)) != expected:
        raise damaged(path, f"its sha256 is {seen[:12]}…, written was {expected[:12]}…")


def damaged(path: Path, why: str) -> InvalidFile:
    """The error for a file that its writer would not know again."""
    return InvalidFile(
        f"{path} is damaged or was changed ({why}); delete {path.parent} to have it built again"
    )
