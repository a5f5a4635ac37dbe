"""PERFORM for what changes the world: LOCK, BEGIN, REPLAN, the effect under its leases, and SETTLE."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from interlock.changes import (
    Snapshot,
    Unreadable,
    contradicts_nothing,
    has_landed,
    landed_by_snapshots,
    left_by_call,
    locks_of,
    read_snapshots,
    written_beside,
)
from interlock.engine.context import Ended, EngineContext, Prepared, refuse
from interlock.engine.heart import Beat
from interlock.engine.locks import release_locks, take_locks
from interlock.engine.perform.attempt import IN_THE_RESOURCE, ON_THE_WIRE, Work
from interlock.engine.perform.begin import Begun, begin
from interlock.engine.perform.readings import interrupted_reading
from interlock.engine.perform.replan import Stopped, replan
from interlock.engine.redaction import held_by
from interlock.engine.uninterrupted import run_uninterrupted
from interlock.errors import Locked, StoreError
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.state import ClaimState, overlap
from interlock.tools import Reading, Tool, redactor_of
from interlock.tools.tracebacks import log_traceback
from interlock.tools.wire import leave_wire, open_wire
from interlock.transitions import CloseClaim, Transition
from interlock.values import Context, Json, Plan, Status, one_line

_LOCKED_ITSELF = (
    "its caller has locked what it changes itself, so that it cannot be made under that lock: lock keys that are not"
    " changed, or make the call without the lock"
)
_STATES = {True: ClaimState.DONE, False: ClaimState.FAILED, None: ClaimState.UNKNOWN}


class _Effect(msgspec.Struct, frozen=True):
    """What is known once the effect is over: the claim it was made under, its reading, and whether it landed."""

    begun: Begun
    reading: Reading
    landed: bool | None
    after: tuple[Snapshot, ...] = ()
    """The snapshots of the keys as it left them."""
    deviates: tuple[str, ...] = ()
    """Keys that became something else than was planned, and those that it wrote beside the ones of its plan."""
    overtaken: tuple[str, ...] = ()
    """Keys that somebody else has changed while it ran."""
    interrupt: BaseException | None = None
    seen: tuple[Json, ...] = ()
    """What was read under the claim before it was given up."""
    how: str = ""
    """How it is known whether it landed, where its tool did not say."""
    doubt: str = ""
    """Why it is not believed that nothing landed, where that was said."""


async def write(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Make a change under the locks that its tool wants; what the caller has locked already is not locked again."""
    admitted = prepared.admitted
    call = admitted.facts.call
    wanted = locks_of(admitted.binding.tool, admitted.facts.arguments) + call.lock_keys
    if wanted or call.locks:  # what it changes it leases anyway, and could not if that were locked
        own_keys = prepared.plan.keys
        wanted = tuple(key for key in wanted if not any(overlap(key, own) for own in own_keys))
        if any(overlap(lock.key, own) for lock in call.locks for own in own_keys):
            return Work(ctx, prepared).end(refuse(Status.FAILED, Reason.BUSY, _LOCKED_ITSELF))
    missing = set(wanted) - {lock.key for lock in call.locks} if wanted else None
    if not missing:
        return await _write(ctx, prepared)
    work = Work(ctx, prepared)
    try:
        ctx.at("write.lock")
        held = await take_locks(ctx, missing, call=call.call_id, wait_s=work.end_s - ctx.clock.monotonic())
    except Locked as error:
        return work.end(refuse(Status.FAILED, Reason.BUSY, str(error)))
    except StoreError as error:
        return work.end(work.not_begun(error))
    except asyncio.CancelledError as interrupt:
        return work.end(interrupted_reading(interrupt), interrupt)
    call = msgspec.structs.replace(call, locks=call.locks + held.locks)
    admitted = msgspec.structs.replace(admitted, facts=msgspec.structs.replace(admitted.facts, call=call))
    try:
        ended = await _write(ctx, msgspec.structs.replace(prepared, admitted=admitted))
    finally:
        cancelled = await release_locks(ctx, held)
    return ended if cancelled is None else msgspec.structs.replace(ended, interrupt=cancelled)


