"""PERFORM for what changes the world: claim and intent, then the effect under its leases, then whether it landed."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from interlock.changes import Image, Unreadable, landed, landed_by_images, local, look, moved, undone
from interlock.engine.heartbeat import Heartbeat
from interlock.engine.perform import Work, interrupted
from interlock.engine.prepare import prepare
from interlock.engine.recall import answered, settled_claim
from interlock.engine.record import intent
from interlock.engine.stages import Ended, Prepared, World, refused
from interlock.errors import StoreError
from interlock.ports import noted_receipt
from interlock.resilience import Expired
from interlock.schema import Reading
from interlock.standing import ClaimState, halt_scopes
from interlock.transitions import Batch, Claim, Close, Committed, Pass, Refused, Renew, Transition
from interlock.values import Plan, Status

_WAIT_S = 0.02
_STATES = {True: ClaimState.DONE, False: ClaimState.FAILED, None: ClaimState.UNKNOWN}


class Begun(msgspec.Struct, frozen=True):
    """Claim and intent are durable: from here on the call has an outcome, whatever happens."""

    prepared: Prepared
    work: Work
    holder: str
    intent: int


async def change(world: World, prepared: Prepared) -> Ended:
    """Make a change: cancelled before its intent it is not made; after that it is waited for, whoever cancels."""
    step = await begin(world, prepared)
    if isinstance(step, Ended):
        return step
    task, interrupt = asyncio.ensure_future(finish(world, step)), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupt = error
    ended = task.result()
    return ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)


async def begin(world: World, prepared: Prepared) -> Begun | Ended:
    """One commit of claim, leases, halt check, approval, reservations and intent; waits for those who hold them."""
    desk = prepared.admitted.desk
    work, breaker = Work(world, prepared), desk.gate.breaker
    closed = work.closed() if breaker.troubled else None
    if closed is not None:
        return work.end(closed)
    holder, begun = world.ids.new(), False
    try:
        refusal = None if desk.gate.places is None else await work.take_place(desk.gate.places.take())
        while refusal is None:
            receipt = await _claimed(world, prepared, work, holder)
            if isinstance(receipt, Committed):
                begun = True
                keys = prepared.plan.keys
                work.tokens = {local(key): token for key, token in zip(keys, receipt.tokens, strict=True)}
                return Begun(prepared, work, holder, receipt.ids[0])
            if receipt.kind in ("claimed", "done", "in_doubt") and receipt.limit == prepared.plan.claim:
                work.not_begun(receipt)
                claim = await settled_claim(world, prepared.plan.claim, work.end_s)
                if claim is not None and claim.state is not ClaimState.FAILED:
                    return await answered(world, prepared.admitted, claim)
            elif receipt.kind != "leased" or world.clock.monotonic() + _WAIT_S > work.end_s:
                refusal = _refusal(work, receipt)
            else:
                await world.clock.sleep(_WAIT_S)
    except StoreError as error:
        refusal = work.not_begun(error)
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        settle: tuple[Transition, ...] = ()
        if isinstance(interrupt, asyncio.CancelledError) and isinstance(noted_receipt(interrupt), Committed):
            settle = (Close(prepared.plan.claim, holder, ClaimState.FAILED),)  # begun, but nothing was done
        ended = work.end(interrupted(interrupt), interrupt)
        return msgspec.structs.replace(ended, settle=ended.settle + settle)
    finally:
        if work.give_place_back is not None and not begun:
            work.leave()
    return work.end(refusal)


async def _claimed(world: World, prepared: Prepared, work: Work, holder: str) -> Committed | Refused:
    plan, call, claim = prepared.plan, prepared.admitted.facts.call, prepared.admitted.claim
    assert claim is not None
    now_us = world.clock.now_us()
    batch = work.opening(
        Pass(halt_scopes(call.tool, call.actor, call.run)),
        Claim(
            name=plan.claim,
            request=claim.request,
            generation=plan.generation,
            holder=holder,
            call=call.call_id,
            tool=call.tool,
            keys=plan.keys,
            expires_us=now_us + world.lease_us,
            turn=call.turn,
            run=call.run,
        ),
        intent(world, prepared, now_us),
        name=holder,
    )
    assert batch is not None
    if world.faults is not None:
        world.faults.at("effect.begin")
    receipt = await world.store.commit(batch)
    if world.faults is not None:
        world.faults.at("effect.begun")
    return receipt


def _refusal(work: Work, receipt: Refused) -> Reading:
    reading = work.not_begun(receipt)
    if receipt.kind == "leased":
        return refused(Status.FAILED, "busy", f"{receipt.message}, and did not come free in time")
    if receipt.kind == "in_doubt":
        message = f"{receipt.message}, and nobody knows whether that landed: run interlock recover"
        return refused(Status.FAILED, "blocked", message, hints=("interlock recover",))
    return reading


async def finish(world: World, begun: Begun) -> Ended:
    """The effect under its leases, whether it landed, and what is committed with the outcome."""
    work = begun.work
    try:
        plan, refusal = await _still(world, begun)
        if refusal is not None:
            return _ended(begun, plan, refusal, landed=False)
        beat = Heartbeat(world, plan.claim, begun.holder)
        try:
            reading = await work.attempt()
        except asyncio.CancelledError:
            if not beat.lost:
                raise
            reading = refused(Status.FAILED, "lease_lost", "the claim was settled by somebody else during the effect")
        finally:
            beat.stop()
        has_landed, after = await _landed(world, begun, plan, reading)
        return _ended(begun, plan, _read(reading, has_landed), landed=has_landed, after=after)
    finally:
        if work.give_place_back is not None:
            work.leave()


async def _still(world: World, begun: Begun) -> tuple[Plan, Reading | None]:
    """The plan on the versions as they are under the lease; a refusal if they moved and may not have."""
    prepared = begun.prepared
    admitted, plan = prepared.admitted, prepared.plan
    desk, call = admitted.desk, admitted.facts.call
    assert desk.planner is not None
    assert admitted.claim is not None
    if desk.tool.resource is None:
        return plan, None
    try:
        images = await look(desk.tool, plan.keys, world.digest, world.faults)
        if tuple(image.version for image in images) == plan.versions:
            return plan, None
        arguments, version = admitted.facts.arguments, desk.rules.version
        again = desk.planner.on(images, plan.keys, arguments, version, admitted.claim)
    except Unreadable as error:
        return plan, refused(Status.FAILED, "unreadable", str(error))
    if call.plan is not None or prepared.ticket is not None:
        return plan, refused(Status.DENIED, "plan_moved", f"{moved(plan.digest, again.digest)}; look again")
    step = prepare(world, msgspec.structs.replace(admitted, verdict=None), again)
    if isinstance(step, Prepared):
        return await _restated(world, begun, step)
    message = f"the resource moved, and the policy does not allow what would be done now: {step.reading.said}"
    return plan, refused(Status.DENIED, "plan_moved", message)


async def _restated(world: World, begun: Begun, again: Prepared) -> tuple[Plan, Reading | None]:
    """The intent once more, with the images that undo will need."""
    now_us, plan = world.clock.now_us(), begun.prepared.plan
    renew = Renew(plan.claim, begun.holder, now_us + world.lease_us, restated=True)
    if world.faults is not None:
        world.faults.at("effect.restate")
    try:
        receipt = await world.store.commit(Batch(now_us, (renew, intent(world, again, now_us))))
    except StoreError as error:
        return plan, refused(Status.FAILED, "store_unavailable", str(error))
    if isinstance(receipt, Refused):
        return plan, refused(Status.FAILED, "lease_lost", receipt.message)
    return again.plan, None


async def _landed(world: World, begun: Begun, plan: Plan, reading: Reading) -> tuple[bool | None, tuple[Image, ...]]:
    """Whether the effect landed, and the images after it."""
    found, tool = landed(reading), begun.work.tool
    after: tuple[Image, ...] = ()
    try:
        after = await look(tool, plan.keys, world.digest, world.faults)
    except Unreadable:
        pass  # the outcome stands; undo will say that there is no image
    if found is None and tool.probe is not None:
        asking = tool.probe(begun.prepared.admitted.facts.arguments, begun.work.context())
        found = await probe(world, asking, tool.timeout_s)
    if found is None and landed_by_images(plan, after):
        found = True  # that it is not there yet does not prove that it will not come
    return found, after


async def probe(world: World, asking: Any, timeout_s: float) -> bool | None:
    """What the tool's probe says about the world; None if it fails or cannot say."""
    if world.faults is not None:
        world.faults.at("effect.probe")
    try:
        said = await world.deadlines.within(timeout_s, asking)
    except Expired:
        return None
    except Exception:  # noqa: BLE001 - a probe that fails has not said anything
        return None
    return said if isinstance(said, bool) else None


