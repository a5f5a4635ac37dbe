"""`interlock catalog worker`, `schedule` and `health`."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.output import console, notes, print_json, sanitize, table
from interlock.errors import ConfigError
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.cli.families import require_families
from interlock_catalog.enabled import select_enabled
from interlock_catalog.settings import Loaded, Settings, load_existing_catalog

if TYPE_CHECKING:
    from interlock_catalog.runner.health import Health


def register(actions: Any) -> None:
    worker = add_command(
        actions,
        "worker",
        run_worker,
        "carry queued and scheduled runs",
        "Carry runs until stopped. Runs of a"
        " worker that died are taken over within seconds; a worker that is started again under its name goes on"
        " where it was.",
    )
    worker.add_argument("--name", help="of this worker; each has its own (default: the machine's)")
    worker.add_argument("--port", type=int, help="also answer GET /health and POST /runs there, on this machine only")
    schedule = add_command(
        actions,
        "schedule",
        run_schedule,
        "have runs started by the clock",
        "Have runs started by the clock:"
        ' five fields as in cron ("0 3 * * *" is every night at three). Without a time, list the schedules.'
        " A worker has to be running.",
    )
    schedule.add_argument("cron", nargs="?", help='minute hour day month weekday, for example "0 3 * * *"')
    schedule.add_argument("--name", default="nightly", help="of the schedule (default: nightly)")
    schedule.add_argument("--zone", metavar="ZONE", help="time zone, such as Europe/Vienna (default: UTC)")
    schedule.add_argument("--apply", action="store_true", help="make the changes (default: a dry run)")
    schedule.add_argument("--shadow", action="store_true", help="a shadow run")
    schedule.add_argument("--family", action="append", default=[], metavar="SLUG", help="only this family (repeatable)")
    schedule.add_argument("--max-changes", type=int, metavar="N", help="changes of each run at most")
    schedule.add_argument("--remove", action="store_true", help="remove the schedule of that name")
    add_command(
        actions,
        "health",
        run_health,
        "check the health of the autopilot",
        "Age of the last run, length of the queue, failure"
        " rate, age of the oldest lock, whether the last run is degraded.",
    )


def run_worker(given: argparse.Namespace) -> int:
    """Carry runs until a signal comes."""
    from interlock_catalog.runner import worker

    loaded = load_existing_catalog(given.home, worker=given.name)

    def on_ready(name: str) -> None:
        notes().print(f"worker {sanitize(name)} is ready (stop it with Ctrl-C)")

    asyncio.run(worker.run_worker(loaded, port=given.port, on_ready=on_ready))
    return 0


def run_schedule(given: argparse.Namespace) -> int:
    """List, set or remove a schedule."""
    loaded = load_existing_catalog(given.home)
    settings = loaded.settings
    if given.remove:
        from interlock_catalog.runner.durable import delete_schedule

        delete_schedule(settings, given.name)
        print_json({"removed": given.name}) if given.json else console().print(f"removed {sanitize(given.name)}")
    elif given.cron is None:
        _print_schedules(given, settings)
    else:
        _put_schedule(given, loaded)
    return 0


def _print_schedules(given: argparse.Namespace, settings: Settings) -> None:
    from interlock_catalog.runner.durable import list_schedules

    found = list_schedules(settings)
    if given.json:
        print_json(found)
        return
    made = table("schedules", ("name", "cron", "zone", "mode", "families"))
    for item in found:
        request = item["request"] or {}
        families = ", ".join(request.get("families", ())) or "all"
        made.add_row(
            sanitize(item["name"]), item["cron"], item["zone"], str(request.get("mode", "dry_run")), sanitize(families)
        )
    console().print(made)


def _put_schedule(given: argparse.Namespace, loaded: Loaded) -> None:
    from interlock_catalog.runner.durable import put_schedule
    from interlock_catalog.runner.records import RunRequest

    settings = loaded.settings
    _require_time(given.cron, given.zone)
    asyncio.run(require_families(settings, given.family, given.home))
    if given.apply:
        # Refused now, when somebody reads it; where none is named, each run takes those that are enabled then.
        select_enabled(loaded, given.family, given.home)
    mode = "apply" if given.apply else "shadow" if given.shadow else "dry_run"
    request = RunRequest(
        run="",
        mode=mode,
        families=tuple(given.family),
        max_changes=settings.max_changes if given.max_changes is None else given.max_changes,
        by=f"schedule:{given.name}",
    )
    put_schedule(settings, given.name, given.cron, request, given.zone)
    if given.json:
        print_json({"name": given.name, "cron": given.cron, "request": msgspec.to_builtins(request)})
    else:
        console().print(f"{sanitize(given.name)}: {sanitize(given.cron)} ({mode}); a worker has to be running")


def _require_time(cron: str, zone: str | None) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from croniter import CroniterError, croniter

    # The engine also takes six fields, one of them for seconds: a slip there would start a run every second.
    if len(cron.split()) != 5:
        raise ConfigError(f'{cron!r} has {len(cron.split())} fields; cron has five, for example "0 3 * * *"')
    try:
        # From a fixed day: whether 30 February ever comes does not depend on today.
        croniter(cron, datetime(2026, 1, 1)).get_next(datetime)
    except (CroniterError, ValueError, KeyError) as error:
        raise ConfigError(f"{cron!r} is no time that ever comes: {error}") from None
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"there is no time zone {zone!r}; write for example Europe/Vienna") from None


def run_health(given: argparse.Namespace) -> int:
    """Show the health; an alarm is also told by the exit code."""
    found = asyncio.run(_check_health(given))
    if given.json:
        print_json(found)
    else:
        _print_health(found)
    return 0 if found.ok else 1


def _print_health(found: Health) -> None:
    out = console()
    out.print("[green]healthy[/]" if found.ok else "[red]not healthy[/]")
    for alarm in found.alarms:
        out.print(f"  [red]{sanitize(alarm)}[/]")
    last = "no run has ended yet"
    if found.last_run_age_s is not None:
        last = f"last run ended {found.last_run_age_s / 60:.0f} min ago ({found.last_run})"
    out.print(f"  {sanitize(last)}; {found.queue_depth} queued; under way on {', '.join(found.running) or '–'}")
    lock = "–" if found.lock_age_s is None else f"{found.lock_age_s:.0f} s"
    out.print(f"  failure rate {found.failure_rate:.0%}; oldest lock {lock}")
    for name, ago in found.workers.items():
        out.print(f"  worker {sanitize(name)}: {ago:.0f} s ago")


async def _check_health(given: argparse.Namespace) -> Health:
    from interlock_catalog.app import open_app
    from interlock_catalog.runner.health import check_health
    from interlock_catalog.runner.records import open_run_store

    loaded = load_existing_catalog(given.home)
    async with open_run_store(loaded.settings) as runs, open_app(loaded) as app:
        return await check_health(loaded.settings, runs, app.runtime)
