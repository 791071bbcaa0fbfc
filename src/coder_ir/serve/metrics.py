"""What Prometheus is told; counts and times, no texts."""

import math
from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from coder_ir.errors import CoderError
from coder_ir.searching import Asked
from coder_ir.serve.batching import Timing

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one application; two in one process do not mix."""

    def __init__(self) -> None:
        """All start at zero."""
        self.registry = CollectorRegistry()
        self._stages = Histogram(
            "coder_ir_search_seconds",
            "Time of a search by stage: queued, encode, search, total",
            ["stage"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._queries = Counter(
            "coder_ir_queries", "Searches answered, by policy", ["policy"], registry=self.registry
        )
        self._constraints = Counter(
            "coder_ir_constraint_queries",
            "Searches that stated a constraint, in the query or beside it",
            registry=self.registry,
        )
        self._errors = Counter(
            "coder_ir_errors",
            "Requests refused or failed, by code",
            ["code"],
            registry=self.registry,
        )
        self._requests = Counter(
            "coder_ir_requests",
            "Requests by method, path and status",
            ["method", "path", "status"],
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "coder_ir_requests_in_flight", "Requests without an answer yet", registry=self.registry
        )
        self._written = Counter(
            "coder_ir_documents_written", "Documents written", registry=self.registry
        )
        self._deleted = Counter(
            "coder_ir_documents_deleted", "Documents deleted", registry=self.registry
        )

    def watch(self, *, documents: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Figures that are looked up when they are asked for."""
        for name, text, look_up in (
            ("coder_ir_documents", "Documents in the index", documents),
            ("coder_ir_waiting_searches", "Searches that wait for a worker", waiting),
        ):
            Gauge(name, text, registry=self.registry).set_function(partial(_looked_up, look_up))

    def answered(self, asked: Asked, timing: Timing) -> None:
        """Count one search."""
        for stage in ("queued", "encode", "search", "total"):
            self._stages.labels(stage).observe(getattr(timing, stage) / 1000)
        self._queries.labels(asked.options.chosen_policy.name).inc()
        if asked.constraint.stated:
            self._constraints.inc()

    def requested(self, method: str, path: str, status: int) -> None:
        """Count one request; `path` is a template, so that ids make no new series."""
        known = method if method in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
        self._requests.labels(known, path, str(status)).inc()

    def refused(self, code: str) -> None:
        """Count one error."""
        self._errors.labels(code).inc()

    def changed(self, *, written: int = 0, deleted: int = 0) -> None:
        """Count documents that came and went."""
        self._written.inc(written)
        self._deleted.inc(deleted)

    def page(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)


def _looked_up(look_up: Callable[[], int]) -> float:
    """The figure, or NaN where the store does not answer: the others are then wanted most."""
    try:
        return look_up()
    except CoderError:
        return math.nan
