"""PERFORM for what only looks: one begin commit where something is set aside, then the attempts."""

from __future__ import annotations

import asyncio

from interlock.engine.context import Ended, EngineContext, Prepared
from interlock.engine.perform.attempt import Work, interrupted_reading
from interlock.errors import StoreError
from interlock.tools import Reading
from interlock.transitions import Refused


async def read(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Read the world, as often as the retry rule allows, within the call's deadline."""
    work = Work(ctx, prepared)
    closed = work.check_breaker()
    if closed is not None:
        return work.end(closed)
    try:
        refusal = await work.take_slot() or await _begin(ctx, work)
        return work.end(await work.attempt() if refusal is None else refusal)
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        return work.end(interrupted_reading(interrupt), interrupt)
    finally:
        work.give_probe_back()
        work.leave_slot()


async def _begin(ctx: EngineContext, work: Work) -> Reading | None:
    """Set aside what the call may need; the refusal if that cannot be had."""
    batch = work.begin_batch()
    if batch is None:
        return None
    try:
        if ctx.faults is not None:
            ctx.faults.at("perform.begin")
        receipt = await ctx.store.commit(batch)
        if ctx.faults is not None:
            ctx.faults.at("perform.begun")
    except StoreError as error:
        return work.not_begun(error)
    return work.not_begun(receipt) if isinstance(receipt, Refused) else None
