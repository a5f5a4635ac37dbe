"""`interlock turns`: what was asked, what was done for it, and how it ended."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.tree import Tree

from interlock.answers.answer_review import fetch_result
from interlock.answers.history import TURN
from interlock.cli.ask import show_answer
from interlock.cli.options import opened_store, parse_time, settings_of
from interlock.cli.output import coloured, console, print_json, shown
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.ledger_writer import payload_of
from interlock.ports import Query, Store
from interlock.values import Json, Stored


def register(commands: Any, common: Any) -> None:
    """Add the commands."""
    parser = commands.add_parser("turns", help="questions and answers: list, show")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    several = actions.add_parser("list", help="finished turns, newest first")
    several.add_argument("--agent", help="only this agent")
    several.add_argument("--outcome", help="only this outcome (PASSED, ESCALATED, …)")
    several.add_argument("--since", help="only since this time: 24h, 7d, 2026-01-31")
    several.add_argument("--newest", type=int, default=20, help="how many (default 20)")
    one = actions.add_parser("show", help="one turn as a tree: question, calls, attempts, child turns, answer")
    one.add_argument("turn")
    for action, run in ((several, _list), (one, _show)):
        common(action)
        action.set_defaults(run=lambda given, run=run: asyncio.run(run(given)))


async def _list(given: argparse.Namespace) -> int:
    query = Query(
        tool=TURN,
        status="finished",
        actor=given.agent,
        since_us=parse_time(given.since),
        newest=max(1, given.newest * 4),
    )
    async with opened_store(settings_of(given).settings) as store:
        found = [record async for record in store.records(query)]
    wanted = [r for r in found if given.outcome in (None, r.content().arguments["outcome"])][: given.newest]
    if given.json:
        print_json([{"turn": r.turn, "at_us": r.at_us, **r.content().arguments} for r in wanted])
        return 0
    out = console()
    out.print(f"[bold]{len(wanted)} turns[/]")
    for record in wanted:
        what = record.content().arguments
        when = datetime.fromtimestamp(record.at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
        how = f"{what['outcome']}, {what['model_calls']} model calls"
        out.print(f"[bold]{shown(record.turn)}[/]  {coloured(what['status'])}  [dim]{when}  {shown(what['agent'])}[/]")
        out.print(f"  [dim]{shown(how)}{': ' + shown(what['reason']) if what['reason'] else ''}[/]")
    return 0


async def _show(given: argparse.Namespace) -> int:
    async with opened_store(settings_of(given).settings) as store:
        if given.json:
            print_json(await _whole(store, given.turn, 4))
            return 0
        tree = await _tree(store, given.turn, 4)
        try:
            result = await fetch_result(store, given.turn)
        except NotAllowed as error:
            result = None
            why = str(error)
    console().print(tree)
    console().print()
    if result is None:
        console().print(f"[dim]{shown(why)}[/]")
    else:
        show_answer(result)
    return 0


async def _records(store: Store, turn: str) -> list[Stored]:
    found = [record async for record in store.records(Query(turn=turn))]
    if not any(record.kind == "turn" for record in found):
        raise ConfigError(f"there is no turn {turn!r}; see interlock turns list")
    return found


async def _whole(store: Store, turn: str, depth: int) -> Json:
    """Everything that was recorded of a turn and its children."""
    records = []
    for record in await _records(store, turn):
        content = msgspec.to_builtins(record.content())
        entry: dict[str, Json] = {"id": record.id, "kind": record.kind, "tool": record.tool, "status": record.status}
        entry["content"] = content
        if record.kind == "turn":
            entry["beside"] = await payload_of(store, record.id, record.content())
            if record.status == "delegated" and depth:
                entry["child"] = await _whole(store, record.content().arguments["child"], depth - 1)
        records.append(entry)
    return {"turn": turn, "records": records}


async def _tree(store: Store, turn: str, depth: int) -> Tree:
    records = await _records(store, turn)
    opened = next((r for r in records if r.kind == "turn" and r.status == "opened"), None)
    tree = Tree(f"[bold]{shown(turn)}[/]")
    if opened is not None:
        what, payload = opened.content().arguments, await payload_of(store, opened.id, opened.content())
        question = payload.get("question", "(deleted)")
        intents = ", ".join(what["intents"]) or "none"
        tree.label = f"[bold]{shown(what['agent'])}[/] [dim]{shown(turn)}[/]\n{shown(question)}"
        tree.add(
            f"[dim]record {opened.id}: intents {shown(intents)} (by {what['by']}), needs {_needs(what['requires'])}[/]"
        )
    for record in records:
        if record is opened:
            continue
        branch = tree.add(_line(record))
        if record.kind == "turn" and record.status == "delegated" and depth:
            branch.add(await _tree(store, record.content().arguments["child"], depth - 1))
    return tree


def _needs(requirement: Json) -> str:
    kind = requirement.get("type")
    if kind == "need":
        return str(requirement["tool"])
    parts = [_needs(part) for part in requirement.get("parts", ())]
    joined = (" then " if requirement.get("in_order") else " and " if kind == "all_of" else " or ").join(parts)
    return joined or "nothing"


def _line(record: Stored) -> str:
    content = record.content()
    if record.kind == "call":
        said = shown(content.summary if content.problem is None else content.problem.message)
        arguments = shown(msgspec.json.encode(content.arguments).decode()[:120])
        return f"record {record.id}: {shown(record.tool)} [dim]{arguments}[/] {coloured(record.status)} [dim]{said}[/]"
    what = content.arguments
    match record.status:
        case "retry":
            why = f"missing {', '.join(what['missing'])}" if what["missing"] else f"{what['unsupported']} unsupported"
            return f"record {record.id}: [yellow]{what['rung']}[/] [dim]{shown(why)}[/]"
        case "force":
            return f"record {record.id}: [yellow]force[/] [dim]{shown(what['tool'])}[/]"
        case "finished":
            ms = what["overhead_us"] / 1000
            return f"record {record.id}: {coloured(what['status'])} {what['outcome']} [dim]{ms:.1f} ms of its own[/]"
        case "delegated":
            return f"record {record.id}: delegated to [bold]{shown(what['agent'])}[/]"
        case _:
            return (
                f"record {record.id}: {record.kind} {coloured(record.status)} [dim]{shown(what.get('reason', ''))}[/]"
            )
