"""Making a run's changes again: what failed with its own keys, what was undone as the next generation."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.engine import EngineContext, was_undone_before
from interlock.operations.recover import intent_of
from interlock.operations.standing import takes_back
from interlock.operations.undo import IN_DOUBT, UndoStep, impossible, in_doubt, locked_keys, with_arguments
from interlock.state import ChangeFilter, Claimed, ClaimState

_Place = tuple[str, str, str | None, str | None]


async def replay_steps(ctx: EngineContext, which: ChangeFilter) -> list[UndoStep]:
    """What of a run or turn failed or was undone, in the order in which it was first tried, with its own arguments."""
    ctx.at("replay.read")
    steps = []
    for claim in _in_first_order(await ctx.store.claims(which)):
        if not (in_doubt(claim) or claim.state in (ClaimState.FAILED, ClaimState.UNDONE)):
            continue
        if await takes_back(ctx, claim) or await _is_made_again(ctx, claim):
            continue  # it is not part of the run's own work, or something else stands in its place
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


def _place(claim: Claimed) -> _Place:
    """Which part of the work of a run a change is: a replay makes it again as the same call."""
    return claim.first_name, claim.call, claim.turn, claim.run


def _in_first_order(claims: Sequence[Claimed]) -> list[Claimed]:
    """The newest generation of each call, in the order in which the calls were first begun: what was made again later
    comes before what came after it the first time."""
    first: dict[_Place, int] = {}
    newest: dict[_Place, Claimed] = {}
    for claim in claims:
        place = _place(claim)
        first[place] = min(first.get(place, claim.intent or 0), claim.intent or 0)
        if place not in newest or newest[place].generation < claim.generation:
            newest[place] = claim
    return sorted(newest.values(), key=lambda claim: first[_place(claim)])


async def _is_made_again(ctx: EngineContext, claim: Claimed) -> bool:
    """Whether another call has made the same change in place of one that had been taken back by then.

    One that came while this one stood is a change of its own, and so is what a replay has made of another call.
    """
    if not claim.is_superseded:
        return False
    name, generation = claim.first_name, claim.generation + 1
    ctx.at("replay.next")
    for row in (await ctx.store.claim(f"{name}#{generation}"), await ctx.store.claim(name)):
        if row is not None and row.generation == generation:
            intent, _whole = await intent_of(ctx, row)
            change = None if intent is None else intent.content().change
            if intent is None or change is None:
                return True  # nobody can tell, and what is not made again can still be asked for
            return not change.replays and await was_undone_before(ctx, claim, intent.id)
    return True
