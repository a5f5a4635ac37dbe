"""`interlock config`: every setting, its value, and where it came from."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from interlock.cli.options import load_command_settings
from interlock.cli.output import console, print_json, sanitize, table
from interlock.cli.parser import document_exits
from interlock.config import HELP


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
    rows = table("settings", ("setting", "value", "from", "what it is"))
    for key, value in values.items():
        text = ", ".join(value) if isinstance(value, list | tuple) else str(value)
        rows.add_row(key, sanitize(text) or "–", sanitize(loaded.origins[key]), f"[dim]{sanitize(HELP[key])}[/]")
    console().print(rows)
    return 0
