"""`interlock catalog worker`, `schedule` and `health`."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import msgspec

from interlock.cli.output import console, notes, print_json, shown, table
from interlock.errors import ConfigError
from interlock_catalog.cli.common import add, loaded_of
from interlock_catalog.runner.record import Order


def register(actions: Any) -> None:
    """Add the commands."""
    worker = add(
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
    schedule = add(
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
    schedule.add_argument("--max-changes", type=int, metavar="N")
    schedule.add_argument("--remove", action="store_true", help="remove the schedule of that name")
    add(
        actions,
        "health",
        run_health,
        "is the autopilot well?",
        "Age of the last run, length of the queue, failure"
        " rate, age of the oldest lock. Exit 1 if something is beyond its alert_* setting.",
    )


def run_worker(given: argparse.Namespace) -> int:
    """Until a signal comes."""
    from interlock_catalog.runner.worker import serve

    loaded = loaded_of(given, worker=given.name)

    def ready(name: str) -> None:
        notes().print(f"worker {shown(name)} is ready (stop it with Ctrl-C)")

    asyncio.run(serve(loaded, port=given.port, ready=ready))
    return 0


def run_schedule(given: argparse.Namespace) -> int:
    """List, set or remove."""
    from interlock_catalog.runner import durable

    loaded = loaded_of(given)
    if given.remove:
        durable.unschedule(loaded, given.name)
        print_json({"removed": given.name}) if given.json else console().print(f"removed {shown(given.name)}")
        return 0
    if given.cron is None:
        found = durable.schedules(loaded)
        if given.json:
            print_json(found)
            return 0
        made = table("schedules", ("name", "cron", "zone", "mode", "families"))
        for item in found:
            order = item["order"] or {}
            mode = str(order.get("mode", "dry_run"))
            made.add_row(
                shown(item["name"]), item["cron"], item["zone"], mode, ", ".join(order.get("families", ())) or "all"
            )
        console().print(made)
        return 0
    _refuse_bad(given.cron, given.zone)
    most = loaded.settings.max_changes if given.max_changes is None else given.max_changes
    mode = "apply" if given.apply else "shadow" if given.shadow else "dry_run"
    order = Order(run="", mode=mode, families=tuple(given.family), max_changes=most, by=f"schedule:{given.name}")
    durable.schedule(loaded, given.name, given.cron, order, given.zone)
    if given.json:
        print_json({"name": given.name, "cron": given.cron, "order": msgspec.to_builtins(order)})
    else:
        console().print(f"{shown(given.name)}: {shown(given.cron)} ({mode}); a worker has to be running")
    return 0


def _refuse_bad(cron: str, zone: str | None) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from croniter import CroniterError, croniter

    if len(cron.split()) != 5:
        raise ConfigError(f'{cron!r} has {len(cron.split())} fields; cron has five, for example "0 3 * * *"')
    try:
        croniter(cron, datetime(2026, 1, 1)).get_next(datetime)
    except (CroniterError, ValueError, KeyError) as error:
        raise ConfigError(f"{cron!r} is no time that ever comes: {error}") from None
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"there is no time zone {zone!r}; write for example Europe/Vienna") from None


def run_health(given: argparse.Namespace) -> int:
    """Look, and raise the alarm by the exit code."""
    found = asyncio.run(_health(given))
    if given.json:
        print_json(found)
        return 0 if found.ok else 1
    out = console()
    out.print("[green]well[/]" if found.ok else "[red]not well[/]")
    for alarm in found.alarms:
        out.print(f"  [red]{shown(alarm)}[/]")
    age = "never" if found.last_run_age_s is None else f"{found.last_run_age_s / 60:.0f} min ago ({found.last_run})"
    out.print(
        f"  last run ended {shown(age)}; {found.queue_depth} queued; under way on {', '.join(found.running) or '–'}"
    )
    lock = "–" if found.lock_age_s is None else f"{found.lock_age_s:.0f} s"
    out.print(f"  failure rate {found.failure_rate:.0%}; oldest lock {lock}")
    for name, ago in found.workers.items():
        out.print(f"  worker {shown(name)}: {ago:.0f} s ago")
    return 0 if found.ok else 1


async def _health(given: argparse.Namespace) -> Any:
    from interlock_catalog.app import opened
    from interlock_catalog.runner.health import health
    from interlock_catalog.runner.record import Runs

    loaded = loaded_of(given)
    runs = Runs(loaded.url("engine"))
    try:
        async with opened(loaded) as shop:
            return await health(loaded, runs, shop.runtime)
    finally:
        await runs.close()
