"""The order of a run's work: families side by side, what belongs to none after them, and what went wrong once more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from interlock_catalog.runner.records import FamilyResult
from interlock_catalog.runner.work_items import WorkItem

T = TypeVar("T")


async def carry_out(
    lanes: int, work: Sequence[WorkItem], start: Callable[[WorkItem], Awaitable[FamilyResult]]
) -> list[FamilyResult]:
    """The results of all work, in its order. What failed is tried once more at the end, when its cause may be gone."""
    found = dict(zip(work, await _carry_out_once(lanes, work, start), strict=True))
    again = [item for item, result in found.items() if result.is_worth_retrying]
    found |= zip(again, await _carry_out_once(lanes, again, start), strict=True)
    return list(found.values())


async def _carry_out_once(
    lanes: int, work: Sequence[WorkItem], start: Callable[[WorkItem], Awaitable[FamilyResult]]
) -> list[FamilyResult]:
    families = [item for item in work if item.is_family]
    found = dict(zip(families, await run_bounded(lanes, families, start), strict=True))
    # Orphans and searches last and one by one: they change families all over the catalog, each under its lock.
    for item in work:
        if not item.is_family:
            found[item] = await start(item)
    return [found[item] for item in work]


async def run_bounded(lanes: int, items: Sequence[T], start: Callable[[T], Awaitable[Any]]) -> list[Any]:
    """Start one step for each item, in order, so many at a time; once the run is not ours any more, no further one.

    The order in which steps start is what the engine knows them by: nothing is awaited between two of them but a lane.
    """
    lane, tasks, lost = asyncio.Semaphore(lanes), list[asyncio.Task[Any]](), list[BaseException]()

    def finish(task: asyncio.Task[Any]) -> None:
        lane.release()
        error = None if task.cancelled() else task.exception()
        # A run that is cancelled, or that another worker has taken over, is told by a BaseException (dbos/_error.py).
        if error is not None and not isinstance(error, Exception):
            lost.append(error)

    for item in items:
        await lane.acquire()
        if lost:
            break
        task = asyncio.ensure_future(start(item))
        task.add_done_callback(finish)
        tasks.append(task)
    # All are waited for before anything is raised: no step may go on changing things behind a run that has ended.
    results = await asyncio.gather(*tasks, return_exceptions=True)
    if lost:
        raise lost[0]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return list(results)
