"""`interlock catalog worker`: a process that carries runs, beats, and takes over what a dead one has left."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable

from dbos import DBOS

from interlock_catalog.app import opened
from interlock_catalog.runner.alive import Locks, Watch, locks_of, only_one
from interlock_catalog.runner.durable import launched
from interlock_catalog.runner.record import Runs
from interlock_catalog.runner.work import Work
from interlock_catalog.settings import Loaded

_LOG = logging.getLogger("interlock.catalog")
_EVERY_S = 1.0


async def serve(loaded: Loaded, *, port: int | None, ready: Callable[[str], None]) -> None:
    """Carry runs until a signal comes; a run that is under way then goes on where it was, here or elsewhere."""
    name, locks = loaded.worker, locks_of(loaded)
    only_one(locks, name)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runs = Runs(loaded.url("engine"))
    try:
        async with opened(loaded, judges=True) as shop:
            await runs.beat(name, time.time())
            async with launched(Work(shop, runs, name), loaded, name, serves=True):
                tasks = [asyncio.create_task(_beat(runs, name)), asyncio.create_task(_watch(loaded, runs, locks, name))]
                if port is not None:
                    from interlock_catalog.runner.endpoint import endpoint

                    tasks.append(asyncio.create_task(endpoint(loaded, runs, port)))
                ready(name)
                await stop.wait()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await runs.close()
        locks.close()


async def _beat(runs: Runs, name: str) -> None:
    """From the loop itself: if that hangs, so does the worker, and the others should know."""
    while True:
        await runs.beat(name, time.time())
        await asyncio.sleep(_EVERY_S)


async def _watch(loaded: Loaded, runs: Runs, locks: Locks, me: str) -> None:
    """Take over the runs of executors that are gone (their lock is free) or silent (their beat has stopped)."""
    watch = Watch(loaded.settings.stale_s)
    while True:
        await asyncio.sleep(_EVERY_S)
        try:
            under_way = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
            others = {str(item.executor_id) for item in under_way} - {me}
            silent = watch.silent(await runs.beats())
            for executor in sorted(others):
                await _take_over(locks, executor, executor in silent)
        except Exception:  # noqa: BLE001 - a database that is away for a moment must not end the watch
            _LOG.warning("the watch could not look after the other workers", exc_info=True)


async def _take_over(locks: Locks, executor: str, silent: bool) -> None:
    gone = locks.take(executor)
    if not gone and not silent:
        return
    try:
        found = await asyncio.to_thread(DBOS._recover_pending_workflows, [executor])
        _LOG.warning("took over %d runs of %s, which is %s", len(found), executor, "gone" if gone else "silent")
    finally:
        if gone:
            locks.give(executor)
