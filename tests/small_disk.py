"""A disk that is soon full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(disk: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own in a new folder; skips where none may be mounted."""
    disk.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount for a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk here")
    try:
        yield disk
    finally:
        # Lazily, since a file that a test left open must not leave the disk behind.
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
