"""Timeouts for many awaits on one timer.

`asyncio.timeout` arms and cancels a timer of its own for every await, which costs several times what a short tool
does. Here an await is an entry in a dict; one timer stands at the earliest deadline and looks through the entries when
it fires. The semantics are those of `asyncio.timeout`: the task is cancelled, and that becomes TimeoutError.
The first step of a coroutine is taken before anything is armed: what never waits cannot be interrupted anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from math import inf
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Entry:
    __slots__ = ("cancelling", "expired", "task", "when")

    def __init__(self, task: asyncio.Task[Any], when: float) -> None:
        self.task = task
        self.when = when
        self.expired = False
        self.cancelling = task.cancelling()


class _Rest(Generic[T]):
    """Awaits the rest of a coroutine that has taken its first step and waits for `waiting`."""

    __slots__ = ("_coroutine", "_waiting")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waiting: Any) -> None:
        self._coroutine = coroutine
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, waiting = self._coroutine, self._waiting
        try:
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - handed on to the coroutine, as `await` does
                    waiting = coroutine.throw(error)
                else:
                    waiting = coroutine.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result


class Deadlines:
    """The timer of one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entries: set[_Entry] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._when = inf

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or TimeoutError after so many seconds."""
        try:
            waiting = work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        return await self.rest(seconds, work, waiting)

    async def rest(self, seconds: float, work: Coroutine[Any, Any, T], waiting: Any) -> T:
        """The result of work that has taken its first step and waits for `waiting`, or TimeoutError."""
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        if loop is not self._loop:
            self._loop, self._entries, self._timer, self._when = loop, set(), None, inf
        entry = _Entry(task, loop.time() + seconds)
        self._entries.add(entry)
        if entry.when < self._when:
            self._arm(loop, entry.when)
        try:
            return await _Rest(work, waiting)
        except asyncio.CancelledError:
            if entry.expired and task.uncancel() <= entry.cancelling:
                raise TimeoutError from None
            raise
        finally:
            self._entries.discard(entry)

    def _arm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._when = when
        self._timer = loop.call_at(when, self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer, self._when = loop.time(), None, inf
        for entry in self._entries:
            if not entry.expired and entry.when <= now:
                entry.expired = True
                entry.task.cancel()
        waiting = [entry.when for entry in self._entries if not entry.expired]
        if waiting:
            self._arm(loop, min(waiting))
