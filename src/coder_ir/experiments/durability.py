"""kill -9 at random moments of indexing: nothing committed is lost, a second run completes."""

import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from coder_ir.datasets.sample import load_sample
from coder_ir.errors import StoreError
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.stores.sqlite.store import FILE

_DOCUMENTS, _KILLS = 5000, 20


def measure_durability(setup: Setup, report: Report) -> Table:
    """Kill the real command at seeded random moments, look at the file, run it to the end."""
    draw = random.Random(13)
    with tempfile.TemporaryDirectory() as folder:
        index, corpus = Path(folder) / "index", Path(folder) / "corpus.jsonl"
        _write_corpus(corpus)
        counts = [0]
        for number in range(_KILLS):
            process = _start(setup, index, corpus)
            time.sleep(draw.uniform(0.3, 6.0))
            process.send_signal(signal.SIGKILL)
            process.wait()
            counts.append(_committed(index))
            report(f"kill {number + 1}: {counts[-1]} of {_DOCUMENTS} committed, file sound")
        before = counts[-1]
        finished = _start(setup, index, corpus)
        _, messages = finished.communicate()
        after = _committed(index)
        said = messages.decode().strip().splitlines()[-1].split(": ", 1)[-1]
    lost = sum(later < earlier for earlier, later in pairwise([*counts, after]))
    return Table(
        name="kill",
        title="kill -9 while indexing",
        columns=("kills", "committed batches lost", "before the last run", "after it"),
        rows=((str(_KILLS), str(lost), str(before), str(after)),),
        notes=(
            f"{_DOCUMENTS} documents; after each kill SQLite's integrity check passed. A loss "
            f"is a kill after which fewer documents were there than before. The last "
            f"run said: {said}.",
        ),
        figures={"committed": counts, "final": after, "exit": finished.returncode},
    )


def _write_corpus(path: Path) -> None:
    documents, _ = load_sample()
    with path.open("w", encoding="utf-8") as file:
        for i in range(_DOCUMENTS):
            text = f"Note {i}. {documents[i % len(documents)].text}"
            file.write(json.dumps({"_id": f"d{i}", "text": text}) + "\n")


def _start(setup: Setup, index: Path, corpus: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "coder_ir", "index", str(index), str(corpus)]
    return subprocess.Popen([*command, "--model", setup.model], stderr=subprocess.PIPE)


def _committed(index: Path) -> int:
    """Documents in the file, once SQLite's own check has passed."""
    if not (index / FILE).exists():
        return 0
    with sqlite3.connect(index / FILE) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        count = connection.execute("SELECT count(*) FROM documents").fetchone()[0] if tables else 0
    connection.close()
    if sound != "ok":
        raise StoreError(f"{index} did not survive a kill: {sound}")
    return int(count)
