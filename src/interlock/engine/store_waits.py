"""How long a call waits for what the store says: for its answer, and for whoever is making the same change."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from interlock.engine.context import Accepted, Admitted, EngineContext
from interlock.engine.waiting import Waiting
from interlock.errors import StoreError
from interlock.resilience import Expired
from interlock.state import Claimed, ClaimState

_FIRST_LOOK_S, _LAST_LOOK_S = 0.01, 0.25
T = TypeVar("T")


async def ask_in_time(ctx: EngineContext, stage: Accepted | Admitted, work: Coroutine[Any, Any, T]) -> T:
    """What is asked of the store for a call; `Expired` if it does not answer in the time that the call has."""
    ctx.at("claim.wait")
    until = stage.started.clock + stage.binding.tool.deadline_s
    return await ctx.deadlines.within(_left_s(ctx, until), work)


async def settled_claim(ctx: EngineContext, name: str, until: float) -> Claimed | None:
    """A claim as soon as nobody is making it any more, or as it is when time is up.

    The store is given a moment more than whoever makes it. A claim that was seen is not forgotten because the store
    falls silent then; `Expired` or `StoreError` if none was.
    """
    wait_s, claim, waiting = _FIRST_LOOK_S, None, None
    while True:
        try:
            ctx.at("claim.read")
            claim = await ctx.deadlines.within(_left_s(ctx, until), ctx.store.claim(name))
            if claim is None or claim.state is not ClaimState.OPEN:
                return claim
            now_us = await ctx.deadlines.within(_left_s(ctx, until), ctx.store.now_us(ctx.clock.now_us()))
        except (Expired, StoreError):
            if claim is None:
                raise
            return claim
        left_s = until - ctx.clock.monotonic()
        if left_s <= 0 or claim.expires_us <= now_us:
            return claim
        waiting = waiting or Waiting(ctx.clock)  # most find nobody to wait for
        waiting.note(f"call {claim.call!r}, which has begun this very change", (claim.expires_us - now_us) / 1e6)
        await ctx.clock.sleep(min(wait_s, left_s))
        wait_s = min(wait_s * 2, _LAST_LOOK_S)


def _left_s(ctx: EngineContext, until: float) -> float:
    """How long the store is waited for: until then, and not less than a moment.

    Whoever has waited for somebody else until the deadline must still be told what became of that.
    """
    return max(_LAST_LOOK_S, until - ctx.clock.monotonic())
