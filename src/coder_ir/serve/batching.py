"""Searches that come at the same time are encoded together."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from coder_ir.errors import Busy
from coder_ir.retriever import Retriever
from coder_ir.searching import Asked, SearchOptions
from coder_ir.serve.limits import Limits
from coder_ir.types import Ranking


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
class Answer:
    """What one search found."""

    ranking: Ranking
    timing: Timing


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    questions: Sequence[Question]
    asked_at: float
    future: Future[list[Answer]] = field(default_factory=Future)


Observe = Callable[[Answer], None]


class Batcher:
    """Worker threads, each of which takes what waits and encodes it in one call.

    A search that comes alone waits for nothing; under load, searches gather while the workers are
    busy, and a call of the encoder serves many.
    """

    def __init__(self, retriever: Retriever, limits: Limits, observe: Observe) -> None:
        """`observe` is called with every answer, by a worker."""
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
        """Answer all that waits, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    @property
    def waiting(self) -> int:
        """Searches that no worker has taken yet."""
        return sum(len(job.questions) for job in self._waiting.copy())

    def submit(self, questions: Sequence[Question]) -> Future[list[Answer]]:
        """One answer a question, in order; a cancelled future that still waits costs nothing."""
        job = _Job(questions, time.perf_counter())
        with self._changed:
            if self._closing:
                raise Busy("the server is shutting down", retry_after=5)
            if self._waiting and self.waiting + len(questions) > self._limits.waiting:
                raise Busy(f"{self.waiting} searches wait already, of {self._limits.waiting}")
            self._waiting.append(job)
            self._changed.notify()
        return job.future

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
            most = min(share, self._limits.together)
            jobs = [self._waiting.popleft()]
            size = len(jobs[0].questions)
            while self._waiting and size + len(self._waiting[0].questions) <= most:
                jobs.append(self._waiting.popleft())
                size += len(jobs[-1].questions)
        return [job for job in jobs if job.future.set_running_or_notify_cancel()]

    def _answer(self, jobs: Sequence[_Job]) -> None:
        """Whatever goes wrong is handed to those who wait, and the worker goes on."""
        if not jobs:
            return
        questions = [question for job in jobs for question in job.questions]
        began = time.perf_counter()
        try:
            asked = self._retriever.prepare(
                [question.query for question in questions],
                [question.options for question in questions],
            )
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
            for job in jobs if len(jobs) > 1 else ():  # one must not spoil it for the others
                self._answer([job])
            return
        encode = time.perf_counter() - began
        rest = iter(asked)
        for job in jobs:
            mine = [next(rest) for _ in job.questions]
            try:
                answers = [self._rank(one, job, began, encode) for one in mine]
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(answers)

    def _rank(self, asked: Asked, job: _Job, began: float, encode: float) -> Answer:
        start = time.perf_counter()
        ranking = self._retriever.answer(asked)
        end = time.perf_counter()
        spans = (began - job.asked_at, encode, end - start, end - job.asked_at)
        answer = Answer(ranking, Timing(*(1000 * span for span in spans)))
        self._observe(answer)
        return answer
