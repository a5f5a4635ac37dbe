"""What the turn of a call has recorded so far, and the answer to a call that was made before."""

from __future__ import annotations

import msgspec

from interlock.canonical import Refusal
from interlock.changes import ClaimName, Expected, claim_name, keys_of
from interlock.engine.admit import deny, end_denied
from interlock.engine.call_ids import end_another_change, end_no_call_id, end_reused, says_nothing
from interlock.engine.compensations import made_for_another, once_ever_name
from interlock.engine.context import Accepted, Ended, EngineContext, Started, ToolBinding, refuse
from interlock.engine.deliveries import OtherCall, find_delivery
from interlock.engine.recorded_answers import answer_again, answer_of_claim, end_answered, end_unheard, read_record
from interlock.engine.respelled_reads import is_same_read
from interlock.engine.store_waits import ask_in_time, settled_claim
from interlock.engine.turns import FoldedTurn
from interlock.engine.undo_chain import claims_to_mark, landings_since
from interlock.errors import StoreError
from interlock.policy.provenance import BY_APPLICATION, TAKEN_BACK, GivenValues, Trace, origin_of_edit
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.state import LANDED, Claimed, ClaimState
from interlock.values import Call, Effect, Mode, Status


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


async def trace_arguments(ctx: EngineContext, accepted: Accepted, turn: FoldedTurn | None) -> Accepted | Ended:
    """The call with what was said and returned in its turns so far, by which rules trace its arguments."""
    call, tool = accepted.facts.call, accepted.binding.tool
    ctx.turns.keeps_late = True
    try:
        ctx.at("turn.read")
        if turn is None and call.turn is not None:  # whoever reads it next need not read this again
            turn = await ctx.turns.read(call.turn)
        seen = await ctx.origins.read(call, turn)
    except StoreError as error:
        reading = refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error))
        return Ended(call=call, started=accepted.started, tool=tool, reading=reading)
    is_given = call.constants or call.edited or call.undoes or accepted.binding.recalled
    given = _values_given(ctx, accepted) if is_given else None
    facts = msgspec.structs.replace(accepted.facts, trace=Trace(seen, tool, given))
    return msgspec.structs.replace(accepted, facts=facts)


def _values_given(ctx: EngineContext, accepted: Accepted) -> GivenValues:
    call, taken_back = accepted.facts.call, accepted.facts.call.undoes is not None
    origins = dict.fromkeys(call.constants, BY_APPLICATION)
    origins |= {field: origin_of_edit(who) for field, who in call.edited.items()}
    origins |= dict.fromkeys(accepted.facts.arguments, TAKEN_BACK) if taken_back else {}
    return GivenValues(origins, taken_back or bool(call.edited), ctx.digest if accepted.binding.recalled else None)


def _needs_turn(ctx: EngineContext, call: Call, binding: ToolBinding) -> bool:
    if binding.rules.needs_turn:
        return True
    if binding.planner is None:  # a redelivery is the same call, whatever is said of identical ones
        return ctx.repeats != "allow" or not call.id_is_ours
    return call.mode is not Mode.APPLY  # for a change that is made, its claim says what is the same


async def look_up(ctx: EngineContext, accepted: Accepted, turn: FoldedTurn | None) -> Accepted | Ended:
    """The same or again: what was made before is answered from the record, or stopped."""
    if turn is not None:
        found = _seen_in_turn(ctx, accepted, turn)
        if isinstance(found, _Respelled):
            found = await ask_in_time(ctx, accepted, _same_by_value(ctx, accepted, found.record))
        if isinstance(found, Ended):
            return found
        if found is not None:
            answered = await ask_in_time(ctx, accepted, answer_again(ctx, accepted, found))
            if answered is not None:  # else its payload was deleted, and the read is simply made again
                return answered
    return accepted if accepted.binding.planner is None else await _claim_of(ctx, accepted)


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
    if reads and turn.has_begun(call):
        return end_reused(accepted)
    request = ctx.turns.request(call, accepted.facts.arguments)
    same_id = turn.last_delivered(call)
    same = turn.find_answer(request, ctx.turns.last_change(call)) if reads and ctx.repeats != "allow" else None
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
        return number if await is_same_read(ctx, accepted, await read_record(ctx, number)) else end_reused(accepted)
    except StoreError as error:
        return end_answered(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))


