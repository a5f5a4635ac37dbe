"""`interlock shadow`: plans of shadow calls compared with what happened."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import parse_time
from interlock.cli.output import colorize, console, print_diff, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import open_runtime


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser(
        "shadow",
        description="For every call made with mode=shadow: did the world go the way it was planned? Each key is"
        " compared with the next recorded change of it, or else with what it is now.",
    )
    parser.add_argument("--run", dest="run_id", metavar="RUN", help="only those of a run")
    parser.add_argument("--since", metavar="TIME", help="only those since 2026-01-31T12:00:00Z, or since 2h ago ('2h')")
    common(parser)
    document_exits(parser, wrong="the policy cannot be used")
    parser.set_defaults(run=lambda given: run_to_end(_run(given)))


async def _run(given: argparse.Namespace) -> int:
    since_us = parse_time(given.since)
    async with open_runtime(given) as runtime:
        found = await runtime.operations.shadow(run=given.run_id, since_us=since_us)
    if given.json:
        print_json(found)
        return 0
    out = console()
    for item in found:
        what = f"[bold]{item.record}[/]  {sanitize(item.tool)}  {sanitize(item.key)}"
        out.print(f"{what}  {colorize(item.verdict)}  [dim]{sanitize(item.compared_with)}[/]")
        print_diff(item.diff)
    tally = Counter(item.verdict for item in found)
    compared = tally["agrees"] + tally["differs"]
    rate = f"{tally['agrees']} of {compared} agree ({tally['agrees'] / compared:.0%})" if compared else ""
    waiting = f", {tally['pending']} pending" if tally["pending"] else ""
    out.print(f"[bold]{rate or 'nothing to compare yet'}[/]{waiting}")
    return 0
