"""kill -9, Ctrl-C, a full disk and a read-only folder: nothing that was committed is lost."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coder_ir import Added, Document, Retriever, intake
from coder_ir.errors import StoreError
from coder_ir.stores import SqliteStore
from coder_ir.stores.sqlite.store import FILE
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier
from tests.small_disk import small_disk

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
BATCH = 20
NOBODY = 65534


def open_retriever(folder: Path, *, read_only: bool = False) -> Retriever:
    return Retriever(
        FakeEncoder(WORDS, limit=4),
        SqliteStore(folder, read_only=read_only),
        verifier=FakeVerifier(),
    )


def documents(count: int = 600, *, padding: int = 0) -> list[Document]:
    """Texts of one to three passages with metadata, the same in every process."""
    random_words = random.Random(5)
    return [
        Document(
            f"d{i:04}",
            " ".join([*random_words.choices(WORDS, k=random_words.randint(1, 12)), "x" * padding]),
            metadata={"number": i},
        )
        for i in range(count)
    ]


def content(folder: Path) -> list[tuple]:
    """All that an index holds, without the row ids."""
    connection = sqlite3.connect(folder / FILE)
    rows = connection.execute(
        "SELECT doc_id, title, text, metadata, digest, number, start, stop, p.topical, "
        "p.compatibility FROM documents d JOIN passages p ON p.document = d.id ORDER BY 1, 6"
    ).fetchall()
    connection.close()
    return rows


def integrity(folder: Path) -> str:
    connection = sqlite3.connect(folder / FILE)
    answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return answer


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coder_ir.intake._BATCH_DOCUMENTS", BATCH)


# --- kill -9

INDEXING = """
import sys
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import coder_ir.intake
from tests.conftest import FakeEncoder
from tests.test_durability import BATCH, documents, open_retriever

encode = FakeEncoder.encode

def slow(self, texts, **kwargs):
    # The last batch waits for the kill, so that a busy machine cannot finish before it.
    time.sleep(60 if "".join(texts).endswith(documents()[-1].content) else 0.01)
    return encode(self, texts, **kwargs)

FakeEncoder.encode = slow
coder_ir.intake._BATCH_DOCUMENTS = BATCH
print("started", flush=True)
with open_retriever(Path(sys.argv[2])) as retriever:
    retriever.add(documents(), progress=lambda done: print("committed", done, flush=True))
