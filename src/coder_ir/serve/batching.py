"""Searches that come at the same time are encoded together."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coder_ir.errors import Busy
from coder_ir.retriever import Retriever
from coder_ir.searching import Asked, SearchOptions
from coder_ir.serve.limits import Limits

T = TypeVar("T")
_GONE = 5.0  # seconds that closing waits for work nobody waits for any more


@dataclass(frozen=True, slots=True)
class Question:
    """One search, checked."""

    query: str
    options: SearchOptions


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time went, in milliseconds."""

    queued: float  # until a worker took it
    encode: float  # of all queries that were taken together
    search: float  # candidates, policy and texts of this query
    total: float


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What one search found."""

    value: T
    timing: Timing


Finish = Callable[[Asked], Any]
Observe = Callable[[Asked, Timing], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    question: Question
    finish: Finish
    asked_at: float
    future: "Future[Answer[Any]]" = field(default_factory=Future)


class Batcher:
    """Worker threads, each of which takes its share of what waits and encodes it in one call.

    A search that comes alone waits for nothing; under load, searches gather while the workers are
    busy, and a call of the encoder serves several.
    """

    def __init__(self, retriever: Retriever, limits: Limits, observe: Observe) -> None:
        """`observe` is called after every search, by a worker."""
        self._retriever = retriever
        self._limits = limits
        self._observe = observe
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._workers: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to take searches."""
        self._closing = False
        self._workers = [
            threading.Thread(target=self._work, name=f"search-{number}", daemon=True)
            for number in range(self._limits.workers)
        ]
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Answer all that somebody waits for, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + _GONE
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    @property
    def waiting(self) -> int:
        """Searches that no worker has taken yet."""
        return len(self._waiting)

    def submit(
        self, questions: Sequence[Question], finish: Callable[[Asked], T]
    ) -> "list[Future[Answer[T]]]":
        """What `finish` makes of each question, in order; all are taken, or none.

        A cancelled future that still waits costs nothing.
        """
        jobs = [_Job(question, finish, time.perf_counter()) for question in questions]
        with self._changed:
            if self._closing:
                raise Busy("the server is shutting down", retry_after=5)
            if self._waiting and self.waiting + len(jobs) > self._limits.waiting:
                raise Busy(f"{self.waiting} searches wait already, of {self._limits.waiting}")
            self._waiting.extend(jobs)
            self._changed.notify(len(jobs))
        return [job.future for job in jobs]

    def _work(self) -> None:
        while (jobs := self._taken()) is not None:
            self._answer(jobs)

    def _taken(self) -> list[_Job] | None:
        """A worker's share of what waits, up to the size of a batch; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return None
            share = -(-self.waiting // self._limits.workers)  # the others take theirs
            count = min(share, self._limits.together)
            jobs = [self._waiting.popleft() for _ in range(count)]
        return [job for job in jobs if job.future.set_running_or_notify_cancel()]

    def _answer(self, jobs: Sequence[_Job]) -> None:
        """Whatever goes wrong is handed to those who wait, and the worker goes on."""
        if not jobs:
            return
        began = time.perf_counter()
        try:
            asked = self._retriever.prepare(
                [job.question.query for job in jobs], [job.question.options for job in jobs]
            )
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
            for job in jobs if len(jobs) > 1 else ():  # one must not spoil it for the others
                self._answer([job])
            return
        encode = time.perf_counter() - began
        for job, one in zip(jobs, asked, strict=True):
            try:
                answer = self._finished(one, job, began, encode)
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(answer)

    def _finished(self, asked: Asked, job: _Job, began: float, encode: float) -> Answer[Any]:
        start = time.perf_counter()
        value = job.finish(asked)
        end = time.perf_counter()
        spans = (began - job.asked_at, encode, end - start, end - job.asked_at)
        timing = Timing(*(1000 * span for span in spans))
        self._observe(asked, timing)
        return Answer(value, timing)
