"""`interlock config`: every setting, its value, and where it came from."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

import msgspec

from interlock.cli.options import load_command_settings
from interlock.cli.output import console, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.config import HELP

_WIDTH = 90
_LONGEST_VALUE = 200
"""Of one value; a longer one is cut, and says so."""


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("config")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="every setting, its value, and where it came from")
    common(show)
    document_exits(show, store=False)
    show.set_defaults(run=_show)


def _show(given: argparse.Namespace) -> int:
    loaded = load_command_settings(given)
    found: dict[str, Any] = msgspec.to_builtins(loaded.settings)
    values = {key: found[key] for key in HELP}
    if given.json:
        print_json({key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()})
        return 0
    out = console()
    for key, value in values.items():
        first, *more = _lines(key, [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)])
        out.print(f"[bold]{key}[/] = {sanitize(first) or '–'}  [dim]({sanitize(loaded.origins[key])})[/]")
        for item in more:
            out.print(f"    {sanitize(item)}")
        # Broken here, in a pipe too: a table with a column for the meaning would be as wide as the longest of them.
        for line in textwrap.wrap(HELP[key], _WIDTH):
            out.print(f"    [dim]{sanitize(line)}[/]")
    return 0


def _lines(key: str, items: list[str]) -> list[str]:
    """A value behind its key; of a list that is too long for a line the items below it, one by one."""
    shown = [
        item
        if len(item) <= _LONGEST_VALUE
        else f"{item[:_LONGEST_VALUE]}… ({len(item):,} characters; --json has all of them)"
        for item in items
    ]
    text = ", ".join(shown)
    if len(items) < 2 or len(key) + len(text) <= _WIDTH:
        return [text]
    return [f"{len(items):,} values:", *shown]
