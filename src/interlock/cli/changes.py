"""`interlock undo`, `replay` and `recover`: take changes back, make them again, settle what is in doubt."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import parse_time, store_option
from interlock.cli.output import colorize, console, format_count, format_moment, notes, print_diff, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import open_runtime
from interlock.errors import ConfigError
from interlock.operations import Changes, Recovered, UndoStep
from interlock.operations.undo import UNDO
from interlock.values import Outcome, Status

_NO_WAY_BACK = "no way back"
_NOT_AGAIN = "cannot be made again"
_NOTHING = "nothing matches: no change that stands is meant by this"


def register(commands: Any, common: Any) -> None:
    undo = commands.add_parser(
        "undo",
        description="Show how changes would be taken back, last change first, and with --yes do it. Each is a call on"
        " the one path: recorded, and undoable itself. Writes of different keys are put back side by side, a send when"
        " everything after it is back. What has changed since is left alone; --force asks a person.",
    )
    undo.add_argument("--record", type=int, metavar="ID", help="the change with this outcome (or intent)")
    undo.add_argument("--turn", metavar="TURN", help="every change of a turn")
    undo.add_argument("--run", dest="run_id", metavar="RUN", help="every change of a run")
    undo.add_argument("--key", metavar="RESOURCE/KEY", help="every change of a key")
    undo.add_argument("--since", metavar="TIME", help="every change since 2026-01-31T12:00:00Z, or since 2h ago ('2h')")
    undo.add_argument("--force", action="store_true", help="also what has changed since; needs an approval")
    undo.add_argument("--yes", action="store_true", help="do it (otherwise it is only shown)")
    replay = commands.add_parser(
        "replay",
        description="Make failed changes of a run again with their own keys, and undone ones as the next generation:"
        " writes of different keys side by side, a send when everything before it is made.",
    )
    replay.add_argument("--run", dest="run_id", metavar="RUN", help="the changes of a run")
    replay.add_argument("--turn", metavar="TURN", help="the changes of a turn; a plan set is both: set:NAME")
    replay.add_argument("--yes", action="store_true", help="do it (otherwise it is only shown)")
    recover = commands.add_parser(
        "recover",
        description="Ask the probe of each effect that may have landed, compare its resource, or open a ticket for a"
        " person; expire and escalate tickets that are due.",
    )
    for parser, run in ((undo, _undo), (replay, _replay), (recover, _recover)):
        common(parser)
        parser.set_defaults(run=lambda given, run=run: run_to_end(run(given)))
    document_exits(undo, wrong="nothing matches, or something was not taken back, or the policy cannot be used")
    document_exits(replay, wrong="nothing matches, or something was not made again, or the policy cannot be used")
    document_exits(recover, wrong="something waits for a person or is still under way, or the policy cannot be used")


async def _undo(given: argparse.Namespace) -> int:
    which = Changes(
        turn=given.turn, run=given.run_id, key=given.key, since_us=parse_time(given.since), record=given.record
    )
    if not any(which.values()):
        raise ConfigError("undo what? name --record, --turn, --run, --key or --since")
    async with open_runtime(given) as runtime:
        if not given.yes:
            steps = await runtime.operations.undo_plan(**which, force=given.force)
            return _show_steps(steps, given, "would be taken back", _NO_WAY_BACK)
        with notes().status("undoing"):
            done = await runtime.operations.undo(**which, force=given.force)
    return _show_done(done, given, _NO_WAY_BACK)


async def _replay(given: argparse.Namespace) -> int:
    if not given.run_id and not given.turn:
        raise ConfigError("replay what? name --run or --turn")
    async with open_runtime(given) as runtime:
        if not given.yes:
            steps = await runtime.operations.replay_plan(given.run_id, turn=given.turn)
            return _show_steps(steps, given, "would be made again", _NOT_AGAIN)
        with notes().status("replaying"):
            done = await runtime.operations.replay(given.run_id, turn=given.turn)
    return _show_done(done, given, _NOT_AGAIN)


async def _recover(given: argparse.Namespace) -> int:
    # Entered, it would settle them before anybody could tell what was found.
    async with open_runtime(given, enter=False) as runtime:
        with notes().status("recovering"):
            found = await runtime.operations.recover()
            going_on = await runtime.operations.under_way()
    if given.json:
        print_json([*found, *going_on])
    else:
        _show_recovered(found, store_option(given))
        _show_under_way(going_on)
    return 1 if going_on or any(item.state in ("asked", "waiting") for item in found) else 0


def _show_under_way(found: Sequence[Recovered]) -> None:
    """What is not in doubt yet: whoever makes it is alive, or died less than a lease ago."""
    if not found:
        return
    out, last_us = console(), max(item.until_us for item in found)
    are = "is" if len(found) == 1 else "are"
    out.print(f"[bold]{format_count(len(found), 'change')} {are} under way[/], or left by a process that has just died")
    for item in found:
        what = "  ".join(sanitize(part) for part in (item.tool, ", ".join(item.keys), f"call {item.call}") if part)
        out.print(f"  {what}  [dim]begun {format_moment(item.begun_us)}, lease until {format_moment(item.until_us)}[/]")
    out.print(f"run interlock recover again after {format_moment(last_us)}: what is not renewed is in doubt then")


def _show_recovered(found: Sequence[Recovered], where: str) -> None:
    """What each question is about: two calls of one tool differ in their ids, arguments and times."""
    out = console()
    were = "was" if len(found) == 1 else "were"
    out.print(f"[bold]{format_count(len(found), 'effect')} {were} in doubt[/]")
    for item in found:
        what = "  ".join(sanitize(part) for part in (item.tool, ", ".join(item.keys), f"call {item.call}") if part)
        out.print(f"  {colorize(item.state)}  {what}  [dim]begun {format_moment(item.begun_us)}[/]")
        if item.arguments is not None:
            out.print(f"    [dim]{sanitize(msgspec.json.encode(item.arguments).decode())}[/]")
        out.print(f"    [dim]{sanitize(item.how)}[/]")
        if item.ticket is not None and item.state == "asked":
            out.print(f"    ticket {item.ticket}: interlock review show {item.ticket}{sanitize(where)}")


def _show_steps(steps: Sequence[UndoStep], given: argparse.Namespace, what: str, no_way: str) -> int:
    if given.json:
        print_json([_step(step, None) for step in steps])
        return 0 if steps else 1
    if not steps:
        console().print(_NOTHING)
        return 1
    out, able = console(), sum(not step.obstacle for step in steps)
    for step in steps:
        _print_step(step, no_way)
    way_on = "; do it with --yes" if able else ""
    out.print(f"[bold]{able} of {format_count(len(steps), 'change')} {what}[/]{way_on}")
    return 0


def _show_done(done: Sequence[tuple[UndoStep, Outcome | None]], given: argparse.Namespace, no_way: str) -> int:
    fine = sum(outcome is not None and outcome.status in (Status.OK, Status.NO_DATA) for _step, outcome in done)
    nothing = sum(step.nothing for step, _outcome in done)
    if given.json:
        print_json([_step(step, outcome) for step, outcome in done])
    elif not done:
        console().print(_NOTHING)
    else:
        out = console()
        for step, outcome in done:
            _print_step(step, no_way)
            if outcome is not None:
                asks = f", ticket {outcome.ticket}" if outcome.ticket else ""
                why = f": {sanitize(outcome.problem.message)}" if outcome.problem is not None else ""
                out.print(f"  → {colorize(outcome.status.value)} [dim](record {outcome.record}{asks})[/]{why}")
        idle = f", {format_count(nothing, 'change')} changed nothing" if nothing else ""
        out.print(f"[bold]{fine} of {len(done) - nothing} done[/]{idle}")
    return 0 if done and fine + nothing == len(done) else 1


def _print_step(step: UndoStep, no_way: str) -> None:
    out = console()
    out.print(f"[bold]{step.record}[/]  {sanitize(step.claim.tool)}  {sanitize(', '.join(step.keys))}")
    if step.of is not None and not step.tool.startswith(UNDO):  # of what is put back, the difference says more
        out.print(f"  [dim]{sanitize(msgspec.json.encode(step.of).decode())}[/]")
    if step.obstacle:
        way = "nothing to take back" if step.nothing else "left as it is" if step.tool else no_way
        out.print(f"  [yellow]{way}[/]: {sanitize(step.obstacle)}")
    print_diff(step.diff)


def _step(step: UndoStep, outcome: Outcome | None) -> dict[str, Any]:
    shown_as = {"record": step.record, "of": step.claim.tool, "keys": step.keys, "tool": step.tool or None}
    shown_as |= {"arguments": step.of, "diff": step.diff, "obstacle": step.obstacle or None}
    if outcome is not None:
        shown_as["outcome"] = msgspec.to_builtins(outcome)
    return shown_as
