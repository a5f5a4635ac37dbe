"""Work that goes on to its end whoever cancels: what has begun to change the world must have an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_uninterrupted(
    work: Coroutine[Any, Any, T], told: Callable[[], object] | None = None
) -> tuple[T, asyncio.CancelledError | None]:
    """The result of the work, and the last cancellation of whoever waited for it, if there was one.

    The work has a task of its own, so that it may be cancelled by whatever it does itself, and by nobody else.
    `told` is called at each cancellation: the work may end sooner, where it has not begun to change anything.
    """
    loop, interrupt = asyncio.get_running_loop(), None
    end = _End(loop.create_future())
    task = loop.create_task(_until(work, end))
    task.add_done_callback(end.tell)  # for a task that is cancelled before its first step, as the loop is closed
    while not task.done():
        try:
            await end.waiting
        except asyncio.CancelledError as error:
            interrupt, end.waiting = error, loop.create_future()
            if told is not None:
                told()
    return task.result(), interrupt


class _End:
    """What is waited on: another future after each cancellation, as that takes the one before with it."""

    __slots__ = ("waiting",)

    def __init__(self, waiting: asyncio.Future[None]) -> None:
        self.waiting = waiting

    def tell(self, _task: object = None) -> None:
        """Wake whoever waits."""
        if not self.waiting.done():
            self.waiting.set_result(None)


async def _until(own_work: Coroutine[Any, Any, T], end: _End) -> T:
    # Told by its own last step: `asyncio.wait` hears of it a pass of the loop later, and every write pays for that.
    try:
        return await own_work
    finally:
        end.tell()
