"""Whether a change was made, however its call ended: an answer that is empty or unusable takes nothing back."""

from __future__ import annotations

from interlock.engine import EngineContext
from interlock.operations.ledger_writer import record_with_payload
from interlock.state import ChangeFilter, ClaimState
from interlock.values import Outcome


async def was_made(ctx: EngineContext, outcome: Outcome) -> bool:
    """Whether the change behind an outcome stands by the record of it, or of what that was answered from."""
    if outcome.ok:
        return True
    number, repeats = outcome.record, outcome.repeats
    while repeats is not None:
        record, _whole = await record_with_payload(ctx.store, repeats)
        number, repeats = repeats, None if record is None else record.content().repeats
    if number is None:
        return False
    ctx.at("made.read")
    claims = await ctx.store.claims(ChangeFilter(record=number))
    return any(claim.record == number and claim.state is ClaimState.DONE for claim in claims)
