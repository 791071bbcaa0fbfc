"""A loop that has to run while a search does."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from tests.integrations.conftest import GatedEncoder


def while_the_loop_runs(gated: GatedEncoder, search: Any) -> Any:
    """What an async search gives whose encoder waits for the loop; a blocked loop is an error."""

    async def both() -> Any:
        gated.asked.clear()
        gated.gate.clear()
        running: Awaitable[Any] = asyncio.ensure_future(search())
        while not gated.asked.is_set():
            await asyncio.sleep(0.001)
        gated.gate.set()
        return await running

    return asyncio.run(both())
