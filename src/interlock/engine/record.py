"""RECORD: the one place where a record is written, and the end commit that makes it durable."""

from __future__ import annotations

import logging

import msgspec

from interlock.engine.stages import Ended, World
from interlock.errors import StoreError
from interlock.ports import Append, Batch, Committed, Transition
from interlock.schema import Redactor, canonical
from interlock.values import Content, Outcome, Problem, Record, Rewrite, Status, Trust, Verdict

_log = logging.getLogger("interlock")
_NO_FIELDS: frozenset[str] = frozenset()


async def record(world: World, ended: Ended) -> Outcome:
    """Write down how the call ended; nothing that is not recorded is given out."""
    duration_us = max(0, round((world.clock.monotonic() - ended.started.clock) * 1e6))
    entry, payload = _entry(world, ended, duration_us)
    transitions: tuple[Transition, ...] = (Append(record=entry, payload=payload), *ended.settle)
    if ended.plan is not None:
        transitions += world.desks[ended.call.tool].journal.end(ended.call, ended.plan)
    world.faults.at("record.end")
    try:
        receipt = await world.store.commit(Batch(now_us=entry.at_us, transitions=transitions))
    except StoreError as error:
        _log.critical("record of call %s could not be written: %s", ended.call.call_id, error)
        return _unrecorded(ended, duration_us, error)
    world.faults.at("record.ended")
    assert isinstance(receipt, Committed), receipt
    for observe in world.observers:
        try:
            observe(entry, receipt.ids[0])
        except Exception:  # noqa: BLE001 - an observer only reads; its fault must not become the call's
            _log.exception("an observer of records failed")
    return _outcome(ended, duration_us, receipt.ids[0])


def _entry(world: World, ended: Ended, duration_us: int) -> tuple[Record, bytes | None]:
    """The record: full where it can be, redacted or shortened (with digests and a payload) where it must."""
    call, reading, tool = ended.call, ended.reading, ended.tool
    content = Content(
        principal=call.principal,
        started_us=ended.started.at_us,
        duration_us=duration_us,
        mode=call.mode,
        effect=None if tool is None else tool.effect,
        on_behalf_of=call.on_behalf_of,
        run=call.run,
        parent=call.parent,
        arguments=ended.arguments,
        evidence=call.evidence,
        confidence=call.confidence,
        ticket=ended.ticket or call.ticket,
        verdict=ended.verdict,
        plan=None if ended.plan is None else ended.plan.digest,
        keys=() if ended.plan is None else ended.plan.keys,
        value=reading.value,
        summary=reading.summary,
        snippets=reading.snippets,
        metadata=reading.metadata,
        problem=reading.problem,
        sources=reading.sources,
        result_confidence=reading.confidence,
        trust=Trust.TRUSTED if tool is None else tool.trust,
        attempts=ended.attempts,
        cost_micros=ended.cost_micros,
        repeats=ended.repeats,
    )
    payload = None
    if (tool is not None and tool.redact) or len(reading.text) > world.record_bytes:
        content, payload = _less(world, ended, content)
    made = Record(
        at_us=ended.started.at_us + duration_us,
        kind="call",
        call=call.call_id,
        turn=call.turn,
        actor=call.actor,
        tool=call.tool,
        status=reading.status.value,
        content=content,
    )
    return made, payload


def _less(world: World, ended: Ended, content: Content) -> tuple[Content, bytes]:
    """What may be written into the chain: redacted and short, with digests of the whole; the whole goes beside it."""
    reading, fields = ended.reading, ended.tool.redact if ended.tool is not None else _NO_FIELDS
    before = [{item.field.rpartition(".")[2]: item.before} for item in ended.verdict.rewrites] if ended.verdict else []
    redactor = Redactor(fields, ended.arguments, reading.value, reading.metadata, before)
    arguments, value = redactor.value(ended.arguments), redactor.value(reading.value)
    if len(reading.text) > world.record_bytes:
        value = {"omitted_bytes": len(reading.text)}
    less = msgspec.structs.replace(
        content,
        arguments=arguments,
        arguments_digest=world.digest(canonical(ended.arguments)),
        value=value,
        value_digest=world.digest(reading.text),
        metadata=redactor.value(reading.metadata),
        summary=redactor.text(reading.summary),
        snippets=tuple(map(redactor.text, reading.snippets)),
        problem=_redacted_problem(reading.problem, redactor),
        verdict=_redacted_verdict(ended.verdict, redactor),
        payload=True,
    )
    return less, canonical({"arguments": ended.arguments, "value": reading.value}, max_bytes=2**62)


def _redacted_problem(problem: Problem | None, redactor: Redactor) -> Problem | None:
    if problem is None:
        return None
    return msgspec.structs.replace(
        problem, message=redactor.text(problem.message), hints=tuple(map(redactor.text, problem.hints))
    )


def _redacted_verdict(verdict: Verdict | None, redactor: Redactor) -> Verdict | None:
    if verdict is None:
        return None
    rewrites = tuple(
        Rewrite(
            field=item.field,
            before=redactor.field(item.field, item.before),
            after=redactor.field(item.field, item.after),
            rule=item.rule,
        )
        for item in verdict.rewrites
    )
    return msgspec.structs.replace(verdict, reason=redactor.text(verdict.reason), rewrites=rewrites)


def _outcome(ended: Ended, duration_us: int, number: int | None) -> Outcome:
    reading = ended.reading
    return Outcome(
        call_id=ended.call.call_id,
        tool=ended.call.tool,
        status=reading.status,
        value=reading.value,
        summary=reading.summary,
        snippets=reading.snippets,
        metadata=reading.metadata,
        problem=reading.problem,
        confidence=reading.confidence,
        sources=reading.sources,
        trust=Trust.TRUSTED if ended.tool is None else ended.tool.trust,
        attempts=ended.attempts,
        duration_us=duration_us,
        verdict=ended.verdict,
        plan=ended.plan,
        ticket=ended.ticket,
        record=number,
    )


def _unrecorded(ended: Ended, duration_us: int, error: StoreError) -> Outcome:
    """A result that could not be recorded does not leave: for a read it failed, for an effect nobody knows."""
    tried = bool(ended.attempts)
    reads = ended.tool is None or ended.tool.effect.value == "read" or not tried
    return Outcome(
        call_id=ended.call.call_id,
        tool=ended.call.tool,
        status=Status.FAILED if reads else Status.UNKNOWN,
        summary="the store could not record the call",
        problem=Problem(error="store_unavailable", message=f"not recorded, so not given out: {error}"),
        attempts=ended.attempts,
        duration_us=duration_us,
        verdict=ended.verdict,
    )
