"""`interlock plan-set`: changes that belong together, planned and made in order."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.cli.call import show
from interlock.cli.interrupts import run_to_end
from interlock.cli.options import store_option
from interlock.cli.output import console, format_count, notes, print_diff, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import open_runtime
from interlock.errors import ConfigError
from interlock.operations import Change, PlannedChange
from interlock.operations.stored_sets import turn_of
from interlock.values import Outcome, Status

_FINE = (Status.OK, Status.NO_DATA)


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser(
        "plan-set",
        description='Plan the changes of a file, a JSON list of {"tool": ..., "arguments": {...}}, each on what those'
        " before it would leave; with --apply make them, exactly as planned and in order. Run again under the same"
        " name, a set goes on where it ended.",
    )
    parser.add_argument("file", help="the changes, or - for standard input")
    parser.add_argument("--name", required=True, help="what the set is called")
    parser.add_argument("--actor", default="cli", help="who makes them (default: cli)")
    parser.add_argument("--apply", action="store_true", help="make them (otherwise they are only planned)")
    common(parser)
    document_exits(parser, wrong="one of the changes is refused or was not made, or the policy cannot be used")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Plan the changes, or make them."""
    return run_to_end(_run(given, _read_changes(given.file)))


async def _run(given: argparse.Namespace, changes: list[Change]) -> int:
    async with open_runtime(given, exists=False) as runtime:
        planned, refused = await runtime.operations.plan_set(changes, actor=given.actor, name=given.name)
        if refused is not None:
            return _show_refused(given, planned, refused, len(changes))
        if not given.apply:
            return _show_planned(given, planned)
        with notes().status("applying"):
            outcomes = await runtime.operations.apply_set(given.name, planned, actor=given.actor)
    where = store_option(given)
    # A set goes on only beyond what was made.
    made = [outcome for outcome in outcomes if outcome is not outcomes[-1] or outcome.status in _FINE]
    if given.json:
        print_json(outcomes)
    else:
        for outcome in outcomes:
            show(outcome, where)
        console().print(f"[bold]{len(made)} of {format_count(len(changes), 'change')} made[/]")
        same = len(made) - len({outcome.repeats or outcome.record for outcome in made})
        if same:
            console().print(f"{same} of them the same as another one of the set, and made once with that")
        console().print(f"[dim]taken back by: interlock undo --turn {sanitize(turn_of(given.name) + where)}[/]")
    return 0 if len(made) == len(changes) and all(outcome.status in _FINE for outcome in made) else 1


def _show_planned(given: argparse.Namespace, planned: Sequence[PlannedChange]) -> int:
    if given.json:
        print_json({"planned": planned, "refused": None})
    else:
        _print_plans(planned)
    return 0


def _show_refused(given: argparse.Namespace, planned: Sequence[PlannedChange], refused: Outcome, count: int) -> int:
    """A set that cannot be made: with --apply no plan is shown, which would read as if something had come of it."""
    if given.json:
        print_json({"planned": planned, "refused": refused})
        return 1
    where = f"change {len(planned) + 1} of {count}"
    if given.apply:
        console().print(f"[bold red]refused, nothing was changed:[/] {where}")
    else:
        _print_plans(planned)
        console().print(f"[bold yellow]would be refused:[/] {where}, and with it the set")
    show(refused, store_option(given))
    return 1


def _print_plans(planned: Sequence[PlannedChange]) -> None:
    for item in planned:
        console().print(f"[bold]{sanitize(item.tool)}[/]  {sanitize(', '.join(item.keys))}")
        print_diff(item.diff)
        for note in item.notes:
            console().print(f"  [yellow]{sanitize(note)}[/]")


def _read_changes(file: str) -> list[Change]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        changes = msgspec.json.decode(data, type=list[Change])
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        example = '[{"tool": "set_title", "arguments": {"id": "a"}}]'
        raise ConfigError(f"{file}: not a list of changes: {error}; write {example}") from None
    if not changes:
        raise ConfigError(f"{file}: the list of changes is empty; there is nothing to plan")
    return changes
