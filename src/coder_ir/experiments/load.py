"""Callers of a server, each with a connection of its own, in one event loop."""

import asyncio
import json
import random
from dataclasses import dataclass, field
from itertools import count, islice
from time import perf_counter

_LONGEST_LINE = 2**20
_TOGETHER = 4  # documents a request


@dataclass(slots=True)
class Heard:
    """What came back; grows as answers come."""

    seconds: list[float] = field(default_factory=list)  # of each answer, in the order they came
    refused: list[int] = field(default_factory=list)  # status of each that was not 200

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the answers came."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Connection:
    """One caller's connection, kept open."""

    def __init__(self, port: int) -> None:
        """Nothing is opened yet."""
        self._port = port

    async def __aenter__(self) -> "Connection":
        """Open it."""
        streams = await asyncio.open_connection("127.0.0.1", self._port, limit=_LONGEST_LINE)
        self._reader, self._writer = streams
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        self._writer.close()

    async def ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        size = int(fields["content-length"])
        return int(lines[0].split()[1]), await self._reader.readexactly(size)


@dataclass(frozen=True, slots=True)
class Pace:
    """How many callers ask, for how long and how often."""

    callers: int
    seconds: float
    a_second: float = 0.0  # searches of all callers, at random moments; 0: as fast as they can


async def searching(port: int, queries: list[str], pace: Pace) -> Heard:
    """Searches over the queries in turn; a search is late from the moment it was due."""
    heard, numbers, end = Heard(), count(), perf_counter() + pace.seconds

    async def call(draw: random.Random) -> None:
        due = perf_counter()
        async with Connection(port) as connection:
            while True:
                now = perf_counter()
                gap = draw.expovariate(pace.a_second / pace.callers) if pace.a_second else 0.0
                due = due + gap if pace.a_second else now
                if max(due, now) >= end:
                    return
                await asyncio.sleep(max(0.0, due - now))
                body = json.dumps({"query": queries[next(numbers) % len(queries)]}).encode()
                status, _ = await connection.ask("POST", "/v1/search", body, "application/json")
                heard.seconds.append(perf_counter() - due)
                if status != 200:
                    heard.refused.append(status)

    await asyncio.gather(*(call(random.Random(number)) for number in range(pace.callers)))
    return heard


class Writer:
    """Sends a server new documents, a few at a time, and remembers what it acknowledged."""

    def __init__(self, texts: list[str]) -> None:
        """Documents hold these texts in turn, each under a number of its own."""
        self._texts = texts
        self._numbers = count()
        self.acknowledged: list[str] = []  # ids
        self.refused: list[int] = []  # status of each answer that was not 200

    async def write(self, port: int, *, a_second: float) -> None:
        """Until the task is cancelled or the server is gone."""
        async with Connection(port) as connection:
            while True:
                rows = [self._row(number) for number in islice(self._numbers, _TOGETHER)]
                body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
                kind = "application/x-ndjson"
                status, _ = await connection.ask("PUT", "/v1/documents", body, kind)
                if status == 200:
                    self.acknowledged += [row["_id"] for row in rows]
                else:
                    self.refused.append(status)
                await asyncio.sleep(_TOGETHER / a_second)

    def _row(self, number: int) -> dict[str, str]:
        text = self._texts[number % len(self._texts)]
        return {"_id": f"new-{number}", "text": f"Report {number}. {text}"}
