"""What the turn of a call has recorded so far, and the answer to a call that was made before."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes import ClaimName, Expected, claim_name, keys_of
from interlock.engine.admit import deny, end_denied
from interlock.engine.call_ids import end_another_change, end_no_call_id, end_reused, says_nothing
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Started, ToolBinding, refuse
from interlock.engine.recorded_values import NoValue, recorded_value
from interlock.engine.respelled_reads import is_same_read
from interlock.engine.turns import FoldedTurn
from interlock.engine.undo_chain import claims_to_mark, landings_since
from interlock.engine.unsettled import read_unsettled
from interlock.engine.waiting import Waiting
from interlock.errors import StoreError
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.resilience import Expired
from interlock.state import LANDED, Claimed, ClaimState
from interlock.tools import Reading
from interlock.values import Call, Effect, Mode, Status

_FIRST_LOOK_S, _LAST_LOOK_S = 0.01, 0.25
T = TypeVar("T")
Keys = tuple[str, ...]


async def read_turn(ctx: EngineContext, call: Call, started: Started) -> FoldedTurn | Ended | None:
    """What the turn of a call has recorded so far, where anything depends on it; None where nothing does."""
    binding = ctx.bindings.get(call.tool)
    if binding is None or call.turn is None or not _needs_turn(ctx, call, binding):
        return None
    try:
        ctx.at("turn.read")
        return await ctx.turns.read(call.turn)
    except StoreError as error:
        reading = refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error))
        return Ended(call=call, started=started, tool=binding.tool, reading=reading)


def _needs_turn(ctx: EngineContext, call: Call, binding: ToolBinding) -> bool:
    if binding.rules.needs_turn:
        return True
    # For a change that is made, its claim says what is the same.
    return ctx.repeats != "allow" if binding.planner is None else call.mode is not Mode.APPLY


async def look_up(ctx: EngineContext, accepted: Accepted, turn: FoldedTurn | None) -> Accepted | Ended:
    """The same or again: what was made before is answered from the record, or stopped."""
    if turn is not None:
        found = _seen_in_turn(ctx, accepted, turn)
        if isinstance(found, _Respelled):
            found = await _ask(ctx, accepted, _same_by_value(ctx, accepted, found.record))
        if isinstance(found, Ended):
            return found
        if found is not None:
            answered = await _ask(ctx, accepted, _answer_again(ctx, accepted, found))
            if answered is not None:  # else its payload was deleted, and the read is simply made again
                return answered
    return accepted if accepted.binding.planner is None else await _claim_of(ctx, accepted)


async def _ask(ctx: EngineContext, stage: Accepted | Admitted, work: Coroutine[Any, Any, T]) -> T:
    """What is asked of the store for a call; `Expired` if it does not answer in the time that the call has."""
    ctx.at("claim.wait")
    until = stage.started.clock + stage.binding.tool.deadline_s
    return await ctx.deadlines.within(_left_s(ctx, until), work)


class _Respelled(msgspec.Struct, frozen=True):
    """The id of this read was used in other words: of another read, or of the same one."""

    record: int


def _seen_in_turn(ctx: EngineContext, accepted: Accepted, turn: FoldedTurn) -> int | _Respelled | Ended | None:
    """A redelivery is the same call; an identical call in the turn is answered from the record, or stopped.

    Only the actor's own records count: one actor's answer is not another's. Where its id and its words were each used
    before, the newer record decides.
    """
    call = accepted.facts.call
    if call.replays:
        return None
    reads = accepted.binding.tool.effect is Effect.READ  # what is the same change is for its claim to say
    request = ctx.turns.request(call, accepted.facts.arguments)
    same_id = turn.last_delivered(call)
    same = turn.find_answer(request) if reads and ctx.repeats != "allow" else None
    if same_id is not None and (same is None or same <= same_id.record):
        if not same_id.may_answer(request):
            return end_reused(accepted)
        if not reads:
            return None
        return same_id.record if same_id.request == request else _Respelled(same_id.record)
    if same is None or ctx.repeats != "stop":
        return same
    reason = f"the same call was made in this turn already (record {same}); use its result"
    verdict = deny("repeats", reason)
    return end_denied(accepted.facts, accepted.started, accepted.binding.tool, verdict, Reason.REPEATED_CALL)


async def _same_by_value(ctx: EngineContext, accepted: Accepted, number: int) -> int | Ended:
    try:
        return number if await is_same_read(ctx, accepted, await _record(ctx, number)) else end_reused(accepted)
    except StoreError as error:
        return _end(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))


async def _answer_again(ctx: EngineContext, accepted: Accepted, number: int) -> Ended | None:
    """The recorded answer of a read; None if its payload was deleted."""
    try:
        answer = await _recorded_answer(ctx, accepted, await _record(ctx, number))
    except StoreError as error:
        return _end(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))
    if isinstance(answer, Ended) or answer.is_deleted:
        return answer if isinstance(answer, Ended) else None
    return _end(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, answer.why))


async def _claim_of(ctx: EngineContext, accepted: Accepted) -> Accepted | Ended:
    """Whether this very change was made, is being made or is in doubt; otherwise which claim the call will make."""
    facts, tool = accepted.facts, accepted.binding.tool
    try:
        name = claim_name(ctx.digest, tool, keys_of(tool, facts.arguments), accepted.parsed.by_value(), facts.call)
    except Refusal as refusal:
        return _end(accepted, refuse(Status.DENIED, Reason.INVALID_ARGUMENTS, str(refusal), fields=refusal.fields))
    if facts.call.claim is not None and facts.call.claim != name.name:
        return end_another_change(accepted)
    applies = facts.call.mode is Mode.APPLY
    if applies and says_nothing(tool, facts.call):
        return end_no_call_id(accepted)
    # A dry run does not wait for whoever is making the same change: it only looks.
    until = accepted.started.clock + tool.deadline_s if applies else 0.0
    claim = None
    try:
        claim = await settled_claim(ctx, name.name, until)
        return await _ask(ctx, accepted, _same_or_again(ctx, accepted, name, claim))
    except Expired:
        return await _end_unanswered(ctx, accepted, claim, Reason.TIMEOUT, "the store gave no answer in time")
    except StoreError as error:
        return await _end_unanswered(ctx, accepted, claim, Reason.STORE_UNAVAILABLE, str(error))


async def _same_or_again(
    ctx: EngineContext, accepted: Accepted, name: ClaimName, claim: Claimed | None
) -> Accepted | Ended:
    """Whether a call is the one that its claim stands for, and so is answered, or which generation it will be."""
    facts, tool = accepted.facts, accepted.binding.tool
    applies = facts.call.mode is Mode.APPLY
    delivered = await _find_delivery(ctx, facts.call, name) if applies else None
    if isinstance(delivered, _OtherCall) or (claim is not None and claim.request != name.request):
        return end_reused(accepted)
    if claim is not None and claim.state is ClaimState.RETURNING and applies:
        return await answer_of_claim(ctx, accepted, claim)
    if delivered is None and claim is not None and _is_redelivery(facts.call, claim):
        delivered = None if claim.record is None else await _outcome_of(ctx, claim, claim.record)
    if delivered is not None:
        answer = await _answer_of_record(ctx, accepted, delivered)
        return answer.undone_since() if claim is not None and claim.state is ClaimState.UNDONE else answer
    if facts.call.undoes is not None:
        return await _take_back(ctx, accepted, name, claim)
    if claim is None:
        return msgspec.structs.replace(accepted, claim=Expected(name.name, name.request, 1, name.call_name))
    # "Changed since" is about state: a send is made again only where it was taken back, or by a replay.
    landings = await landings_since(ctx, claim) if tool.effect is Effect.WRITE else None
    again = claim.state is ClaimState.UNDONE or landings is not None
    if not applies or again or claim.state is ClaimState.FAILED:
        generation = claim.generation + again
        expected = Expected(name.name, name.request, generation, name.call_name, landings=landings)
        return msgspec.structs.replace(accepted, claim=expected)
    return await answer_of_claim(ctx, accepted, claim)


async def _take_back(
    ctx: EngineContext, accepted: Accepted, name: ClaimName, claim: Claimed | None
) -> Accepted | Ended:
    if claim is not None and claim.state not in (ClaimState.FAILED, ClaimState.UNDONE):
        return await answer_of_claim(ctx, accepted, claim)
    taking = await claims_to_mark(ctx, accepted.facts.call.undoes, claim)
    if isinstance(taking, str):
        return _end(accepted, refuse(Status.FAILED, Reason.MOVED, taking))
    generation = 1 if claim is None else claim.generation
    return msgspec.structs.replace(accepted, claim=Expected(name.name, name.request, generation, taking_back=taking))


async def _end_unanswered(
    ctx: EngineContext, accepted: Accepted, claim: Claimed | None, reason: Reason, why: str
) -> Ended:
    """The store did not say whether this change was made: what is known of its claim is said, and no more than that."""
    if accepted.facts.call.mode is not Mode.APPLY:
        return _end(accepted, refuse(Status.FAILED, reason, why))
    if claim is None or claim.state is ClaimState.FAILED:
        return _end(accepted, refuse(Status.FAILED, reason, not_looked_up(why)))
    if claim.state not in LANDED:
        return await answer_of_claim(ctx, accepted, claim)
    return _end_unheard(accepted, claim, reason, why)


def not_looked_up(why: str) -> str:
    """What can be said of a change where nobody knows whether it was made before: that this call has not made it."""
    return (
        f"this call has made nothing; whether the same change was made before could not be looked up: {why};"
        " ask again with the same call id"
    )


def _is_redelivery(call: Call, claim: Claimed) -> bool:
    """Whether this very call was made before, by its caller's own id: the same call, whatever happened since."""
    return (
        claim.state in LANDED
        and not call.id_is_ours
        and call.turn is None
        and not call.replays
        and claim.call == call.call_id
    )


