"""PERFORM for what changes the world: claim and intent, then the effect under its leases, then whether it landed."""

from __future__ import annotations

import asyncio

import msgspec

from interlock.changes import (
    Snapshot,
    Unreadable,
    has_landed,
    landed_by_snapshots,
    local_key,
    locks_of,
    mark_undone,
    plan_difference,
    read_snapshots,
)
from interlock.engine.context import Ended, EngineContext, Prepared, refused
from interlock.engine.idempotency import answer_of_claim, settled_claim
from interlock.engine.locks import lock_name, lost_lock, release_dead, release_locks, take_locks
from interlock.engine.perform.attempt import Work, interrupted_reading
from interlock.engine.perform.heartbeat import Heartbeat
from interlock.engine.preconditions import violated_precondition
from interlock.engine.prepare import prepare
from interlock.engine.record import intent
from interlock.errors import Locked, StoreError
from interlock.ports import noted_receipt
from interlock.reasons import Reason, RefusalKind
from interlock.resilience import Expired
from interlock.state import ClaimState, halt_scopes
from interlock.tools import Reading, Tool
from interlock.transitions import (
    Batch,
    CloseClaim,
    Committed,
    OpenClaim,
    Refused,
    RenewClaim,
    RequireClaim,
    RequireNotHalted,
    Transition,
)
from interlock.values import Attempt, Context, Json, Status

_WAIT_S = 0.02
_SAME_CHANGE = (RefusalKind.CLAIMED, RefusalKind.DONE, RefusalKind.IN_DOUBT)
_STATES = {True: ClaimState.DONE, False: ClaimState.FAILED, None: ClaimState.UNKNOWN}


class Begun(msgspec.Struct, frozen=True):
    """Claim and intent are durable: from here on the call has an outcome, whatever happens."""

    prepared: Prepared
    work: Work
    holder: str
    intent: int
    probes: bool
    """Whether this call is the one that tries a tool which has been failing."""


async def change(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Make a change under what its tool wants held; what the caller holds already is not held again."""
    admitted, work = prepared.admitted, Work(ctx, prepared)
    call = admitted.facts.call
    missing = set(locks_of(work.tool, admitted.facts.arguments)) - {hold.key for hold in call.locks}
    if not missing:
        return await _change(ctx, prepared)
    try:
        if ctx.faults is not None:
            ctx.faults.at("write.lock")
        held = await take_locks(ctx, missing, call=call.call_id, wait_s=work.end_s - ctx.clock.monotonic())
    except Locked as error:
        return work.end(refused(Status.FAILED, Reason.BUSY, str(error)))
    except StoreError as error:
        return work.end(work.not_begun(error))
    except asyncio.CancelledError as interrupt:
        return work.end(interrupted_reading(interrupt), interrupt)
    call = msgspec.structs.replace(call, locks=call.locks + held.locks)
    admitted = msgspec.structs.replace(admitted, facts=msgspec.structs.replace(admitted.facts, call=call))
    try:
        ended = await _change(ctx, msgspec.structs.replace(prepared, admitted=admitted))
    finally:
        cancelled = await release_locks(ctx, held)
    return ended if cancelled is None else msgspec.structs.replace(ended, interrupt=cancelled)


async def _change(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Cancelled before its intent it is not made; after that it is waited for, whoever cancels."""
    step = await begin(ctx, prepared)
    if isinstance(step, Ended):
        return step
    task, interrupt = asyncio.ensure_future(finish(ctx, step)), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupt = error
    ended = task.result()
    return ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)


