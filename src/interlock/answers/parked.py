"""Calls of a turn that wait for a person: what is still to be decided, and what may be made now."""

from __future__ import annotations

from interlock.answers.history import History
from interlock.engine import EngineContext
from interlock.state import Ticket, TicketState, state_of
from interlock.values import Status


async def pending_ticket(ctx: EngineContext, history: History) -> str | None:
    """The newest ticket of a parked call that can still be decided or made."""
    found = await _tickets(ctx, history, TicketState.OPEN, TicketState.APPROVED)
    return found[-1].id if found else None


async def approved_tickets(ctx: EngineContext, history: History) -> tuple[str, ...]:
    """The tickets of parked calls that may be made now, in the order in which they were asked for."""
    return tuple(ticket.id for ticket in await _tickets(ctx, history, TicketState.APPROVED))


async def _tickets(ctx: EngineContext, history: History, *states: TicketState) -> list[Ticket]:
    """Those in one of these states, each once: a call that was proposed again waits under the same ticket."""
    names = dict.fromkeys(c.ticket for c in history.calls if c.status is Status.PARKED and c.ticket is not None)
    found = [await ctx.store.ticket(name) for name in names]
    now_us = ctx.clock.now_us()
    return [ticket for ticket in found if ticket is not None and state_of(ticket, now_us) in states]
