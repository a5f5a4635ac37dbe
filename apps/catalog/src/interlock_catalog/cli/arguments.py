"""The options that every command of the catalog takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.cli.parser import document_exits

_DONE: dict[str, str] = {
    "run": "every change was made (or planned), or waits for a person",
    "health": "healthy",
    "validate": "every document keeps its contract",
    "drift": "every document is what the journal says",
    "worker": "stopped by a signal",
    "serve": "stopped by a signal",
}
_WRONG: dict[str, str] = {
    "run": "the run is partial, failed or degraded",
    "health": "something is beyond its alert_* setting, or in the last run families failed or it is degraded",
    "validate": "a document breaks its contract, or has the name slug of another",
    "drift": "a document is not what the journal says",
    "list": "the read was refused, or failed",
    "search": "nothing has such a name, or the read was refused",
    "get": "the read was refused, or failed",
    "rejected": "with --submit: not everything was made",
    "restore": "a document could not be put back, or not be deleted",
}


def add_command(
    actions: Any, name: str, run: Callable[[argparse.Namespace], int], help: str, about: str = ""
) -> argparse.ArgumentParser:
    """A command; `about` is what its own help says, where that is more than the line in the list."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=help, description=about or help[0].upper() + help[1:] + "."
    )
    parser.add_argument("--home", type=Path, metavar="FOLDER", help="where catalog.toml is (default: this folder)")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.set_defaults(run=run)
    document_exits(parser, done=_DONE.get(name, "done"), wrong=_WRONG.get(name, ""))
    return parser
