"""`interlock turns`: what was asked, what was done for it, and how it ended."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from interlock.answers.answer_review import fetch_result
from interlock.answers.events import (
    TURN,
    Abandoned,
    Delegated,
    Finished,
    Forced,
    Joined,
    Judged,
    Noted,
    Offered,
    Opened,
    PhaseBegun,
    Planned,
    Reopened,
    Replied,
    Retried,
    Reviewed,
    Sourced,
    Talked,
    TurnEvent,
    event_of,
    status_of,
)
from interlock.answers.ladder import TurnOutcome
from interlock.answers.requirements import AllOf, AnyOf, Need, Requirement, describe_entities
from interlock.cli.ask import show_answer
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import load_command_settings, parse_count, parse_time, store_option
from interlock.cli.output import colorize, console, format_count, print_json, print_tree, sanitize
from interlock.cli.parser import document_exits
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.ledger_writer import payload_of
from interlock.ports import Query, Store
from interlock.records import Stored
from interlock.values import Json

if TYPE_CHECKING:
    from rich.tree import Tree


_ENDED = tuple(map(status_of, (Finished, Abandoned)))
_LISTED = (*_ENDED, *map(status_of, (Opened, Reopened)))


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("turns")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    several = actions.add_parser("list", help="turns, newest first, each as it stands now")
    several.add_argument("--agent", help="only this agent")
    outcomes = [outcome.value for outcome in TurnOutcome]
    several.add_argument(
        "--outcome", type=str.upper, choices=outcomes, metavar="OUTCOME", help=f"only this one: {', '.join(outcomes)}"
    )
    several.add_argument("--session", help="only turns of the sessions of this name")
    several.add_argument("--since", help="only since this time: 24h, 7d, 2026-01-31")
    several.add_argument("--newest", type=parse_count, default=20, help="how many (default 20)")
    one = actions.add_parser("show", help="one turn as a tree: question, calls, attempts, child turns, answer")
    one.add_argument("turn", help="its id, as `interlock turns list` shows it")
    for action, run in ((several, _list), (one, _show)):
        common(action)
        document_exits(action)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))


async def _list(given: argparse.Namespace) -> int:
    async with open_ledger(load_command_settings(given).settings) as store:
        found = await _last_events(store, given)
    states = [(record, event) for record in found if (event := event_of(record)) is not None]
    # The outcome is no column: it is filtered here, from more than are shown.
    wanted = [(r, e) for r, e in states if given.outcome in (None, getattr(e, "outcome", ""))][: given.newest]
    if given.json:
        print_json([_row(record, event) for record, event in wanted])
        return 0
    out = console()
    out.print(f"[bold]{format_count(len(wanted), 'turn')}[/]")
    for record, event in wanted:
        when = datetime.fromtimestamp(record.at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
        state, agent = colorize(_state_word(event)), sanitize(record.actor)
        out.print(f"[bold]{sanitize(record.turn)}[/]  {state}  [dim]{when}  {agent}[/]")
        out.print(f"  [dim]{sanitize(_how(event))}[/]")
    return 0


async def _last_events(store: Store, given: argparse.Namespace) -> list[Stored]:
    """What was recorded last of each turn that began, ended or was left, newest first."""
    last: dict[str | None, Stored] = {}
    # The session is no column either: of one that is named, all beginnings are looked through.
    statuses, newest = (_LISTED, given.newest * 4) if given.session is None else ((status_of(Opened),), None)
    for status in statuses:
        which = Query(tool=TURN, status=status, actor=given.agent, since_us=parse_time(given.since), newest=newest)
        async for record in store.records(which):
            if given.session is not None and getattr(event_of(record), "session", None) != given.session:
                continue
            if record.turn not in last or record.id > last[record.turn].id:
                last[record.turn] = record
    found = [await _ending_of(store, record) for record in last.values()]
    return sorted(found, key=lambda record: record.id, reverse=True)


async def _ending_of(store: Store, record: Stored) -> Stored:
    """A turn that seems open may have ended beyond what was read, as many others ended after it."""
    if record.status in _ENDED:
        return record
    own = [r async for r in store.records(Query(turn=record.turn, tool=TURN)) if r.status in _LISTED]
    return own[-1] if own else record


def _row(record: Stored, event: TurnEvent) -> dict[str, Json]:
    """One turn for scripts; one that has not ended has no outcome."""
    said = {"agent": record.actor, "outcome": None, **msgspec.to_builtins(event)}
    return {"turn": record.turn, "at_us": record.at_us, **said, "status": _state_word(event)}


def _state_word(event: TurnEvent) -> str:
    match event:
        case Finished(status=status):
            return status.value
        case Abandoned():
            return "abandoned"
        case _:
            return "open"


def _how(event: TurnEvent) -> str:
    match event:
        case Finished(outcome=outcome, model_calls=calls, reason=reason):
            return f"{outcome}, {format_count(calls, 'model call')}{': ' + reason if reason else ''}"
        case Abandoned(reason=reason, model_calls=calls):
            return f"nobody got an answer, {format_count(calls, 'model call')}: {reason}"
        case _:
            return "it has not ended: it is being worked on, or its process was killed"


async def _show(given: argparse.Namespace) -> int:
    async with open_ledger(load_command_settings(given).settings) as store:
        if given.json:
            print_json(await _whole(store, given.turn, 4))
            return 0
        tree = await _tree(store, given.turn, 4)
        try:
            result = await fetch_result(store, given.turn)
        except NotAllowed as error:
            result = None
            why = str(error)
    print_tree(tree)
    console().print()
    if result is None:
        console().print(f"[dim]{sanitize(why)}[/]")
    else:
        show_answer(result, where=store_option(given))
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
            entry["payload"] = await payload_of(store, record.id, record.content())
            event = event_of(record)
            if isinstance(event, Delegated) and depth:
                entry["child"] = await _whole(store, event.child, depth - 1)
        records.append(entry)
    return {"turn": turn, "records": records}


async def _tree(store: Store, turn: str, depth: int) -> Tree:
    from rich.tree import Tree

    records = await _records(store, turn)
    tree = Tree(f"[bold]{sanitize(turn)}[/]")
    for record in records:
        event = event_of(record)
        if isinstance(event, Opened):
            payload = await payload_of(store, record.id, record.content())
            question, intents = payload.get("question", "(deleted)"), ", ".join(event.intents) or "none"
            session = "" if event.session is None else f" [dim]session {sanitize(event.session)}[/]"
            tree.label = f"[bold]{sanitize(event.agent)}[/] [dim]{sanitize(turn)}[/]{session}\n{sanitize(question)}"
            needs = sanitize(_needs(event.requires))
            tree.add(f"[dim]record {record.id}: intents {sanitize(intents)} (by {event.by}), needs {needs}[/]")
            continue
        branch = tree.add(f"record {record.id}: {_call_line(record) if event is None else _event_line(event)}")
        for field, where in _origins(record).items():
            branch.add(f"[dim]{sanitize(field)} from {sanitize(where)}[/]")
        if isinstance(event, Delegated) and depth:
            branch.add(await _tree(store, event.child, depth - 1))
    return tree


def _needs(requirement: Requirement) -> str:
    match requirement:
        case Need(tool=tool):
            return tool + describe_entities(requirement)
        case AllOf(parts=parts, in_order=in_order):
            return (" then " if in_order else " and ").join(map(_needs, parts)) or "nothing"
        case AnyOf(parts=parts):
            return " or ".join(map(_needs, parts))


def _origins(record: Stored) -> dict[str, str]:
    """Where each argument of a call came from, if a rule has asked for it."""
    verdict = record.content().verdict if record.kind == "call" else None
    return {} if verdict is None else verdict.origins


def _call_line(record: Stored) -> str:
    content = record.content()
    if record.kind != "call":
        if record.kind == "intent":
            return f"{colorize(record.kind)} [dim]{sanitize(record.tool)}: {sanitize(content.said)}[/]"
        reason = content.arguments.get("reason", "") if isinstance(content.arguments, dict) else ""
        return f"{record.kind} {colorize(record.status)} [dim]{sanitize(reason)}[/]"
    said = sanitize(content.summary if content.problem is None else content.problem.message)
    arguments = sanitize(msgspec.json.encode(content.arguments).decode()[:120])
    return f"{sanitize(record.tool)} [dim]{arguments}[/] {colorize(record.status)} [dim]{said}[/]"


def _event_line(event: TurnEvent) -> str:
    match event:
        case Retried(missing=missing, unsupported=unsupported):
            why = f"missing {', '.join(missing)}" if missing else f"{unsupported} unsupported"
            return f"[yellow]{'correct' if event.corrects else 'retry'}[/] [dim]{sanitize(why)}[/]"
        case Forced(tool=tool):
            return f"[yellow]force[/] [dim]{sanitize(tool)}[/]"
        case Delegated(agent=agent):
            return f"delegated to [bold]{sanitize(agent)}[/]"
        case Finished(status=status, outcome=outcome, overhead_us=overhead_us):
            return f"{colorize(status)} {outcome} [dim]{overhead_us / 1000:.1f} ms of its own[/]"
        case Reviewed(status=status, reason=reason):
            return f"{colorize(status)} [dim]{sanitize(reason)}[/]"
        case Abandoned(reason=reason):
            return f"abandoned [dim]{sanitize(reason)}[/]"
        case Noted() | Offered() | Judged() | Planned() | Talked() | Sourced() | PhaseBegun():
            return _progress_line(event)
        case Replied() | Joined():
            return _session_line(event)
        case Opened(agent=agent) | Reopened(agent=agent):
            return f"opened again [dim]{sanitize(agent)}[/]"
        case _:
            assert_never(event)


def _session_line(event: Replied | Joined) -> str:
    match event:
        case Replied(tool=tool, fields=fields, intents=intents):
            what = f"{', '.join(fields)} of {tool}" if fields else ", ".join(intents) or "in words"
            return f"replied [dim]{sanitize(what)}[/]"
        case Joined(turn=turn):
            return f"turn [dim]{sanitize(turn)}[/]"


def _work_line(event: Planned | Talked | Sourced | PhaseBegun) -> str:
    match event:
        case Planned(steps=steps, questions=questions):
            return f"planned [dim]{sanitize('; '.join(questions)) or f'{steps} steps'}[/]"
        case Talked():
            return "talked [dim]where a plan or a call was due[/]"
        case Sourced(record=record, name=name, site=site, questions=numbers):
            about = f", for sub-question {', '.join(map(str, numbers))}" if numbers else ""
            return f"source [dim]{sanitize(name)} ({sanitize(site)}, record {record}){about}[/]"
        case PhaseBegun(name=name, why=why):
            return f"phase [bold]{sanitize(name)}[/] [dim]{sanitize(why)}[/]"
        case _:
            assert_never(event)


def _progress_line(event: Noted | Offered | Judged | Planned | Talked | Sourced | PhaseBegun) -> str:
    match event:
        case Planned() | Talked() | Sourced() | PhaseBegun():
            return _work_line(event)
        case Noted(text=text):
            return f"noted [dim]{sanitize(text)}[/]"
        case Offered(tools=tools):
            return f"offered [dim]{sanitize(', '.join(tools) or 'no tools')}[/]"
        case Judged(by=by, sentences=sentences, disputed=disputed):
            return f"judged by {sanitize(by)} [dim]{sentences} sentences, {disputed} not found in the results[/]"
