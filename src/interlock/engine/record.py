"""RECORD: the one place where a record is written, and the end commit that makes it durable."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import msgspec

from interlock.canonical import WHATEVER, canonical, encode_canonical
from interlock.changes import Snapshot, base_of
from interlock.engine.context import Ended, EngineContext, Prepared, refuse
from interlock.engine.outcomes import outcome_of, unrecorded_outcome
from interlock.engine.redaction import (
    NOTHING_REDACTED,
    redact_content,
    redact_long,
    redactor_of_end,
    size_to_redact,
)
from interlock.errors import StoreError
from interlock.ports import GIVEN_UP_S, noted_receipt
from interlock.reasons import Reason, RefusalKind
from interlock.records import Changed, Content, Record
from interlock.review import ticket_digest
from interlock.tools import LONGEST_MESSAGE, Reading, Redactor, shorten_problem
from interlock.transitions import (
    Append,
    Batch,
    BindCallId,
    CloseClaim,
    Committed,
    MarkStanding,
    MarkUndone,
    OpenTicket,
    Refused,
    Transition,
)
from interlock.values import Decision, Json, Mode, Outcome, Plan, Status, Trust

_log = logging.getLogger("interlock")
_LAST_WAIT_S = 2.0
"""How long a store that hangs may hold a call beyond its deadline."""
_MARKS = (MarkUndone, MarkStanding)
_DENIED = Status.DENIED  # looked up once: on Python 3.11 a member of an enum costs as much as a call
_MADE_AGAIN = (Status.PARKED, Status.PLANNED)
"""Of records that calls are made from again: what waits for a person, and intents."""


async def record(ctx: EngineContext, ended: Ended) -> Outcome:
    """Write down how the call ended; nothing that is not recorded is given out. Whoever cancelled it hears so then."""
    monotonic, at, tool = ctx.clock.monotonic, ctx.at, ended.tool
    duration_us = int((monotonic() - ended.started.clock) * 1e6)
    if ended.reading.status is _DENIED:
        ended = _denied_by_its_problem(ended)
    if tool is None or tool.redact:
        work = partial(_entry, ctx, ended, duration_us, None)
        (entry, payload), interrupt = await redact_long(size_to_redact(ctx, ended), work)
        ended = ended if interrupt is None else msgspec.structs.replace(ended, interrupt=interrupt)
    else:
        entry, payload = _entry(ctx, ended, duration_us, None)
    transitions: tuple[Transition, ...] = (Append(entry, payload),) + ended.settle  # noqa: RUF005 - half the time
    if ended.asks is not None:
        transitions += (OpenTicket(ended.asks),)
    # Until the deadline of the call, and not less than a moment: of what was done it should be known that it was.
    left_s = _LAST_WAIT_S if tool is None else tool.deadline_s - duration_us * 1e-6
    if left_s < _LAST_WAIT_S:
        left_s = _LAST_WAIT_S
    batch = Batch(entry.at_us, transitions, left_s if ended.interrupt is None else GIVEN_UP_S)
    at("record.end")
    try:
        receipt = await ctx.store.commit(batch)
    except asyncio.CancelledError as interrupt:
        await _end_given_up(ctx, ended, entry, interrupt)
        raise
    except StoreError as error:
        _log_unwritten(ended, error)
        outcome = unrecorded_outcome(ended, duration_us, error)
    else:
        at("record.ended")
        if not isinstance(receipt, Committed):
            return await record(ctx, _without(ended, receipt))
        number = receipt.ids[0]
        _tell(ctx, entry, number)
        outcome = outcome_of(ended, duration_us, number)
    if ended.interrupt is not None:
        raise ended.interrupt
    return outcome


async def _end_given_up(ctx: EngineContext, ended: Ended, entry: Record, interrupt: asyncio.CancelledError) -> None:
    """The batch was accepted, so it lands whoever is cancelled: its receipt is on the exception, if it has one yet."""
    landed = noted_receipt(interrupt)
    if isinstance(landed, Committed):
        _tell(ctx, entry, landed.ids[0])
    elif isinstance(landed, Refused):
        await record(ctx, msgspec.structs.replace(_without(ended, landed), interrupt=interrupt))
    elif isinstance(landed, StoreError):
        _log_unwritten(ended, landed)


def _log_unwritten(ended: Ended, error: StoreError) -> None:
    _log.critical("record of call %s could not be written: %s", ended.call.call_id, error)


def _denied_by_its_problem(ended: Ended) -> Ended:
    """The end of a denied call with a verdict that says what denied it: a rule may have let it pass, and a budget, a
    rate or a plan that moved have not."""
    verdict, problem = ended.verdict, ended.reading.problem
    if verdict is None or verdict.decision is Decision.DENY or problem is None:
        return ended
    denies = msgspec.structs.replace(verdict, decision=Decision.DENY, rule=problem.reason.value, reason=problem.message)
    return msgspec.structs.replace(ended, verdict=denies)


def _without(ended: Ended, receipt: Refused) -> Ended:
    """The end of a call whose end commit was refused, without the part that was at fault.

    Its question is open already: then it waits for that ticket. Or its claim was settled by somebody else meanwhile:
    then what was settled stands, and nobody knows what this call did after that.
    """
    if ended.asks is not None and receipt.kind is RefusalKind.ASKED:
        return msgspec.structs.replace(ended, asks=None, ticket=receipt.limit)
    if (
        receipt.kind is RefusalKind.UNDONE
    ):  # somebody undid the same change meanwhile; this one has put the state back all the same
        return msgspec.structs.replace(ended, settle=tuple(item for item in ended.settle if type(item) not in _MARKS))
    settle = tuple(item for item in ended.settle if type(item) not in (CloseClaim, *_MARKS))
    if ended.intent is None:  # the claim that it was to close never landed
        return msgspec.structs.replace(ended, settle=settle, asks=None)
    reading = refuse(
        Status.UNKNOWN, Reason.LEASE_LOST, f"{receipt.message}; it is not known what this call did after that"
    )
    return msgspec.structs.replace(ended, reading=reading, settle=settle, asks=None, is_plain=False)


async def intent(ctx: EngineContext, prepared: Prepared, now_us: int, opened: str) -> Append:
    """The record that stands before a change: what will be done to what, and everything that is needed to undo it.

    `opened` is the digest of its claim as it is opened.
    """
    admitted, plan = prepared.admitted, prepared.plan
    call, tool = admitted.facts.call, admitted.binding.tool
    ended = Ended(
        call=call,
        started=admitted.started,
        reading=Reading(status=Status.PLANNED, said=f"about to change {', '.join(plan.keys) or call.tool}"),
        tool=tool,
        arguments=admitted.facts.arguments,
        verdict=prepared.verdict,
        plan=plan,
        ticket=None if prepared.ticket is None else prepared.ticket.id,
        asked=admitted.asked,
    )
    duration_us = max(0, now_us - admitted.started.at_us)
    # Whoever settles it later, under whatever policy, finds here who may say whether it landed.
    opening: Json = {"account": ctx.account, "review": ctx.review.of(prepared.verdict.rule), "opened": opened}
    if not tool.redact:
        return Append(*_entry(ctx, ended, duration_us, opening))
    work = partial(_entry, ctx, ended, duration_us, opening)
    (entry, payload), interrupt = await redact_long(size_to_redact(ctx, ended), work)
    if interrupt is not None:
        raise interrupt
    return Append(entry, payload)


def spending(ctx: EngineContext, prepared: Prepared) -> Append:
    """The record that a read has spent an approval, which lands with it: its own record may never come.

    Of a change its intent says so.
    """
    assert prepared.ticket is not None
    admitted, now_us = prepared.admitted, ctx.clock.now_us()
    call = admitted.facts.call
    what: Json = {"ticket": prepared.ticket.id, "plan": prepared.plan.digest}
    content = Content(call.principal, admitted.started.at_us, max(0, now_us - admitted.started.at_us), arguments=what)
    return Append(Record(now_us, "ticket", call.call_id, call.turn, call.actor, call.tool, "spent", content))


def _tell(ctx: EngineContext, entry: Record, number: int) -> None:
    """Let the observers read the record; they only read, so a fault of theirs does not become the call's."""
    for observe in ctx.observers:
        try:
            observe(entry, number)
        except Exception:  # noqa: BLE001 - see above
            _log.exception("an observer of records failed")


