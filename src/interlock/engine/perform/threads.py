"""The threads that sync tools run in: a thread cannot be stopped, so whoever times out must still wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from interlock.tools.wire import thread_context


class Threads:
    """The threads of one call."""

    __slots__ = ("_executor", "_started")

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._started: list[Future[Any]] = []

    async def run(self, body: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in a thread, in the caller's context, and wait for its result."""
        future = self._executor.submit(thread_context().run, _without_stop, body, *arguments)
        self._started.append(future)
        return await asyncio.wrap_future(future)

    @property
    def running(self) -> bool:
        """Whether any of them runs."""
        return any(not future.done() for future in self._started)

    def when_idle(self, done: Callable[[], None]) -> None:
        """Call `done` on this loop as soon as no thread of this call runs any more."""
        running = [future for future in self._started if not future.done()]
        if not running:
            done()
            return
        loop = asyncio.get_running_loop()
        running[-1].add_done_callback(lambda _future: _soon(loop, lambda: self.when_idle(done)))


def _without_stop(body: Callable[..., Any], *arguments: Any) -> Any:
    """A StopIteration cannot pass through a future: it would leave it waiting for ever."""
    try:
        return body(*arguments)
    except StopIteration as error:
        raise RuntimeError(f"the tool raised StopIteration: {error}") from error


def _soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        return  # the loop has ended, and its places with it
