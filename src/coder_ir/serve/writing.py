"""Documents that come in over HTTP: one writer, a batch at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from coder_ir.datasets.documents import Columns, jsonl_documents
from coder_ir.errors import Busy, CoderError, TimedOut, TooLarge, UploadStopped
from coder_ir.intake import Added, distinct
from coder_ir.retriever import Retriever
from coder_ir.serve.limits import Limits
from coder_ir.stores import settle
from coder_ir.types import Document

T = TypeVar("T")
_BATCH_LINES = 64
_BATCH_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a body that follow each other."""

    first: int  # number of the first of them; a body begins with line 1
    raw: Sequence[bytes]


class Writer:
    """The one thread that changes the index; reads go on beside it."""

    def __init__(self, retriever: Retriever, limits: Limits) -> None:
        """The thread starts with the first change."""
        self._retriever = retriever
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        # What a large index is searched with takes minutes to build, and no upload waits for it.
        self._settler = ThreadPoolExecutor(1, thread_name_prefix="settler")
        retriever.settles = False
        self._uploads = 0

    def close(self) -> None:
        """Finish what was begun."""
        self._thread.shutdown(wait=True)
        self._settler.shutdown(wait=True, cancel_futures=True)

    async def delete(self, doc_id: str) -> int:
        """Remove a document; returns how many were there."""
        return await self._run(partial(self._retriever.delete, [doc_id]))

    async def upload(self, chunks: AsyncIterator[bytes], *, split: bool) -> Added:
        """Write a body of jsonl as it comes; what is counted has been committed.

        Raises:
            UploadStopped: at the first line that cannot be taken; those before it are kept.
        """
        if self._uploads >= self._limits.uploads:
            raise Busy(f"{self._uploads} uploads go on already, of {self._limits.uploads}")
        self._uploads += 1
        total, line, seen = Added(), 1, set[str]()
        try:
            async for lines in line_batches(chunks, self._limits):
                line = lines.first
                part = await self._run(partial(self._write, lines, seen, split))
                total += part.added
                line = part.line
                if part.error:
                    raise part.error
            return total
        except CoderError as error:
            counts = {"written": total.written, "unchanged": total.unchanged}
            raise UploadStopped(error, line=line, **counts) from error
        finally:
            self._uploads -= 1
            if total.written:
                self._settler.submit(settle, self._retriever.store)

    async def _run(self, change: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await within(self._limits.write_timeout, loop.run_in_executor(self._thread, change))

    def _write(self, lines: Lines, seen: set[str], split: bool) -> "_Part":
        """Commit the lines up to the first bad one."""
        line = lines.first - 1

        def counted() -> Iterator[bytes]:
            nonlocal line
            for raw in lines.raw:
                line += 1
                yield raw

        documents: list[Document] = []
        failure: CoderError | None = None
        source = jsonl_documents(counted(), "body", Columns(), first=lines.first)
        try:
            documents.extend(distinct(source, seen=seen))
        except CoderError as error:  # raised once the documents before it are committed
            failure = error
        added = self._retriever.add(documents, split=split) if documents else Added()
        return _Part(added, line if failure else line + 1, failure)


@dataclass(frozen=True, slots=True)
class _Part:
    added: Added
    line: int  # the bad one, or the next
    error: CoderError | None


async def within(seconds: float, work: "asyncio.Future[T]") -> T:
    """The result of some work, unless it takes longer."""
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError as error:
        raise TimedOut(f"no answer within {seconds:g} seconds") from error


async def line_batches(chunks: AsyncIterator[bytes], limits: Limits) -> AsyncIterator[Lines]:
    """Cut a body into lines and gather them; holds one batch and one unfinished line."""
    number, seen, size = 1, 0, 0
    rest = bytearray()
    batch: list[bytes] = []
    async for chunk in _timely(chunks, limits.timeout):
        seen += len(chunk)
        rest += chunk
        if seen > limits.upload_bytes:
            error = TooLarge(f"a body may have {limits.upload_bytes} bytes; this one has more")
        elif len(rest) - rest.rfind(b"\n") - 1 > limits.line_bytes:
            error = TooLarge(f"a line may have {limits.line_bytes} bytes; this one has more")
        else:
            error = None
        *whole, tail = rest.split(b"\n")
        rest = bytearray(tail)
        for line in whole:
            batch.append(bytes(line))
            size += len(line)
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                yield Lines(number, batch)
                number, batch, size = number + len(batch), [], 0
        if error:
            if batch:
                yield Lines(number, batch)
            raise error
    if rest:
        batch.append(bytes(rest))
    if batch:
        yield Lines(number, batch)


async def _timely(chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """Chunks, each of which has to come within some seconds."""
    source = aiter(chunks)
    while True:
        try:
            yield await asyncio.wait_for(anext(source), seconds)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise TimedOut(f"nothing more of the body came within {seconds:g} seconds") from error
