"""Commands that are suggested: typed in the same place, each finds the same catalog and the same ledger."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from interlock.errors import ConfigError, NotFound
from interlock_catalog.settings import SOURCE, Loaded, find_ledger_file, home_option

Suggest = Callable[[str], str]
"""A command by its words, as it has to be typed."""


def catalog_commands(given: argparse.Namespace) -> Suggest:
    """Commands of `interlock catalog` on this catalog."""
    return lambda words: f"interlock catalog {words}{home_option(given.home)}"


def ledger_commands(given: argparse.Namespace, loaded: Loaded) -> Suggest:
    """Commands on the ledger of this catalog.

    They know nothing of --home: the ledger is found by its settings, the catalog, which the tools open, by a variable.
    """
    file = find_ledger_file(loaded)
    elsewhere = file is not None and loaded.folder.resolve() != Path.cwd()
    config = f" --config {shlex.quote(str(file))}" if elsewhere else ""
    home = "" if given.home is None else f"{SOURCE.home}={shlex.quote(str(given.home))} "
    return lambda words: f"{home}interlock {words}{config}"


@contextmanager
def naming_a_run(given: argparse.Namespace) -> Iterator[None]:
    """A run that is named and not there is a mistake in the command."""
    try:
        yield
    except NotFound as error:
        raise ConfigError(f"{error}; see `interlock catalog runs{home_option(given.home)}`") from None
