"""Benchmarks from their public homes, whole or not at all."""

import hashlib
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError

from coder_ir.datasets.registry import Archive, Benchmark, how_to_get
from coder_ir.errors import InvalidFile, InvalidValue, NotFound

Progress = Callable[[int], None]  # called with the number of bytes since the last call
_BLOCK = 1 << 20


def download(known: Benchmark, root: Path, *, progress: Progress | None = None) -> Path:
    """Fetch a benchmark into its folder under `root`; files already there stay as they are.

    Everything is fetched and checked in a folder beside, and moved into place at the end, so an
    interrupted call leaves nothing half-done.
    """
    if not known.downloadable:
        raise InvalidValue(f"{known.name} cannot be downloaded; {how_to_get(known, root)}")
    target = root / known.folder
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as scratch:
        got = Path(scratch) / "files"
        if known.archive:
            _unpack(known, known.archive, Path(scratch), got, progress)
        for name, url in known.urls.items():
            _fetch(url, got / name, progress)
        for name in known.files:
            if not (got / name).is_file():
                raise InvalidFile(f"what {known.name}'s home sent has no {name}")
        for name in known.files:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if not (target / name).exists():
                (got / name).replace(target / name)
    return target


def _unpack(
    known: Benchmark, archive: Archive, scratch: Path, got: Path, progress: Progress | None
) -> None:
    """Only the files that are wanted leave the zip, under names of our own."""
    packed = scratch / "archive.zip"
    _fetch(archive.url, packed, progress)
    with packed.open("rb") as content:
        seen = hashlib.file_digest(content, "md5").hexdigest()
    if seen != archive.md5:
        raise InvalidFile(f"{archive.url} has the md5 {seen}, published is {archive.md5}")
    with zipfile.ZipFile(packed) as bundle:
        for name in known.files:
            inside = str(PurePosixPath(archive.folder) / name)
            (got / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                with bundle.open(inside) as source, (got / name).open("wb") as out:
                    shutil.copyfileobj(source, out)
            except KeyError as error:
                raise InvalidFile(f"{archive.url} holds no {inside}") from error


def _fetch(url: str, path: Path, progress: Progress | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, path.open("wb") as out:
            while block := answer.read(_BLOCK):
                out.write(block)
                if progress:
                    progress(len(block))
            size, promised = out.tell(), answer.headers["Content-Length"]
            if promised is not None and size != int(promised):  # a dropped connection reads as end
                raise OSError(f"the connection ended after {size} of {promised} bytes")
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # it holds the connection
        raise NotFound(f"cannot fetch {url}: {error}; check the network and try again") from error
