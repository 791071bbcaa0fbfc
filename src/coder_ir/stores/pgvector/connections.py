"""Connections to PostgreSQL: a pool, what is tried again, and errors in this project's words."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from coder_ir.errors import StoreError
from coder_ir.stores.pgvector.address import Server, import_psycopg

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")
_READS = 3  # attempts at a read whose connection breaks
_WRITES = 2  # attempts at a write
_PATIENCE = 10.0  # seconds to wait for a connection
_MOST = 8  # connections of one store


class Connections:
    """A pool that outlives the server: a broken connection is replaced at the next call."""

    def __init__(self, settings: Server, *, read_only: bool) -> None:
        """Nothing is connected yet."""
        import_psycopg()
        self.settings = settings
        self.read_only = read_only
        self._lock = threading.Lock()
        self._pool: Any = None
        self._closed = False

    def first(self, work: Callable[["Connection"], T]) -> T:
        """Do work on a connection outside the pool, which says at once why it cannot be had."""
        psycopg = import_psycopg()
        try:
            with psycopg.connect(self.settings.conninfo, autocommit=True) as connection:
                self._configure(connection)
                return work(connection)
        except psycopg.Error as error:
            raise self.refusal(error) from error

    def read(self, work: Callable[["Connection"], T]) -> T:
        """Do work that changes nothing; where the connection breaks, again on another one."""
        return self._tried(work, attempts=_READS)

    def write(self, work: Callable[["Connection"], T]) -> T:
        """Do work in one transaction; where the connection breaks, once again.

        The server may have committed the first time, so the work has to be such that twice is
        as good as once.
        """

        def within(connection: "Connection") -> T:
            with connection.transaction():
                return work(connection)

        return self._tried(within, attempts=_WRITES)

    def _tried(self, work: Callable[["Connection"], T], *, attempts: int) -> T:
        psycopg = import_psycopg()
        for left in reversed(range(attempts)):
            try:
                with self._opened().connection() as connection:
                    return work(connection)
            except psycopg.Error as error:
                if not left or not _broken(error):
                    raise self.refusal(error) from error
                self._opened().check()  # others of the pool may have broken with it
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _opened(self) -> Any:
        from psycopg_pool import ConnectionPool

        with self._lock:
            if self._closed:
                raise StoreError(f"{self.settings.place} was closed; open it again")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.settings.conninfo,
                    kwargs={"autocommit": True},
                    min_size=0,
                    max_size=_MOST,
                    timeout=_PATIENCE,
                    reconnect_timeout=_PATIENCE,
                    configure=self._configure,
                    open=True,
                )
            return self._pool

    def _configure(self, connection: "Connection") -> None:
        connection.execute("SET jit = off")  # costs more than it saves on one short statement
        connection.execute("SET default_transaction_isolation = 'read committed'")
        if self.read_only:
            connection.execute("SET default_transaction_read_only = on")

    def close(self) -> None:
        """Give all connections back; further calls fail."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def refusal(self, error: "psycopg.Error") -> StoreError:
        """An error of PostgreSQL as this project says it; the password is in none."""
        text = " ".join((error.diag.message_primary or str(error)).split())
        if self.settings.password:
            text = text.replace(self.settings.password, "…")
        place = self.settings.place
        for words, said in _REFUSALS.items():
            if error.sqlstate == words or words in text:
                return StoreError(said.format(place=place, text=text))
        if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
            return StoreError(
                f"cannot reach {place}: {text}; check that the server runs, and host, port and "
                "account in the address"
            )
        return StoreError(f"{place}: {text} (PostgreSQL error {error.sqlstate})")


_REFUSALS = {  # SQLSTATE, or words of the message where the client library has no state
    "password authentication failed": (
        "{place}: the server refuses user or password; correct them in the address, or leave the "
        "password out and set PGPASSWORD or a ~/.pgpass file"
    ),
    "no password supplied": (
        "{place} needs a password: put it into the address, or set PGPASSWORD or a ~/.pgpass file"
    ),
    "53100": (
        "the disk of the server is full: {place} could not grow. Earlier batches are kept, this "
        "one is not; free some space and run the same command again"
    ),
    "53300": "{place} takes no more connections ({text}); try again, or raise max_connections",
    "42501": "{place}: {text}; have the owner of the tables grant what is missing",
    "25006": "{place} is read-only here ({text}); write to the primary server",
    "40P01": "{place}: another writer was in the way ({text}); run the same command again",
    "different vector dimensions": (
        "{place} holds vectors of other dimensions than the model's ({text}); open it with the "
        "model it was built with, or name a new table"
    ),
    "42P01": "{place}: {text}; the table was dropped since it was opened, or is damaged",
}


def _broken(error: "psycopg.Error") -> bool:
    """Whether the connection, and not the statement, is at fault."""
    from psycopg import InterfaceError, OperationalError
    from psycopg_pool import PoolClosed, PoolTimeout

    if not isinstance(error, OperationalError | InterfaceError):
        return False
    if isinstance(error, PoolTimeout | PoolClosed):  # has waited already
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P0"))
