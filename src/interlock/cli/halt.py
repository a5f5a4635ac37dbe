"""`interlock halt` and `interlock resume`: stop a tool, an actor, a run or everything, and let it go on."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from interlock.cli.options import opened_store, settings_of
from interlock.cli.output import console, print_json, shown
from interlock.config import default_principal
from interlock.errors import ConfigError
from interlock.operations.halts import halt, unhalt
from interlock.operations.ledger_writer import LedgerWriter
from interlock.ports import SystemClock, SystemIds
from interlock.state import halt_message


def register(commands: Any, common: Any) -> None:
    """Add the commands."""
    stop = commands.add_parser(
        "halt",
        help="stop a tool, an actor, a run or everything",
        description="Stop calls in every process within a second: they are denied at the gate. Without a scope, show"
        " what is halted.",
    )
    go_on = commands.add_parser("resume", help="let what was halted go on")
    for parser in (stop, go_on):
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument("--tool")
        scope.add_argument("--actor")
        scope.add_argument("--run", dest="run_id")
        scope.add_argument("--all", action="store_true")
        common(parser)
    stop.add_argument("--reason", default="", help="why; whoever is stopped sees it")
    stop.set_defaults(run=lambda given: asyncio.run(_halt(given)))
    go_on.set_defaults(run=lambda given: asyncio.run(_resume(given)))


def _scope(given: argparse.Namespace) -> str | None:
    if given.all:
        return "all"
    named = (("tool", given.tool), ("actor", given.actor), ("run", given.run_id))
    for kind, name in named:
        if name is not None and (not name.strip() or not name.isprintable()):
            raise ConfigError(f"--{kind} needs a name, not {name!r}")
    return next((f"{kind}:{name}" for kind, name in named if name is not None), None)


async def _halt(given: argparse.Namespace) -> int:
    settings, scope = settings_of(given).settings, _scope(given)
    async with opened_store(settings) as store:
        if scope is not None:
            by = settings.principal or default_principal()
            await halt(LedgerWriter(by, store, SystemClock(), SystemIds()), scope, given.reason)
        found = await store.halts()
    if given.json:
        print_json(found)
        return 0
    out = console()
    for item in found:
        out.print(f"[red]halted[/]  {shown(halt_message(item))}")
    if not found:
        out.print("nothing is halted")
    return 0


async def _resume(given: argparse.Namespace) -> int:
    settings, scope = settings_of(given).settings, _scope(given)
    if scope is None:
        raise ConfigError("resume what? name --tool, --actor, --run or --all, as it was halted (see interlock halt)")
    async with opened_store(settings) as store:
        by = settings.principal or default_principal()
        number = await unhalt(LedgerWriter(by, store, SystemClock(), SystemIds()), scope)
    if given.json:
        print_json({"scope": scope, "record": number})
    else:
        console().print(f"{shown(scope)} may run again [dim](record {number})[/]")
    return 0
