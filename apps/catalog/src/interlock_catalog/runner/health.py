"""Health: how old the last run is, how long the queue, how many runs fail, how old the oldest lock is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from interlock import Runtime
from interlock.state import LOCK, ChangeFilter, ClaimState
from interlock_catalog.counts import format_count
from interlock_catalog.runner.records import BAD_STATUSES, Run, RunStore
from interlock_catalog.settings import Settings

_RECENT_RUNS = 20
_OLDEST_LOCK_S = 86_400.0
"""Locks are looked for among the claims of the last day, so that the whole history need not be read."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator wants to know, and what is wrong."""

    ok: bool = True
    alarms: tuple[str, ...] = ()
    last_run: str
    last_run_age_s: float | None
    queue_depth: int
    running: tuple[str, ...]
    """Workers on which a run is under way."""
    recent_runs: int
    failure_rate: float
    """Of the recent runs that ended, the share that failed or were degraded."""
    degradation: str
    """Why the last run is degraded; '' if it is not."""
    failed_families: dict[str, str] = {}
    """The families whose changes failed in the last run, and why; of those that crashed, `degradation` tells."""
    lock_age_s: float | None
    """Of the family that has been locked for the longest."""
    workers: dict[str, float]
    """Seconds since the last heartbeat of each worker."""


async def check_health(settings: Settings, runs: RunStore, runtime: Runtime | None) -> Health:
    """Measure, and compare with the alert_* settings; without a runtime, locks are not looked at."""
    from interlock_catalog.runner.durable import read_queue

    found = await runs.all(limit=200)
    queue = await asyncio.to_thread(read_queue, settings)
    ended = [run for run in found if run.ended][:_RECENT_RUNS]
    failures = sum(run.status in BAD_STATUSES for run in ended) / len(ended) if ended else 0.0
    health = Health(
        last_run=ended[0].id if ended else "",
        last_run_age_s=_age_s(ended[0]) if ended else None,
        queue_depth=queue.depth,
        running=queue.busy_workers,
        recent_runs=len(ended),
        failure_rate=round(failures, 3),
        degradation=ended[0].degradation if ended else "",
        failed_families=_find_failed(ended[0]) if ended else {},
        lock_age_s=None if runtime is None else await _lock_age_s(runtime),
        workers={name: round(time.time() - at, 1) for name, at in (await runs.heartbeats()).items()},
    )
    alarms = tuple(_alarms(health, settings))
    return msgspec.structs.replace(health, ok=not alarms, alarms=alarms)


def _alarms(health: Health, settings: Settings) -> Iterator[str]:
    age_s, lock_s = health.last_run_age_s, health.lock_age_s
    if age_s is None:
        yield "no run has ended yet"
    elif age_s > settings.alert_age_h * 3600:
        yield f"the last run ended {age_s / 3600:.1f} h ago (alert_age_h = {settings.alert_age_h:g})"
    if health.degradation:
        yield f"the last run ({health.last_run}) is degraded: {health.degradation}"
    if health.failed_families:
        (name, why), more = next(iter(health.failed_families.items())), len(health.failed_families) - 1
        others = f" and {format_count(more, 'other')}" if more else ""
        yield f"in the last run ({health.last_run}), {name}{others} failed{f': {why}' if why else ''}"
    if health.queue_depth > settings.alert_queue:
        wait = "run waits" if health.queue_depth == 1 else "runs wait"
        yield f"{health.queue_depth} {wait} (alert_queue = {settings.alert_queue})"
    if health.failure_rate > settings.alert_failures:
        share = f"{health.failure_rate:.0%} of the last {format_count(health.recent_runs, 'run')}"
        yield f"{share} failed (alert_failures = {settings.alert_failures})"
    if lock_s is not None and lock_s > settings.alert_lock_s:
        yield f"a family has been locked for {lock_s:.0f} s (alert_lock_s = {settings.alert_lock_s:g})"


def _find_failed(run: Run) -> dict[str, str]:
    return {result.family: result.reason for result in run.families if result.state == "failed" and not result.crashed}


def _age_s(run: Run) -> float:
    return round((datetime.now(UTC) - datetime.fromisoformat(run.ended)).total_seconds(), 1)


async def _lock_age_s(runtime: Runtime) -> float | None:
    claims = await runtime.store.claims(ChangeFilter(since_us=round((time.time() - _OLDEST_LOCK_S) * 1e6)))
    begun = [claim.at_us for claim in claims if claim.tool == LOCK and claim.state is ClaimState.OPEN]
    return round(time.time() - min(begun) / 1e6, 1) if begun else None
