"""REPLAN: under the leases, where nobody else can change the keys, the plan is held against the world once more."""

from __future__ import annotations

import msgspec

from interlock.changes import Unreadable, plan_difference, read_snapshots
from interlock.engine.context import EngineContext, Prepared, refuse
from interlock.engine.locks import lost_lock
from interlock.engine.perform.begin import Begun
from interlock.engine.preconditions import violated_precondition
from interlock.engine.prepare import decide_plan
from interlock.engine.record import intent
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.tools import Reading
from interlock.transitions import Batch, Refused, RenewClaim
from interlock.values import Json, Plan, Status, Verdict


class Stopped(msgspec.Struct, frozen=True):
    """The change is not made after all: nothing was done under its claim."""

    reading: Reading
    verdict: Verdict | None = None
    seen: tuple[Json, ...] = ()
    """What was read meanwhile, and may be quoted."""


async def replan(ctx: EngineContext, begun: Begun) -> Begun | Stopped:
    """The same plan if nothing moved; a new one, allowed by all rules, if it did and may have; else why not."""
    admitted, plan = begun.prepared.admitted, begun.prepared.plan
    call = admitted.facts.call
    try:
        gone = await lost_lock(ctx, call.locks) if call.locks else None
        if gone is not None:
            message = f"{gone.key!r}, under which it was to be made, is not held any more"
            return Stopped(refuse(Status.FAILED, Reason.LEASE_LOST, message))
        again = await _plan_now(ctx, begun)
        broken = await violated_precondition(ctx, admitted, again)
    except (Unreadable, StoreError) as error:
        seen = error.seen if isinstance(error, Unreadable) else ()
        return Stopped(refuse(Status.FAILED, Reason.UNREADABLE, str(error)), seen=seen)
    now = (again.before, again.after)
    if broken is not None:
        return Stopped(refuse(Status.DENIED, broken.reason, broken.verdict.reason), broken.verdict, now)
    if again is plan:
        return begun
    if call.plan is not None or begun.prepared.ticket is not None:
        message = f"{plan_difference(plan.digest, again.digest)}; look again"
        return Stopped(refuse(Status.DENIED, Reason.PLAN_MOVED, message), seen=now)
    step = decide_plan(ctx, msgspec.structs.replace(admitted, verdict=None), again)
    if isinstance(step, Prepared):
        return await _restate(ctx, begun, step)
    message = f"the resource moved, and the policy does not allow what would be done now: {step.reading.said}"
    return Stopped(refuse(Status.DENIED, Reason.PLAN_MOVED, message), seen=now)


async def _plan_now(ctx: EngineContext, begun: Begun) -> Plan:
    """The plan on the versions as they are; the very same one where they have not moved."""
    admitted, plan = begun.prepared.admitted, begun.prepared.plan
    binding, claim = admitted.binding, admitted.claim
    assert binding.planner is not None
    assert claim is not None
    snapshots = await read_snapshots(binding.tool, plan.keys, ctx.snapshot_reader, begun.changed)
    if binding.tool.resource is None or tuple([snapshot.version for snapshot in snapshots]) == plan.versions:
        return plan
    return await binding.planner.on(snapshots, plan.keys, admitted.facts.arguments, binding.rules.version, claim)


async def _restate(ctx: EngineContext, begun: Begun, again: Prepared) -> Begun | Stopped:
    """The intent once more, with the snapshots that undo will need."""
    now_us, plan = ctx.clock.now_us(), begun.prepared.plan
    renew = RenewClaim(plan.claim, begun.holder, ctx.lease_us, restated=True)
    about_to = await intent(ctx, again, now_us, begun.opened)
    ctx.at("write.replan")
    try:
        wait_s = max(0.0, begun.work.end_s - ctx.clock.monotonic())
        receipt = await ctx.store.commit(Batch(now_us, (renew, about_to), wait_s))
    except StoreError as error:
        return Stopped(refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))
    if isinstance(receipt, Refused):
        return Stopped(refuse(Status.FAILED, Reason.LEASE_LOST, receipt.message))
    begun.work.restate(again)
    return msgspec.structs.replace(begun, prepared=again, intent=receipt.ids[0])
