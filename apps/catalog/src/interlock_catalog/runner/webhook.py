"""The webhook: a monitor hears of every run that is neither failed nor degraded, and raises the alarm otherwise."""

from __future__ import annotations

import logging

from interlock_catalog.runner.records import BAD_STATUSES, Run
from interlock_catalog.settings import Settings

_LOG = logging.getLogger("interlock.catalog")


async def notify_webhook(settings: Settings, run: Run) -> None:
    """Fetch the address of the settings after a run; that it cannot be reached is no failure."""
    if not settings.webhook or run.status in BAD_STATUSES:
        return
    import httpx

    try:
        async with httpx.AsyncClient(timeout=settings.timeout_s) as client:
            await client.get(settings.webhook, params={"run": run.id, "status": run.status})
    except httpx.HTTPError as error:
        _LOG.warning("the address of the setting `webhook` cannot be reached: %s", error)
