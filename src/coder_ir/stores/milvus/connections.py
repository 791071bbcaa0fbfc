"""The connection to Milvus: what is tried again, and errors in this project's words."""

import atexit
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from coder_ir.errors import MissingExtra, NotFound, StoreError
from coder_ir.stores.milvus.address import Settings

T = TypeVar("T")
_PATIENCE = 10.0  # seconds in which a broken connection may come back
TIMEOUT = 60.0
"""Seconds for one call."""
_CONNECT = 10.0  # seconds for the first one
_NOT_LOADED = 101
_MISSING = 100


@dataclass
class _Lite:
    """Milvus Lite on one folder, in threads of this process; shared by the stores that use it."""

    server: Any
    database: Any
    uri: str
    users: int = 0


@dataclass
class _Writer:
    """Who may write to one Milvus Lite."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0  # writes of the thread that holds it, one inside the other

    @contextmanager
    def alone(self, uri: str) -> Iterator[None]:
        """No other thread, and no other process, writes meanwhile."""
        with self.lock:
            self.depth += 1
            try:
                with _other_processes_wait(uri) if self.depth == 1 else nullcontext():
                    yield
            finally:
                self.depth -= 1


@dataclass
class _Process:
    """What the stores of this process share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    lites: dict[Path, _Lite] = field(default_factory=dict)
    writers: dict[str, _Writer] = field(default_factory=dict)


_process = _Process()


