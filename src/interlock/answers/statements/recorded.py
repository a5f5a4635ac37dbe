"""The effects of a turn and of those it delegated to, with what a person or an undo has done about them since."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.answers.history import History
from interlock.answers.requirements import CallSeen
from interlock.answers.statements.check import TurnRecords
from interlock.answers.statements.effects import TurnEffect, effects_of
from interlock.engine import EngineContext
from interlock.ports import Store
from interlock.state import ChangeFilter, ClaimState, TicketState, state_of
from interlock.values import Status


async def recorded_effects(store: Store, here_us: int, history: History) -> tuple[TurnEffect, ...]:
    """Every call that changes the world, in the order of the records, as it stands now (`here_us`, by our clock)."""
    now_us = await store.now_us(here_us)
    found = [await _as_decided(store, now_us, call) for call in (*history.calls, *history.below)]
    calls = sorted(found, key=lambda call: call.record)
    undone = [call.record for call in calls if await _was_undone(store, call)]
    return effects_of(calls, undone)


async def _as_decided(store: Store, now_us: int, call: CallSeen) -> CallSeen:
    """A call that a person has denied meanwhile, or that nobody has decided in time, waits no longer."""
    if call.status is not Status.PARKED or call.ticket is None:
        return call
    ticket = await store.ticket(call.ticket)
    state = None if ticket is None else state_of(ticket, now_us)
    if state is TicketState.EXPIRED:
        return replace(call, status=Status.DENIED, message="nobody decided in time")
    return replace(call, status=Status.DENIED) if state is TicketState.DENIED else call


async def _was_undone(store: Store, call: CallSeen) -> bool:
    """Whether a change was made and taken back; one that was answered from a record is the change of that record."""
    if not call.changes or call.status is not Status.OK:
        return False
    claims = await store.claims(ChangeFilter(record=call.record if call.repeats is None else call.repeats))
    return any(claim.state is ClaimState.UNDONE for claim in claims)


async def turn_records(ctx: EngineContext, tools: tuple[str, ...], history: History) -> TurnRecords:
    """What the statements of a draft are held against: its tools and those of turns below, and what came of them."""
    calls = (*history.calls, *history.below)
    names = dict.fromkeys((*tools, *(call.tool for call in calls)))
    known = tuple(binding.tool for name in names if (binding := ctx.bindings.get(name)) is not None)
    return TurnRecords(known, calls, await recorded_effects(ctx.store, ctx.clock.now_us(), history), history.sources)
