"""Which changes are meant: of a key those that touched it, of a record also the one that it was answered from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.engine import EngineContext, claim_by_key, whole_change
from interlock.operations.recover import read_record
from interlock.records import Stored
from interlock.state import LANDED, ChangeFilter, Claimed
from interlock.values import Status


async def changes_meant(ctx: EngineContext, which: ChangeFilter) -> Sequence[Claimed]:
    """The changes of a filter, in the order of the store."""
    found = await ctx.store.claims(which)
    number = None if found or which.record is None else await _stands_for(ctx, which.record)
    if number is not None:
        found = await ctx.store.claims(msgspec.structs.replace(which, record=number))
    if which.key is None:
        return found
    return [claim for claim in found if await _has_touched(ctx, claim, which.key)]


async def _has_touched(ctx: EngineContext, claim: Claimed, key: str) -> bool:
    """Whether a change named a key, or was of its whole resource and touched it, or may have."""
    if key in claim.keys or claim.state not in LANDED:
        return True
    return (await whole_change(ctx, claim)).has_touched(key)


async def _stands_for(ctx: EngineContext, number: int) -> int | None:
    """The record of the change that another record is about: one that was answered from it, or of a call that waited
    for a person and was made since."""
    record, _whole = await read_record(ctx, number)
    while record is not None and record.content().repeats is not None:
        number = record.content().repeats or 0
        record, _whole = await read_record(ctx, number)
    if record is None or record.status != Status.PARKED.value:
        return number
    made = await _made_since(ctx, record)
    return None if made is None else made.record


async def _made_since(ctx: EngineContext, parked: Stored) -> Claimed | None:
    change = parked.content().change
    claim = None if change is None else await claim_by_key(ctx.store, ctx.at, f"{change.claim}.{change.generation}")
    return None if claim is None or claim.call != parked.call else claim
