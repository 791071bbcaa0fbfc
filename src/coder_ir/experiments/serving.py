"""The server under load: many callers against one, writes going on, and a kill in the middle."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np

from coder_ir.datasets.sample import load_sample
from coder_ir.encoders.onnx import cores
from coder_ir.encoders.registry import load_encoder
from coder_ir.errors import ServiceError
from coder_ir.experiments.load import Heard, Pace, Writer, searching
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.stores import SqliteStore
from coder_ir.training.marked_queries import read_marked_part
from coder_ir.types import Document, ModelStamp, Record, Span, VectorPair
from coder_ir.vectors import unit_rows

_BATCH = 1000
Writing = Coroutine[Any, Any, None]


@dataclass(frozen=True, slots=True)
class Load:
    """How hard the server is pressed."""

    documents: int = 20_000
    alone: float = 20.0  # seconds of one caller by itself
    callers: int = 32
    seconds: float = 60.0  # of all of them; once at a pace, once as fast as they can
    share: float = 1.3  # the pace, against what the one caller reached
    writes: float = 4.0  # documents a second, beside all callers


def measure_serving(setup: Setup, report: Report, load: Load = Load()) -> Table:
    """One caller, then many, a writer beside them; then kill -9, and what is still there."""
    texts = [document.content for document in load_sample()[0]]
    queries = [query.text for query in read_marked_part(setup.queries, "development")]
    random.Random(13).shuffle(queries)
    writer = Writer(texts)
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        report(f"serving: storing {load.documents} documents")
        _build(index, texts, load.documents, setup.model)
        with _server(index) as (process, port):

            def heard(pace: Pace) -> Heard:
                report(f"serving: {pace.callers} at a time, {pace.seconds:g} s")
                writing = writer.write(port, a_second=load.writes)
                return asyncio.run(_with_writer(searching(port, queries, pace), writing))

            one = heard(Pace(1, load.alone))
            paced = Pace(load.callers, load.seconds, load.share * len(one.seconds) / load.alone)
            many = [heard(paced), heard(replace(paced, a_second=0))]
            asyncio.run(_killed(process, writer.write(port, a_second=1000)))
        report("serving: looking for what was acknowledged")
        with _server(index) as (_, port):
            lost = [doc_id for doc_id in writer.acknowledged if not _is_there(port, doc_id)]
    return _table(load, [one, *many], writer, lost)


def _build(index: Path, texts: list[str], count: int, model: str) -> None:
    """Store passages with the vectors of the sample's, each moved a little."""
    encoder, draw = load_encoder(model), np.random.default_rng(13)
    known = encoder.encode(texts, kind="document")
    store = SqliteStore(index)
    store.set_stamp(ModelStamp(encoder.fingerprint, encoder.spec))
    for start in range(0, count, _BATCH):
        numbers = range(start, min(count, start + _BATCH))
        rows = [number % len(texts) for number in numbers]
        moved = [
            unit_rows(part[rows] + draw.normal(0, 0.03, (len(rows), part.shape[1])))
            for part in (known.topical, known.compatibility)
        ]
        records = []
        for row, number in enumerate(numbers):
            document = Document(f"d{number}", f"Note {number}. {texts[rows[row]]}")
            pair = VectorPair(*(part[row : row + 1] for part in moved))
            records.append(Record(document, str(number), [Span(0, len(document.text))], pair))
        store.write(records)
    store.close()


@contextmanager
def _server(index: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The real command in a process of its own, and its port."""
    command = [sys.executable, "-m", "coder_ir", "serve", str(index), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        log = process.stderr
        assert log
        drain = threading.Thread(target=log.read, daemon=True)  # or it would fill up
        try:
            port = _port(log)
            drain.start()
            yield process, port
        finally:
            process.terminate()
            if drain.is_alive():
                drain.join()


def _port(log: IO[str]) -> int:
    """Where a server listens, as its log says once it answers."""
    port = 0
    for line in log:
        row = json.loads(line)
        port = row.get("port", port)
        if "startup complete" in row["message"]:
            return int(port)
    raise ServiceError("the server ended before it could be asked; try it with: coder-ir serve")


async def _with_writer(search: Coroutine[Any, Any, Heard], writing: Writing) -> Heard:
    """The searches, with documents coming in until the last of them is answered."""
    task = asyncio.create_task(writing)
    heard = await search
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return heard


async def _killed(process: "subprocess.Popen[str]", writing: Writing) -> None:
    """Write as fast as the server takes it, and kill it two seconds later."""
    task = asyncio.create_task(writing)
    await asyncio.sleep(2)
    process.send_signal(signal.SIGKILL)
    with suppress(ServiceError):
        await task


def _is_there(port: int, doc_id: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/v1/documents/{quote(doc_id)}", timeout=10):
            return True
    except HTTPError as error:
        if error.code != 404:
            raise
        return False


def _table(load: Load, heard: Sequence[Heard], writer: Writer, lost: list[str]) -> Table:
    if not all(one.seconds for one in heard):
        raise ServiceError("the server answered nothing in the time it was given")
    spans = (load.alone, load.seconds, load.seconds)
    rates = [len(one.seconds) / span for one, span in zip(heard, spans, strict=True)]
    median = heard[0].percentile(0.5)
    names = ("1", f"{load.callers}, paced", f"{load.callers}, as fast as they can")
    errors = [*(status for one in heard for status in one.refused), *writer.refused]
    rows = [
        (
            *(name, str(len(one.seconds)), f"{rate:.0f}", f"{rate / rates[0]:.2f}x"),
            *(f"{one.percentile(0.5):.0f}", f"{one.percentile(0.99):.0f}"),
            f"{one.percentile(0.99) / median:.1f}x",
        )
        for name, one, rate in zip(names, heard, rates, strict=True)
    ]
    return Table(
        name="serving",
        title="The server under load",
        columns=(
            *("callers", "searches", "a second", "against one", "p50 ms", "p99 ms"),
            "p99 against p50 of one",
        ),
        rows=tuple(rows),
        notes=(
            f"{load.documents:,} documents, policy auto, k=10, {cores()} cores for the server and, "
            f"in a second process, its callers: one for {load.alone:g} seconds, {load.callers} for "
            f"{load.seconds:g}, first at random moments that make up {load.share:g} times what the "
            f"one reached, then each as soon as it is answered. All the time "
            f"{load.writes:g} documents a second were written. Errors: {len(errors)}. Callers who "
            f"never pause wait for each other: with {load.callers} of them on {cores()} cores the "
            f"median cannot be below {load.callers / cores():g} times the work of one search.",
            "",
            "kill -9 while documents were written as fast as they were taken: of "
            f"{len(writer.acknowledged)} acknowledged ones, {len(lost)} were missing after a "
            "restart.",
        ),
        figures={
            "documents": load.documents,
            "callers": load.callers,
            "rates": rates,
            "milliseconds": {
                str(share): [one.percentile(share) for one in heard] for share in (0.5, 0.9, 0.99)
            },
            "errors": errors,
            "acknowledged": len(writer.acknowledged),
            "lost": lost,
        },
    )
