"""`interlock audit`: show, verify, export and anchor the ledger, and delete what lies beside it."""

from __future__ import annotations

import argparse
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from interlock.audit import (
    Report,
    as_row,
    export_csv,
    export_jsonl,
    load_public_key,
    read_anchors,
    verify,
)
from interlock.audit.keys import public_part
from interlock.cli import retention
from interlock.cli.anchors import register as register_anchors
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import find_key_file, load_command_settings, parse_count, parse_time
from interlock.cli.output import colorize, console, format_count, notes, print_json, sanitize
from interlock.cli.parser import UNPINNED, UNREADABLE, VERIFY_EXITS, document_exits
from interlock.cli.results import result_stream
from interlock.cli.terminal_text import EscapedText
from interlock.errors import ConfigError
from interlock.operations.histories import accept_history
from interlock.operations.ledger_writer import LedgerWriter, payload_of
from interlock.ports import Query, SystemClock, SystemIds
from interlock.principals import default_principal
from interlock.records import Stored
from interlock.stores.private_files import make_private
from interlock.values import Json, Status

_MOST_NUMBERS = 10


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("audit")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="records, newest first, or one with --id")
    show.add_argument("--id", type=int, help="one record, whole, with the traceback of a tool that broke")
    show.add_argument("--newest", type=parse_count, default=20, metavar="N", help="how many (default 20)")
    _filters(show)
    export = actions.add_parser("export", help="records as JSONL (which `audit verifier` can verify) or CSV")
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    export.add_argument("--out", metavar="FILE", help="where to (default: standard output)")
    _filters(export)
    check = actions.add_parser("verify", help="is the ledger what was written?")
    check.add_argument("--anchors", metavar="FILE", help="anchors to compare it with (default: the setting 'anchors')")
    check.add_argument("--key", metavar="PEM", help="the key that must have signed (private or public)")
    register_anchors(actions, common)
    accept = actions.add_parser(
        "accept",
        help="say that a ledger which was put back to an earlier state stands as it is",
        description="A restored copy has forgotten what was done since, and would let it be done again; so nothing is"
        " changed on it until somebody says that it stands. What is missing is recorded with your name. Runtimes that"
        " are open must be opened again. `audit verify` goes on to say that anchored records are gone.",
    )
    accept.add_argument("--reason", required=True, metavar="TEXT", help="why this history is the one that counts")
    program = actions.add_parser(
        "verifier",
        help="the program that verifies an export without Interlock",
        description="Where the program is that verifies an export without Interlock, one short file for whoever does"
        " not trust this installation; with --print, its text.",
    )
    either = program.add_mutually_exclusive_group()
    either.add_argument("--path", action="store_true", help="print where it is (default)")
    either.add_argument("--print", action="store_true", dest="whole", help="print the program itself")
    program.add_argument("--json", action="store_true", help="print JSON, for scripts")
    document_exits(program, store=False)
    program.set_defaults(run=_verifier)
    for action, run in ((show, _show), (export, _export), (check, _verify), (accept, _accept)):
        common(action)
        wrong = {check: "the ledger is not intact", accept: "nothing is missing from it"}
        document_exits(action, wrong=wrong.get(action, ""), more=VERIFY_EXITS if action is check else None)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))
    retention.register(actions, common)


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--actor", metavar="NAME", help="only what this actor did")
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--outcome", choices=[status.value for status in Status], help="only what ended so")
    parser.add_argument("--turn", metavar="TURN", help="only records of this turn")
    parser.add_argument("--call", metavar="ID", help="only records of this call")
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
    async with open_ledger(load_command_settings(given).settings) as store:
        if given.id is not None:
            found = [record async for record in store.records(Query(after=given.id - 1, until=given.id))]
            if not found:
                raise ConfigError(f"there is no record {given.id}")
            beside = await payload_of(store, given.id, found[0].content())
            shown = {"traceback": beside["traceback"]} if "traceback" in beside else {}
            print_json({**as_row(found[0]), **shown})
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
    out.print(f"[bold]{format_count(len(rows), 'record')}, newest first[/]")
    columns = ("id", "actor", "tool")
    width = {key: max((len(str(row[key])) for row in rows), default=0) for key in columns}
    for row in rows:
        number, actor, tool = (sanitize(str(row[key]).ljust(width[key])) for key in columns)
        tries = f" ×{row['attempts']}" if row["attempts"] > 1 else ""
        how = f"{colorize(row['outcome'])}{tries}  [dim]{sanitize(row['rule'] or '')}[/]"
        out.print(f"[bold]{number}[/]  {row['time'][11:19]}  {actor}  {tool}  {how}")
        why = str(row["message"] or (row["summary"] if row["kind"] == "call" else _describe(row["arguments"])))
        indent = " " * (width["id"] + 2)
        out.print(f"{indent}[dim]{sanitize(why)}[/]")


