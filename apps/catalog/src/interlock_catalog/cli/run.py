"""`interlock catalog run`, `runs`, `show` and `repairs`."""

from __future__ import annotations

import argparse
import asyncio
import getpass
from pathlib import Path
from typing import Any

import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from interlock.cli.output import console, notes, print_json, shown
from interlock.errors import ConfigError
from interlock_catalog.cli.common import add, loaded_of
from interlock_catalog.runner.record import Order, Run
from interlock_catalog.settings import Loaded


def register(actions: Any) -> None:
    """Add the commands."""
    run = add(
        actions,
        "run",
        run_run,
        "look at the catalog, and mend it",
        "Go through families, find what is wrong,"
        " and plan (--dry-run, the default), make (--apply) or only compare (--shadow) the changes. A run that was"
        " cut short goes on with --resume RUN.",
    )
    mode = run.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", dest="mode", action="store_const", const="dry_run", help="plan only (default)")
    mode.add_argument("--apply", dest="mode", action="store_const", const="apply", help="make the changes")
    mode.add_argument("--shadow", dest="mode", action="store_const", const="shadow", help="plan, to compare later")
    run.add_argument("--family", action="append", default=[], metavar="SLUG", help="only this family (repeatable)")
    run.add_argument("--max-changes", type=int, metavar="N", help="make at most so many; the rest is for the next run")
    run.add_argument("--model", help="who judges: none, local, provider:name")
    run.add_argument("--record", metavar="FILE", help="add the model's answers to a file")
    run.add_argument("--replay", metavar="FILE", help="take the model's answers from a file")
    run.add_argument("--no-scout", action="store_true", help="leave the failed searches alone")
    run.add_argument("--queue", action="store_true", help="leave it to a worker, and do not wait")
    run.add_argument("--resume", metavar="RUN", help="go on with a run that was cut short")
    run.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    run.add_argument("--all", action="store_true", help="show every change")
    runs = add(actions, "runs", run_runs, "list the runs")
    runs.add_argument("--newest", type=int, default=20, metavar="N", help="how many (default 20)")
    show = add(actions, "show", run_show, "show what a run did, and why")
    show.add_argument("run_id", metavar="RUN")
    show.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    show.add_argument("--all", action="store_true", help="show every change")
    show.add_argument("--journal", action="store_true", help="the bare journal entries, as JSON")
    repairs = add(
        actions,
        "repairs",
        run_repairs,
        "export what a run refused, or hand it in again",
        "Without --submit,"
        " write what a run refused (and why) to a file, a line each. Mend the arguments there, and hand the file"
        " in again with --submit.",
    )
    repairs.add_argument("file", type=Path)
    repairs.add_argument("--run", dest="run_id", metavar="RUN", help="whose (default: the last run's)")
    repairs.add_argument("--submit", action="store_true", help="hand in what the file holds")
    repairs.add_argument("--apply", action="store_true", help="with --submit: make the changes, do not only plan them")


def run_run(given: argparse.Namespace) -> int:
    """One run, here or on a worker."""
    from interlock_catalog.runner.ids import new_run

    overrides = {"model": given.model, "record": given.record, "replay": given.replay}
    loaded = loaded_of(given, **overrides)
    if given.max_changes is not None and given.max_changes < 0:
        raise ConfigError("--max-changes is zero or more")
    most = loaded.settings.max_changes if given.max_changes is None else given.max_changes
    order = Order(
        run=given.resume or new_run(),
        mode=given.mode or "dry_run",
        families=tuple(given.family),
        max_changes=most,
        scout=not given.no_scout,
        by=f"person:{getpass.getuser()}",
    )
    if given.queue:
        from interlock_catalog.runner.durable import enqueue

        enqueue(loaded, order)
        print_json({"run": order.run}) if given.json else console().print(f"queued as {shown(order.run)}")
        return 0
    run, report = asyncio.run(_run(loaded, order, resume=bool(given.resume)))
    _show(given, run, report)
    return {"succeeded": 0, "partial": 1}.get(run.status, 1)


async def _run(loaded: Loaded, order: Order, *, resume: bool) -> tuple[Run, Any]:
    from interlock_catalog.report.gather import gathered
    from interlock_catalog.runner.foreground import run_in_foreground

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes(),
        transient=True,
    ) as bar:
        task = bar.add_task("starting", total=None)

        def tell(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name[:30].ljust(30))

        async with run_in_foreground(loaded, order, tell, resume=resume) as (run, shop):
            return run, await gathered(shop.runtime, run)


def _show(given: argparse.Namespace, run: Run, report: Any) -> None:
    if given.html is not None:
        from interlock_catalog.report.page import page

        given.html.write_text(page(report), encoding="utf-8")
        notes().print(f"[dim]page: {shown(given.html)}[/]")
    if given.json:
        print_json(msgspec.to_builtins(report))
        return
    from interlock_catalog.report.terminal import show

    show(console(), report, every=given.all)
    if run.mode == "apply" and run.counts.get("ok"):
        console().print(f"  [dim]take it back: interlock undo --run {shown(run.id)}[/]")


def run_runs(given: argparse.Namespace) -> int:
    """The runs, newest first."""
    found = asyncio.run(_runs(loaded_of(given), given.newest))
    if given.json:
        print_json([{**msgspec.to_builtins(run), "families": len(run.families)} for run in found])
        return 0
    from interlock_catalog.report.terminal import runs_table

    runs_table(console(), found)
    return 0


async def _runs(loaded: Loaded, newest: int) -> list[Run]:
    from interlock_catalog.runner.record import Runs

    runs = Runs(loaded.url("engine"))
    try:
        return await runs.all(limit=newest)
    finally:
        await runs.close()


def run_show(given: argparse.Namespace) -> int:
    """One run."""
    loaded = loaded_of(given)
    run, report, journal = asyncio.run(_report(loaded, given.run_id))
    if given.journal:
        print_json(journal)
        return 0
    _show(given, run, report)
    return 0


async def _report(loaded: Loaded, name: str) -> tuple[Run, Any, list[Any]]:
    from interlock_catalog.app import opened
    from interlock_catalog.report.gather import gathered
    from interlock_catalog.runner.record import Runs

    runs = Runs(loaded.url("engine"))
    try:
        run = await runs.get(name)
    finally:
        await runs.close()
    async with opened(loaded) as shop:
        journal = [
            msgspec.to_builtins(entry)
            for turn in run.turns
            async for entry in shop.runtime.operations.journal(turn=turn)
        ]
        return run, await gathered(shop.runtime, run), journal


def run_repairs(given: argparse.Namespace) -> int:
    """Export refused payloads, or hand them in again."""
    from interlock_catalog.repairs import exported, submitted

    loaded = loaded_of(given)
    if not given.submit:
        count = asyncio.run(exported(loaded, given.run_id, given.file))
        print_json({"file": str(given.file), "refused": count}) if given.json else console().print(
            f"{shown(given.file)}: {count} refused; mend the arguments, then --submit"
        )
        return 0
    done = asyncio.run(submitted(loaded, given.file, "apply" if given.apply else "dry_run"))
    if given.json:
        print_json(done)
    else:
        for item in done["items"]:
            console().print(f"  {item['status']}  {shown(item['tool'])}  [dim]{shown(item['reason'])}[/]")
        console().print(f"run {shown(done['run'])}")
    return 0 if all(item["status"] in ("ok", "planned") for item in done["items"]) else 1
