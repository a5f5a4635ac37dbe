"""Whoever died just before a runtime was entered: what they left under way is settled when their leases are over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from interlock.engine import EngineContext
from interlock.errors import StoreError
from interlock.operations.recover import Recovered, under_way

_log = logging.getLogger("interlock")
_SOONEST_S = 0.05


class LateRecovery:
    """Recovers again for as long as there is one of the changes that were under way at first; others are left alone."""

    def __init__(self, ctx: EngineContext, recover: Callable[[], Awaitable[object]]) -> None:
        self._ctx, self._recover = ctx, recover
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look what is under way; if anything is, it is seen to beside whatever the runtime does."""
        found = await under_way(self._ctx)
        if found:
            self._task = asyncio.create_task(self._work(found), name="interlock late recovery")

    async def close(self) -> None:
        """See to it no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _work(self, found: tuple[Recovered, ...]) -> None:
        ctx, first = self._ctx, {one.claim for one in found}
        while found:
            try:
                now_us = await ctx.store.now_us(ctx.clock.now_us())
                await ctx.clock.sleep(max(_SOONEST_S, (min(one.until_us for one in found) - now_us) / 1e6))
                await self._recover()
                found = tuple(one for one in await under_way(ctx) if one.claim in first)
            except StoreError as error:  # it is away: who comes next asks again
                _log.warning("what was under way when this runtime began is not settled yet: %s", error)
                await ctx.clock.sleep(ctx.lease_us / 1e6)
