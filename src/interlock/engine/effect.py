"""PERFORM for what changes the world: claim and intent, then the effect under its leases, then whether it landed."""

from __future__ import annotations

import asyncio

import msgspec

from interlock.changes import Image, Unreadable, landed, landed_by_images, local, look, moved, undone, within_of
from interlock.engine.bounds import out_of_bounds
from interlock.engine.heartbeat import Heartbeat
from interlock.engine.holds import freed, give, hold_name, lost, take
from interlock.engine.perform import Work, interrupted
from interlock.engine.prepare import prepare
from interlock.engine.recall import answered, settled_claim
from interlock.engine.record import intent
from interlock.engine.stages import Ended, Prepared, World, refused
from interlock.errors import Locked, StoreError
from interlock.ports import noted_receipt
from interlock.resilience import Expired
from interlock.schema import Reading, Tool
from interlock.standing import ClaimState, halt_scopes
from interlock.transitions import Batch, Claim, Close, Committed, Pass, Refused, Renew, Transition, Within
from interlock.values import Attempt, Context, Json, Status

_WAIT_S = 0.02
_STATES = {True: ClaimState.DONE, False: ClaimState.FAILED, None: ClaimState.UNKNOWN}


class Begun(msgspec.Struct, frozen=True):
    """Claim and intent are durable: from here on the call has an outcome, whatever happens."""

    prepared: Prepared
    work: Work
    holder: str
    intent: int
    probes: bool
    """Whether this call is the one that tries a tool which has been failing."""


async def change(world: World, prepared: Prepared) -> Ended:
    """Make a change under what its tool wants held; what the caller holds already is not held again."""
    admitted, work = prepared.admitted, Work(world, prepared)
    call = admitted.facts.call
    missing = set(within_of(work.tool, admitted.facts.arguments)) - {hold.key for hold in call.holds}
    if not missing:
        return await _change(world, prepared)
    try:
        if world.faults is not None:
            world.faults.at("effect.hold")
        held = await take(world, missing, call=call.call_id, wait_s=work.end_s - world.clock.monotonic())
    except Locked as error:
        return work.end(refused(Status.FAILED, "busy", str(error)))
    except StoreError as error:
        return work.end(work.not_begun(error))
    except asyncio.CancelledError as interrupt:
        return work.end(interrupted(interrupt), interrupt)
    call = msgspec.structs.replace(call, holds=call.holds + held.holds)
    admitted = msgspec.structs.replace(admitted, facts=msgspec.structs.replace(admitted.facts, call=call))
    try:
        ended = await _change(world, msgspec.structs.replace(prepared, admitted=admitted))
    finally:
        cancelled = await give(world, held)
    return ended if cancelled is None else msgspec.structs.replace(ended, interrupt=cancelled)


async def _change(world: World, prepared: Prepared) -> Ended:
    """Cancelled before its intent it is not made; after that it is waited for, whoever cancels."""
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
    work, breaker, probes, begun = Work(world, prepared), desk.gate.breaker, False, False
    if breaker.troubled:
        closed = work.closed()
        if closed is not None:
            return work.end(closed)
        probes = breaker.state == "half-open"
    holder = world.ids.new()
    try:
        refusal = None if desk.gate.places is None else await work.take_place(desk.gate.places.take())
        while refusal is None:
            receipt = await _claimed(world, prepared, work, holder)
            if isinstance(receipt, Committed):
                begun = True
                keys = prepared.plan.keys
                work.tokens = {local(key): token for key, token in zip(keys, receipt.tokens, strict=True)}
                return Begun(prepared, work, holder, receipt.ids[0], probes)
            step = await _refused(world, prepared, work, receipt)
            if isinstance(step, Ended):
                return step
            refusal = step
    except StoreError as error:
        refusal = work.not_begun(error)
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        ended = work.end(interrupted(interrupt), interrupt)
        landed = noted_receipt(interrupt) if isinstance(interrupt, asyncio.CancelledError) else None
        if not isinstance(landed, Committed):
            return ended
        close = Close(prepared.plan.claim, holder, ClaimState.FAILED)  # begun, but nothing was done
        more = {"plan": prepared.plan, "intent": landed.ids[0], "tokens": landed.tokens}
        return msgspec.structs.replace(ended, settle=(*ended.settle, close), **more)
    finally:
        if not begun:
            if probes:
                breaker.abandoned()
            if work.give_place_back is not None:
                work.leave()
    return work.end(refusal)