"""


@dataclass
class Killed:
    """An index after some kills, and what was seen on the way."""

    folder: Path
    reported: list[int] = field(default_factory=list)  # documents reported before each kill
    stored: list[list[str]] = field(default_factory=list)  # ids there after each kill
    integrity: list[str] = field(default_factory=list)


def kill_while_indexing(folder: Path, driver: Path, moment: random.Random) -> int:
    """Index in a process, kill it at a random moment; documents it reported as committed."""
    command = [sys.executable, str(driver), str(Path(__file__).parents[1]), str(folder)]
    batches = moment.randrange(0, 26)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        lines = [process.stdout.readline() for _ in range(batches)]
        time.sleep(moment.uniform(0, 0.03))
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return sum(int(line.split()[1]) for line in lines)


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Killed:
    """Indexing killed at six random moments, each run going on from the last."""
    base = tmp_path_factory.mktemp("killed")
    driver = base / "driver.py"
    driver.write_text(INDEXING)
    seen = Killed(base / "index")
    moment = random.Random(20)
    for _ in range(6):
        seen.reported.append(kill_while_indexing(seen.folder, driver, moment))
        with open_retriever(seen.folder) as retriever:
            ids = retriever.store.digests([document.doc_id for document in documents()])
            assert len(ids) == len(retriever)
        seen.stored.append(sorted(ids))
        seen.integrity.append(integrity(seen.folder))
    return seen


def test_a_killed_index_opens_and_its_file_is_sound(killed):
    assert killed.integrity == ["ok"] * 6


def test_a_kill_loses_no_batch_that_was_reported(killed):
    assert killed.reported != [0] * 6
    for reported, stored in zip(killed.reported, killed.stored, strict=True):
        assert len(stored) >= reported


def test_a_kill_leaves_whole_batches_in_the_order_of_the_source(killed):
    for stored in killed.stored:
        assert len(stored) % BATCH == 0
        assert stored == [document.doc_id for document in documents(len(stored))]


def test_a_killed_index_answers(killed, tmp_path):
    copy = shutil.copytree(killed.folder, tmp_path / "copy")
    there = len(killed.stored[-1])
    with open_retriever(copy) as retriever:
        ranking = retriever.search("hotel", k=1000, policy="topical")
    assert {hit.doc_id for hit in ranking} == set(killed.stored[-1])
    assert 0 < there < 600  # the kills came while there was work to do


def test_a_run_after_the_kills_does_only_what_is_missing(killed, tmp_path, small_batches):
    copy = shutil.copytree(killed.folder, tmp_path / "copy")
    there = len(killed.stored[-1])
    with open_retriever(copy) as retriever:
        assert retriever.add(documents()) == Added(written=600 - there, unchanged=there)
        missing = [document.text for document in documents()[there:]]
        assert "".join(retriever.encoder.encoded) == "".join(missing)


def test_a_run_after_the_kills_ends_with_the_index_of_an_undisturbed_one(
    killed, tmp_path, small_batches
):
    copy = shutil.copytree(killed.folder, tmp_path / "copy")
    for folder in (copy, tmp_path / "undisturbed"):
        with open_retriever(folder) as retriever:
            retriever.add(documents())
    assert content(copy) == content(tmp_path / "undisturbed")


def test_an_index_whose_writer_was_killed_is_readable_before_anyone_repairs_it(tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(INDEXING)
    reported = kill_while_indexing(tmp_path / "index", driver, random.Random(2))
    with open_retriever(tmp_path / "index", read_only=True) as retriever:
        found = len(retriever.search("hotel", k=1000, policy="topical"))
    assert found >= reported > 0


# --- Ctrl-C

COMMAND = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
runpy.run_module("coder_ir", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Interrupted:
    """How `coder-ir index` ended on Ctrl-C."""

    returncode: int
    stderr: str
    documents: int  # in the index after it


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Interrupted:
    """`coder-ir index` stopped by SIGINT after its first batch."""
    import coder_ir

    if not (Path(coder_ir.__file__).parent / "model" / "model.json").is_file():
        pytest.skip("needs the built-in model, which is not in this checkout")
    base = tmp_path_factory.mktemp("interrupted")
    source = base / "docs.jsonl"
    source.write_text("".join(f'{{"_id": "{i}", "text": "hotel {i}"}}\n' for i in range(20_000)))
    command = [sys.executable, "-c", COMMAND, "index", str(base / "index"), str(source)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while stored(base / "index") == 0 and process.poll() is None:
            assert time.monotonic() < deadline, "no batch was committed in a minute"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    return Interrupted(process.returncode, stderr, stored(base / "index"))


def stored(folder: Path) -> int:
    """Documents in an index that another process may be creating just now."""
    try:
        store = SqliteStore(folder, read_only=True)
    except (StoreError, LookupError):
        return 0
    count = store.count()
    store.close()
    return count


def test_ctrl_c_ends_the_index_command_with_a_failure(interrupted):
    assert interrupted.returncode == 1


def test_ctrl_c_prints_no_traceback(interrupted):
    assert "Traceback" not in interrupted.stderr


def test_ctrl_c_keeps_whole_batches(interrupted):
    assert 0 < interrupted.documents < 20_000
    assert interrupted.documents % intake._BATCH_DOCUMENTS == 0


def test_ctrl_c_says_what_is_there_and_how_to_go_on(interrupted):
    assert f"stopped: {interrupted.documents} documents are in" in interrupted.stderr
    assert "run it again to go on" in interrupted.stderr


# --- a full disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    with small_disk(tmp_path / "disk", 1) as mounted:
        yield mounted


def add_until_full(folder: Path, wanted: list[Document]) -> int:
    """Add until the disk is full; the number of documents the index then holds when reopened."""
    with (
        open_retriever(folder) as retriever,
        pytest.raises(StoreError, match=r"the disk is full.*free some space and run the same"),
    ):
        retriever.add(wanted)
    with open_retriever(folder, read_only=True) as retriever:
        return len(retriever)


def test_a_full_disk_is_a_clear_error_that_keeps_earlier_batches(disk, small_batches):
    (disk / "ballast").write_bytes(bytes(500_000))
    there = add_until_full(disk / "index", documents(padding=1000))
    assert 0 < there < 600
    assert there % BATCH == 0


def test_an_index_on_a_full_disk_still_answers(disk, small_batches):
    there = add_until_full(disk / "index", documents(padding=1000))
    with open_retriever(disk / "index", read_only=True) as retriever:
        assert len(retriever.search("hotel", k=1000, policy="topical")) == there


def test_once_a_full_disk_has_room_the_same_add_completes(disk, small_batches):
    (disk / "ballast").write_bytes(bytes(800_000))
    wanted = documents(200, padding=500)
    there = add_until_full(disk / "index", wanted)
    (disk / "ballast").unlink()
    with open_retriever(disk / "index") as retriever:
        assert retriever.add(wanted) == Added(written=200 - there, unchanged=there)
    assert integrity(disk / "index") == "ok"


def test_a_disk_with_no_room_at_all_is_a_clear_error(disk):
    with (disk / "ballast").open("wb") as ballast, pytest.raises(OSError, match="space"):
        while True:
            os.write(ballast.fileno(), bytes(4096))
    with pytest.raises(StoreError, match=r"the disk is full|No space left"):
        open_retriever(disk / "index")


def limit_pages(retriever: Retriever, spare: int) -> None:
    connection = retriever.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + spare}")


@pytest.fixture
def filled(tmp_path: Path, small_batches: None) -> Iterator[Retriever]:
    """A retriever whose file could not grow past some batches."""
    with open_retriever(tmp_path / "index") as retriever:
        limit_pages(retriever, 60)
        with pytest.raises(StoreError, match="the disk is full"):
            retriever.add(documents(padding=1000))
        yield retriever


def test_a_file_that_cannot_grow_keeps_earlier_batches(filled, tmp_path):
    with open_retriever(tmp_path / "index", read_only=True) as reader:
        assert 0 < len(reader) < 600
        assert len(reader) % BATCH == 0


def test_a_file_that_cannot_grow_still_answers(filled):
    assert len(filled.search("hotel", k=1000, policy="topical")) == len(filled)


def test_a_file_that_can_grow_again_takes_the_rest(filled, tmp_path):
    there = len(filled)
    limit_pages(filled, 100_000)
    wanted = documents(padding=1000)
    assert filled.add(wanted) == Added(written=600 - there, unchanged=there)
    with open_retriever(tmp_path / "undisturbed") as retriever:
        retriever.add(wanted)
    assert content(tmp_path / "index") == content(tmp_path / "undisturbed")


# --- a read-only folder


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user whom permission bits bind; root steps down and back up."""
    if os.geteuid() != 0:
        yield
        return
    if not hasattr(os, "setresuid"):
        pytest.skip("root cannot step down for a while on this system")
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that any user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for entry in (folder, *folder.rglob("*")):
        entry.chmod(0o755)
    shutil.rmtree(folder)


