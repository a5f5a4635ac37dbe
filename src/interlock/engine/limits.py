"""The gate in front of one tool: its circuit breaker and its places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from interlock.resilience import Breaker
from interlock.tools import Tool


class ToolLimits:
    """In this process: whether the tool is worth trying, and how many calls of it run at once."""

    def __init__(self, tool: Tool) -> None:
        self.breaker = Breaker(tool.limits.breaker_failures, tool.limits.breaker_reset_s)
        self.slots = None if tool.limits.concurrency is None else Slots(tool.limits.concurrency)


class Slots:
    """So many at once on an event loop; the others wait in line."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def take(self) -> Callable[[], None]:
        """Wait for a place; what gives it back."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = asyncio.Semaphore(self._count)
        await line.acquire()
        return line.release
