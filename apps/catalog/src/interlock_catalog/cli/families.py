"""Families on the command line: those that are named must be there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock_catalog.settings import Settings, home_option


async def require_families(settings: Settings, named: Sequence[str], home: Path | None = None) -> None:
    """Refuse names that no family has; the nearest ones are said."""
    if not named:
        return
    from interlock_catalog.runner.missing_families import find_missing_families

    missing = await find_missing_families(settings, named)
    if missing:
        known = await list_families(settings)
        near = [found for name in missing for found in nearest(name, sorted(known), 1)]
        meant = f" (perhaps {', '.join(near)})" if near else ""
        see = f"see `interlock catalog list --families{home_option(home)}`"
        raise ConfigError(f"there is no family {', '.join(missing)}{meant}; {see}")


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
