"""What a call that is delivered again, under its caller's own id, was made as or answered from the first time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlock.changes import ClaimName
from interlock.engine.context import EngineContext
from interlock.engine.undo_chain import claim_by_key
from interlock.errors import StoreError
from interlock.state import LANDED, Claimed, ClaimState
from interlock.values import Call, Mode


class OtherCall(msgspec.Struct, frozen=True):
    """The id of this call was used for another one."""


async def find_delivery(
    ctx: EngineContext, call: Call, name: ClaimName, claim: Claimed | None
) -> Claimed | OtherCall | None:
    """What this very call became, if it was delivered before and that landed, as a redelivery is the same call, always:
    the generation that it made, or from which it was answered. Or that its id was used for another call.

    The row of the id is read after the newest generation (`claim`), so that whatever that knows of it is among it. The
    begin commit has the last word about an id; what is found here is refused before anybody is asked, and not made.
    """
    applies = call.mode is Mode.APPLY
    if call.id_is_ours or call.replays or not (applies or call.turn is None):
        return None
    if call.turn is not None:
        ctx.at("claim.turn")
        made = (await ctx.turns.read(call.turn)).last_made(call)
        if made is not None and made.claim != name.name:
            return OtherCall()
    if not name.call_name:  # the claim goes by the id: each generation of it is this call's
        return None if claim is None else await _find_own(ctx, call, claim.name, range(claim.generation, 0, -1))
    ctx.at("claim.call")
    row = await ctx.store.claim(name.call_name)
    if row is None:
        return None
    if row.request != name.name:
        return OtherCall() if applies else None
    if row.record is None:
        return await _find_own(ctx, call, row.request, (row.generation, *reversed(row.tokens)))
    return await _answered_from(ctx, row)


async def answered_meanwhile(ctx: EngineContext, call_name: str) -> Claimed | None:
    """What a call was answered from, by the name of its id, while another delivery of it was on its way."""
    ctx.at("claim.call")
    row = await ctx.store.claim(call_name)
    return None if row is None or row.record is None else await _answered_from(ctx, row)


async def _answered_from(ctx: EngineContext, row: Claimed) -> Claimed:
    answered = await claim_by_key(ctx.store, ctx.at, f"{row.request}.{row.generation}")
    if answered is None or answered.record != row.record:
        raise StoreError(
            f"record {row.record}, which call id {row.call!r} was answered from, is not that of its change; run"
            " interlock audit verify"
        )
    return answered


async def _find_own(ctx: EngineContext, call: Call, name: str, generations: Iterable[int]) -> Claimed | None:
    """The newest of some generations of a claim that a call made; None if nothing of it landed, or nobody knows yet.

    There are several only where it failed, or was made again by a replay; what failed may be somebody else's now.
    """
    for generation in generations:
        found = await claim_by_key(ctx.store, ctx.at, f"{name}.{generation}")
        own = found is not None and (found.call, found.turn) == (call.call_id, call.turn)
        if found is not None and own and found.state is not ClaimState.FAILED:
            return found if found.state in LANDED else None
    return None