class _OtherCall(msgspec.Struct, frozen=True):
    """The id of this call was used for another one."""


async def _find_delivery(ctx: EngineContext, call: Call, name: ClaimName) -> Stored | _OtherCall | None:
    """The outcome of this very call, if it was delivered before, as a redelivery is the same call, always; or that its
    id was used for another one.

    The records are read after the claim, so that whatever the claim knows of is among them. The begin commit has the
    last word about an id; what is found here is refused before anybody is asked, and not answered from a record.
    """
    if call.id_is_ours or call.replays:
        return None
    if call.turn is None:
        ctx.at("claim.call")
        used = await ctx.store.claim(name.call_name) if name.call_name else None
        return None if used is None or used.request == name.name else _OtherCall()
    ctx.at("claim.turn")
    made = (await ctx.turns.read(call.turn)).last_made(call)
    if made is None:
        return None
    return await _record(ctx, made.record) if made.claim == name.name else _OtherCall()


async def settled_claim(ctx: EngineContext, name: str, until: float) -> Claimed | None:
    """A claim as soon as nobody is making it any more, or as it is when time is up.

    The store is given a moment more than whoever makes it. A claim that was seen is not forgotten because the store
    falls silent then; `Expired` or `StoreError` if none was.
    """
    wait_s, claim, waiting = _FIRST_LOOK_S, None, Waiting(ctx.clock)
    while True:
        try:
            ctx.at("claim.read")
            claim = await ctx.deadlines.within(_left_s(ctx, until), ctx.store.claim(name))
            if claim is None or claim.state is not ClaimState.OPEN:
                return claim
            now_us = await ctx.deadlines.within(_left_s(ctx, until), ctx.store.now_us(ctx.clock.now_us()))
        except (Expired, StoreError):
            if claim is None:
                raise
            return claim
        left_s = until - ctx.clock.monotonic()
        if left_s <= 0 or claim.expires_us <= now_us:
            return claim
        waiting.note(f"call {claim.call!r}, which has begun this very change", (claim.expires_us - now_us) / 1e6)
        await ctx.clock.sleep(min(wait_s, left_s))
        wait_s = min(wait_s * 2, _LAST_LOOK_S)


