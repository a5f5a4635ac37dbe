"""A change that is halted: whoever asks for it hears, too, whether it was made before."""

from __future__ import annotations

import msgspec

from interlock.changes import ClaimName, claim_name, keys_of
from interlock.engine.context import Ended, EngineContext, refuse
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.state import LANDED, Claimed, ClaimState
from interlock.tools import Tool
from interlock.values import Mode, Status

_LONGEST_LOOK_S = 0.25
_SAID = {
    ClaimState.DONE: "it stands",
    ClaimState.UNDONE: "it was undone since",
    ClaimState.RETURNING: "it was undone, and nobody knows yet whether that is undone",
}


async def tell_made_before(ctx: EngineContext, ended: Ended) -> Ended:
    """The end of a call that a halt has stopped, with what is known of the same change; nothing of that is made."""
    if ended.tool is None or ended.call.mode is not Mode.APPLY or ctx.bindings[ended.tool.name].planner is None:
        return ended
    name = None if ended.call.undoes is not None else _name_of(ctx, ended.tool, ended)
    if name is None:
        return ended
    try:
        ctx.at("halt.claim")
        claim = await ctx.deadlines.within(_LONGEST_LOOK_S, ctx.store.claim(name.name))
    except (Expired, StoreError):
        return _add(ended, "whether the same change was made before could not be looked up")
    if claim is None or claim.state is ClaimState.FAILED or claim.request != name.request:
        return ended
    return _add(ended, _say(claim))


def _name_of(ctx: EngineContext, tool: Tool, ended: Ended) -> ClaimName | None:
    """The name of the claim that the call would have had; None where that cannot be told."""
    try:
        parsed = tool.input.parse(ended.arguments)
        keys = keys_of(tool, parsed.arguments)
    except Exception:  # noqa: BLE001 - a validator of the tool's own, which has taken them before
        return None
    return claim_name(ctx.digest, tool, keys, parsed.by_value(), ended.call)


def _say(claim: Claimed) -> str:
    if claim.state in LANDED:
        return f"the same change was made before, by call {claim.call!r} (record {claim.record}): {_SAID[claim.state]}"
    return f"call {claim.call!r} has begun the same change, and may have made it"


def _add(ended: Ended, said: str) -> Ended:
    problem = ended.reading.problem
    assert problem is not None
    message = f"{problem.message}; {said}"
    verdict = ended.verdict if ended.verdict is None else msgspec.structs.replace(ended.verdict, reason=message)
    return msgspec.structs.replace(ended, reading=refuse(Status.DENIED, Reason.HALTED, message), verdict=verdict)
