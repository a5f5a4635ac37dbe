"""`interlock catalog run`, `runs`, `show` and `rejected`."""

from __future__ import annotations

import argparse
import asyncio
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.output import console, notes, print_json, sanitize
from interlock.errors import ConfigError
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.cli.families import require_families
from interlock_catalog.cli.suggestions import catalog_commands, ledger_commands, naming_a_run
from interlock_catalog.enabled import select_enabled
from interlock_catalog.settings import Loaded, load_existing_catalog

if TYPE_CHECKING:
    from interlock_catalog.report.change_report import ChangeReport
    from interlock_catalog.runner.records import Run, RunRequest


def register(actions: Any) -> None:
    run = add_command(
        actions,
        "run",
        run_run,
        "check the catalog, and fix it",
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
    run.add_argument("--model", help="the model that judges: none, local, provider:name")
    run.add_argument("--record", metavar="FILE", help="add the model's replies to a file")
    run.add_argument("--replay", metavar="FILE", help="take the model's replies from a file")
    run.add_argument("--no-scout", action="store_true", help="leave the failed searches alone")
    run.add_argument("--queue", action="store_true", help="leave it to a worker, and do not wait")
    run.add_argument("--resume", metavar="RUN", help="go on with a run that was cut short")
    run.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    run.add_argument("--all", action="store_true", help="show every change")
    runs = add_command(actions, "runs", run_runs, "list the runs")
    runs.add_argument("--newest", type=int, default=20, metavar="N", help="how many (default 20)")
    show = add_command(actions, "show", run_show, "show what a run did, and why")
    show.add_argument("run_id", metavar="RUN")
    show.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    show.add_argument("--all", action="store_true", help="show every change")
    show.add_argument("--journal", action="store_true", help="the bare journal entries, as JSON")
    _register_rejected(actions)


def _register_rejected(actions: Any) -> None:
    rejected = add_command(
        actions,
        "rejected",
        run_rejected,
        "export what a run rejected, or submit it again",
        "Without --submit,"
        " write what a run rejected (and why) to a file, a line each. Correct the arguments there, and submit the"
        " file again with --submit.",
    )
    rejected.add_argument("file", type=Path)
    rejected.add_argument("--run", dest="run_id", metavar="RUN", help="whose (default: the last run's)")
    rejected.add_argument("--submit", action="store_true", help="submit what the file holds")
    rejected.add_argument("--apply", action="store_true", help="with --submit: make the changes, do not only plan them")


def run_run(given: argparse.Namespace) -> int:
    """One run, here or on a worker."""
    from interlock_catalog.runner.ids import new_run_id
    from interlock_catalog.runner.records import GOOD_STATUSES, RunRequest

    loaded = load_existing_catalog(given.home, model=given.model, record=given.record, replay=given.replay)
    if given.max_changes is not None and given.max_changes < 0:
        raise ConfigError("--max-changes is zero or more")
    _try_page(given.html)
    asyncio.run(
        require_families(loaded.settings, given.family, given.home)
    )  # a mistyped one is a mistake, and not a failed run
    applies = given.mode == "apply" and not given.resume
    families = select_enabled(loaded, given.family, given.home) if applies else tuple(given.family)
    request = RunRequest(
        run=given.resume or new_run_id(),
        mode=given.mode or "dry_run",
        families=families,
        max_changes=loaded.settings.max_changes if given.max_changes is None else given.max_changes,
        scout=not given.no_scout,
        by=f"person:{getpass.getuser()}",
    )
    if given.queue:
        from interlock_catalog.runner.durable import enqueue_run

        enqueue_run(loaded.settings, request)
        print_json({"run": request.run}) if given.json else console().print(f"queued as {sanitize(request.run)}")
        return 0
    with naming_a_run(given):
        report = asyncio.run(_run_here(loaded, request, resume=bool(given.resume)))
    _print_report(given, loaded, report)
    return 0 if report.run.status in GOOD_STATUSES else 1


def _try_page(file: Path | None) -> None:
    """Whether a page can be written there is found out before a run: afterwards its report would be lost."""
    if file is None:
        return
    existed = file.exists()
    try:
        with file.open("ab"):
            pass
    except OSError as error:
        raise ConfigError(f"--html {file}: nothing can be written there: {error.strerror}; nothing was done") from None
    if not existed:
        file.unlink()


async def _run_here(loaded: Loaded, request: RunRequest, *, resume: bool) -> ChangeReport:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from interlock_catalog.report.change_report import build_report
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

        def on_progress(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name[:30].ljust(30))

        async with run_in_foreground(loaded, request, on_progress, resume=resume) as finished:
            return await build_report(finished.app.runtime, finished.run)


def _print_report(given: argparse.Namespace, loaded: Loaded, report: ChangeReport) -> None:
    if given.html is not None:
        from interlock_catalog.report.html import render_html

        given.html.write_text(render_html(report), encoding="utf-8")
        notes().print(f"[dim]page: {sanitize(given.html)}[/]")
    if given.json:
        print_json(msgspec.to_builtins(report))
        return
    from interlock_catalog.report.terminal import print_report

    suggest = ledger_commands(given, loaded)
    print_report(console(), report, suggest, catalog_commands(given), every=given.all)
    if report.run.mode == "apply" and report.run.counts.get("ok"):
        console().print(f"  [dim]undo it: {sanitize(suggest(f'undo --run {report.run.id}'))}[/]")


def run_runs(given: argparse.Namespace) -> int:
    """The runs, newest first."""
    found = asyncio.run(_read_runs(load_existing_catalog(given.home), given.newest))
    if given.json:
        print_json([{**msgspec.to_builtins(run), "families": len(run.family_results)} for run in found])
        return 0
    from interlock_catalog.report.terminal import print_runs

    print_runs(console(), found)
    return 0


async def _read_runs(loaded: Loaded, newest: int) -> list[Run]:
    from interlock_catalog.runner.records import open_run_store

    async with open_run_store(loaded.settings) as runs:
        return await runs.all(limit=newest)


def run_show(given: argparse.Namespace) -> int:
    """One run: its report, or its journal."""
    loaded = load_existing_catalog(given.home)
    _try_page(given.html)
    with naming_a_run(given):
        if given.journal:
            print_json(asyncio.run(_read_journal(loaded, given.run_id)))
        else:
            _print_report(given, loaded, asyncio.run(_read_report(loaded, given.run_id)))
    return 0


async def _read_report(loaded: Loaded, name: str) -> ChangeReport:
    from interlock_catalog.app import open_app
    from interlock_catalog.report.change_report import build_report
    from interlock_catalog.runner.records import open_run_store

    async with open_run_store(loaded.settings) as runs:
        run = await runs.get(name)
    async with open_app(loaded) as app:
        return await build_report(app.runtime, run)


async def _read_journal(loaded: Loaded, name: str) -> list[Any]:
    from interlock_catalog.app import open_app
    from interlock_catalog.runner.records import open_run_store

    async with open_run_store(loaded.settings) as runs:
        run = await runs.get(name)
    async with open_app(loaded) as app:
        journal = app.runtime.operations.journal
        return [msgspec.to_builtins(entry) for turn in run.turns async for entry in journal(turn=turn)]


def run_rejected(given: argparse.Namespace) -> int:
    """Export what was rejected, or submit it again."""
    from interlock_catalog.rejected import export_rejected, submit_rejected

    loaded = load_existing_catalog(given.home)
    if not given.submit:
        with naming_a_run(given):
            count = asyncio.run(export_rejected(loaded, given.run_id, given.file))
        print_json({"file": str(given.file), "rejected": count}) if given.json else console().print(
            f"{sanitize(given.file)}: {count} rejected; correct the arguments, then --submit"
        )
        return 0
    done = asyncio.run(submit_rejected(loaded, given.file, "apply" if given.apply else "dry_run"))
    if given.json:
        print_json(done)
    else:
        for item in done["items"]:
            console().print(f"  {item['status']}  {sanitize(item['tool'])}  [dim]{sanitize(item['reason'])}[/]")
        console().print(f"run {sanitize(done['run'])}")
    return 0 if all(item["status"] in ("ok", "planned") for item in done["items"]) else 1
