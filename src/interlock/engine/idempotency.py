"""What the turn of a call has recorded so far, and the answer to a call that was made before."""

from __future__ import annotations

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes import Expected, claim_name, keys_of
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Repeated, Started, refused
from interlock.errors import StoreError
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.state import Claimed, ClaimState
from interlock.stores.claims import changed_since
from interlock.tools import Reading
from interlock.values import Call, Effect, Mode, Status

_FIRST_LOOK_S = 0.01
_LAST_LOOK_S = 0.25


async def recall(ctx: EngineContext, call: Call, started: Started) -> list[Stored] | Ended | None:
    """The turn's records where anything depends on them, None where nothing does."""
    binding = ctx.bindings.get(call.tool)
    if binding is None:
        return None
    made_once = (
        ctx.repeats == "allow" if binding.planner is None else call.mode is Mode.APPLY
    )  # claims say what is same
    if made_once and not binding.rules.needs_turn:
        return None
    try:
        if ctx.faults is not None:
            ctx.faults.at("turn.read")
        return [record async for record in ctx.store.records(Query(turn=call.turn))]
    except StoreError as error:
        reading = refused(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error))
        return Ended(call=call, started=started, tool=binding.tool, reading=reading)


async def look_up(ctx: EngineContext, accepted: Accepted) -> Accepted | Repeated | Ended:
    """Whether this very change was made, is being made or is in doubt; otherwise which claim the call will make."""
    facts, tool = accepted.facts, accepted.binding.tool
    try:
        name = claim_name(ctx.digest, tool, keys_of(tool, facts.arguments), facts.arguments, facts.call)
    except Refusal as refusal:
        return _ended(accepted, refused(Status.DENIED, Reason.INVALID_ARGUMENTS, str(refusal)))
    applies = facts.call.mode is Mode.APPLY
    end = accepted.started.clock + tool.deadline_s
    try:
        claim = await settled_claim(ctx, name.name, end if applies else 0.0)
        delivered = await _delivered(ctx, facts.call, name.name) if applies else None
        reused = claim is not None and claim.request != name.request
        if isinstance(delivered, Stored) and not reused:
            return _repeated(accepted, delivered)
        if delivered is not None or reused:
            reason = f"call id {facts.call.call_id!r} was used in this turn for another call; use a new one"
            return _ended(accepted, refused(Status.DENIED, Reason.CALL_ID_REUSED, reason))
        if claim is None:
            return msgspec.structs.replace(accepted, claim=Expected(name.name, name.request, 1))
        again = claim.state is ClaimState.UNDONE or await _changed_since(ctx, claim)
        generation = claim.generation + 1 if again else claim.generation
        if not applies or again or claim.state is ClaimState.FAILED:
            return msgspec.structs.replace(accepted, claim=Expected(name.name, name.request, generation))
        if claim.state is not ClaimState.DONE or claim.record is None:
            return _ended(accepted, in_doubt(claim, ctx.clock.now_us()))
        record = await _record(ctx, claim.record)
    except StoreError as error:
        return _ended(accepted, refused(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))
    return _repeated(accepted, record)


async def _delivered(ctx: EngineContext, call: Call, claim: str) -> Stored | str | None:
    """The outcome of this very call, if it was delivered before, as a redelivery is the same call, always; or the word
    that its id was used for another one.

    The records are read after the claim, so that whatever the claim knows of is among them.
    """
    if call.turn is None or call.id_is_ours or call.replays:
        return None
    if ctx.faults is not None:
        ctx.faults.at("claim.turn")
    found = [record async for record in ctx.store.records(Query(turn=call.turn, call=call.call_id))]
    for record in reversed(found):
        if record.kind != "call" or record.status not in (Status.OK, Status.NO_DATA) or record.actor != call.actor:
            continue
        content = record.content()
        if content.repeats is None:  # what repeats another record is no outcome of its own
            return record if content.change is not None and content.change.claim == claim else "another"
    return None


def _repeated(accepted: Accepted, record: Stored) -> Repeated:
    facts = accepted.facts
    return Repeated(
        call=facts.call, started=accepted.started, tool=accepted.binding.tool, arguments=facts.arguments, record=record
    )


async def settled_claim(ctx: EngineContext, name: str, until: float) -> Claimed | None:
    """A claim as soon as nobody is making it any more, or as it is when time is up."""
    wait_s = _FIRST_LOOK_S
    while True:
        if ctx.faults is not None:
            ctx.faults.at("claim.read")
        claim = await ctx.store.claim(name)
        left_s = until - ctx.clock.monotonic()
        alive = claim is not None and claim.expires_us > ctx.clock.now_us()
        if claim is None or claim.state is not ClaimState.OPEN or not alive or left_s <= 0:
            return claim
        await ctx.clock.sleep(min(wait_s, left_s))
        wait_s = min(wait_s * 2, _LAST_LOOK_S)