async def _claim_of(ctx: EngineContext, accepted: Accepted) -> Accepted | Ended:
    """Whether this very change was made, is being made or is in doubt; otherwise which claim the call will make."""
    facts, tool = accepted.facts, accepted.binding.tool
    try:
        name = claim_name(ctx.digest, tool, keys_of(tool, facts.arguments), accepted.parsed.by_value(), facts.call)
    except Refusal as refusal:
        return end_answered(
            accepted, refuse(Status.DENIED, Reason.INVALID_ARGUMENTS, str(refusal), fields=refusal.fields)
        )
    applies = facts.call.mode is Mode.APPLY
    if applies and says_nothing(tool, facts.call):
        return end_no_call_id(accepted)
    # A dry run does not wait for whoever is making the same change: it only looks.
    until = accepted.started.clock + tool.deadline_s if applies else 0.0
    claim = None
    try:
        if facts.call.undoes is not None:
            name = await ask_in_time(ctx, accepted, _name_of_undo(ctx, accepted, name))
        if facts.call.claim is not None and facts.call.claim != name.name:
            return end_another_change(accepted)
        claim = await settled_claim(ctx, name.name, until)
        return await ask_in_time(ctx, accepted, _same_or_again(ctx, accepted, name, claim))
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
    delivered = await find_delivery(ctx, facts.call, name, claim)
    if isinstance(delivered, OtherCall) or (claim is not None and claim.request != name.request):
        return end_reused(accepted)
    if delivered is not None:
        return await answer_of_claim(ctx, accepted, delivered)
    # What answers it from here on is what its id stands for from then on.
    accepted = msgspec.structs.replace(accepted, claim=Expected(name.name, name.request, 1, name.call_name))
    if claim is not None and claim.state is ClaimState.RETURNING and applies:
        return await answer_of_claim(ctx, accepted, claim)
    if facts.call.undoes is not None:
        return await _take_back(ctx, accepted, name, claim)
    if claim is None:
        return accepted
    # "Changed since" is about state: a send is made again only where it was taken back, or by a replay.
    landings = await landings_since(ctx, claim) if tool.effect is Effect.WRITE else None
    again = claim.state is ClaimState.UNDONE or landings is not None
    if not applies or again or claim.state is ClaimState.FAILED:
        generation = claim.generation + again
        expected = Expected(name.name, name.request, generation, name.call_name, landings=landings)
        return msgspec.structs.replace(accepted, claim=expected)
    return await answer_of_claim(ctx, accepted, claim)


async def _name_of_undo(ctx: EngineContext, accepted: Accepted, name: ClaimName) -> ClaimName:
    tool, facts = accepted.binding.tool, accepted.facts
    assert facts.call.undoes is not None
    keys, arguments = keys_of(tool, facts.arguments), accepted.parsed.by_value()
    return await once_ever_name(ctx, tool, keys, arguments, facts.call.undoes) or name


async def _take_back(
    ctx: EngineContext, accepted: Accepted, name: ClaimName, claim: Claimed | None
) -> Accepted | Ended:
    undoes = accepted.facts.call.undoes
    assert undoes is not None
    if claim is not None and claim.state not in (ClaimState.FAILED, ClaimState.UNDONE):
        return await answer_of_claim(ctx, accepted, claim)
    others = claim is not None and await made_for_another(ctx, claim, undoes)
    taking = await claims_to_mark(ctx, undoes, None if others else claim)
    if isinstance(taking, str):
        return end_answered(accepted, refuse(Status.FAILED, Reason.MOVED, taking))
    generation = 1 if claim is None else claim.generation + (others and claim.state is ClaimState.UNDONE)
    expected = Expected(name.name, name.request, generation, name.call_name, taking_back=taking)
    return msgspec.structs.replace(accepted, claim=expected)


async def _end_unanswered(
    ctx: EngineContext, accepted: Accepted, claim: Claimed | None, reason: Reason, why: str
) -> Ended:
    """The store did not say whether this change was made: what is known of its claim is said, and no more than that."""
    if accepted.facts.call.mode is not Mode.APPLY:
        return end_answered(accepted, refuse(Status.FAILED, reason, why))
    if claim is None or claim.state is ClaimState.FAILED:
        return end_answered(accepted, refuse(Status.FAILED, reason, not_looked_up(why)))
    if claim.state not in LANDED:
        return await answer_of_claim(ctx, accepted, claim)
    return end_unheard(accepted, claim, reason, why)


def not_looked_up(why: str) -> str:
    """What can be said of a change where nobody knows whether it was made before: that this call has not made it."""
    return (
        f"this call has made nothing; whether the same change was made before could not be looked up: {why};"
        " ask again with the same call id"
    )
