"""Ctrl-C: the command ends at once, but for what has begun in the world, which is waited for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_SAY_AFTER_S = 1.0  # most work ends at once, and then nothing need be explained
_WAITING = "interlock: stopping when it is known whether what was begun has landed (Ctrl-C again: do not wait)"


class _AbandonedThreads(ThreadPoolExecutor):
    """Threads that the end of the loop does not wait for: whatever matters was awaited before."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work. Ctrl-C cancels it, and is raised when the work has ended; the second one is raised at once.

    The engine shields an effect after its intent from being cancelled, so that may take as long as the effect.
    """
    with asyncio.Runner() as runner:
        return runner.run(_wait_for(work))


async def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    asyncio.get_running_loop().set_default_executor(_AbandonedThreads(thread_name_prefix="interlock-cli"))
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        _, running = await asyncio.wait({task}, timeout=_SAY_AFTER_S)
        if running:
            print(_WAITING, file=sys.stderr, flush=True)
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not print it: the interruption is what is told
        raise
    return task.result()
