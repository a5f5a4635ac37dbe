"""`interlock halt` and `interlock unhalt`: stop a tool, an actor, a run or everything, and let it run again."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.canonical import did_you_mean
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import load_command_settings
from interlock.cli.output import console, notes, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_tools
from interlock.config import Loaded
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.halts import halt, unhalt
from interlock.operations.ledger_writer import LedgerWriter
from interlock.ports import Query, Store, SystemClock, SystemIds
from interlock.principals import default_principal
from interlock.state import ChangeFilter, Halted, halt_message

_LOOKED_AT = 2000
"""So many of the newest records are looked at for the name of a run, and for names that somebody may have meant."""


def register(commands: Any, common: Any) -> None:
    stop = commands.add_parser(
        "halt",
        description="Stop calls in every process within a second: they are denied at the gate. Name what is to stop,"
        " or see what is halted with --list.",
    )
    lift = commands.add_parser("unhalt", description="Let what was halted run again: name it as it was halted.")
    for parser in (stop, lift):
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument("--tool", metavar="NAME", help="every call of this tool")
        scope.add_argument("--actor", metavar="NAME", help="every call by this actor")
        scope.add_argument("--run", dest="run_id", metavar="RUN", help="every call of this run")
        scope.add_argument("--all", action="store_true", help="every call")
        if parser is stop:
            scope.add_argument("--list", action="store_true", help="stop nothing; show what is halted")
            stop.add_argument("--reason", default="", help="why; whoever is stopped sees it")
        common(parser)
    document_exits(stop)
    document_exits(lift, wrong="that is not halted")
    stop.set_defaults(run=lambda given: run_to_end(_halt(given)))
    lift.set_defaults(run=lambda given: run_to_end(_unhalt(given)))


def _scope(given: argparse.Namespace, question: str) -> str:
    if given.all:
        return "all"
    named = (("tool", given.tool), ("actor", given.actor), ("run", given.run_id))
    for kind, name in named:
        if name is not None and (not name.strip() or not name.isprintable()):
            raise ConfigError(f"--{kind} needs a name, not {name!r}")
    found = next((f"{kind}:{name}" for kind, name in named if name is not None), None)
    if found is None:
        raise ConfigError(question)
    return found


def _writer(store: Store) -> LedgerWriter:
    return LedgerWriter(default_principal(), store, SystemClock(), SystemIds())


def _refuse_unknown_tool(loaded: Loaded, name: str | None) -> None:
    """A kill switch that stops nothing would be believed; where tools cannot be looked at, it works all the same."""
    if name is None:
        return
    try:
        known = [tool.name for tool in load_tools(loaded)]
    except ConfigError:
        return
    if known and name not in known:
        raise ConfigError(f"there is no tool {name!r} to halt{did_you_mean(name, known)}")


async def _halt(given: argparse.Namespace) -> int:
    loaded, scope = load_command_settings(given), None
    settings = loaded.settings
    if not given.list:
        scope = _scope(
            given, "halt what? name --tool, --actor, --run or --all; interlock halt --list shows what is halted"
        )
    _refuse_unknown_tool(loaded, given.tool)
    async with open_ledger(settings) as store:
        if scope is not None:
            await halt(_writer(store), scope, given.reason)
        found = await store.halts()
        doubt = await _doubt_name(store, scope)  # after the halt, which does not wait for it
    if doubt:
        notes().print(f"[yellow]{sanitize(doubt)}[/]")
    if given.json:
        print_json(found)
    else:
        _show(found)
    return 0


async def _doubt_name(store: Store, scope: str | None) -> str:
    """What is said of an actor or run that no record names: it may come yet, or be mistyped."""
    kind, _, name = (scope or "").partition(":")
    if kind == "actor":
        if [record async for record in store.records(Query(actor=name, newest=1))]:
            return ""
        known = {record.actor async for record in store.records(Query(newest=_LOOKED_AT))}
        if name.casefold() in map(str.casefold, known):  # a halt goes by no capitals
            return ""
        return f"no record names the actor {name!r} yet{did_you_mean(name, known)}"
    if kind == "run":
        runs = {record.content().run async for record in store.records(Query(newest=_LOOKED_AT))}
        if name in runs or await store.claims(ChangeFilter(run=name)):
            return ""
        known = {run for run in runs if run is not None}
        return f"none of the newest {_LOOKED_AT:,} records names the run {name!r} yet{did_you_mean(name, known)}"
    return ""


def _show(found: tuple[Halted, ...]) -> None:
    out = console()
    for item in found:
        out.print(f"[red]halted[/]  {sanitize(halt_message(item))}")
    if not found:
        out.print("nothing is halted")


async def _unhalt(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    scope = _scope(
        given, "unhalt what? name --tool, --actor, --run or --all, as it was halted (see interlock halt --list)"
    )
    async with open_ledger(settings) as store:
        try:
            number = await unhalt(_writer(store), scope)
        except NotAllowed as refused:
            halted = ", ".join(item.scope for item in await store.halts()) or "nothing"
            raise NotAllowed(f"{refused}; halted: {halted}") from None
    if given.json:
        print_json({"scope": scope, "record": number})
    else:
        console().print(f"{sanitize(scope)} may run again [dim](record {number})[/]")
    return 0