def _entry(
    ctx: EngineContext, ended: Ended, duration_us: int, opening: dict[str, Any] | None
) -> tuple[Record, bytes | None]:
    """The record: full where it can be, redacted or shortened (with digests and a payload) where it must.

    `opening`: of an intent, what it says beside the change that it stands before.
    """
    call, reading, tool = ended.call, ended.reading, ended.tool
    effect = None if tool is None else tool.effect
    # The fields that every call has, in their order: a keyword costs a tenth of a microsecond.
    content = Content(
        call.principal,
        ended.started.at_us,
        duration_us,
        effect,
        ended.arguments,
        ended.verdict,
        reading.value,
        # Cut to a length that can be kept; where it is redacted, it is cut once more after that.
        reading.said if reading.problem is None else reading.said[:LONGEST_MESSAGE],
        ended.attempts,
        ended.charged,
    )
    if not ended.is_plain:
        content = msgspec.structs.replace(content, **_details(ctx, ended))
    at_us, status = ended.started.at_us + duration_us, reading.status._value_
    shown = tool is not None and not tool.redact and len(reading.text) <= ctx.record_bytes
    if ended.is_plain and shown:
        return Record(at_us, "call", call.call_id, call.turn, call.actor, call.tool, status, content), None
    payload, redactor = None, NOTHING_REDACTED
    # What lies beside the record is gathered, and written out once.
    beside: dict[str, Json] = {}
    if not shown:
        redactor = redactor_of_end(ctx, ended)
        content, beside = _less(ctx, ended, content, redactor)
    # Redacted when it was raised; more is known now.
    raised: dict[str, Json] = {"traceback": redactor.text(reading.traceback)} if reading.traceback else {}
    plan = ended.plan
    if plan is not None and plan.claim:
        changed, more = _change(ctx, ended, plan, content, redactor, opening or {})
        payload = encode_canonical(beside | more | raised)
        content = msgspec.structs.replace(content, change=changed, payload_digest=ctx.digest(payload))
    elif raised:
        payload = encode_canonical(beside | raised)
        content = msgspec.structs.replace(content, payload_digest=ctx.digest(payload))
    elif beside:
        payload = encode_canonical(beside)
    kind, status = ("call", status) if opening is None else ("intent", "intent")
    return Record(at_us, kind, call.call_id, call.turn, call.actor, call.tool, status, content), payload


