"""`interlock audit`: show, verify, export and anchor the ledger."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from interlock.audit import (
    anchor,
    as_row,
    export_csv,
    export_jsonl,
    load_or_make_key,
    load_public_key,
    read_anchors,
    verify,
)
from interlock.cli.options import key_file, opened_store, parse_time, settings_of
from interlock.cli.output import coloured, console, notes, print_json, shown
from interlock.errors import ConfigError
from interlock.ports import Query, SystemClock
from interlock.values import Status, Stored


def register(commands: Any, common: Any) -> None:
    """Add the commands."""
    parser = commands.add_parser("audit", help="show, verify, export and anchor the ledger")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="records, newest first, or one with --id")
    show.add_argument("--id", type=int, help="one record, whole")
    show.add_argument("--newest", type=int, default=20, metavar="N", help="how many (default 20)")
    _filters(show)
    export = actions.add_parser("export", help="records as JSONL (verifiable with tools/verify_ledger.py) or CSV")
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    export.add_argument("--out", metavar="FILE", help="where to (default: standard output)")
    _filters(export)
    check = actions.add_parser("verify", help="is the ledger what was written? (exit 1 if not)")
    check.add_argument("--anchors", metavar="FILE", help="anchors to hold it against (default: the setting 'anchors')")
    check.add_argument("--key", metavar="PEM", help="the key that must have signed (private or public)")
    sign = actions.add_parser("anchor", help="sign where the ledger ends now, and add that to the file of anchors")
    sign.add_argument("--out", metavar="FILE", help="file to add to (default: the setting 'anchors'); - prints it")
    sign.add_argument("--key", metavar="PEM", help="the Ed25519 key to sign with (default: made on first use)")
    for action, run in ((show, _show), (export, _export), (check, _verify), (sign, _anchor)):
        common(action)
        action.set_defaults(run=lambda given, run=run: asyncio.run(run(given)))


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--actor")
    parser.add_argument("--tool")
    parser.add_argument("--outcome", choices=[status.value for status in Status])
    parser.add_argument("--turn")
    parser.add_argument("--call")
    parser.add_argument("--since", metavar="TIME", help="2026-01-31, 2026-01-31T12:00:00Z, or 2h ago as '2h'")
    parser.add_argument("--before", metavar="TIME", help="likewise")


def _query(given: argparse.Namespace, newest: int | None = None) -> Query:
    return Query(
        actor=given.actor,
        tool=given.tool,
        status=given.outcome,
        turn=given.turn,
        call=given.call,
        since_us=parse_time(given.since),
        before_us=parse_time(given.before),
        newest=newest,
    )


async def _show(given: argparse.Namespace) -> int:
    async with opened_store(settings_of(given).settings) as store:
        if given.id is not None:
            found = [record async for record in store.records(Query(after=given.id - 1, until=given.id))]
            if not found:
                raise ConfigError(f"there is no record {given.id}")
            print_json(as_row(found[0]))
            return 0
        records = [record async for record in store.records(_query(given, given.newest))]
    if given.json:
        print_json([as_row(record) for record in records])
        return 0
    _print(records)
    return 0


def _print(records: list[Stored]) -> None:
    """Two lines for each record: who did what and how it ended, then why."""
    out, rows = console(), [as_row(record) for record in records]
    out.print(f"[bold]{len(rows)} records, newest first[/]")
    columns = ("id", "actor", "tool")
    width = {key: max((len(str(row[key])) for row in rows), default=0) for key in columns}
    for row in rows:
        number, actor, tool = (shown(str(row[key]).ljust(width[key])) for key in columns)
        tries = f" ×{row['attempts']}" if row["attempts"] > 1 else ""
        out.print(
            f"[bold]{number}[/]  {row['time'][11:19]}  {actor}  {tool}  {coloured(row['outcome'])}{tries}"
            f"  [dim]{shown(row['rule'] or '')}[/]",
            no_wrap=True,
            overflow="ellipsis",
        )
        why = str(row["message"] or row["summary"])
        indent = " " * (width["id"] + 2)
        out.print(f"{indent}[dim]{shown(why)}[/]", no_wrap=True, overflow="ellipsis")


async def _export(given: argparse.Namespace) -> int:
    write = export_csv if given.format == "csv" else export_jsonl
    async with opened_store(settings_of(given).settings) as store:
        if given.out is None:
            await write(store, _query(given), sys.stdout)
            return 0
        with Path(given.out).open("w", encoding="utf-8", newline="") as out:  # noqa: ASYNC230 - a command has one task
            count = await write(store, _query(given), out)
    notes().print(f"{count} records written to {shown(given.out)}")
    return 0


async def _verify(given: argparse.Namespace) -> int:
    settings = settings_of(given).settings
    file = Path(given.anchors or settings.anchors)
    if given.anchors is not None and not file.exists():
        raise ConfigError(f"{file}: there are no anchors there")
    anchors = read_anchors(file) if file.exists() else ()
    key = key_file(settings, given.key)
    public = load_public_key(key) if given.key is not None or key.exists() else None
    started = time.perf_counter()
    async with opened_store(settings) as store:
        with notes().status("verifying") as status:
            report = await verify(
                store,
                public_key=public,
                anchors=anchors,
                progress=lambda count: status.update(f"verifying: {count:,} records"),
            )
    took = time.perf_counter() - started
    if given.json:
        print_json({**msgspec.to_builtins(report), "intact": report.intact, "key": public})
        return 0 if report.intact else 1
    out = console()
    for problem in report.problems:
        out.print(f"[red]✗[/] {shown(problem)}")
    mark = "[green]✓ intact[/]" if report.intact else f"[red]✗ not intact: {len(report.problems)} problems[/]"
    out.print(f"{mark}: {report.records:,} records in {report.lanes} lane(s), {report.checkpoints} checkpoints, "
              f"{report.anchors} anchors [dim]({took:.2f} s)[/]")  # fmt: skip
    out.print(
        f"{report.unanchored:,} records are not yet anchored"
        + (" (interlock audit anchor)" if report.unanchored else "")
    )
    if public is None and (report.checkpoints or report.anchors):
        out.print("[yellow]no key was given: signatures were checked only against the keys they name[/]")
    return 0 if report.intact else 1


async def _anchor(given: argparse.Namespace) -> int:
    settings = settings_of(given).settings
    key = load_or_make_key(key_file(settings, given.key))
    file = Path(given.out or settings.anchors)
    with ExitStack() as stack:
        # Opened first: a checkpoint that cannot be written down elsewhere is not made.
        out = sys.stdout.buffer if given.out == "-" else stack.enter_context(file.open("ab"))  # noqa: ASYNC230
        async with opened_store(settings) as store:
            checkpoint = await anchor(store, key, SystemClock())
        out.write(msgspec.json.encode(checkpoint) + b"\n")
        out.flush()
        if given.out == "-":
            return 0
        os.fsync(out.fileno())
    if given.json:
        print_json(checkpoint)
    else:
        console().print(
            f"checkpoint {checkpoint.n} signed by {checkpoint.public_key[:16]}… and added to {shown(str(file))}"
        )
        console().print("[dim]keep a copy of that file where whoever can write the store cannot[/]")
    return 0