async def _write(ctx: EngineContext, prepared: Prepared) -> Ended:
    """Cancelled before its first attempt it is not made; after that it is waited for, whoever cancels."""
    begun = await begin(ctx, prepared)
    if isinstance(begun, Ended):
        return begun
    # In a task of its own: a cancelled caller must not tear the effect from its outcome.
    replanning = _Replanning()
    ended, interrupt = await run_uninterrupted(_under_claim(ctx, begun, replanning), replanning.give_up)
    return ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)


class _Replanning:
    """What stands between the intent and the first attempt: until that nothing is done, so whoever cancels need not
    wait for a store or a resource that does not answer."""

    __slots__ = ("given_up", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.given_up = False

    def give_up(self) -> None:
        """The caller does not want the change any more."""
        self.given_up = True
        if self.task is not None:
            self.task.cancel()


async def _under_claim(ctx: EngineContext, begun: Begun, replanning: _Replanning) -> Ended:
    """REPLAN, the effect with its heart beating, and SETTLE."""
    work, task = begun.work, asyncio.current_task()
    assert task is not None
    beat = ctx.heart.keep(begun.prepared.plan.claim, begun.holder, begun.since_s, task.cancel)
    landed = None
    try:
        effect = await _effect(ctx, begun, beat, replanning)
        landed = effect.landed
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        effect = _interrupted_effect(begun, error, beat)
    finally:
        if work.wire is not None:
            work.wire.end(landed=landed)
        if beat.lost:
            task.uncancel()
        if not work.when_idle(beat.stop):
            beat.stop()
        work.leave()
    return _settle(effect)


async def _effect(ctx: EngineContext, begun: Begun, beat: Beat, replanning: _Replanning) -> _Effect:
    ctx.at("write.look")
    if replanning.given_up:  # before this task had its first step
        raise asyncio.CancelledError
    replanning.task = asyncio.current_task()
    try:
        left_s = max(0.0, begun.work.end_s - ctx.clock.monotonic())
        step = await ctx.deadlines.within(left_s, replan(ctx, begun))
    except Expired:
        said = "its deadline passed before anything was done: the store, or what it plans by, gave no answer"
        step = Stopped(refuse(Status.FAILED, Reason.TIMEOUT, said))
    finally:
        replanning.task = None
    if isinstance(step, Stopped):
        if step.verdict is not None:
            prepared = msgspec.structs.replace(begun.prepared, verdict=step.verdict)
            begun = msgspec.structs.replace(begun, prepared=prepared)
        return _Effect(begun, step.reading, landed=False, seen=step.seen)
    step.work.beat = beat
    step.work.wire = wire = open_wire()  # this task is the effect's own: whatever it sends is noted there
    if wire.is_sealed:
        said = "the call whose tool makes this one is over, and has changed nothing, so this one is not made"
        return _Effect(step, refuse(Status.FAILED, Reason.CANCELLED, said), landed=False)
    reading = await step.work.attempt()
    leave_wire()
    return await _find_out(ctx, step, reading)


def _deviations(plan: Plan, after: tuple[Snapshot, ...]) -> tuple[str, ...]:
    """The keys that are not what the plan said they would be, where it could say, and where they could be read."""
    if plan.after is None or len(after) != len(plan.keys):
        return ()
    pairs = zip(plan.keys, plan.after, after, strict=True)
    return tuple([key for key, planned, found in pairs if found.state != planned])


def _interrupted_effect(begun: Begun, error: BaseException, beat: Beat) -> _Effect:
    """Nobody cancels this task but a lost lease, the tool itself, the end of the loop, and before the first attempt
    whoever asked for the change."""
    reading, landed = interrupted_reading(error), None if begun.work.attempts else False
    if beat.lost:
        message = "the claim was settled by somebody else during the effect"
        reading = refuse(Status.FAILED, Reason.LEASE_LOST, message)
    return _Effect(begun, reading, landed, interrupt=error if isinstance(error, KeyboardInterrupt) else None)


def _settle(effect: _Effect) -> Ended:
    """What is committed with the outcome. A thread that runs on keeps the claim open, and its heart beating."""
    begun, work = effect.begun, effect.begun.work
    runs_on = work.runs_on and effect.landed is not True
    reading = _read(effect, None if runs_on else effect.landed)
    if effect.deviates:
        reading = _say_deviation(reading, effect)
    if effect.overtaken and effect.landed:
        reading = _say_overtaken(reading, effect)
    ended = work.end(reading)
    return msgspec.structs.replace(
        ended,
        plan=begun.prepared.plan,
        verdict=begun.prepared.verdict,
        intent=begun.intent,
        tokens=tuple(work.tokens.values()),
        after=effect.after,
        ticket=None if begun.prepared.ticket is None else begun.prepared.ticket.id,
        deviates=effect.deviates,
        seen=effect.seen,
        beyond=effect.landed is None and _reaches_beyond(work),
        settle=ended.settle if runs_on else ended.settle + _closing(effect),
        interrupt=effect.interrupt,
    )


def _reaches_beyond(work: Work) -> bool:
    """Whether an effect may have changed what no look at its resource shows: also what it does from now on."""
    name = None if work.tool.resource is None else work.tool.resource.name
    return work.runs_on or (work.wire is not None and work.wire.reaches_beyond(name))


async def _find_out(ctx: EngineContext, begun: Begun, reading: Reading) -> _Effect:
    """Whether the effect landed, as far as the attempts, its wire and the world say, and the snapshots after it."""
    work, plan, wire = begun.work, begun.prepared.plan, begun.work.wire
    now: tuple[Snapshot, ...] = ()
    found, how, doubt = has_landed(reading, work.attempts), "", ""
    assert wire is not None
    if found is False and not wire.seal():
        found, doubt = None, ON_THE_WIRE
    shown = wire.was_refused
    try:
        own = dict(zip(plan.keys, work.tokens.values(), strict=True))
        now = await read_snapshots(work.tool, plan.keys, ctx.snapshot_reader, own)
    except Unreadable:
        pass  # the outcome stands; undo will say that there is no snapshot
    if found is False and wire.may_have_landed:  # by a thread that nobody could stop, while the resource was looked at
        found, doubt = None, ON_THE_WIRE
    if found is False and contradicts_nothing(reading, plan, now, shown=shown):
        found, doubt = None, IN_THE_RESOURCE
    left = left_by_call(work.tool, plan, now, wire.written, ctx.digest)
    if found is None:
        found, how = await _ask_world(ctx, begun, left.snapshots)
    beside = written_beside(work.tool, plan, wire.written)
    deviates = _deviations(plan, left.snapshots) + beside if found else ()
    # What somebody else wrote is not recorded, but what is redacted in it is a secret all the same.
    seen = tuple([snapshot.state for snapshot in now]) if left.overtaken else ()
    return _Effect(begun, reading, found, left.snapshots, deviates, left.overtaken, how=how, doubt=doubt, seen=seen)


async def _ask_world(ctx: EngineContext, begun: Begun, after: tuple[Snapshot, ...]) -> tuple[bool | None, str]:
    """What the tool's probe, or else the resource, says about an effect of which nobody knows, and which of them."""
    tool, found, how = begun.work.tool, None, ""
    if tool.probe is not None:
        held = (*held_by(begun.prepared), [snapshot.state for snapshot in after])
        found = await probe(ctx, tool, begun.prepared.admitted.facts.arguments, begun.work.context(), held)
        how = "its probe says so"
        if found is False and begun.work.runs_on:
            found = None
    # The probe speaks first, as it knows the other side; the snapshots only know the resource.
    if found is None and landed_by_snapshots(begun.prepared.plan, after):
        found, how = True, "the resource shows it"  # that it is not there yet does not prove that it will not come
    return found, how


async def probe(
    ctx: EngineContext, tool: Tool, arguments: Json, context: Context, held: tuple[Json, ...]
) -> bool | None:
    """What the tool's probe says about the world; None if it fails or cannot say.

    `held` is what is known of the call: of what the probe raises, what is redacted there is not logged.
    """
    assert tool.probe is not None
    ctx.at("write.probe")
    try:
        said: bool | None = await ctx.deadlines.within(tool.timeout_s, tool.probe(arguments, context))
    except Expired:
        return None
    except Exception as error:  # noqa: BLE001 - a probe that fails has not said anything
        log_traceback(f"the probe of {tool.name!r}", error, redactor_of(tool, arguments, *held))
        return None
    return said if isinstance(said, bool) else None


def _read(effect: _Effect, landed: bool | None) -> Reading:
    """The reading in the light of what is known about the effect."""
    reading = effect.reading
    if landed is not None and landed is has_landed(reading, effect.begun.work.attempts):
        return reading
    problem = "; ".join(filter(None, ("" if reading.problem is None else reading.problem.message, effect.doubt)))
    if landed:
        # `ok`, as the change is there; and never unmarked, as nobody has heard the tool say that it came to its end.
        message = f"it landed ({effect.how}), and its answer is lost: {problem}. Whatever else it does is not known"
        found = refuse(Status.OK, Reason.ANSWER_LOST, message)
    elif landed is None:
        message = f"it may have landed, and nobody knows: {problem}. `interlock recover` settles it, or asks a person"
        found = refuse(Status.UNKNOWN, Reason.IN_DOUBT, message, hints=("interlock recover",))
    elif reading.problem is not None and reading.problem.reason is Reason.IN_DOUBT:  # it was; now it is known
        found = refuse(Status.FAILED, Reason.NOTHING_LANDED, f"it did not land ({effect.how}): {problem}")
    else:
        return reading
    return msgspec.structs.replace(found, traceback=reading.traceback)


def _say_deviation(reading: Reading, effect: _Effect) -> Reading:
    """The reading of a change that was made otherwise than planned: said, and a failure where the policy wants that.

    It stands all the same, so that it can be undone.
    """
    keys = ", ".join(effect.deviates)
    if effect.begun.prepared.admitted.binding.rules.as_planned:
        message = f"it was made, and not as planned: {keys} is something else now; look, and undo it if it is wrong"
        failed = refuse(Status.FAILED, Reason.NOT_AS_PLANNED, message)
        return msgspec.structs.replace(failed, traceback=reading.traceback)
    return msgspec.structs.replace(reading, said=f"{_show_result(reading, effect)} (not as planned: {keys})")


def _say_overtaken(reading: Reading, effect: _Effect) -> Reading:
    """The reading of a change after which, and before its end, somebody else has changed the same resource."""
    keys, most = effect.overtaken, 3
    if effect.begun.work.tool.redact:  # keys in a whole resource may hold what is redacted, and nobody looks for it
        keys = effect.begun.prepared.plan.keys
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    said = f"changed by somebody else while it ran: {', '.join(keys[:most])}{more}"
    return msgspec.structs.replace(reading, said=f"{_show_result(reading, effect)} ({said})")


def _show_result(reading: Reading, effect: _Effect) -> str:
    """One line is a cut one, and nothing is cut before it is redacted: half a secret would not be found."""
    return reading.said or ("made" if effect.begun.work.tool.redact else one_line(reading.value))


def _closing(effect: _Effect) -> tuple[Transition, ...]:
    """What closes the claim by what is known, and the claims of what was taken back with it."""
    begun, landed = effect.begun, effect.landed
    untouched: tuple[str, ...] = ()
    plan, state = begun.prepared.plan, _STATES[landed]
    if landed:
        pairs = zip(plan.keys, plan.before or (), effect.after, strict=False)
        untouched = tuple([key for key, was, snapshot in pairs if snapshot.state == was])
    undoes, claim = begun.prepared.admitted.facts.call.undoes, begun.prepared.admitted.claim
    if landed and undoes is not None:
        untouched = plan.keys  # what takes a change back is no reason for its keys to rest
    closing: tuple[Transition, ...] = (CloseClaim(plan.claim, begun.holder, state, untouched),)
    return closing if claim is None else closing + claim.taking_back.close(landed=landed)
