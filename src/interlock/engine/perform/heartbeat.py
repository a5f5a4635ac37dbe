"""The heartbeat of a claim: while its effect runs, others must see that its holder is alive."""

from __future__ import annotations

import asyncio

from interlock.engine.context import EngineContext
from interlock.errors import StoreError
from interlock.transitions import Batch, Refused, RenewClaim


class Heartbeat:
    """Renews a claim every third of its term; if it was settled by somebody else, the effect is given up."""

    def __init__(self, ctx: EngineContext, claim: str, holder: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.lost = False
        self._stopped = False
        self._ctx = ctx
        self._claim = claim
        self._holder = holder
        self._task = task
        self._beating: asyncio.Task[None] | None = None
        # A third of the term: two renewals may be lost before the holder is taken for dead.
        self._every_s = ctx.lease_us / 3e6
        self._next = task.get_loop().call_later(self._every_s, self._beat)

    def stop(self) -> None:
        """The effect is over."""
        self._stopped = True
        self._next.cancel()
        if self.lost:
            self._task.uncancel()

    def _beat(self) -> None:
        self._beating = self._task.get_loop().create_task(self._renew())

    async def _renew(self) -> None:
        ctx = self._ctx
        now_us = ctx.clock.now_us()
        ctx.at("heartbeat.renew")
        try:
            receipt = await ctx.store.commit(
                Batch(now_us, (RenewClaim(self._claim, self._holder, now_us + ctx.lease_us),))
            )
        except StoreError:
            receipt = None  # the store is away: the claim stays ours until somebody settles it
        if self._stopped:
            return
        if isinstance(receipt, Refused):
            self.lost = True
            self._task.cancel()
        else:
            self._next = self._task.get_loop().call_later(self._every_s, self._beat)
