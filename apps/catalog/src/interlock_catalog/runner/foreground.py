"""A run in this very process, for whoever waits for it: on the same engine, so that a worker can finish it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from interlock_catalog.app import Shop, opened
from interlock_catalog.runner.alive import locks_of, only_one
from interlock_catalog.runner.durable import launched, run_here
from interlock_catalog.runner.record import Order, Run, Runs
from interlock_catalog.runner.work import Work
from interlock_catalog.settings import Loaded

Tell = Callable[[int, int, str], None]


@asynccontextmanager
async def run_in_foreground(
    loaded: Loaded, order: Order, tell: Tell, *, resume: bool = False
) -> AsyncIterator[tuple[Run, Shop]]:
    """Run to the end, and give the record with everything still open."""
    executor, locks = f"cli-{order.run}", locks_of(loaded)
    only_one(locks, executor)
    runs = Runs(loaded.url("engine"))
    try:
        if resume:
            await runs.get(order.run)
        async with opened(loaded, judges=True) as shop:
            work = Work(shop, runs, executor, tell)
            async with launched(work, loaded, executor, serves=False):
                run = await run_here(order)
            yield run, shop
    finally:
        await runs.close()
        locks.close()