def _left_s(ctx: EngineContext, until: float) -> float:
    """How long the store is waited for: until then, and not less than a moment.

    Whoever has waited for somebody else until the deadline must still be told what became of that.
    """
    return max(_LAST_LOOK_S, until - ctx.clock.monotonic())


async def answer_of_claim(ctx: EngineContext, stage: Accepted | Admitted, claim: Claimed) -> Ended:
    """The outcome of whoever made this change before, or while the call was on its way."""
    if claim.state not in (ClaimState.DONE, ClaimState.UNDONE) or claim.record is None:
        return _end(stage, await read_unsettled(ctx, claim))
    try:
        answer = await _ask(ctx, stage, _answer_of_outcome(ctx, stage, claim, claim.record))
        return answer.undone_since() if claim.state is ClaimState.UNDONE else answer
    except Expired:
        return _end_unheard(stage, claim, Reason.TIMEOUT, "the store gave no answer in time")
    except StoreError as error:
        return _end_unheard(stage, claim, Reason.STORE_UNAVAILABLE, str(error))


async def _answer_of_outcome(ctx: EngineContext, stage: Accepted | Admitted, claim: Claimed, number: int) -> Ended:
    return await _answer_of_record(ctx, stage, await _outcome_of(ctx, claim, number))


async def _answer_of_record(ctx: EngineContext, stage: Accepted | Admitted, record: Stored) -> Ended:
    """The recorded answer of a change; that it was made stands, also where what it answered cannot be given."""
    answer = await _recorded_answer(ctx, stage, record)
    if isinstance(answer, Ended):
        return answer
    content, status = record.content(), Status(record.status)
    if status is Status.OK:
        return _end_made(stage, record, f"made before (record {record.id}); {answer.why}")
    reading = Reading(status=status, said=content.said, problem=content.problem)
    return _end(stage, reading, repeats=record.id)


