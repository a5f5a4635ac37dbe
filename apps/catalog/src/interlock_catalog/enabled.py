"""Families that may be changed: a list beside the settings, which the policy reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from interlock.errors import ConfigError
from interlock_catalog.settings import Loaded, home_option
from interlock_catalog.text_files import read_utf8

ENABLED = "enabled.txt"
"""The list that the policy reads."""
EVERY = "*"


def read_enabled(loaded: Loaded) -> set[str]:
    """The families that may be changed, or `*` for all."""
    file = loaded.folder / ENABLED
    lines = read_utf8(file).splitlines() if file.exists() else ()
    return {line.strip() for line in lines if line.strip()}


def read_changeable(loaded: Loaded) -> set[str] | None:
    """The families that an apply run over the whole catalog goes through; None for all.

    All where none is enabled, too: the policy denies every change then, which is seen; a run over nothing would not be.
    """
    enabled = read_enabled(loaded)
    return None if not enabled or EVERY in enabled else enabled


def select_enabled(loaded: Loaded, named: Sequence[str], home: Path | None = None) -> tuple[str, ...]:
    """The families that a run may change, () for all; refused before anything is counted, if they are only observed.

    `home` is the folder as somebody typed it, for the command that is suggested then.
    """
    # Without the list it is the policy's own business, and nothing is known about it here.
    if not (loaded.folder / ENABLED).exists():
        return tuple(named)
    enabled = read_enabled(loaded)
    if EVERY in enabled:
        return tuple(named)
    observed = [name for name in named if name not in enabled]
    if observed or not enabled:
        which = f"{', '.join(observed)} is" if observed else "every family is"
        raise ConfigError(
            f"{which} only observed, and nothing was run; look at --dry-run first, then let it be changed:"
            f" interlock catalog enable {' '.join(observed) or '--all'}{home_option(home)}"
        )
    return tuple(named) or tuple(sorted(enabled))
