"""What every command of the catalog starts from."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError
from interlock_catalog.settings import FILE, Loaded, load


def add(actions: Any, name: str, run: Callable[[argparse.Namespace], int], help: str, about: str = "") -> Any:
    """A command with the options that all of them take."""
    parser = actions.add_parser(name, help=help, description=about or help[0].upper() + help[1:] + ".")
    parser.add_argument("--home", type=Path, metavar="FOLDER", help="where catalog.toml is (default: this folder)")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.set_defaults(run=run)
    return parser


def loaded_of(given: argparse.Namespace, *, ready: bool = True, **settings: Any) -> Loaded:
    """The settings of a command; `ready`: somebody has made a catalog there."""
    found = load(given.home, given=settings)
    if ready and not (found.folder / FILE).exists():
        raise ConfigError(f"{found.folder / FILE}: there is no catalog here; make one with `interlock catalog init`")
    return found