def _end_unheard(stage: Accepted | Admitted, claim: Claimed, reason: Reason, why: str) -> Ended:
    """The change was made, and the store does not say now what it answered."""
    message = f"call {claim.call!r} made this very change; what it answered could not be looked up: {why}; ask again"
    return _end(stage, refuse(Status.UNKNOWN, reason, message))


async def _outcome_of(ctx: EngineContext, claim: Claimed, number: int) -> Stored:
    """The record that a claim names as its outcome; one about another change was written into its row."""
    record = await _record(ctx, number)
    content = record.content()
    about = None if content.change is None else content.change.claim
    if record.kind == "settle" and isinstance(content.arguments, dict):
        about = content.arguments.get("claim")
    if about != claim.first_name:
        raise StoreError(f"record {number}, which a claim names, is about another change; run interlock audit verify")
    return record


async def _record(ctx: EngineContext, number: int) -> Stored:
    ctx.at("claim.record")
    found = [record async for record in ctx.store.records(Query(after=number - 1, until=number))]
    if not found:
        raise StoreError(f"record {number}, which a claim or its turn names, is not in the ledger; run audit verify")
    return found[0]


def _end(stage: Accepted | Admitted, reading: Reading, repeats: int | None = None, deviates: Keys = ()) -> Ended:
    return Ended(
        call=stage.facts.call,
        started=stage.started,
        reading=reading,
        tool=stage.binding.tool,
        arguments=stage.facts.arguments,
        verdict=stage.verdict if isinstance(stage, Admitted) else None,
        repeats=repeats,
        deviates=deviates,
    )


def _end_made(stage: Accepted | Admitted, record: Stored, said: str) -> Ended:
    """The change was made, and there is no answer to give beside that."""
    return _end(stage, Reading(status=Status.OK, said=said), record.id, record.content().deviates)


async def _recorded_answer(ctx: EngineContext, stage: Accepted | Admitted, record: Stored) -> Ended | NoValue:
    """The recorded answer, or why its value cannot be given."""
    if record.kind != "call":  # the end of the call that made it is not known, but it was settled that it landed
        return _end_made(stage, record, f"made before; it was settled that it landed (record {record.id})")
    if record.actor != stage.facts.call.actor:  # that it was made is for everyone to know, what it answered is not
        return _end_made(stage, record, f"made before by {record.actor} (record {record.id})")
    content = record.content()
    value = await recorded_value(ctx, record, content)
    if isinstance(value, NoValue):
        return value
    reading = Reading(
        status=Status(record.status),
        value=value.value,
        text=canonical(value.value, WHATEVER),
        said=content.said,
        problem=content.problem,
        snippets=content.snippets,
        metadata=content.metadata,
        confidence=content.result_confidence,
        sources=content.sources,
    )
    return msgspec.structs.replace(_end(stage, reading, record.id, content.deviates), verdict=content.verdict)
