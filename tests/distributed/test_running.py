"""Indexing with Ray into PostgreSQL: counted after kills of a worker and of the whole run."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder_ir.distributed import Cluster, Opening
from coder_ir.encoders.onnx import Runtime
from coder_ir.errors import InvalidValue
from coder_ir.stores import open_store
from tests.postgres import Postgres, fresh

pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.large
psutil = pytest.importorskip("psutil")

ROOT = Path(__file__).parents[2]
TOTAL = 3000
QUIET = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "COLUMNS": "200"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Three files; the text of every document tells which it is."""
    folder = tmp_path_factory.mktemp("corpus")
    for start in range(0, TOTAL, 1000):
        rows = ({"_id": f"d{i}", "text": f"hotel {i} quiet"} for i in range(start, start + 1000))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{start}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def marks(tmp_path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def driver(address: str, corpus: Path, marks: Path, seconds: float) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.distributed.slow", address, str(corpus), str(marks)]
    return subprocess.Popen(
        [*command, str(seconds)],
        cwd=ROOT,
        env=QUIET,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen) -> list[int]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [int(number) for number in out.splitlines()[-1].split()]  # after what Ray has to say


def encoded(marks: Path) -> Counter[str]:
    return Counter(line for path in marks.iterdir() for line in path.read_text().splitlines())


def worker(marks: Path, *, lines: int) -> int:
    """Process id of a worker that has begun to encode that much, which is less than a part."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in marks.iterdir():
            if len(path.read_text().splitlines()) >= lines:
                return int(path.name)
        time.sleep(0.02)
    raise AssertionError("the workers did not begin")


def whole(postgres: Postgres, table: str) -> None:
    """Every document once, with its own text, and its one passage once."""
    assert postgres.execute(f"SELECT count(*), count(DISTINCT doc_id) FROM {table}") == [
        (TOTAL, TOTAL)
    ]
    wrong = f"SELECT count(*) FROM {table} WHERE text <> 'hotel ' || substr(doc_id, 2) || ' quiet'"
    assert postgres.execute(wrong) == [(0,)]
    passages = f"SELECT count(*), count(DISTINCT document) FROM {table}_passages"
    assert postgres.execute(passages) == [(TOTAL, TOTAL)]


def test_a_worker_killed_in_mid_job_loses_and_duplicates_nothing(postgres, corpus, marks):
    table = fresh()
    process = driver(postgres.address(table), corpus, marks, 0.3)
    os.kill(worker(marks, lines=256), signal.SIGKILL)
    written, unchanged, stored, count = ended(process)
    assert stored == TOTAL
    assert count >= 2
    whole(postgres, table)
    pids = {int(path.name) for path in marks.iterdir()}
    assert len(pids) > count  # one took the killed one's place
    # Of its part, what was written before was found in the store; one batch was on its way.
    again = sum(times - 1 for times in encoded(marks).values())
    assert again <= 128
    assert written + unchanged == TOTAL


def test_a_run_killed_as_a_whole_goes_on_where_it_stopped(postgres, corpus, marks):
    table = fresh()
    process = driver(postgres.address(table), corpus, marks, 0.3)
    worker(marks, lines=256)
    pids = [int(path.name) for path in marks.iterdir()]
    process.kill()
    process.communicate(timeout=60)
    left = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(left, timeout=30)
    assert not alive  # the workers went with the run
    (kept,) = postgres.execute(f"SELECT count(*) FROM {table}")[0]
    assert 0 < kept < TOTAL
    assert ended(driver(postgres.address(table), corpus, marks, 0))[:3] == [
        TOTAL - kept,
        kept,
        TOTAL,
    ]
    whole(postgres, table)


def command(*args: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "coder_ir", *map(str, args)],
        cwd=ROOT,
        env=QUIET,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_the_command_indexes_with_the_built_in_model_as_it_does_alone(postgres, tmp_path):
    rows = [{"_id": f"d{i}", "text": f"Room {i} looks onto the garden."} for i in range(200)]
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    spread, alone = postgres.address(fresh()), postgres.address(fresh())
    done = command("index", spread, docs, "--ray", "local", "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "200 documents written, 0 unchanged by" in done.stderr
    assert "ray::" not in done.stderr
    assert "INFO" not in done.stderr
    assert "wörd" not in done.stderr
    assert "0 documents written, 200 unchanged" in command("index", spread, docs).stderr
    assert command("index", alone, docs).returncode == 0
    stores = [open_store(address, read_only=True) for address in (spread, alone)]
    ids = [row["_id"] for row in rows]
    assert stores[0].digests(ids) == stores[1].digests(ids)
    assert stores[0].stamp() == stores[1].stamp()
    for store in stores:
        store.close()


def test_a_bad_line_ends_the_run_with_its_place_and_keeps_what_was_written(postgres, tmp_path):
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"_id": "a", "text": "b"}\n{"_id": "c"}\n', encoding="utf-8")
    address = postgres.address(fresh())
    done = command("index", address, docs, "--ray", "local")
    assert done.returncode == 1
    assert "docs.jsonl, from byte 0:2 has no field 'text'" in done.stderr
    assert "Traceback" not in done.stderr
    store = open_store(address, read_only=True)
    assert store.count() == 1
    store.close()


def test_ids_that_come_twice_are_told_of(postgres, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"_id": "same", "text": "x"}\n', encoding="utf-8")
    done = command("index", postgres.address(fresh()), tmp_path, "--ray", "local")
    assert done.returncode == 0, done.stderr
    assert "2 documents were read and 1 are stored: some ids come more than once" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["folder", "DOCS", "--ray", "local"], 2, "folder is an embedded index, which has one"),
        (["ADDRESS", "DOCS", "--ray", "local", "--hybrid"], 2, "with --ray leave it out"),
        (["ADDRESS", "nowhere.jsonl", "--ray", "local"], 1, "nowhere.jsonl"),
        (["ADDRESS", "DOCS", "--ray", "127.0.0.1:1"], 1, "no Ray cluster at 127.0.0.1:1"),
        (["ADDRESS", "DOCS", "--ray", "ray://127.0.0.1:1"], 2, "does not run through a Ray client"),
        (["ADDRESS", "DOCS", "--ray", "local", "--threads", "99"], 2, "has 99 CPUs"),
    ],
    ids=["folder", "hybrid", "file", "cluster", "client", "threads"],
)
def test_misuse_is_told(postgres, tmp_path, arguments, code, said):
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"_id": "a", "text": "b"}\n', encoding="utf-8")
    names = {"DOCS": str(docs), "ADDRESS": postgres.address(fresh())}
    done = command("index", *(names.get(word, word) for word in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_embedded_index_and_odd_threads_are_refused_before_ray_is_asked_for():
    for address in ("folder", "milvus-lite:index.db?collection=docs"):
        with pytest.raises(InvalidValue, match="an embedded index, which has one writer"):
            Opening(address, None, Runtime())
    with pytest.raises(InvalidValue, match="must not be negative"):
        Cluster(threads=-1)


@pytest.fixture(scope="module")
def head(tmp_path_factory) -> Iterator[str]:
    """Where a cluster is, as `ray start` makes it, with a token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = Path(tempfile.mkdtemp(prefix="ray"))  # short, for a socket's name has few characters
    options = {
        "--port": port,
        "--num-cpus": 2,
        "--include-dashboard": "false",
        "--object-store-memory": 10**8,
        "--temp-dir": place / "t",
    }
    words = [f"{name}={value}" for name, value in options.items()]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("ray"), "start", "--head", "--block", *words],
        env={**QUIET, "HOME": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ray runtime started" in line:
            break
    else:
        pytest.fail("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUIET, "HOME", str(place))
        yield f"127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=60)
    shutil.rmtree(place, ignore_errors=True)


def test_a_cluster_that_asks_for_its_token_is_joined(postgres, tmp_path, head):
    rows = [{"_id": f"d{i}", "text": f"Room {i} looks onto the garden."} for i in range(50)]
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    address = postgres.address(fresh())
    done = command("index", address, docs, "--ray", head, "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert "50 documents written, 0 unchanged by" in done.stderr
    store = open_store(address, read_only=True)
    assert store.count() == 50
    store.close()
