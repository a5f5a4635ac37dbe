"""Making a run's changes again: what failed with its own keys, what was undone as the next generation."""

from __future__ import annotations

from interlock.engine import EngineContext
from interlock.operations.recover import intent_of
from interlock.operations.standing import takes_back
from interlock.operations.undo import IN_DOUBT, UndoStep, impossible, in_doubt, locked_keys, with_arguments
from interlock.state import ChangeFilter, ClaimState


async def replay_steps(ctx: EngineContext, which: ChangeFilter) -> list[UndoStep]:
    """What of a run or turn failed or was undone, in the order in which it was tried, with its own arguments."""
    ctx.at("replay.read")
    steps = []
    for claim in await ctx.store.claims(which):
        if claim.is_superseded or not (in_doubt(claim) or claim.state in (ClaimState.FAILED, ClaimState.UNDONE)):
            continue
        if await takes_back(ctx, claim):
            continue  # it is not part of the run's own work
        intent, before = await intent_of(ctx, claim)
        if in_doubt(claim):
            step = impossible(claim, IN_DOUBT)
        elif "arguments" in before:
            locks = locked_keys(intent, before)
            step = UndoStep(claim, claim.record or 0, claim.tool, before["arguments"], claim.keys, locks=locks)
        else:
            step = impossible(claim, "its arguments have been deleted")
        steps.append(with_arguments(step, intent))
    return steps