async def _refused(world: World, prepared: Prepared, work: Work, receipt: Refused) -> Ended | Reading | None:
    """The begin commit was refused: the answer of whoever made this change, a refusal, or None to try once more."""
    plan, late = prepared.plan, world.clock.monotonic() + _WAIT_S > work.end_s
    work.not_begun(receipt)
    if receipt.kind in ("claimed", "done", "in_doubt") and receipt.limit == plan.claim:
        claim = await settled_claim(world, plan.claim, work.end_s)
        if claim is not None and claim.state not in (ClaimState.FAILED, ClaimState.UNDONE):
            return await answered(world, prepared.admitted, claim)
        if late or claim is None or claim.state is ClaimState.UNDONE or claim.generation != plan.generation:
            message = "the same change was made and failed or was taken back meanwhile; call again"
            return refused(Status.FAILED, "moved", message)
    elif receipt.kind == "in_doubt" and await freed(world, hold_name(receipt.limit)):
        return None  # it was only held, by somebody who is dead
    elif receipt.kind != "leased" or late:
        return _refusal(work, receipt)
    await world.clock.sleep(_WAIT_S)
    return None


async def _claimed(world: World, prepared: Prepared, work: Work, holder: str) -> Committed | Refused:
    plan, call, claim = prepared.plan, prepared.admitted.facts.call, prepared.admitted.claim
    assert claim is not None
    now_us = world.clock.now_us()
    batch = work.opening(
        Pass(halt_scopes(call.tool, call.actor, call.run)),
        *(Within(hold.name, hold.holder) for hold in call.holds),
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
    if receipt.kind == "lost":
        return refused(
            Status.FAILED, "lease_lost", f"what it was to be made under is not held any more: {receipt.limit}"
        )
    return reading


def _not_held(key: str) -> str:
    return f"{key!r}, under which it was to be made, is not held any more"


async def finish(world: World, begun: Begun) -> Ended:
    """The effect under its leases, whether it landed, and what is committed with the outcome."""
    work, interrupt = begun.work, None
    after: tuple[Image, ...] = ()
    beat = Heartbeat(world, begun.prepared.plan.claim, begun.holder)
    try:
        begun, refusal = await _still(world, begun)
        reading = await work.attempt() if refusal is None else refusal
        has_landed = False if refusal is not None else landed(reading, work.attempts)
        if refusal is None:
            has_landed, after = await _landed(world, begun, has_landed)
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        # Nobody cancels this task but a lost lease, the tool itself, or the end of the loop.
        reading, has_landed = interrupted(error), None if work.attempts else False
        interrupt = error if isinstance(error, KeyboardInterrupt) else None
        if beat.lost:
            reading = refused(Status.FAILED, "lease_lost", "the claim was settled by somebody else during the effect")
    finally:
        if begun.probes and not work.attempts:
            begun.prepared.admitted.desk.gate.breaker.abandoned()
        if not work.when_idle(beat.stop):
            beat.stop()
        if work.give_place_back is not None:
            work.leave()
    runs_on = work.runs_on and has_landed is not True
    ended = _ended(begun, _read(reading, None if runs_on else has_landed, work.attempts), after)
    if not runs_on:  # a thread that runs on keeps the claim open, and its heart beating, until it ends
        ended = _closed(ended, begun, has_landed)
    return ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)


async def _still(world: World, begun: Begun) -> tuple[Begun, Reading | None]:
    """The plan on the versions as they are under the lease; a refusal if they moved and may not have."""
    prepared = begun.prepared
    admitted, plan = prepared.admitted, prepared.plan
    desk, call = admitted.desk, admitted.facts.call
    assert desk.planner is not None
    assert admitted.claim is not None
    try:
        gone = await lost(world, call.holds)
        if gone is not None:
            return begun, refused(Status.FAILED, "lease_lost", _not_held(gone.key))
        images = await look(desk.tool, plan.keys, world.sight)
        same = desk.tool.resource is None or tuple(image.version for image in images) == plan.versions
        arguments, version = admitted.facts.arguments, desk.rules.version
        again = plan if same else desk.planner.on(images, plan.keys, arguments, version, admitted.claim)
        verdict = await out_of_bounds(world, admitted, again)
    except (Unreadable, StoreError) as error:
        return begun, refused(Status.FAILED, "unreadable", str(error))
    if verdict is not None:
        prepared = msgspec.structs.replace(prepared, verdict=verdict)
        begun = msgspec.structs.replace(begun, prepared=prepared)
        return begun, refused(Status.DENIED, verdict.rule, verdict.reason)
    if same:
        return begun, None
    if call.plan is not None or prepared.ticket is not None:
        return begun, refused(Status.DENIED, "plan_moved", f"{moved(plan.digest, again.digest)}; look again")
    step = prepare(world, msgspec.structs.replace(admitted, verdict=None), again)
    if isinstance(step, Prepared):
        return await _restated(world, begun, step)
    message = f"the resource moved, and the policy does not allow what would be done now: {step.reading.said}"
    return begun, refused(Status.DENIED, "plan_moved", message)


