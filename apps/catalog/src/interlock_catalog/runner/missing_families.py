"""Families that a run is asked for and that are not there."""

from __future__ import annotations

from collections.abc import Sequence

from interlock_catalog.app import open_backend
from interlock_catalog.family_reader import has_family
from interlock_catalog.runner.work_items import WorkItem
from interlock_catalog.settings import Settings


async def find_missing_families(settings: Settings, named: Sequence[str]) -> list[str]:
    """Those of the names that stand for nothing that a run could work on."""
    backend, missing = open_backend(settings), list[str]()
    try:
        for name in dict.fromkeys(named):
            if WorkItem.parse(name).is_family and not await has_family(backend, name):
                missing.append(name)
    finally:
        await backend.close()
    return missing
