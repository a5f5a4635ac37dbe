"""The journal: what was changed, planned or refused, from where to what, by whom and on what evidence.

It is a reading of the ledger, not a second book: every entry stands on a record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import msgspec

from interlock.changes import local_key
from interlock.engine import EngineContext
from interlock.operations.meant_changes import changes_meant
from interlock.operations.recover import read_record
from interlock.ports import Query
from interlock.records import Stored
from interlock.state import ChangeFilter, Claimed, ClaimState
from interlock.values import Effect, Json, Value


class Entry(Value, frozen=True, kw_only=True):
    """One change that was made, or one that was proposed and not made."""

    op_type: str
    """The tool."""
    status: str
    """done, undone, returning, failed, open or unknown; or, if it was not begun: planned, parked, denied, failed."""
    idempotency_key: str
    target_ids: tuple[str, ...]
    before: Json
    after: Json
    """By key, as its resource knows it; None for a key that does not exist."""
    evidence: tuple[str, ...]
    confidence: float | None
    mode: str
    lock_tokens: dict[str, int]
    actor: str
    timestamp_us: int
    record: int
    arguments: Json = None
    risk: str | None = None
    rule: str = ""
    reason: str = ""
    ticket: str | None = None
    turn: str | None = None
    run: str | None = None
    deviates: tuple[str, ...] = ()
    """Keys that became something else than was planned."""


async def journal(ctx: EngineContext, which: ChangeFilter) -> AsyncIterator[Entry]:
    """Changes in the order of their intents; of a turn, also what was proposed there and not begun."""
    ctx.at("journal.read")
    for claim in await changes_meant(ctx, which):
        entry = await _made_entry(ctx, claim)
        if entry is not None:
            yield entry
    if which.turn is None:
        return
    async for record in ctx.store.records(Query(turn=which.turn)):
        if record.kind == "call":
            entry = await _proposed_entry(ctx, record)
            if entry is not None and which.run in (None, entry.run) and entry.timestamp_us >= (which.since_us or 0):
                yield entry


async def _made_entry(ctx: EngineContext, claim: Claimed) -> Entry | None:
    if claim.intent is None or claim.is_lock:  # a hold, or the id of a call, which is no change
        return None
    intent, whole = await read_record(ctx, claim.intent)
    if intent is None:
        return None
    after: Mapping[str, Json] = {}
    outcome: Stored | None = None
    if claim.record is not None:
        outcome, after = await read_record(ctx, claim.record)
    made = _entry(intent, claim.state.value, f"{claim.first_name}.{claim.generation}", claim.keys)
    became = after.get("after") or (whole.get("before") if claim.state is ClaimState.FAILED else whole.get("planned"))
    problem = None if outcome is None else outcome.content().problem
    return msgspec.structs.replace(
        made,
        before=_by_key(claim.keys, whole.get("before")),
        after=_by_key(claim.keys, became),
        lock_tokens={
            local_key(key): token for key, token in (*zip(claim.keys, claim.tokens, strict=True), *_under(intent))
        },
        record=claim.record or claim.intent,
        arguments=whole.get("arguments"),
        reason="" if problem is None else problem.message,
        deviates=_deviations(outcome),
    )


def _deviations(outcome: Stored | None) -> tuple[str, ...]:
    change = None if outcome is None else outcome.content().change
    return () if change is None else tuple(map(local_key, change.deviates))


async def _proposed_entry(ctx: EngineContext, record: Stored) -> Entry | None:
    """What was planned, parked or refused, and so never begun."""
    content = record.content()
    binding = ctx.bindings.get(record.tool)
    begun = content.repeats is not None or (content.change is not None and content.change.intent is not None)
    if begun or binding is None or binding.tool.effect is Effect.READ:
        return None
    _record, whole = await read_record(ctx, record.id)
    change = content.change
    key = "" if change is None else f"{change.claim}.{change.generation}"
    made = _entry(record, record.status, key, content.keys)
    return msgspec.structs.replace(
        made,
        before=_by_key(content.keys, whole.get("before")),
        after=_by_key(content.keys, whole.get("planned")),
        arguments=whole.get("arguments", content.arguments),
        reason="" if content.problem is None else content.problem.message,
    )


def _under(intent: Stored) -> tuple[tuple[str, int], ...]:
    change = intent.content().change
    return () if change is None else tuple(change.under.items())


def _entry(record: Stored, status: str, key: str, keys: tuple[str, ...]) -> Entry:
    content = record.content()
    return Entry(
        op_type=record.tool,
        status=status,
        idempotency_key=key,
        target_ids=tuple(map(local_key, keys)),
        before=None,
        after=None,
        evidence=content.evidence,
        confidence=content.confidence,
        mode=content.mode.value,
        lock_tokens={},
        actor=record.actor,
        timestamp_us=record.at_us,
        record=record.id,
        risk=None if content.change is None else content.change.risk,
        rule="" if content.verdict is None else content.verdict.rule,
        ticket=content.ticket,
        turn=record.turn,
        run=content.run,
    )


def _by_key(keys: tuple[str, ...], states: Json) -> Json:
    """States by key; None where they were deleted, or nothing could say what they would be."""
    if not isinstance(states, list) or len(states) != len(keys):
        return None
    return {local_key(key): state for key, state in zip(keys, states, strict=True)}