def lock(folder: Path) -> None:
    for entry in folder.iterdir():
        entry.chmod(0o444)
    folder.chmod(0o555)


@pytest.fixture
def locked(public: Path) -> Path:
    """An index of three documents in a folder that may not be written to."""
    with open_retriever(public / "index") as retriever:
        retriever.add(documents(3))
        retriever.search("hotel")  # libraries are loaded while their files can be read
    lock(public / "index")
    return public / "index"


def found(retriever: Retriever) -> list[str]:
    return sorted(hit.doc_id for hit in retriever.search("hotel", policy="topical", k=50))


def test_opening_a_read_only_index_for_writing_is_a_clear_error(locked):
    with without_privileges(), pytest.raises(StoreError, match=r"cannot be written.*read-only"):
        open_retriever(locked)


def test_creating_an_index_in_a_read_only_folder_is_a_clear_error(locked):
    with without_privileges(), pytest.raises(StoreError, match="Permission denied"):
        open_retriever(locked / "new")


def test_making_an_index_of_an_empty_read_only_folder_is_a_clear_error(public):
    (public / "empty").mkdir(mode=0o555)
    with without_privileges(), pytest.raises(StoreError, match=r"cannot be written.*read-only"):
        open_retriever(public / "empty")


def test_a_read_only_index_is_searched_though_no_side_file_can_be_made(locked):
    assert [entry.name for entry in locked.iterdir()] == [FILE]
    with without_privileges(), open_retriever(locked, read_only=True) as retriever:
        assert found(retriever) == ["d0000", "d0001", "d0002"]


def test_an_index_nobody_may_read_is_a_clear_error(locked):
    (locked / FILE).chmod(0)
    with without_privileges(), pytest.raises(StoreError, match="cannot be"):
        open_retriever(locked, read_only=True)


WRITING = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from tests.test_durability import documents, open_retriever

with open_retriever(Path(sys.argv[2])) as retriever:
    print("ready", flush=True)
    for line in sys.stdin:
        retriever.add(documents(int(line)))
        print("committed", flush=True)
"""


class Writer:
    """Another process, of a user who may write, that adds the first so many documents."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", WRITING, str(Path(__file__).parents[1]), str(folder)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def add(self, count: int) -> None:
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "committed\n"

    def end(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def writer_of(public: Path) -> Iterator:
    """Starts writers, and ends them."""
    writers: list[Writer] = []

    def start(folder: Path) -> Writer:
        if os.geteuid() != 0:
            pytest.skip("needs two users, one of whom may write: run as root")
        writers.append(Writer(folder))
        return writers[-1]

    yield start
    for writer in writers:
        writer.end()


def test_a_user_who_may_only_read_sees_the_commits_of_one_who_is_writing(locked, writer_of):
    writer = writer_of(locked)
    writer.add(4)
    with without_privileges(), open_retriever(locked, read_only=True) as retriever:
        assert len(found(retriever)) == 4
        writer.add(5)
        assert len(found(retriever)) == 5


def test_a_user_who_may_only_read_sees_the_commits_of_one_who_comes_later(locked, writer_of):
    with without_privileges():
        retriever = open_retriever(locked, read_only=True)
        assert len(found(retriever)) == 3
    writer = writer_of(locked)
    writer.add(4)
    with without_privileges():
        during = len(found(retriever))
    writer.end()
    with without_privileges():
        after = len(found(retriever))
        retriever.close()
    assert (during, after) == (4, 4)


def test_what_a_killed_writer_committed_is_read_from_a_read_only_folder(locked, writer_of):
    writer = writer_of(locked)
    writer.add(5)
    writer.end(kill=True)
    lock(locked)
    with without_privileges(), open_retriever(locked, read_only=True) as retriever:
        assert len(found(retriever)) == 5
