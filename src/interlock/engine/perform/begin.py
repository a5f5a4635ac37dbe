"""BEGIN: claim, leases, halt check, approval, reservations and intent in one commit, before a change is made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from interlock.changes import TakingBack, local_key
from interlock.engine.context import Ended, EngineContext, Prepared, refuse
from interlock.engine.deliveries import answered_meanwhile
from interlock.engine.locks import lock_name, release_dead
from interlock.engine.perform.attempt import Work
from interlock.engine.perform.readings import interrupted_reading
from interlock.engine.record import intent
from interlock.engine.recorded_answers import answer_of_claim
from interlock.engine.store_waits import settled_claim
from interlock.engine.undo_chain import landings_since
from interlock.engine.unsettled import read_blocked
from interlock.engine.waiting import Waiting
from interlock.errors import StoreError, StoreSilent
from interlock.openings import claim_digest
from interlock.ports import noted_receipt, rolled_back_message
from interlock.reasons import Reason, RefusalKind
from interlock.state import ClaimState, halt_scopes
from interlock.tools import Reading
from interlock.transitions import CloseClaim, Committed, OpenClaim, Refused, RequireClaim, RequireNotHalted
from interlock.values import Effect, Plan, Status

_WAIT_S = 0.02
_SAME_CHANGE = (RefusalKind.CLAIMED, RefusalKind.DONE, RefusalKind.IN_DOUBT)


class Begun(msgspec.Struct, frozen=True):
    """Claim and intent are durable: from here on the call has an outcome, whatever happens."""

    prepared: Prepared
    work: Work
    holder: str
    intent: int
    opened: str
    """The digest of the claim as it was opened."""
    since_s: float
    """When its lease began at the earliest, by the heart's stopwatch."""
    changed: Mapping[str, int]
    """The token of the last change of each key. It stands while the key is leased, as nobody else can change it."""


async def begin(ctx: EngineContext, prepared: Prepared) -> Begun | Ended:
    """Commit the claim and the intent; waits for those who hold them. Cancelled before that, nothing is made."""
    work, limits, begun = Work(ctx, prepared), prepared.admitted.binding.limits, None
    closed = work.check_breaker() if limits.breaker.troubled else None
    if closed is not None:
        return work.end(closed)
    if ctx.store.missing:
        return work.end(refuse(Status.DENIED, Reason.ROLLED_BACK, rolled_back_message(ctx.store.missing)))
    holder = ctx.ids.new()
    try:
        refusal = await work.take_slot() if limits.slots is not None else None
        begun = work.end(refusal) if refusal is not None else await _claim(ctx, prepared, work, holder)
    except StoreError as error:
        begun = _closing(work.end(work.not_begun(error)), prepared, holder, silent=isinstance(error, StoreSilent))
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        begun = _end_interrupted(prepared, work, holder, interrupt)
    finally:
        if not isinstance(begun, Begun):
            work.leave()
    return begun


async def _claim(ctx: EngineContext, prepared: Prepared, work: Work, holder: str) -> Begun | Ended:
    """Try the begin commit until it lands, is refused for good, or time is up."""
    assert prepared.admitted.claim is not None
    waiting, landings = None, prepared.admitted.claim.landings
    while True:
        # Before the commit, not after it: a process that is stopped in between must not take its lease for fresh.
        since_s = ctx.heart.now_s()
        claim = _open_claim(ctx, prepared, holder, landings)
        opened = claim_digest(claim, ctx.digest)
        receipt = await _commit_claim(ctx, prepared, work, claim, opened)
        if isinstance(receipt, Committed):
            keys = prepared.plan.keys
            work.tokens = {local_key(key): token for key, token in zip(keys, receipt.tokens, strict=True)}
            changed = dict(zip(keys, receipt.changed, strict=True))
            return Begun(prepared, work, holder, receipt.ids[0], opened, since_s, changed)
        work.not_begun(receipt)
        landings = await _look_again(ctx, prepared, work, receipt)
        if landings is not None:
            continue
        step = await _answer_meanwhile(ctx, prepared, work, receipt) or await _after_refusal(
            ctx, prepared, work, receipt
        )
        if step is not None:
            return step if isinstance(step, Ended) else work.end(step)
        waiting = waiting or Waiting(ctx.clock)
        waiting.note("another change of the same key", ctx.lease_us / 1e6)  # not which key: it may be redacted


def _end_interrupted(prepared: Prepared, work: Work, holder: str, interrupt: BaseException) -> Ended:
    """The caller gave up; if the claim landed all the same, it is closed again, as nothing was done."""
    ended = work.end(interrupted_reading(interrupt), interrupt)
    receipt = noted_receipt(interrupt) if isinstance(interrupt, asyncio.CancelledError) else None
    if not isinstance(receipt, Committed):
        return _closing(ended, prepared, holder, silent=isinstance(receipt, StoreSilent))
    ended = msgspec.structs.replace(ended, plan=prepared.plan, intent=receipt.ids[0], tokens=receipt.tokens)
    return _closing(ended, prepared, holder, silent=True)


def _closing(ended: Ended, prepared: Prepared, holder: str, *, silent: bool) -> Ended:
    """The end of a call whose claim landed, or may still land: it is closed again with the record, as nothing was done.

    Batches land in their order, so the claim does so first if it does at all.
    """
    if not silent:
        return ended
    close = CloseClaim(prepared.plan.claim, holder, ClaimState.FAILED)
    return msgspec.structs.replace(ended, settle=(*ended.settle, close, *_taking_back(prepared).close(landed=False)))


def _taking_back(prepared: Prepared) -> TakingBack:
    assert prepared.admitted.claim is not None
    return prepared.admitted.claim.taking_back


