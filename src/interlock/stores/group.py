"""Group commit: one thread lands everything that is waiting in one transaction."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from interlock.errors import StoreError
from interlock.ports import Batch, Receipt

_MOST = 512

Answer = Receipt | StoreError
Waiting = tuple[Batch, "asyncio.Future[Any]"]


class GroupWriter:
    """Takes batches from any event loop; answers after the commit that made them durable."""

    def __init__(self, land: Callable[[Sequence[Batch]], list[Answer]]) -> None:
        self._land = land
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="interlock-writer", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> Receipt:
        """Wait until the batch is durable or refused."""
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put((batch, future))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # What was accepted will land: whoever is cancelled learns of it only after it has.
            while not future.done():
                try:
                    await asyncio.shield(future)
                except asyncio.CancelledError:
                    continue
                except StoreError:
                    break
            raise

    def close(self) -> None:
        """Land what was accepted, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            group, last = self._gather()
            if group:
                self._answer(group, self._land([batch for batch, _future in group]))
            if last:
                return

    def _gather(self) -> tuple[list[Waiting], bool]:
        item = self._queue.get()
        group: list[Waiting] = []
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

    @staticmethod
    def _answer(group: list[Waiting], answers: list[Answer]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Answer]]] = {}
        for (_batch, future), answer in zip(group, answers, strict=True):
            by_loop.setdefault(future.get_loop(), []).append((future, answer))
        for loop, pairs in by_loop.items():
            try:
                loop.call_soon_threadsafe(_resolve, pairs)
            except RuntimeError:  # the loop ended while we committed; what it asked for is durable all the same
                continue


def _resolve(pairs: list[tuple[asyncio.Future[Any], Answer]]) -> None:
    for future, answer in pairs:
        if future.done():
            continue
        if isinstance(answer, StoreError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
