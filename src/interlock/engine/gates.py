"""The gate in front of one tool: its circuit breaker and its places."""

from __future__ import annotations

import asyncio

from interlock.resilience import Breaker
from interlock.schema import Tool


class Gate:
    """In this process: whether the tool is worth trying, and how many calls of it run at once."""

    def __init__(self, tool: Tool) -> None:
        self.breaker = Breaker(tool.limits.breaker_failures, tool.limits.breaker_reset_s)
        self.places = None if tool.limits.concurrency is None else Places(tool.limits.concurrency)


class Places:
    """So many at once; the others wait in line. A place can be given back from any thread's callback on the loop."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._loop: asyncio.AbstractEventLoop | None = None
        self._semaphore = asyncio.Semaphore(count)

    async def take(self) -> None:
        """Wait for a place."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self._count)
        await self._semaphore.acquire()

    def give_back(self) -> None:
        """Let the next one in."""
        self._semaphore.release()
