"""Changes of a plan set that were made and taken back: what comes after them rests on what is not there any more."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.engine import EngineContext
from interlock.reasons import Reason
from interlock.state import ChangeFilter, Claimed, ClaimState
from interlock.values import Outcome, Problem, Status


async def undone_calls(ctx: EngineContext, turn: str) -> Mapping[str, Claimed]:
    """The changes of a turn that were taken back and not made again since, by the ids of their calls."""
    ctx.at("plan_set.undone")
    last: dict[str, Claimed] = {}
    for claim in await ctx.store.claims(ChangeFilter(turn=turn)):
        # A replay makes the next generation under the id of the first.
        if not claim.is_lock and (claim.call not in last or last[claim.call].generation < claim.generation):
            last[claim.call] = claim
    return {call: claim for call, claim in last.items() if claim.state is ClaimState.UNDONE}


def undone_message(claim: Claimed, turn: str, place: int) -> str:
    """The sentence for whoever goes on with a set of which a change was taken back."""
    return (
        f"change {place + 1} of the set was made (record {claim.record}) and undone since; the set stops here, as what"
        f" follows was planned on it: make it again (interlock replay --run {turn}), or plan what is wanted now as a"
        " set with another name"
    )


def undone_outcome(claim: Claimed, message: str) -> Outcome:
    """That nothing was made, as a change before was taken back. No call was made, so there is no record."""
    problem = Problem(reason=Reason.MOVED, message=message)
    return Outcome(claim.call, claim.tool, Status.DENIED, said=message, problem=problem, undone=True)
