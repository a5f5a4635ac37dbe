"""Health: how old the last run is, how long the queue, how many runs fail, how old the oldest lock is."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import msgspec

from interlock import Runtime
from interlock.state import LOCK, ChangeFilter, ClaimState
from interlock_catalog.runner.record import Run, Runs
from interlock_catalog.settings import Loaded

_RECENT = 20
_LONGEST_S = 86_400.0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator wants to know, and what is wrong."""

    ok: bool
    alarms: tuple[str, ...]
    last_run: str
    last_run_age_s: float | None
    queue_depth: int
    running: tuple[str, ...]
    """Workers on which a run is under way."""
    failure_rate: float
    """Of the last runs that ended, those that did not succeed."""
    lock_age_s: float | None
    """Of the oldest lease of a family that is held."""
    workers: dict[str, float]
    """How long ago each worker gave a sign of life."""


async def health(loaded: Loaded, runs: Runs, runtime: Runtime | None) -> Health:
    """Look everywhere, and hold what is found against the settings."""
    from interlock_catalog.runner.durable import waiting

    settings, found = loaded.settings, await runs.all(limit=200)
    queued, busy = await asyncio.to_thread(waiting, loaded)
    ended = [run for run in found if run.ended][:_RECENT]
    failures = sum(run.status == "failed" for run in ended) / len(ended) if ended else 0.0
    age_s = _age_s(ended[0]) if ended else None
    lock_s = None if runtime is None else await _lock_age_s(runtime)
    beats = {name: round(time.time() - at, 1) for name, at in (await runs.beats()).items()}
    alarms = []
    if age_s is None:
        alarms.append("no run has ended yet")
    elif age_s > settings.alert_age_h * 3600:
        alarms.append(f"the last run ended {age_s / 3600:.1f} h ago (alert_age_h = {settings.alert_age_h:g})")
    if queued > settings.alert_queue:
        alarms.append(f"{queued} runs wait (alert_queue = {settings.alert_queue})")
    if failures > settings.alert_failures:
        alarms.append(
            f"{failures:.0%} of the last {len(ended)} runs failed (alert_failures = {settings.alert_failures})"
        )
    if lock_s is not None and lock_s > settings.alert_lock_s:
        alarms.append(f"a family has been held for {lock_s:.0f} s (alert_lock_s = {settings.alert_lock_s:g})")
    return Health(
        ok=not alarms,
        alarms=tuple(alarms),
        last_run=ended[0].id if ended else "",
        last_run_age_s=age_s,
        queue_depth=queued,
        running=tuple(busy),
        failure_rate=round(failures, 3),
        lock_age_s=lock_s,
        workers=beats,
    )


def _age_s(run: Run) -> float:
    return round((datetime.now(UTC) - datetime.fromisoformat(run.ended)).total_seconds(), 1)


async def _lock_age_s(runtime: Runtime) -> float | None:
    """How long the oldest lease has been held."""
    claims = await runtime.store.claims(ChangeFilter(since_us=round((time.time() - _LONGEST_S) * 1e6)))
    held = [claim.at_us for claim in claims if claim.tool == LOCK and claim.state is ClaimState.OPEN]
    return round(time.time() - min(held) / 1e6, 1) if held else None
