"""The keys of a change in doubt: what each was, was to become, and is now; and so whether a part of it landed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlock.changes import Snapshot, Unreadable, local_key, moved_keys, read_snapshots, states_by_key
from interlock.engine import EngineContext
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import record_with_payload
from interlock.state import Claimed, TicketKind, is_wildcard
from interlock.tools import Tool, redactor_of
from interlock.values import Json, Plan

_MOST_NAMED = 3


class KeyState(msgspec.Struct, frozen=True):
    """One key of a change in doubt, redacted as its record is."""

    key: str
    before: Json
    planned: Json
    """None where its tool does not say what it was to become, or where that is nothing."""
    now: Json


def show_moved(plan: Plan, now: tuple[Snapshot, ...]) -> str:
    """Which keys of a plan have moved since, and which have not; empty where that cannot be told."""
    if plan.before is None or len(now) != len(plan.keys):
        return ""
    moved = moved_keys(plan, now)
    stayed = [key for key in plan.keys if key not in moved and not is_wildcard(key)]
    if not moved:
        return "none of its keys has moved"
    said = f"{_name_some(sorted(moved))} moved since it was planned"
    return f"{said}, {_name_some(stayed)} did not" if stayed else said


def _name_some(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    return f"{', '.join(keys[:_MOST_NAMED])}{more}"


async def changed_keys(ctx: EngineContext, claim: Claimed, payload: Mapping[str, Json]) -> tuple[str, ...] | None:
    """The keys, redacted, that are not what they were before a change; None where nobody can say.

    By their states, not by their versions: whoever put them back by hand has moved those once more.
    """
    binding, before = ctx.bindings.get(claim.tool), payload.get("before")
    if binding is None or binding.tool.resource is None or not isinstance(before, list):
        return None
    try:
        now = await read_snapshots(binding.tool, claim.keys, ctx.snapshot_reader)
    except Unreadable:
        return None
    states = [snapshot.state for snapshot in now]
    was, found = states_by_key(claim.keys, before), states_by_key(claim.keys, states)
    moved = sorted(key for key in {*was, *found} if was.get(key) != found.get(key))
    redactor = redactor_of(binding.tool, *_documents_of(payload), states)
    return tuple(redactor.text(key) for key in moved)


def part_landed_message(keys: Sequence[str]) -> str:
    """Why a change cannot be settled as one that did not land."""
    several = len(keys) > 1
    return (
        f"{_name_some(keys)} {'are' if several else 'is'} not what {'they were' if several else 'it was'} before it, so"
        " that a part of it at least may have landed: put that back and then say that it did not land, or say that it"
        " landed (approve) and undo it with --force, which puts back what there was"
    )


async def key_states(ctx: EngineContext, name: str) -> tuple[KeyState, ...]:
    """What a ticket about an effect in doubt is about, key by key; `NotAllowed` where that cannot be seen."""
    ctx.at("decide.states")
    ticket = await ctx.store.ticket(name)
    if ticket is None or ticket.kind is not TicketKind.SETTLE or ticket.intent is None:
        raise NotAllowed(f"there is no ticket {name!r} that asks whether an effect landed; see interlock review list")
    claim = await ctx.store.claim(ticket.claim)
    _record, payload = await record_with_payload(ctx.store, ticket.intent)
    binding, before = ctx.bindings.get(ticket.tool), payload.get("before")
    if binding is None or claim is None:
        raise NotAllowed(f"the tool {ticket.tool!r} is not at hand: name the tools (--tools) to see what it changed")
    if binding.tool.resource is None or not isinstance(before, list):
        raise NotAllowed("it has no resource that could be looked at, or what there was has been deleted")
    try:
        now = await read_snapshots(binding.tool, claim.keys, ctx.snapshot_reader)
    except Unreadable as error:
        raise NotAllowed(redactor_of(binding.tool, *_documents_of(payload)).text(str(error))) from None
    return _by_key(binding.tool, claim, payload, [snapshot.state for snapshot in now])


def _by_key(tool: Tool, claim: Claimed, payload: Mapping[str, Json], now: list[Json]) -> tuple[KeyState, ...]:
    redactor, planned = redactor_of(tool, *_documents_of(payload), now), payload.get("planned")
    was, found = states_by_key(claim.keys, payload["before"]), states_by_key(claim.keys, now)
    becomes = states_by_key(claim.keys, planned) if isinstance(planned, list) else {}
    whole = any(is_wildcard(key) for key in claim.keys)
    shown = []
    for key in sorted({*was, *becomes, *found}):
        states = (was.get(key), becomes.get(key), found.get(key))
        if whole and states[0] == states[2] and states[1] in (None, states[0]):
            continue  # of a whole resource only what differs
        # As what a field of that name holds: a key may be one of those that are redacted.
        shown.append(KeyState(redactor.text(key), *(redactor.field(local_key(key), state) for state in states)))
    return tuple(shown)


def _documents_of(payload: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(payload.get(part) for part in ("arguments", "asked", "before", "planned"))