def _details(ctx: EngineContext, ended: Ended) -> dict[str, Any]:
    """Everything that not every call has."""
    call, reading, plan, tool = ended.call, ended.reading, ended.plan, ended.tool
    return {
        "mode": call.mode,
        "on_behalf_of": call.on_behalf_of,
        "run": call.run,
        "parent": call.parent,
        "root_turn": call.root_turn,
        "budgets": call.budgets if reading.status in _MADE_AGAIN else (),
        "evidence": call.evidence,
        "confidence": call.confidence,
        "ticket": ended.ticket or call.ticket,
        "plan": None if plan is None else plan.digest or None,
        "keys": () if plan is None else plan.keys,
        "snippets": reading.snippets,
        "metadata": reading.metadata,
        "problem": None if reading.problem is None else shorten_problem(reading.problem),
        "sources": reading.sources,
        "result_confidence": reading.confidence,
        "trust": Trust.TRUSTED if tool is None else tool.trust,
        "cost_micros": ended.cost_micros,
        "repeats": ended.repeats,
        "same_as": None if ended.repeats is None else _same_as(ended),
        "ticket_digest": None if ended.asks is None else ticket_digest(ended.asks, ctx.digest),
        "asked_digest": None if ended.asked is None else ctx.digest(canonical(ended.asked, WHATEVER)),
    }


def _same_as(ended: Ended) -> str | None:
    """The change that a call was answered from, where its id stands for that from now on."""
    return next((f"{item.claim}.{item.generation}" for item in ended.settle if type(item) is BindCallId), None)


