"""Families on the command line: those that are named must be there, and those that are changed enabled."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock_catalog.settings import Loaded, Settings

ENABLED = "enabled.txt"
"""The list that the policy reads."""
EVERY = "*"


async def require_families(settings: Settings, named: Sequence[str]) -> None:
    """Refuse names that no family has; the nearest ones are said."""
    if not named:
        return
    from interlock_catalog.runner.missing_families import find_missing_families

    missing = await find_missing_families(settings, named)
    if missing:
        known = await list_families(settings)
        near = [found for name in missing for found in nearest(name, sorted(known), 1)]
        meant = f" (perhaps {', '.join(near)})" if near else ""
        raise ConfigError(f"there is no family {', '.join(missing)}{meant}; see `interlock catalog list --families`")


def read_enabled(loaded: Loaded) -> set[str]:
    """The families that may be changed, or `*` for all."""
    file = loaded.folder / ENABLED
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else ()
    return {line.strip() for line in lines if line.strip()}


def select_enabled(loaded: Loaded, named: Sequence[str]) -> tuple[str, ...]:
    """The families that a run may change; refused before anything is counted, if they are only observed."""
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
            f" interlock catalog enable {' '.join(observed) or '--all'}"
        )
    return tuple(named) or tuple(sorted(enabled))


async def list_families(settings: Settings) -> set[str]:
    """The slugs of all families."""
    from interlock_catalog.app import open_backend
    from interlock_catalog.backends import iterate_pages
    from interlock_catalog.document_keys import name_of

    backend = open_backend(settings)
    try:
        return {name_of(key) async for page in iterate_pages(backend.families) for key in page}
    finally:
        await backend.close()