def _describe(what: Json) -> str:
    """What a record that is no call is about: a halt, a decision, an event of a turn."""
    if not isinstance(what, dict):
        return ""
    return ", ".join(f"{key} {value}" for key, value in what.items() if value not in ("", None, [], {}))


async def _export(given: argparse.Namespace) -> int:
    if given.json:
        raise ConfigError(
            "--json has no effect on audit export, which writes JSONL, or CSV with --format csv: leave it out"
        )
    write = export_csv if given.format == "csv" else export_jsonl
    async with open_ledger(load_command_settings(given).settings) as store:
        if given.out is None:
            await write(store, _query(given), EscapedText(result_stream()))
            return 0
        make_private(Path(given.out))
        with Path(given.out).open("w", encoding="utf-8", newline="") as out:  # noqa: ASYNC230 - a command has one task
            count = await write(store, _query(given), out)
    notes().print(f"{format_count(count, 'record')} written to {sanitize(given.out)}")
    return 0


async def _verify(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    file = Path(given.anchors or settings.anchors)
    if given.anchors is not None and not file.exists():
        raise ConfigError(f"{file}: there are no anchors there")
    anchors = read_anchors(file) if file.exists() else ()
    key = find_key_file(settings, given.key)
    public = load_public_key(public_part(key)) if given.key is not None or public_part(key).exists() else None
    started = time.perf_counter()
    async with open_ledger(settings) as store:
        with notes().status("verifying") as status:
            report = await verify(
                store,
                public_key=public,
                anchors=anchors,
                progress=lambda count: status.update(f"verifying: {count:,} records"),
            )
    if given.json:
        print_json({**msgspec.to_builtins(report), "intact": report.intact, "key": public})
    else:
        _show_report(report, time.perf_counter() - started)
        if public is None:
            console().print(
                "[yellow]no key is known here: signatures were checked only against the keys they name, which whoever"
                " wrote them chose; give the key that must have signed with --key[/]"
            )
    if not report.intact:
        return 1
    if public is None:
        return UNPINNED
    return UNREADABLE if any(not found.lost for found in report.unreadable) else 0


async def _accept(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    async with open_ledger(settings) as store:
        gone = store.missing
        writer = LedgerWriter(default_principal(), store, SystemClock(), SystemIds())
        number = await accept_history(writer, given.reason)
    if given.json:
        print_json({"record": number, "missing": gone})
        return 0
    for head in gone:
        console().print(f"[yellow]gone[/]  record {head.id} of lane {head.lane} [dim]{head.hash[:16]}…[/]")
    console().print(f"this history stands, without them [dim](record {number})[/]; open runtimes again")
    return 0


def _show_report(report: Report, took_s: float) -> None:
    out = console()
    for problem in report.problems:
        out.print(f"[red]✗[/] {sanitize(problem)}")
    for found in report.unreadable:
        shown = ", ".join(map(str, found.records[:_MOST_NUMBERS]))
        rest = "" if len(found.records) <= _MOST_NUMBERS else f" and {len(found.records) - _MOST_NUMBERS} more"
        what = f"{format_count(len(found.records), 'payload')} cannot be opened (of record {shown}{rest})"
        way_on = f"its key {found.key} is said to be lost for good" if found.lost else found.why
        out.print(f"[yellow]![/] {what}: {sanitize(way_on)}")
    problems = format_count(len(report.problems), "problem")
    mark = "[green]✓ intact[/]" if report.intact else f"[red]✗ not intact: {problems}[/]"
    held = f"{format_count(report.records, 'record')} in {format_count(report.lanes, 'lane')}"
    signed = f"{format_count(report.checkpoints, 'checkpoint')}, {format_count(report.anchors, 'anchor')}"
    out.print(f"{mark}: {held}, {signed} [dim]({took_s:.2f} s)[/]")
    are = "is" if report.unanchored == 1 else "are"
    way_out = " (interlock audit anchor)" if report.unanchored else ""
    out.print(f"{format_count(report.unanchored, 'record')} {are} not yet anchored{way_out}")


def _verifier(given: argparse.Namespace) -> int:
    path = Path(str(files("interlock.audit") / "verify_ledger.py"))
    if given.json:
        print_json({"path": str(path), "text": path.read_text(encoding="utf-8") if given.whole else None})
    elif given.whole:
        result_stream().write(path.read_text(encoding="utf-8"))
    else:
        print(path, file=result_stream())
    return 0
