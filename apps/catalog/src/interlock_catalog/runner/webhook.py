"""Telling a monitor that a run has ended well: it raises the alarm if that stays away."""

from __future__ import annotations

import logging

from interlock_catalog.runner.record import Run
from interlock_catalog.settings import Loaded

_LOG = logging.getLogger("interlock.catalog")


async def pinged(loaded: Loaded, run: Run) -> None:
    """Fetch the address of the settings after a run that did not fail; that it cannot be reached is no failure."""
    if not loaded.settings.ping or run.status == "failed":
        return
    import httpx

    try:
        async with httpx.AsyncClient(timeout=loaded.settings.timeout_s) as client:
            await client.get(loaded.settings.ping, params={"run": run.id, "status": run.status})
    except httpx.HTTPError as error:
        _LOG.warning("the monitor at the address of `ping` cannot be reached: %s", error)
