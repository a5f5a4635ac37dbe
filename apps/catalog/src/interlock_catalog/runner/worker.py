"""A worker: a process that carries runs, gives a heartbeat, and takes over what a dead one has left."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable

from dbos import DBOS

from interlock_catalog.app import AppContext, open_app
from interlock_catalog.runner.durable import launch_engine
from interlock_catalog.runner.liveness import (
    ExecutorLocks,
    HeartbeatMonitor,
    open_executor_locks,
    require_unique_executor,
)
from interlock_catalog.runner.records import RunStore, open_run_store
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.sessions import end_transactions
from interlock_catalog.settings import Loaded

_LOG = logging.getLogger("interlock.catalog")
_HEARTBEAT_S = 1.0


async def run_worker(loaded: Loaded, *, port: int | None, on_ready: Callable[[str], None]) -> None:
    """Carry runs until a signal comes; a run that is under way then goes on where it was, here or elsewhere."""
    settings = loaded.settings
    name, locks = settings.worker_name, open_executor_locks(settings)
    require_unique_executor(locks, name)
    # Before anything is begun: a port that somebody else has is a mistake, and not the end of a worker at work.
    listener = None if port is None else _open_endpoint_listener(port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with open_run_store(settings, name) as runs, open_app(loaded, with_model=True, executor=name) as app:
            # The first heartbeat before the first run: a worker without one would be taken for dead by the others.
            await runs.record_heartbeat(name, time.time())
            async with launch_engine(RunSteps(app, runs, name), name, serves=True):
                tasks = [
                    asyncio.create_task(_keep_beating(runs, name)),
                    asyncio.create_task(_watch_others(app, runs, locks, name)),
                ]
                if listener is not None:
                    from interlock_catalog.runner.endpoint import serve_endpoint

                    tasks.append(asyncio.create_task(serve_endpoint(loaded, runs, listener)))
                on_ready(name)
                await stop.wait()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        locks.close()


def _open_endpoint_listener(port: int) -> socket.socket:
    from interlock_catalog.server.connections import open_listener

    return open_listener("127.0.0.1", port)  # on this machine only


async def _keep_beating(runs: RunStore, name: str) -> None:
    """From the loop itself: if that hangs, so does the worker, and the others should know."""
    while True:
        try:
            await runs.record_heartbeat(name, time.time())
        except Exception:  # noqa: BLE001 - as below
            _LOG.warning("the worker could not give a heartbeat", exc_info=True)
        await asyncio.sleep(_HEARTBEAT_S)


async def _watch_others(app: AppContext, runs: RunStore, locks: ExecutorLocks, me: str) -> None:
    """Take over the runs of executors that are gone (their lock is free) or stale (their heartbeat has stopped)."""
    monitor = HeartbeatMonitor(app.settings.stale_s)
    while True:
        await asyncio.sleep(_HEARTBEAT_S)
        try:
            under_way = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
            others = {str(item.executor_id) for item in under_way} - {me}
            stale = monitor.find_stale(await runs.heartbeats())
            for executor in sorted(others):
                await _take_over(app, locks, executor, is_stale=executor in stale)
        except Exception:  # noqa: BLE001 - a database that is away for a moment must not end the watch
            _LOG.warning("the watch could not look after the other workers", exc_info=True)


async def _take_over(app: AppContext, locks: ExecutorLocks, executor: str, *, is_stale: bool) -> None:
    """The lock of a dead executor is held meanwhile, so that it cannot be started again under our hands."""
    is_gone = locks.try_acquire(executor)
    # One that only hangs still has its lock. If it wakes up, its checkpoints are refused, and so are its changes.
    if not is_gone and not is_stale:
        return
    try:
        # What it holds inside a transaction would keep everybody waiting for as long as it stands still.
        if not is_gone:
            await asyncio.to_thread(end_transactions, app.databases, executor)
        # Private, hence the pinned version: unlike the public `resume`, several watchers may call it at once.
        found = await asyncio.to_thread(DBOS._recover_pending_workflows, [executor])
        _LOG.warning("took over %d runs of %s, which is %s", len(found), executor, "gone" if is_gone else "stale")
    finally:
        if is_gone:
            locks.release(executor)
