"""Group commit: one thread lands everything that is waiting in one transaction."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import msgspec

from interlock.errors import StoreBusy, StoreError, StoreSilent
from interlock.ports import GIVEN_UP_S, Faults, note_receipt
from interlock.transitions import Batch, Committed, Receipt

_MOST = 512
_MOST_WAITING = 10_000
"""More batches than that behind a database that does not answer are not taken."""
_CLOSED = "the store is closed"

Answer = Receipt | StoreError


class _Forks:
    """How often this process was forked from another one: to ask for its number is a call of the system, each time."""

    count = 0

    def add(self) -> None:
        """In the child."""
        self.count += 1


_forks = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forks.add)


class _Waiting(msgspec.Struct, eq=False):
    """A batch, and the future its caller waits on; touched only on the caller's loop once it is queued."""

    batch: Batch
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    wait_s: float
    until: float
    """By the clock of the loop."""
    late: Answer | None = None


class _Patience:
    """Those who wait on one loop. One timer stands at the end of the shortest wait: one for each batch, set and
    cancelled, takes as long as its row."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waiting: set[_Waiting] = set()
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._when = inf

    def add(self, waiting: _Waiting) -> None:
        """Somebody waits."""
        self.waiting.add(waiting)
        if waiting.until < self._when:  # never to a later time: one that stands for nobody fires once, for nothing
            self._set(waiting.until)

    def hurry(self, waiting: _Waiting, wait_s: float) -> None:
        """Somebody waits no longer than that from now on."""
        until = self._loop.time() + wait_s
        if until < waiting.until:
            waiting.wait_s, waiting.until = wait_s, until
            self.add(waiting)

    def _set(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._when, self._timer = when, self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer, self._when = None, inf
        late = [waiting for waiting in self.waiting if waiting.until <= self._loop.time()]
        self.waiting.difference_update(late)
        for waiting in late:
            _give_up(waiting)
        if self.waiting:
            self._set(min(waiting.until for waiting in self.waiting))


class GroupWriter:
    """Takes batches from any event loop; answers after the commit that made them durable."""

    def __init__(
        self, land: Callable[[Sequence[Batch]], list[Answer]], patience_s: float, faults: Faults | None = None
    ) -> None:
        self._land = land
        self._patience_s = patience_s
        self._faults = faults
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._patience: dict[asyncio.AbstractEventLoop, _Patience] = {}
        self._forks = _forks.count
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="interlock-writer", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> Receipt:
        """Wait until the batch is durable or refused."""
        loop = asyncio.get_running_loop()
        wait_s = self._patience_s if batch.wait_s is None else batch.wait_s
        waiting = _Waiting(batch, loop, loop.create_future(), wait_s, loop.time() + wait_s)
        if _forks.count != self._forks:
            raise StoreError("the store was opened before this process was forked; open the runtime in the child")
        if self._closed:
            raise StoreError(_CLOSED)
        if self._queue.qsize() >= _MOST_WAITING:
            raise StoreBusy(f"{_MOST_WAITING} commits wait for the store, which does not answer; try again later")
        self._queue.put(waiting)
        if self._closed and not self._thread.is_alive():  # closed between the two lines above
            self._refuse_rest()
        if self._faults is not None:
            self._faults.at("store.queued")
        patience = self._patience.get(loop) or self._patience_on(loop)
        patience.add(waiting)
        try:
            answer: Answer = await waiting.future
        except asyncio.CancelledError as interrupt:
            patience.hurry(waiting, GIVEN_UP_S)
            note_receipt(interrupt, await self._until_landed(waiting))
            raise
        finally:
            patience.waiting.discard(waiting)
        if type(answer) is Committed:
            return answer
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def _patience_on(self, loop: asyncio.AbstractEventLoop) -> _Patience:
        """Of a loop that is new here; those that have ended are let go."""
        with self._lock:
            alive = {known: patience for known, patience in self._patience.items() if not known.is_closed()}
            self._patience = alive | {loop: _Patience(loop)}
            return self._patience[loop]

    async def _until_landed(self, waiting: _Waiting) -> Answer:
        """What was accepted will land: whoever is cancelled learns of it after it has, or when its time is up."""
        if self._faults is not None:
            self._faults.at("store.cancelled")
        while waiting.late is None:
            if waiting.future.done() and not waiting.future.cancelled():  # answered and cancelled in one pass
                break
            waiting.future = waiting.loop.create_future()
            try:
                await waiting.future
            except asyncio.CancelledError:
                continue
        answer: Answer = waiting.future.result() if waiting.late is None else waiting.late
        return answer

    def close(self) -> bool:
        """Land what was accepted, then end the thread; whether it has ended, or hangs in a database that does."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join(self._patience_s)
        self._refuse_rest()
        return not self._thread.is_alive()

    def _refuse_rest(self) -> None:
        """Answer what came too late for the thread; whoever finds an item here is the only one who does."""
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is not None:
                _answer([item], [StoreError(_CLOSED)])
        self._queue.put(None)  # for a thread that comes back from a database that hung

    def _work(self) -> None:
        while True:
            # Whatever queued up while the last group was being written goes into one commit.
            group, last = self._gather()
            if group:
                _answer(group, self._land([waiting.batch for waiting in group]))
            if last:
                return

    def _gather(self) -> tuple[list[_Waiting], bool]:
        group: list[_Waiting] = []
        # Whoever empties the queue at the end leaves a None in it: what is waited for here comes.
        while (item := self._queue.get()) is not None:
            group.append(item)
            if len(group) >= _MOST or self._queue.empty():
                return group, False
        return group, True


def _answer(group: list[_Waiting], answers: list[Answer]) -> None:
    """One call into each loop for everything it waits for."""
    everybody = list(zip(group, answers, strict=True))
    loops = {waiting.loop for waiting in group}
    for loop in loops:
        pairs = everybody if len(loops) == 1 else [pair for pair in everybody if pair[0].loop is loop]
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:  # the loop ended while we committed; what it asked for is durable all the same
            continue


def _give_up(waiting: _Waiting) -> None:
    """Its caller has waited long enough. It stays in line: nobody can take back what a database may be writing."""
    silent = StoreSilent(
        f"the store gave no answer within {waiting.wait_s:.3g} s: it is not known whether it was written"
    )
    if waiting.future.done():
        waiting.late = waiting.late or silent
    else:
        waiting.future.set_result(silent)


def _resolve(pairs: list[tuple[_Waiting, Answer]]) -> None:
    for waiting, answer in pairs:
        if waiting.future.done():  # cancelled, and its task has not run yet
            waiting.late = answer
        else:
            waiting.future.set_result(answer)