async def _restated(world: World, begun: Begun, again: Prepared) -> tuple[Begun, Reading | None]:
    """The intent once more, with the images that undo will need."""
    now_us, plan = world.clock.now_us(), begun.prepared.plan
    renew = Renew(plan.claim, begun.holder, now_us + world.lease_us, restated=True)
    if world.faults is not None:
        world.faults.at("effect.restate")
    try:
        receipt = await world.store.commit(Batch(now_us, (renew, intent(world, again, now_us))))
    except StoreError as error:
        return begun, refused(Status.FAILED, "store_unavailable", str(error))
    if isinstance(receipt, Refused):
        return begun, refused(Status.FAILED, "lease_lost", receipt.message)
    return msgspec.structs.replace(begun, prepared=again, intent=receipt.ids[0]), None


async def _landed(world: World, begun: Begun, found: bool | None) -> tuple[bool | None, tuple[Image, ...]]:
    """Whether the effect landed, as far as the attempts and the world say, and the images after it."""
    tool, plan = begun.work.tool, begun.prepared.plan
    after: tuple[Image, ...] = ()
    try:
        after = await look(tool, plan.keys, world.sight)
    except Unreadable:
        pass  # the outcome stands; undo will say that there is no image
    if found is None and tool.probe is not None:
        found = await probe(world, tool, begun.prepared.admitted.facts.arguments, begun.work.context())
        if found is False and begun.work.runs_on:
            found = None
    if found is None and landed_by_images(plan, after):
        found = True  # that it is not there yet does not prove that it will not come
    return found, after


async def probe(world: World, tool: Tool, arguments: Json, context: Context) -> bool | None:
    """What the tool's probe says about the world; None if it fails or cannot say."""
    assert tool.probe is not None
    if world.faults is not None:
        world.faults.at("effect.probe")
    try:
        said: bool | None = await world.deadlines.within(tool.timeout_s, tool.probe(arguments, context))
    except Expired:
        return None
    except Exception:  # noqa: BLE001 - a probe that fails has not said anything
        return None
    return said if isinstance(said, bool) else None


def _read(reading: Reading, has_landed: bool | None, attempts: tuple[Attempt, ...]) -> Reading:
    """The reading in the light of what is known about the effect."""
    if has_landed is not None and has_landed is landed(reading, attempts):
        return reading
    problem = "" if reading.problem is None else reading.problem.message
    if has_landed:
        return Reading(status=Status.OK, said=f"it landed, as the world shows; its answer was lost ({problem})")
    if has_landed is None:
        message = f"it may have landed, and nobody knows: {problem}"
        return refused(Status.UNKNOWN, "in_doubt", message, hints=("interlock recover",))
    return reading


def _ended(begun: Begun, reading: Reading, after: tuple[Image, ...]) -> Ended:
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


def _closed(ended: Ended, begun: Begun, has_landed: bool | None) -> Ended:
    """The same, with the claim closed by what is known, and the claim of what was taken back."""
    plan, state = begun.prepared.plan, _STATES[has_landed]
    untouched = tuple(
        key
        for key, was, image in zip(plan.keys, plan.before or (), ended.after, strict=False)
        if has_landed and image.state == was and not key.endswith("/*")
    )
    closing: tuple[Transition, ...] = (Close(plan.claim, begun.holder, state, untouched),)
    undoes = begun.prepared.admitted.facts.call.undoes
    if has_landed and undoes is not None:
        closing += (undone(undoes),)
    return msgspec.structs.replace(ended, settle=ended.settle + closing)
