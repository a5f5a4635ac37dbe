"""Timeouts for many awaits on one timer per event loop.

`asyncio.timeout` arms and cancels a timer of its own for every await, which costs several times what a short tool
does. Here an await is an entry in a set; one timer stands at the earliest deadline and looks through the entries when
it fires. The semantics are those of `asyncio.timeout`: the task is cancelled, and that becomes `Expired`.
The first step of a coroutine is taken before anything is armed: what never waits cannot be interrupted anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from math import inf
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Expired(TimeoutError):
    """Our deadline passed: not a TimeoutError that the work raised by itself."""


class Deadlines:
    """The timers of all event loops that use this runtime."""

    def __init__(self) -> None:
        self._timers: dict[asyncio.AbstractEventLoop, _Timer] = {}

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or `Expired` after so many seconds."""
        try:
            waiting = work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        return await self.rest(seconds, work, waiting)

    async def rest(self, seconds: float, work: Coroutine[Any, Any, T], waiting: Any) -> T:
        """The result of work that has taken its first step and waits for `waiting`, or `Expired`."""
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        timer = self._timers.get(loop) or self._timer_on(loop)
        entry = _Entry(task, loop.time() + seconds)
        timer.add(entry)
        try:
            return await _Rest(work, waiting)
        # Ours and nobody else's: if the task was also cancelled from outside, that is what it has to hear.
        except asyncio.CancelledError:
            if entry.expired and entry.settle():
                raise Expired from None
            raise
        finally:
            timer.entries.discard(entry)
            if entry.expired:
                entry.settle()

    def _timer_on(self, loop: asyncio.AbstractEventLoop) -> _Timer:
        """Of a loop that is new here; those that have ended are let go, as their timers would hold them for ever."""
        self._timers = {known: timer for known, timer in self._timers.items() if not known.is_closed()}
        return self._timers.setdefault(loop, _Timer(loop))


class _Entry:
    """One await and its deadline."""

    __slots__ = ("_cancelling", "_settled", "expired", "task", "when")

    def __init__(self, task: asyncio.Task[Any], when: float) -> None:
        self.task = task
        self.when = when
        self.expired = False
        self._cancelling = task.cancelling()  # cancellations that were pending before are not ours to take back
        self._settled = False

    def settle(self) -> bool:
        """Take our own cancellation back, once; whether nobody else has asked for one."""
        if not self._settled:
            self._settled = True
            return self.task.uncancel() <= self._cancelling
        return False


class _Timer:
    """The one timer of a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.entries: set[_Entry] = set()
        self._call_at = loop.call_at
        self._time = loop.time
        self._handle: asyncio.TimerHandle | None = None
        self._when = inf

    def add(self, entry: _Entry) -> None:
        """Watch an entry."""
        self.entries.add(entry)
        # The timer is moved only to an earlier time. One that stands for an entry which is gone fires once for nothing,
        # which is cheaper than cancelling it with every await.
        if entry.when < self._when:
            self._arm(entry.when)

    def _arm(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._when = when
        self._handle = self._call_at(when, self._fire)

    def _fire(self) -> None:
        now, self._handle, self._when = self._time(), None, inf
        for entry in self.entries:
            if not entry.expired and entry.when <= now:
                entry.expired = True
                entry.task.cancel()
        waiting = [entry.when for entry in self.entries if not entry.expired]
        if waiting:
            self._arm(min(waiting))


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
