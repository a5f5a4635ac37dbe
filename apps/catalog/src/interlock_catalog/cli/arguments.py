"""The options that every command of the catalog takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
    return parser
