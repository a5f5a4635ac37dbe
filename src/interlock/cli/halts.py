"""`interlock halt` and `interlock unhalt`: stop a tool, an actor, a run or everything, and let it run again."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.canonical import did_you_mean
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import load_command_settings
from interlock.cli.output import console, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_tools
from interlock.config import Loaded
from interlock.errors import ConfigError
from interlock.operations.halts import halt, unhalt
from interlock.operations.ledger_writer import LedgerWriter
from interlock.ports import Store, SystemClock, SystemIds
from interlock.principals import default_principal
from interlock.state import Halted, halt_message


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
    if given.json:
        print_json(found)
    else:
        _show(found)
    return 0


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
        number = await unhalt(_writer(store), scope)
    if given.json:
        print_json({"scope": scope, "record": number})
    else:
        console().print(f"{sanitize(scope)} may run again [dim](record {number})[/]")
    return 0