def in_doubt(claim: Claimed, now_us: int) -> Reading:
    """The reading of a call whose change was begun by another one that nobody has heard the end of."""
    if claim.state is ClaimState.OPEN and claim.expires_us > now_us:
        message = f"call {claim.call!r} is still making this very change; ask again later"
        return refused(Status.FAILED, Reason.IN_PROGRESS, message)
    message = f"call {claim.call!r} may have made this very change, and nobody knows: it is not repeated until settled"
    return refused(Status.UNKNOWN, Reason.IN_DOUBT, message, hints=("interlock recover", "interlock review list"))


async def answer_of_claim(ctx: EngineContext, admitted: Admitted, claim: Claimed) -> Ended:
    """The outcome of whoever made this change while the call was on its way."""
    call, tool, arguments = admitted.facts.call, admitted.binding.tool, admitted.facts.arguments
    if claim.state is not ClaimState.DONE or claim.record is None:
        return Ended(call, admitted.started, in_doubt(claim, ctx.clock.now_us()), tool, arguments, admitted.verdict)
    record = await _record(ctx, claim.record)
    repeated = Repeated(call=call, started=admitted.started, tool=tool, arguments=arguments, record=record)
    return await recorded_answer(ctx, repeated) or _forgotten(repeated)


async def _changed_since(ctx: EngineContext, claim: Claimed) -> bool:
    """Whether another recorded effect changed one of its keys after this one did."""
    if claim.state is not ClaimState.DONE or not claim.keys:
        return False
    if ctx.faults is not None:
        ctx.faults.at("claim.leases")
    return changed_since(claim, await ctx.store.leases(claim.keys))


async def _record(ctx: EngineContext, number: int) -> Stored:
    if ctx.faults is not None:
        ctx.faults.at("claim.record")
    found = [record async for record in ctx.store.records(Query(after=number - 1, until=number))]
    if not found:
        raise StoreError(f"record {number}, which a claim names, is not in the ledger; run audit verify")
    return found[0]


def _ended(accepted: Accepted, reading: Reading) -> Ended:
    return Ended(accepted.facts.call, accepted.started, reading, accepted.binding.tool, accepted.facts.arguments)


def _forgotten(repeated: Repeated) -> Ended:
    return _made(repeated, f"made before (record {repeated.record.id}); its answer has been deleted")


def _made(repeated: Repeated, said: str) -> Ended:
    """The change was made, and there is no answer to give beside that."""
    reading = Reading(status=Status.OK, said=said)
    return Ended(
        repeated.call, repeated.started, reading, repeated.tool, repeated.arguments, repeats=repeated.record.id
    )


async def recorded_answer(ctx: EngineContext, repeated: Repeated) -> Ended | None:
    """The recorded answer; None if its payload was deleted, so that a read is simply made again."""
    record, content = repeated.record, repeated.record.content()
    if record.kind != "call":  # the end of the call that made it is not known, but it was settled that it landed
        return _made(repeated, f"made before; it was settled that it landed (record {record.id})")
    if record.actor != repeated.call.actor:  # that it was made is for everyone to know, what it answered is not
        return _made(repeated, f"made before by {record.actor} (record {record.id})")
    value = content.value
    if content.payload:
        try:
            if ctx.faults is not None:
                ctx.faults.at("answer.payload")
            payload = await ctx.store.payload(record.id)
        except StoreError as error:
            return _failed(repeated, f"the recorded answer cannot be read: {error}")
        if payload is None:
            return None if repeated.tool.effect is Effect.READ else _forgotten(repeated)
        try:
            value = msgspec.json.decode(payload)["value"]
            genuine = ctx.digest(canonical(value, WHATEVER)) == content.value_digest
        except (msgspec.DecodeError, KeyError, TypeError, Refusal):
            genuine = False
        if not genuine:
            return _failed(repeated, f"the payload of record {record.id} is not what was recorded; run audit verify")
    reading = Reading(
        status=Status(record.status),
        value=value,
        text=canonical(value, WHATEVER),
        said=content.said,
        problem=content.problem,
        snippets=content.snippets,
        metadata=content.metadata,
        confidence=content.result_confidence,
        sources=content.sources,
    )
    return Ended(
        call=repeated.call,
        started=repeated.started,
        tool=repeated.tool,
        arguments=repeated.arguments,
        verdict=content.verdict,
        reading=reading,
        repeats=record.id,
    )


def _failed(repeated: Repeated, message: str) -> Ended:
    return Ended(
        repeated.call,
        repeated.started,
        refused(Status.FAILED, Reason.STORE_UNAVAILABLE, message),
        repeated.tool,
        repeated.arguments,
    )
