"""`interlock planset` and `interlock shadow`: changes that belong together, and plans held against what happened."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from interlock.cli.call import show
from interlock.cli.options import opened_runtime, parse_time
from interlock.cli.output import coloured, console, notes, print_diff, print_json, shown
from interlock.errors import ConfigError
from interlock.operations import Change
from interlock.values import Status


def register(commands: Any, common: Any) -> None:
    """Add the commands."""
    planset = commands.add_parser(
        "planset",
        help="plan or make changes that belong together",
        description='Plan the changes of a file, a JSON list of {"tool": ..., "arguments": {...}}; with --apply make'
        " them, exactly as planned and in order. Run again under the same name, a set goes on where it ended.",
    )
    planset.add_argument("file", help="the changes, or - for standard input")
    planset.add_argument("--name", required=True, help="what the set is called")
    planset.add_argument("--actor", default="cli", help="who makes them (default: cli)")
    planset.add_argument("--apply", action="store_true", help="make them (otherwise they are only planned)")
    shadow = commands.add_parser(
        "shadow",
        help="hold shadow plans against what happened",
        description="For every call made with mode=shadow: did the world go the way it was planned? Each key is held"
        " against the next recorded change of it, or else against what it is now.",
    )
    shadow.add_argument("--run", dest="run_id", help="only those of a run")
    shadow.add_argument("--since", metavar="TIME", help="only those since 2026-01-31T12:00:00Z, or since 2h ago ('2h')")
    for parser, run in ((planset, _planset), (shadow, _shadow)):
        common(parser)
        parser.set_defaults(run=lambda given, run=run: asyncio.run(run(given)))


async def _planset(given: argparse.Namespace) -> int:
    changes = _changes(given.file)
    async with opened_runtime(given, exists=False) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor=given.actor)
        if wrong is not None or not given.apply:
            if given.json:
                print_json({"planned": planned, "refused": wrong})
                return 0 if wrong is None else 1
            for item in planned:
                console().print(f"[bold]{shown(item.tool)}[/]  {shown(', '.join(item.keys))}")
                print_diff(item.diff)
            if wrong is not None:
                show(wrong)
            return 0 if wrong is None else 1
        with notes().status("applying"):
            outcomes = await runtime.operations.apply_set(given.name, planned, actor=given.actor)
    fine = sum(outcome.status is Status.OK for outcome in outcomes)
    if given.json:
        print_json(outcomes)
    else:
        for outcome in outcomes:
            show(outcome)
        console().print(f"[bold]{fine} of {len(changes)} changes made[/]")
    return 0 if fine == len(changes) else 1


def _changes(file: str) -> list[Change]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return msgspec.json.decode(data, type=list[Change])
    except (OSError, msgspec.MsgspecError) as error:
        example = '[{"tool": "set_title", "arguments": {"id": "a"}}]'
        raise ConfigError(f"{file}: not a list of changes: {error}; write {example}") from None


async def _shadow(given: argparse.Namespace) -> int:
    async with opened_runtime(given) as runtime:
        found = await runtime.operations.shadow(run=given.run_id, since_us=parse_time(given.since))
    if given.json:
        print_json(found)
        return 0
    out = console()
    for item in found:
        out.print(f"[bold]{item.record}[/]  {shown(item.tool)}  {shown(item.key)}  {coloured(item.verdict)}"
                  f"  [dim]{shown(item.with_whom)}[/]")  # fmt: skip
        print_diff(item.diff)
    tally = Counter(item.verdict for item in found)
    told = tally["agrees"] + tally["differs"]
    rate = f"{tally['agrees']} of {told} agree ({tally['agrees'] / told:.0%})" if told else "nothing to compare yet"
    waiting = f", {tally['pending']} pending" if tally["pending"] else ""
    out.print(f"[bold]{rate}[/]{waiting}")
    return 0
