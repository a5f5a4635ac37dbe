"""What a change of a whole resource made of the keys in it, as its records tell."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.changes import expand_states, local_key, states_by_key, touched_keys
from interlock.engine.context import EngineContext
from interlock.ports import Query
from interlock.records import Stored
from interlock.state import Claimed
from interlock.values import NOT_THERE, Json


class WholeChange(msgspec.Struct, frozen=True):
    """A change that might have touched anything in its resource."""

    at_us: int
    """When it was over."""
    left: dict[str, str | None] | None
    """The keys that it touched, each with the version at which it left it, where its resource gives one; None where its
    records do not say which keys those are."""

    def has_touched(self, key: str) -> bool:
        """Whether it touched a key, or may have."""
        return self.left is None or key in self.left


async def whole_change(ctx: EngineContext, claim: Claimed) -> WholeChange:
    """The change of a claim on a whole resource that landed."""
    outcome, ended = await _read(ctx, claim.record)
    _intent, begun = await _read(ctx, claim.intent)
    at_us = claim.at_us if outcome is None else outcome.at_us
    # A change that was settled later has no snapshot of its own after it: what was planned stands in for it.
    before: Any = begun.get("before")
    after: Any = ended.get("after") or begun.get("planned")
    versions = ended.get("versions") or {}
    try:
        touched = touched_keys(claim.keys, before, after)
        became = states_by_key(claim.keys, after)
    except (AttributeError, TypeError, ValueError):  # they were deleted, or nobody has seen what it left
        return WholeChange(at_us, None)
    # What was written again as it was has another version.
    moved = {*touched, *(key for key in became if local_key(key) in versions)}
    left = {key: versions.get(local_key(key)) if key in became else NOT_THERE for key in moved}
    return WholeChange(at_us, left)


async def _read(ctx: EngineContext, number: int | None) -> tuple[Stored | None, dict[str, Json]]:
    """A record and what lies beside it; of that nothing if it was deleted, or is not what was recorded."""
    if number is None:
        return None, {}
    ctx.at("whole_change.read")
    found = [record async for record in ctx.store.records(Query(after=number - 1, until=number))]
    payload = await ctx.store.payload(number) if found else None
    if payload is None or found[0].content().payload_digest != ctx.digest(payload):
        return (found[0] if found else None), {}
    held: Any = msgspec.json.decode(payload)

    async def before_of(record: int) -> Json:
        return (await _read(ctx, record))[1].get("before")

    return found[0], await expand_states(held, before_of, ctx.at) if isinstance(held, dict) else {}
