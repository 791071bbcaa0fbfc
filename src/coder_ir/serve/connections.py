"""Connections over which nothing comes are closed."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """Has as long for a whole head of a request as it is kept between two of them.

    uvicorn itself waits without end for the first one, and for the rest of one that was begun.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The time begins."""
        super().connection_made(transport)
        self._close_at(self.loop.time() + self.timeout_keep_alive)

    def data_received(self, data: bytes) -> None:
        """A part of a head gains no time."""
        timer = self.timeout_keep_alive_task
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if timer and not answering and not self.timeout_keep_alive_task:
            self._close_at(timer.when())

    def _close_at(self, moment: float) -> None:
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_at(moment, handler)