def _less(ctx: EngineContext, ended: Ended, content: Content, redactor: Redactor) -> tuple[Content, dict[str, Json]]:
    """What may be written into the chain, with digests of the whole; the whole goes beside it."""
    less = msgspec.structs.replace(
        redact_content(content, ended, redactor, ctx.record_bytes),
        arguments_digest=ctx.digest(canonical(ended.arguments, WHATEVER)),
        value_digest=ctx.digest(ended.reading.text),
        payload=ended.tool is not None,
    )
    if ended.tool is None:
        return less, {}
    whole: dict[str, Json] = {"arguments": ended.arguments, "value": ended.reading.value}
    if less.evidence != content.evidence:  # an approval is bound to it as it was
        whole["evidence"] = content.evidence
    return less, whole


def _change(
    ctx: EngineContext, ended: Ended, plan: Plan, content: Content, redactor: Redactor, opening: dict[str, Any]
) -> tuple[Changed, dict[str, Json]]:
    """What the record of a change says beside the call, and what lies beside it: the snapshots that undo needs."""
    beside: dict[str, Json] = {} if ended.asked is None else {"asked": ended.asked}
    performed = ended.intent is not None
    if ended.intent is not None:
        beside |= ctx.kept_states.after(plan, ended.intent, [snapshot.state for snapshot in ended.after])
        left = _left_versions(plan, ended.after)
        if left:
            beside["versions"] = left
    else:
        beside |= _planned_beside(ctx, ended, plan, content)
    under: dict[str, int] = {}
    if ended.call.locks:
        under = {redactor.text(lock.key): lock.token for lock in ended.call.locks}
        if not all(lock.key in under for lock in ended.call.locks):  # undo locks them again
            beside["under"] = [lock.key for lock in ended.call.locks]
    close = None
    for item in ended.settle:
        if type(item) is CloseClaim:
            close = item
            break
    changed = Changed(
        claim=plan.claim,
        generation=plan.generation,
        intent=ended.intent,
        tokens=ended.tokens,
        versions=tuple([snapshot.version for snapshot in ended.after]) if performed else plan.versions,
        risk=plan.risk,
        undoes=ended.call.undoes,
        replays=ended.call.replays,
        id_is_ours=ended.call.id_is_ours,
        under=under,
        deviates=_shown_deviations(ended, plan, content, redactor) if ended.deviates else (),
        closed="" if close is None else close.state.value,
        untouched=() if close is None or not close.untouched else _places(plan.keys, frozenset(close.untouched)),
        beyond=ended.beyond,
        told_by=base_of(beside),
        **opening,
    )
    return changed, beside


def _planned_beside(ctx: EngineContext, ended: Ended, plan: Plan, content: Content) -> dict[str, Json]:
    """What lies beside the record of a change that is planned or about to be made: whoever resumes it needs that."""
    call = ended.call
    beside = ctx.kept_states.before(plan, ctx.clock.now_us()) | {"rests_on": plan.rests_on}
    if ended.reading.status is not Status.PLANNED or call.mode is not Mode.APPLY:
        beside["diff"] = plan.diff
    if content.keys != plan.keys:  # whoever wants them forgotten names them as they are
        beside["keys"] = list(plan.keys)
    said = {"question": call.question, "constants": list(call.constants), "edited": call.edited}
    said |= {"parties": list(call.parties), "lock_keys": list(call.lock_keys)}
    return beside | {name: value for name, value in said.items() if value}


def _left_versions(plan: Plan, after: tuple[Snapshot, ...]) -> dict[str, str]:
    """Of a whole resource: the versions at which a change left the keys that it moved. Beside the record, with their
    states: a key may hold what is redacted."""
    left = after[0].key_versions if after else None
    if not left:
        return {}
    return {key: version for key, version in left.items() if plan.key_versions.get(key) != version}


def _places(keys: tuple[str, ...], some: frozenset[str]) -> tuple[int, ...]:
    """Where keys stand: a key may hold what is redacted, its place does not."""
    return tuple(place for place, key in enumerate(keys) if key in some)


def _shown_deviations(ended: Ended, plan: Plan, content: Content, redactor: Redactor) -> tuple[str, ...]:
    """The keys that are not as planned, as the record writes them: a key may hold what is redacted."""
    written_as = dict(zip(plan.keys, content.keys, strict=True))
    return tuple(written_as[key] if key in written_as else redactor.text(key) for key in ended.deviates)
