"""Families that somebody names on the command line: they must be there."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock_catalog.settings import Settings


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