class Connections:
    """A client that outlives the server: after a break, calls are tried again for ten seconds."""

    def __init__(self, settings: Settings, *, read_only: bool) -> None:
        """Connect; a server that cannot be had is told at once."""
        self.settings = settings
        self.read_only = read_only
        self._closed = False
        pymilvus = import_pymilvus()
        self._errors = (pymilvus.MilvusException, _rpc_error())
        uri = settings.uri
        if settings.file is not None:
            uri = _start_lite(settings, create=not read_only)
        try:
            self.client: Any = pymilvus.MilvusClient(
                uri=uri,
                token=settings.token,
                db_name=settings.database,
                timeout=_CONNECT,
                dedicated=True,
            )
            self.lite = str(self.client.get_server_version()).startswith("milvus_lite")
        except self._errors as error:
            self._leave_lite()
            raise self.refusal(error) from None  # the cause may quote the token
        except BaseException:
            self._leave_lite()
            raise
        with _process.lock:
            self._writer = _process.writers.setdefault(uri, _Writer())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold back other writers where there may be one only.

        Two at once damage the log of Milvus Lite, which is noticed when it is killed. Its servers
        are for one machine, so threads and processes of this one wait for each other.
        """
        if not self.lite:
            yield
            return
        with self._writer.alone(self.settings.uri):
            yield

    def call(self, work: Callable[[Any], T]) -> T:
        """Do work with the client; where the connection breaks, again.

        The server may have done it the first time, so twice has to be as good as once.
        """
        deadline, pause = time.monotonic() + _PATIENCE, 0.05
        while True:
            if self._closed:
                raise StoreError(f"{self.settings.place} was closed; open it again")
            try:
                return work(self.client)
            except self._errors as error:
                if not self._mended(error) or time.monotonic() + pause > deadline:
                    raise self.refusal(error) from error
            except ValueError as error:  # gRPC's word for a channel that was replaced meanwhile
                if not _broken(error) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _mended(self, error: Exception) -> bool:
        """Whether another attempt may go better."""
        if getattr(error, "code", None) == _NOT_LOADED:  # a server of Lite was started anew
            return self._load_all()
        return _broken(error)

    def _load_all(self) -> bool:
        try:
            for name in (self.settings.collection, documents_of(self.settings.collection)):
                if self.client.has_collection(name, timeout=TIMEOUT):
                    self.client.load_collection(name, timeout=TIMEOUT)
        except self._errors as error:
            return _broken(error)
        return True

    def close(self) -> None:
        """Let go of the server; further calls fail."""
        if self._closed:
            return
        self._closed = True
        self.client.close()
        self._leave_lite()

    def _leave_lite(self) -> None:
        if self.settings.file is not None:
            _leave_lite(self.settings.file.resolve())

    def refusal(self, error: Exception) -> StoreError:
        """An error of Milvus as this project says it; no password or token is in it."""
        text = " ".join(str(getattr(error, "message", "") or error).split())
        for secret in self.settings.secrets:
            text = text.replace(secret, "…")
        place, low = self.settings.place, f"{text} {_cause(error)}".lower()
        for words, said in _REFUSALS.items():
            if any(word in low for word in words):
                return StoreError(said.format(place=place, text=text))
        if getattr(error, "code", None) == _MISSING:
            return StoreError(f"{place}: {text}; the collection was dropped since it was opened")
        if _broken(error):
            return StoreError(
                f"cannot reach {place}: {text}; check that the server runs, host, port and tls"
            )
        return StoreError(f"{place}: {text} (Milvus error {getattr(error, 'code', '?')})")


_REFUSALS = {
    ("auth check", "unauthenticated", "api key", "password", "invalid token"): (
        "{place}: the server refuses user, password or token; correct them in the address, or set "
        "MILVUS_TOKEN"
    ),
    ("permission", "privilege"): "{place}: {text}; have an administrator grant what is missing",
    ("no space left", "disk full", "disk quota", "disk is full"): (
        "the disk of the server is full: {place} could not grow. Earlier batches are kept, this "
        "one is not; free some space and run the same command again"
    ),
    ("dimension", "gufunc", "dim mismatch", "vector dim"): (
        "{place} holds vectors of other dimensions than the model's ({text}); open it with the "
        "model it was built with, or name a new collection"
    ),
    ("rate limit", "memory quota", "deny to write"): (
        "{place} takes no more at the moment ({text}); try again later, or raise its quotas"
    ),
}


def documents_of(collection: str) -> str:
    """The collection of documents that goes with one of passages."""
    return f"{collection}_documents"


def _cause(error: Exception) -> str:
    """What gRPC said; pymilvus says of every failure to connect that the server may be away."""
    cause = error.__cause__
    return f"{cause.code()} {cause.details()}" if isinstance(cause, _rpc_error()) else ""


def _broken(error: Exception) -> bool:
    """Whether the connection, and not the request, is at fault."""
    if any(word in _cause(error) for word in ("UNAUTHENTICATED", "PERMISSION_DENIED")):
        return False
    text = str(error).lower()
    words = ("unavailable", "fail connecting", "closed channel", "connection refused")
    return any(word in text for word in (*words, "socket closed", "connection reset"))


@contextmanager
def _other_processes_wait(uri: str) -> Iterator[None]:
    """No other process of this user and machine writes to the server meanwhile."""
    if not uri or sys.platform == "win32":  # a file has its own lock; Windows none that fits
        yield
        return
    import fcntl

    name = f"coder-ir-milvus-lite-{os.getuid()}-{uri.rpartition(':')[2]}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(Path(tempfile.gettempdir()) / name, flags, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot lock {name} in {tempfile.gettempdir()}: {error.strerror}"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _start_lite(settings: Settings, *, create: bool) -> str:
    """Address of the Lite server of a file, which is a folder; started unless it runs already."""
    assert settings.file is not None
    path = settings.file.resolve()
    with _process.lock:
        if path not in _process.lites:
            _check_file(path, settings, create=create)
            _process.lites[path] = _run_lite(path, settings)
        lite = _process.lites[path]
        lite.users += 1
        return lite.uri


def _check_file(path: Path, settings: Settings, *, create: bool) -> None:
    if not path.exists():
        if create:
            return
        raise NotFound(
            f"no index in {settings.place}; build one with: coder-ir index 'ADDRESS' DOCS"
        )
    if not path.is_dir():
        raise StoreError(
            f"{path} is not a database of Milvus Lite 3, which is a folder; name a new file"
        )
    names = sorted(entry.name for entry in path.iterdir())
    if names and "collections" not in names:
        raise StoreError(
            f"{path} is not a database of Milvus Lite and not empty (it holds {names[0]!r}); name "
            "a new file"
        )


def _run_lite(path: Path, settings: Settings) -> _Lite:
    try:
        from milvus_lite.adapter.grpc.server import start_server_in_thread
        from milvus_lite.exceptions import MilvusLiteError
    except ImportError as error:
        raise MissingExtra("The Milvus store", extra="milvus") from error
    # An error that goes through Lite is told by the caller, not by its log.
    logging.getLogger("milvus_lite").addHandler(logging.NullHandler())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        server, database, port = start_server_in_thread(str(path), host="127.0.0.1", port=0)
    except MilvusLiteError as error:
        raise StoreError(
            f"{settings.place} cannot be opened ({error}); one process at a time may use it: for "
            "several, run milvus-lite server and use a milvus:// address"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror or error}") from error
    return _Lite(server, database, f"http://127.0.0.1:{port}")


def _leave_lite(path: Path) -> None:
    with _process.lock:
        lite = _process.lites.get(path)
        if lite is None:
            return
        lite.users -= 1
        if lite.users <= 0:
            del _process.lites[path]
            _stop_lite(lite)


def _stop_lite(lite: _Lite) -> None:
    lite.server.stop(grace=2).wait()
    lite.database.close()


@atexit.register
def _leave_all() -> None:
    while _process.lites:
        _stop_lite(_process.lites.popitem()[1])


def import_pymilvus() -> Any:
    """The driver, silenced: what goes wrong is raised; or word of how to install it."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import pymilvus
    except ImportError as error:
        raise MissingExtra("The Milvus store", extra="milvus") from error
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
    return pymilvus


def _rpc_error() -> Any:
    import grpc

    return grpc.RpcError
