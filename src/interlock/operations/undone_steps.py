"""Changes of a plan set that were made and taken back: what comes after them rests on what is not there any more."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.engine import EngineContext, claim_by_key
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.state import ChangeFilter, Claimed, ClaimState
from interlock.values import Outcome, Problem, Status


async def undone_calls(ctx: EngineContext, turn: str) -> Mapping[str, Claimed]:
    """The changes of a turn that were taken back and not made again since, by the ids of their calls: those that it has
    made itself, and those that others had made and from whose records it was answered."""
    ctx.at("plan_set.undone")
    last: dict[str, Claimed] = {}
    for claim in await ctx.store.claims(ChangeFilter(turn=turn)):
        # A replay makes the next generation under the id of the first.
        if not claim.is_lock and (claim.call not in last or last[claim.call].generation < claim.generation):
            last[claim.call] = claim
    async for record in ctx.store.records(Query(turn=turn)):
        key = record.content().same_as if record.kind == "call" else None
        answered = None if key is None else await claim_by_key(ctx.store, ctx.at, key)
        if answered is not None and (record.call not in last or last[record.call].generation <= answered.generation):
            last[record.call] = answered
    return {call: claim for call, claim in last.items() if claim.state is ClaimState.UNDONE}


def undone_message(claim: Claimed, turn: str, place: int) -> str:
    """The sentence for whoever goes on with a set of which a change was taken back."""
    # What another call has made is not the set's to be made again.
    again = f"make it again (interlock replay --run {turn}), or " if claim.turn == turn else ""
    return (
        f"change {place + 1} of the set was made (record {claim.record}) and undone since; the set stops here, as what"
        f" follows was planned on it: {again}plan what is wanted now as a set with another name"
    )


def undone_outcome(call: str, claim: Claimed, message: str) -> Outcome:
    """That nothing was made, as a change before was taken back. No call was made, so there is no record."""
    problem = Problem(reason=Reason.MOVED, message=message)
    return Outcome(call, claim.tool, Status.DENIED, said=message, problem=problem, undone=True)