async def begin(ctx: EngineContext, prepared: Prepared) -> Begun | Ended:
    """One commit of claim, leases, halt check, approval, reservations and intent; waits for those who hold them."""
    binding = prepared.admitted.binding
    work, breaker, probes, begun = Work(ctx, prepared), binding.gate.breaker, False, False
    if breaker.troubled:
        closed = work.closed()
        if closed is not None:
            return work.end(closed)
        probes = breaker.state == "half-open"
    holder = ctx.ids.new()
    try:
        refusal = None if binding.gate.places is None else await work.take_place(binding.gate.places.take())
        while refusal is None:
            receipt = await _claimed(ctx, prepared, work, holder)
            if isinstance(receipt, Committed):
                begun = True
                keys = prepared.plan.keys
                work.tokens = {local_key(key): token for key, token in zip(keys, receipt.tokens, strict=True)}
                return Begun(prepared, work, holder, receipt.ids[0], probes)
            step = await _refused(ctx, prepared, work, receipt)
            if isinstance(step, Ended):
                return step
            refusal = step
    except StoreError as error:
        refusal = work.not_begun(error)
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        ended = work.end(interrupted_reading(interrupt), interrupt)
        landed = noted_receipt(interrupt) if isinstance(interrupt, asyncio.CancelledError) else None
        if not isinstance(landed, Committed):
            return ended
        close = CloseClaim(prepared.plan.claim, holder, ClaimState.FAILED)  # begun, but nothing was done
        more = {"plan": prepared.plan, "intent": landed.ids[0], "tokens": landed.tokens}
        return msgspec.structs.replace(ended, settle=(*ended.settle, close), **more)
    finally:
        if not begun:
            if probes:
                breaker.abandoned()
            if work.give_place_back is not None:
                work.leave()
    return work.end(refusal)


async def _refused(ctx: EngineContext, prepared: Prepared, work: Work, receipt: Refused) -> Ended | Reading | None:
    """The begin commit was refused: the answer of whoever made this change, a refusal, or None to try once more."""
    plan, late = prepared.plan, ctx.clock.monotonic() + _WAIT_S > work.end_s
    work.not_begun(receipt)
    if receipt.kind in _SAME_CHANGE and receipt.limit == plan.claim:
        claim = await settled_claim(ctx, plan.claim, work.end_s)
        if claim is not None and claim.state not in (ClaimState.FAILED, ClaimState.UNDONE):
            return await answer_of_claim(ctx, prepared.admitted, claim)
        if late or claim is None or claim.state is ClaimState.UNDONE or claim.generation != plan.generation:
            message = "the same change was made and failed or was taken back meanwhile; call again"
            return refused(Status.FAILED, Reason.MOVED, message)
    elif receipt.kind is RefusalKind.IN_DOUBT and await release_dead(ctx, lock_name(receipt.limit)):
        return None  # it was only held, by somebody who is dead
    elif receipt.kind is not RefusalKind.LEASED or late:
        return _refusal(work, receipt)
    await ctx.clock.sleep(_WAIT_S)
    return None


async def _claimed(ctx: EngineContext, prepared: Prepared, work: Work, holder: str) -> Committed | Refused:
    plan, call, claim = prepared.plan, prepared.admitted.facts.call, prepared.admitted.claim
    assert claim is not None
    now_us = ctx.clock.now_us()
    batch = work.opening(
        RequireNotHalted(halt_scopes(call.tool, call.actor, call.run)),
        *(RequireClaim(hold.name, hold.holder) for hold in call.locks),
        OpenClaim(
            name=plan.claim,
            request=claim.request,
            generation=plan.generation,
            holder=holder,
            call=call.call_id,
            tool=call.tool,
            keys=plan.keys,
            expires_us=now_us + ctx.lease_us,
            turn=call.turn,
            run=call.run,
        ),
        intent(ctx, prepared, now_us),
        name=holder,
    )
    assert batch is not None
    if ctx.faults is not None:
        ctx.faults.at("write.begin")
    receipt = await ctx.store.commit(batch)
    if ctx.faults is not None:
        ctx.faults.at("write.begun")
    return receipt


