"""Group commit: one thread lands everything that is waiting in one transaction."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from interlock.errors import StoreError
from interlock.ports import Faults, note_receipt
from interlock.transitions import Batch, Committed, Receipt

_MOST = 512
_CLOSED = "the store is closed"

Answer = Receipt | StoreError


class _Waiting(msgspec.Struct, eq=False):
    """A batch, and the future its caller waits on; touched only on the caller's loop once it is queued."""

    batch: Batch
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    late: Answer | None = None


class GroupWriter:
    """Takes batches from any event loop; answers after the commit that made them durable."""

    def __init__(self, land: Callable[[Sequence[Batch]], list[Answer]], faults: Faults | None = None) -> None:
        self._land = land
        self._faults = faults
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="interlock-writer", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> Receipt:
        """Wait until the batch is durable or refused."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(batch, loop, loop.create_future())
        if os.getpid() != self._process:
            raise StoreError("the store was opened before this process was forked; open the runtime in the child")
        if self._closed:
            raise StoreError(_CLOSED)
        self._queue.put(waiting)
        if self._closed and not self._thread.is_alive():  # closed between the two lines above
            self._refuse_rest()
        if self._faults is not None:
            self._faults.at("store.queued")
        try:
            answer: Answer = await waiting.future
        except asyncio.CancelledError as interrupt:
            note_receipt(interrupt, await self._until_landed(waiting))
            raise
        if type(answer) is Committed:
            return answer
        if isinstance(answer, StoreError):
            raise answer
        return answer

    async def _until_landed(self, waiting: _Waiting) -> Answer:
        """What was accepted will land: whoever is cancelled learns of it only after it has."""
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

    def close(self) -> None:
        """Land what was accepted, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Answer what came too late for the thread; whoever finds an item here is the only one who does."""
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                _answer([item], [StoreError(_CLOSED)])

    def _work(self) -> None:
        while True:
            # Whatever queued up while the last group was being written goes into one commit.
            group, last = self._gather()
            if group:
                _answer(group, self._land([waiting.batch for waiting in group]))
            if last:
                return

    def _gather(self) -> tuple[list[_Waiting], bool]:
        item = self._queue.get()
        group: list[_Waiting] = []
        while True:
            if item is None:
                return group, True
            group.append(item)
            if len(group) >= _MOST:
                return group, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, False


def _answer(group: list[_Waiting], answers: list[Answer]) -> None:
    """One call into each loop for everything it waits for."""
    everybody = list(zip(group, answers, strict=True))
    for loop in {waiting.loop for waiting in group}:
        pairs = [pair for pair in everybody if pair[0].loop is loop]
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:  # the loop ended while we committed; what it asked for is durable all the same
            continue


def _resolve(pairs: list[tuple[_Waiting, Answer]]) -> None:
    for waiting, answer in pairs:
        if waiting.future.done():  # cancelled, and its task has not run yet
            waiting.late = answer
        else:
            waiting.future.set_result(answer)
