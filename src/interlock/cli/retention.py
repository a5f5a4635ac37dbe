"""`interlock audit purge` and `interlock audit forget`: delete what lies beside records."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import load_command_settings, parse_count
from interlock.cli.output import console, format_count, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_tools
from interlock.config import parse_duration
from interlock.operations.ledger_writer import LedgerWriter
from interlock.operations.retention import Erasure, Expiry, Target, forget, plan_forget, plan_purge, purge
from interlock.ports import Store, SystemClock, SystemIds
from interlock.principals import default_principal

_MOST_LINES = 20


def register(actions: Any, common: Any) -> None:
    old = actions.add_parser(
        "purge",
        help="delete the payloads of old records",
        description="Delete what lies beside old records: full arguments and results, states that undo puts back. The"
        " records stay, with digests, and the ledger stays intact. Without --older-than each tool's own retention"
        " counts. Shows what would go; --yes deletes it.",
    )
    old.add_argument("--older-than", metavar="AGE", help="how old: 12h, 90d")
    old.add_argument("--tool", metavar="NAME", help="only payloads of this tool")
    named = actions.add_parser(
        "forget",
        help="delete the payloads about a key, an actor or a record",
        description="Delete what lies beside every record about a key, by an actor, or of the call of a record. What"
        " stands in the records themselves stays: fields that a tool does not redact. Shows what would go; --yes"
        " deletes it.",
    )
    which = named.add_mutually_exclusive_group(required=True)
    which.add_argument("--key", metavar="RESOURCE/KEY", help="what changed this, or was to change it")
    which.add_argument("--actor", metavar="NAME", help="what this actor did")
    which.add_argument("--record", type=parse_count, metavar="N", help="the call of this record")
    named.add_argument("--reason", required=True, metavar="TEXT", help="why; it stands in the ledger for good")
    for parser, run in ((old, _purge), (named, _forget)):
        parser.add_argument("--yes", action="store_true", help="delete it; there is no way back")
        common(parser)
        parser.set_defaults(run=lambda given, run=run: run_to_end(run(given)))
    document_exits(old, wrong="what was deleted is not gone from the disk yet")
    document_exits(named, wrong="no record matches, something was kept, or is not gone from the disk yet")


async def _purge(given: argparse.Namespace) -> int:
    loaded = load_command_settings(given)
    older = None if given.older_than is None else timedelta(seconds=parse_duration(given.older_than))
    retention = {tool.name: tool.retention for tool in load_tools(loaded) if tool.retention is not None}
    expiry = Expiry(retention=retention, older_than=older, tool=given.tool)
    expiry.check()
    async with open_ledger(loaded.settings) as store:
        writer = _writer(store)
        made = await (purge(writer, expiry) if given.yes else plan_purge(store, expiry, writer.clock.now_us()))
    _show(given, made)
    return 1 if made.lingers else 0


async def _forget(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    target = Target(key=given.key, actor=given.actor, record=given.record)
    target.check()
    async with open_ledger(settings) as store:
        writer = _writer(store)
        if given.yes:
            made = await forget(writer, target, given.reason)
        else:
            made = await plan_forget(store, target, writer.clock.now_us())
    _show(given, made)
    return 1 if made.kept or made.lingers else 0


def _writer(store: Store) -> LedgerWriter:
    return LedgerWriter(default_principal(), store, SystemClock(), SystemIds())


def _show(given: argparse.Namespace, made: Erasure) -> None:
    if given.json:
        print_json({**msgspec.to_builtins(made), "deleted": bool(given.yes)})
        return
    out = console()
    verb = "deleted" if given.yes else "would be deleted"
    span = f" [dim]({_day(made.oldest_us)} to {_day(made.newest_us)})[/]" if made.records else ""
    out.print(f"[bold]{format_count(len(made.records), 'payload')}[/] {verb}{span}")
    for name, count in made.tools.items():
        out.print(f"  {count:>6,}  {sanitize(name)}")
    if made.changes:
        cannot = "cannot be taken back any more" if given.yes else "could then not be taken back any more"
        out.print(f"[yellow]{format_count(made.changes, 'change')} {cannot}[/]")
    for item in made.kept[:_MOST_LINES]:
        out.print(f"[yellow]kept[/]  record {item.record} {sanitize(item.tool)}: {sanitize(item.why)}")
    if len(made.kept) > _MOST_LINES:
        out.print(f"[yellow]kept[/]  and {len(made.kept) - _MOST_LINES:,} more (--json lists them)")
    if made.in_clear:
        out.print(
            f"{format_count(made.in_clear, 'record')} among those that match can still be read in the ledger itself:"
            " arguments or results that their tools do not redact stay there"
        )
    if made.lingers:
        out.print(
            "[yellow]not gone yet[/]  somebody reads the store, so that its log (the file that ends in -wal) still"
            " holds what was deleted; run the command again when they are done"
        )
    if made.tombstones:
        out.print(f"[dim]recorded as {', '.join(map(str, made.tombstones))}[/]")
    elif made.records:
        out.print("[dim]nothing is deleted yet; --yes deletes it[/]")


def _day(at_us: int | None) -> str:
    return "" if at_us is None else f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d}"