async def _answer_meanwhile(ctx: EngineContext, prepared: Prepared, work: Work, receipt: Refused) -> Ended | None:
    """The answer that another delivery of the call was given meanwhile; None if that is not what it was refused for."""
    claim = prepared.admitted.claim
    if claim is None or receipt.kind is not RefusalKind.CLAIMED or receipt.limit != claim.call_name:
        return None
    left_s = max(_WAIT_S, work.end_s - ctx.clock.monotonic())
    ctx.at("claim.wait")
    answered = await ctx.deadlines.within(left_s, answered_meanwhile(ctx, claim.call_name))
    return None if answered is None else await answer_of_claim(ctx, prepared.admitted, answered)


async def _after_refusal(
    ctx: EngineContext, prepared: Prepared, work: Work, receipt: Refused
) -> Ended | Reading | None:
    """The begin commit was refused: the answer of whoever made this change, a refusal, or None to try once more."""
    plan, late = prepared.plan, ctx.clock.monotonic() + _WAIT_S > work.end_s
    if receipt.kind in _SAME_CHANGE and receipt.limit == plan.claim:
        claim = await settled_claim(ctx, plan.claim, work.end_s)
        if claim is not None and claim.state not in (ClaimState.FAILED, ClaimState.UNDONE):
            return await answer_of_claim(ctx, prepared.admitted, claim)
        if late or claim is None or claim.state is ClaimState.UNDONE or claim.generation != plan.generation:
            message = "the same change was made and failed or was taken back meanwhile; call again"
            return refuse(Status.FAILED, Reason.MOVED, message)
    elif receipt.kind is RefusalKind.IN_DOUBT and await release_dead(ctx, lock_name(receipt.limit)):
        return None  # it was only held, by somebody who is dead
    elif receipt.kind is RefusalKind.IN_DOUBT:
        return await read_blocked(ctx, receipt.limit, receipt.message)
    elif receipt.kind is not RefusalKind.LEASED or late:
        return _refusal(work, receipt, undoes=prepared.admitted.facts.call.undoes is not None)
    await ctx.clock.sleep(_WAIT_S)
    return None


async def _look_again(ctx: EngineContext, prepared: Prepared, work: Work, receipt: Refused) -> int | None:
    """Of a write that was refused, as the same change stands: what has landed on its keys, if another change came after
    that all the same; None if none did, and for what is not made again for that."""
    left_s, writes = work.end_s - ctx.clock.monotonic(), prepared.admitted.binding.tool.effect is Effect.WRITE
    if receipt.kind is not RefusalKind.DONE or not writes or left_s < _WAIT_S:
        return None
    await ctx.clock.sleep(_WAIT_S)  # where others are quicker each time
    ctx.at("claim.wait")
    return await ctx.deadlines.within(left_s, _changed_meanwhile(ctx, prepared.plan))


async def _changed_meanwhile(ctx: EngineContext, plan: Plan) -> int | None:
    ctx.at("claim.again")
    claim = await ctx.store.claim(plan.claim)
    stands = claim is not None and claim.generation + 1 == plan.generation
    return await landings_since(ctx, claim) if stands and claim is not None else None


def _open_claim(ctx: EngineContext, prepared: Prepared, holder: str, landings: int | None) -> OpenClaim:
    plan, call, claim = prepared.plan, prepared.admitted.facts.call, prepared.admitted.claim
    assert claim is not None
    return OpenClaim(
        name=plan.claim,
        request=claim.request,
        generation=plan.generation,
        holder=holder,
        call=call.call_id,
        tool=call.tool,
        keys=plan.keys,
        lease_us=ctx.lease_us,
        turn=call.turn,
        run=call.run,
        call_name=claim.call_name,
        replays=call.replays,
        landings=landings,
    )


async def _commit_claim(
    ctx: EngineContext, prepared: Prepared, work: Work, claim: OpenClaim, opened: str
) -> Committed | Refused:
    call, now_us = prepared.admitted.facts.call, ctx.clock.now_us()
    about_to = await intent(ctx, prepared, now_us, opened)
    first = (
        RequireNotHalted(halt_scopes(call.tool, call.actor, call.run)),
        *([RequireClaim(hold.name, hold.holder) for hold in call.locks] if call.locks else ()),
        claim,
        about_to,
        *_taking_back(prepared).begin(),
    )
    batch = work.begin_batch(first, claim.holder)
    assert batch is not None
    if isinstance(batch, Refused):
        return batch
    # One commit: from the moment it is durable the change has an owner, and whoever asks for the same waits for it.
    ctx.at("write.begin")
    receipt = await ctx.store.commit(batch)
    ctx.at("write.begun")
    if isinstance(receipt, Committed):
        ctx.turns.note_change(call, receipt.ids[0])
    return receipt


def _refusal(work: Work, receipt: Refused, *, undoes: bool) -> Reading:
    reading = work.not_begun(receipt)
    if undoes and receipt.kind is RefusalKind.REUSED:
        message = f"an undo of this change was begun before, by another call of {work.tool.name!r}; make that yourself"
        return refuse(Status.FAILED, Reason.MOVED, message)
    if receipt.kind is RefusalKind.LEASED:
        return refuse(Status.FAILED, Reason.BUSY, f"{receipt.message}, and did not come free in time")
    if receipt.kind is RefusalKind.LOST:
        return refuse(
            Status.FAILED, Reason.LEASE_LOST, f"what it was to be made under is not held any more: {receipt.limit}"
        )
    if receipt.kind in (RefusalKind.UNDONE, RefusalKind.CLAIMED):
        return refuse(Status.FAILED, Reason.MOVED, receipt.message)
    return reading
