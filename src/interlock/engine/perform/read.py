"""PERFORM for what only looks: one begin commit where something is set aside, then the attempts."""

from __future__ import annotations

import asyncio

from interlock.engine.context import Ended, EngineContext, Prepared
from interlock.engine.perform.attempt import Work
from interlock.engine.perform.readings import interrupted_reading
from interlock.engine.record import spending
from interlock.errors import StoreError
from interlock.transitions import Batch, Committed, Refused


async def read(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Read the world, as often as the retry rule allows, within the call's deadline."""
    work, binding = Work(ctx, prepared), prepared.admitted.binding
    refusal = work.check_breaker() if binding.limits.breaker.troubled else None
    try:
        if refusal is None and binding.waits:
            refusal = await work.take_slot()
        first = () if prepared.ticket is None else (spending(ctx, prepared),)
        batch = work.begin_batch(first) if refusal is None else None
        if batch is not None:
            receipt: Committed | Refused
            if isinstance(batch, Batch):  # the likely case is asked for: that a struct is not of a class costs more
                ctx.at("perform.begin")
                receipt = await ctx.store.commit(batch)
                ctx.at("perform.begun")
            else:
                receipt = batch
            if not isinstance(receipt, Committed):
                refusal = work.not_begun(receipt)
        return work.end(await work.attempt() if refusal is None else refusal)
    except StoreError as error:  # of the begin commit: what a tool raises does not come this far
        return work.end(work.not_begun(error))
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        return work.end(interrupted_reading(interrupt), interrupt)
    finally:
        if binding.waits or work.probes:
            work.leave()