def _read(reading: Reading, has_landed: bool | None) -> Reading:
    """The reading in the light of what is known about the effect."""
    certain = landed(reading)
    if has_landed is certain and certain is not None:
        return reading
    problem = "" if reading.problem is None else reading.problem.message
    if has_landed:
        return Reading(status=Status.OK, said=f"it landed, as the world shows; its answer was lost ({problem})")
    if has_landed is None:
        message = f"it may have landed, and nobody knows: {problem}"
        return refused(Status.UNKNOWN, "in_doubt", message, hints=("interlock recover",))
    return reading


def _ended(begun: Begun, plan: Plan, reading: Reading, *, landed: bool | None, after: tuple[Image, ...] = ()) -> Ended:
    ended = begun.work.end(reading)
    ending: tuple[Transition, ...] = (Close(plan.claim, begun.holder, _STATES[landed]),)
    undoes = begun.prepared.admitted.facts.call.undoes
    if landed and undoes is not None:
        ending += (undone(undoes),)
    return msgspec.structs.replace(
        ended,
        plan=plan,
        settle=(*ended.settle, *ending),
        intent=begun.intent,
        tokens=tuple(begun.work.tokens.values()),
        after=after,
        ticket=None if begun.prepared.ticket is None else begun.prepared.ticket.id,
    )
