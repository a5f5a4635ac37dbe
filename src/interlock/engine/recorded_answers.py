"""What was recorded of a call that was made before, as the answer to one that is the same."""

from __future__ import annotations

import msgspec

from interlock.canonical import WHATEVER, canonical
from interlock.engine.compensations import made_for_another, why_not_again
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, refuse
from interlock.engine.recorded_values import NoValue, recorded_value
from interlock.engine.store_waits import ask_in_time
from interlock.engine.unsettled import read_unsettled
from interlock.errors import StoreError
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.resilience import Expired
from interlock.state import Claimed, ClaimState
from interlock.tools import Reading
from interlock.transitions import BindCallId
from interlock.values import Mode, Status

Keys = tuple[str, ...]


async def answer_again(ctx: EngineContext, accepted: Accepted, number: int) -> Ended | None:
    """The recorded answer of a read; None if its payload was deleted."""
    try:
        answer = await _recorded_answer(ctx, accepted, await read_record(ctx, number))
    except StoreError as error:
        return end_answered(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))
    if isinstance(answer, Ended) or answer.is_deleted:
        return answer if isinstance(answer, Ended) else None
    return end_answered(accepted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, answer.why))


async def answer_of_claim(ctx: EngineContext, stage: Accepted | Admitted, claim: Claimed) -> Ended:
    """The outcome of whoever made this change before, or while the call was on its way."""
    if claim.state not in (ClaimState.DONE, ClaimState.UNDONE) or claim.record is None:
        return end_answered(stage, await read_unsettled(ctx, claim))
    try:
        answer = await ask_in_time(ctx, stage, _answer_of_outcome(ctx, stage, claim, claim.record))
        answer = _bind(stage, answer, claim)
        return answer.undone_since() if claim.state is ClaimState.UNDONE else answer
    except Expired:
        return end_unheard(stage, claim, Reason.TIMEOUT, "the store gave no answer in time")
    except StoreError as error:
        return end_unheard(stage, claim, Reason.STORE_UNAVAILABLE, str(error))


def _bind(stage: Accepted | Admitted, answer: Ended, claim: Claimed) -> Ended:
    """The answer, with which the caller's own id comes to stand for what it is answered from, if it has no row yet."""
    call, expected = stage.facts.call, stage.claim
    call_name = "" if expected is None else expected.call_name
    if answer.repeats is None or not call_name or call.mode is not Mode.APPLY or call.undoes is not None:
        return answer
    binds = BindCallId(call_name, claim.first_name, claim.generation, answer.repeats, call.call_id)
    return msgspec.structs.replace(answer, settle=(*answer.settle, binds))


async def _answer_of_outcome(ctx: EngineContext, stage: Accepted | Admitted, claim: Claimed, number: int) -> Ended:
    record, undoes = await _outcome_of(ctx, claim, number), stage.facts.call.undoes
    if undoes is not None and await made_for_another(ctx, claim, undoes):
        return end_answered(stage, refuse(Status.FAILED, Reason.MOVED, why_not_again(stage.binding.tool.name, claim)))
    return await _answer_of_read(ctx, stage, record)


async def _answer_of_read(ctx: EngineContext, stage: Accepted | Admitted, record: Stored) -> Ended:
    """The recorded answer of a change; that it was made stands, also where what it answered cannot be given."""
    answer = await _recorded_answer(ctx, stage, record)
    if isinstance(answer, Ended):
        return answer
    content, status = record.content(), Status(record.status)
    if status is Status.OK:
        return _end_made(stage, record, f"made before (record {record.id}); {answer.why}")
    reading = Reading(status=status, said=content.said, problem=content.problem)
    return end_answered(stage, reading, repeats=record.id)


def end_unheard(stage: Accepted | Admitted, claim: Claimed, reason: Reason, why: str) -> Ended:
    """The change was made, and the store does not say now what it answered."""
    message = f"call {claim.call!r} made this very change; what it answered could not be looked up: {why}; ask again"
    return end_answered(stage, refuse(Status.UNKNOWN, reason, message))


async def _outcome_of(ctx: EngineContext, claim: Claimed, number: int) -> Stored:
    """The record that a claim names as its outcome; one about another change was written into its row."""
    record = await read_record(ctx, number)
    content = record.content()
    about = None if content.change is None else content.change.claim
    if record.kind == "settle" and isinstance(content.arguments, dict):
        about = content.arguments.get("claim")
    if about != claim.first_name:
        raise StoreError(f"record {number}, which a claim names, is about another change; run interlock audit verify")
    return record


async def read_record(ctx: EngineContext, number: int) -> Stored:
    """One record, which a claim or the turn of a call names."""
    ctx.at("claim.record")
    found = [record async for record in ctx.store.records(Query(after=number - 1, until=number))]
    if not found:
        raise StoreError(f"record {number}, which a claim or its turn names, is not in the ledger; run audit verify")
    return found[0]


def end_answered(
    stage: Accepted | Admitted, reading: Reading, repeats: int | None = None, deviates: Keys = ()
) -> Ended:
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
    return end_answered(stage, Reading(status=Status.OK, said=said), record.id, record.content().deviates)


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
    return msgspec.structs.replace(end_answered(stage, reading, record.id, content.deviates), verdict=content.verdict)