def _refusal(work: Work, receipt: Refused) -> Reading:
    reading = work.not_begun(receipt)
    if receipt.kind is RefusalKind.LEASED:
        return refused(Status.FAILED, Reason.BUSY, f"{receipt.message}, and did not come free in time")
    if receipt.kind is RefusalKind.IN_DOUBT:
        message = f"{receipt.message}, and nobody knows whether that landed: run interlock recover"
        return refused(Status.FAILED, Reason.BLOCKED, message, hints=("interlock recover",))
    if receipt.kind is RefusalKind.LOST:
        return refused(
            Status.FAILED, Reason.LEASE_LOST, f"what it was to be made under is not held any more: {receipt.limit}"
        )
    return reading


def _not_held(key: str) -> str:
    return f"{key!r}, under which it was to be made, is not held any more"


async def finish(ctx: EngineContext, begun: Begun) -> Ended:
    """The effect under its leases, whether it landed, and what is committed with the outcome."""
    work, interrupt = begun.work, None
    after: tuple[Snapshot, ...] = ()
    beat = Heartbeat(ctx, begun.prepared.plan.claim, begun.holder)
    try:
        begun, refusal = await _still(ctx, begun)
        reading = await work.attempt() if refusal is None else refusal
        landed = False if refusal is not None else has_landed(reading, work.attempts)
        if refusal is None:
            landed, after = await _landed(ctx, begun, landed)
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        # Nobody cancels this task but a lost lease, the tool itself, or the end of the loop.
        reading, landed = interrupted_reading(error), None if work.attempts else False
        interrupt = error if isinstance(error, KeyboardInterrupt) else None
        if beat.lost:
            reading = refused(
                Status.FAILED, Reason.LEASE_LOST, "the claim was settled by somebody else during the effect"
            )
    finally:
        if begun.probes and not work.attempts:
            begun.prepared.admitted.binding.gate.breaker.abandoned()
        if not work.when_idle(beat.stop):
            beat.stop()
        if work.give_place_back is not None:
            work.leave()
    runs_on = work.runs_on and landed is not True
    ended = _ended(begun, _read(reading, None if runs_on else landed, work.attempts), after)
    if not runs_on:  # a thread that runs on keeps the claim open, and its heart beating, until it ends
        ended = _closed(ended, begun, landed)
    return ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)


async def _still(ctx: EngineContext, begun: Begun) -> tuple[Begun, Reading | None]:
    """The plan on the versions as they are under the lease; a refusal if they moved and may not have."""
    prepared = begun.prepared
    admitted, plan = prepared.admitted, prepared.plan
    binding, call = admitted.binding, admitted.facts.call
    assert binding.planner is not None
    assert admitted.claim is not None
    try:
        gone = await lost_lock(ctx, call.locks)
        if gone is not None:
            return begun, refused(Status.FAILED, Reason.LEASE_LOST, _not_held(gone.key))
        snapshots = await read_snapshots(binding.tool, plan.keys, ctx.snapshot_reader)
        same = binding.tool.resource is None or tuple(snapshot.version for snapshot in snapshots) == plan.versions
        arguments, version = admitted.facts.arguments, binding.rules.version
        again = plan if same else binding.planner.on(snapshots, plan.keys, arguments, version, admitted.claim)
        broken = await violated_precondition(ctx, admitted, again)
    except (Unreadable, StoreError) as error:
        return begun, refused(Status.FAILED, Reason.UNREADABLE, str(error))
    if broken is not None:
        prepared = msgspec.structs.replace(prepared, verdict=broken.verdict)
        begun = msgspec.structs.replace(begun, prepared=prepared)
        return begun, refused(Status.DENIED, broken.reason, broken.verdict.reason)
    if same:
        return begun, None
    if call.plan is not None or prepared.ticket is not None:
        return begun, refused(
            Status.DENIED, Reason.PLAN_MOVED, f"{plan_difference(plan.digest, again.digest)}; look again"
        )
    step = prepare(ctx, msgspec.structs.replace(admitted, verdict=None), again)
    if isinstance(step, Prepared):
        return await _restated(ctx, begun, step)
    message = f"the resource moved, and the policy does not allow what would be done now: {step.reading.said}"
    return begun, refused(Status.DENIED, Reason.PLAN_MOVED, message)


async def _restated(ctx: EngineContext, begun: Begun, again: Prepared) -> tuple[Begun, Reading | None]:
    """The intent once more, with the images that undo will need."""
    now_us, plan = ctx.clock.now_us(), begun.prepared.plan
    renew = RenewClaim(plan.claim, begun.holder, now_us + ctx.lease_us, restated=True)
    if ctx.faults is not None:
        ctx.faults.at("write.replan")
    try:
        receipt = await ctx.store.commit(Batch(now_us, (renew, intent(ctx, again, now_us))))
    except StoreError as error:
        return begun, refused(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error))
    if isinstance(receipt, Refused):
        return begun, refused(Status.FAILED, Reason.LEASE_LOST, receipt.message)
    return msgspec.structs.replace(begun, prepared=again, intent=receipt.ids[0]), None


async def _landed(ctx: EngineContext, begun: Begun, found: bool | None) -> tuple[bool | None, tuple[Snapshot, ...]]:
    """Whether the effect landed, as far as the attempts and the world say, and the images after it."""
    tool, plan = begun.work.tool, begun.prepared.plan
    after: tuple[Snapshot, ...] = ()
    try:
        after = await read_snapshots(tool, plan.keys, ctx.snapshot_reader)
    except Unreadable:
        pass  # the outcome stands; undo will say that there is no image
    if found is None and tool.probe is not None:
        found = await probe(ctx, tool, begun.prepared.admitted.facts.arguments, begun.work.context())
        if found is False and begun.work.runs_on:
            found = None
    if found is None and landed_by_snapshots(plan, after):
        found = True  # that it is not there yet does not prove that it will not come
    return found, after


async def probe(ctx: EngineContext, tool: Tool, arguments: Json, context: Context) -> bool | None:
    """What the tool's probe says about the world; None if it fails or cannot say."""
    assert tool.probe is not None
    if ctx.faults is not None:
        ctx.faults.at("write.probe")
    try:
        said: bool | None = await ctx.deadlines.within(tool.timeout_s, tool.probe(arguments, context))
    except Expired:
        return None
    except Exception:  # noqa: BLE001 - a probe that fails has not said anything
        return None
    return said if isinstance(said, bool) else None


def _read(reading: Reading, landed: bool | None, attempts: tuple[Attempt, ...]) -> Reading:
    """The reading in the light of what is known about the effect."""
    if landed is not None and landed is has_landed(reading, attempts):
        return reading
    problem = "" if reading.problem is None else reading.problem.message
    if landed:
        return Reading(status=Status.OK, said=f"it landed, as the world shows; its answer was lost ({problem})")
    if landed is None:
        message = f"it may have landed, and nobody knows: {problem}"
        return refused(Status.UNKNOWN, Reason.IN_DOUBT, message, hints=("interlock recover",))
    return reading


def _ended(begun: Begun, reading: Reading, after: tuple[Snapshot, ...]) -> Ended:
    ended = begun.work.end(reading)
    return msgspec.structs.replace(
        ended,
        plan=begun.prepared.plan,
        verdict=begun.prepared.verdict,
        intent=begun.intent,
        tokens=tuple(begun.work.tokens.values()),
        after=after,
        ticket=None if begun.prepared.ticket is None else begun.prepared.ticket.id,
    )


def _closed(ended: Ended, begun: Begun, landed: bool | None) -> Ended:
    """The same, with the claim closed by what is known, and the claim of what was taken back."""
    plan, state = begun.prepared.plan, _STATES[landed]
    untouched = tuple(
        key
        for key, was, snapshot in zip(plan.keys, plan.before or (), ended.after, strict=False)
        if landed and snapshot.state == was and not key.endswith("/*")
    )
    closing: tuple[Transition, ...] = (CloseClaim(plan.claim, begun.holder, state, untouched),)
    undoes = begun.prepared.admitted.facts.call.undoes
    if landed and undoes is not None:
        closing += (mark_undone(undoes),)
    return msgspec.structs.replace(ended, settle=ended.settle + closing)
