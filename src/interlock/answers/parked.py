"""Calls of a turn that wait for a person: what is still to be decided, and what may be made now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from interlock.answers.history import History
from interlock.answers.notes import Note
from interlock.answers.requirements import CallSeen
from interlock.engine import EngineContext
from interlock.errors import NotAllowed
from interlock.reasons import Reason
from interlock.runtime import Runtime
from interlock.state import Ticket, TicketState, state_of
from interlock.values import Status


async def pending_ticket(ctx: EngineContext, history: History, useless: Collection[str] = ()) -> str | None:
    """The newest ticket of a parked call that can still be decided or made."""
    found = await _tickets(ctx, history, TicketState.OPEN, TicketState.APPROVED)
    names = [ticket.id for ticket in found if ticket.id not in useless]
    return names[-1] if names else None


async def resume_approved(runtime: Runtime, history: History, withheld: Collection[str] = ()) -> tuple[str, ...]:
    """Make the parked calls that were approved meanwhile, in order; the tickets that no call could be made with.

    An approval may be good for nothing by now, as what it was given for has changed: then the call is asked for again.
    `withheld`: tools that may not be called in the turn any more.
    """
    useless = []
    for ticket in await _tickets(runtime.context, history, TicketState.APPROVED):
        if ticket.tool in withheld:
            useless.append(ticket.id)
            continue
        try:
            await runtime.operations.resume(ticket.id)
        except NotAllowed:  # its arguments were deleted
            useless.append(ticket.id)
            continue
        after = await runtime.store.ticket(ticket.id)
        if after is not None and after.state is TicketState.APPROVED:
            useless.append(ticket.id)
    return tuple(useless)


async def with_denials(ctx: EngineContext, history: History) -> History:
    """The history as it is now: a call that a person has denied waits no longer, and whoever asked is told so."""
    denied = {ticket.id: ticket for ticket in await _tickets(ctx, history, TicketState.DENIED)}
    if not denied:
        return history
    notes = [Note(f"{ticket.tool} was not done: {_denial(ticket)}.") for ticket in denied.values()]
    return msgspec.structs.replace(
        history,
        calls=_refused_among(history.calls, denied),
        inner=_refused_among(history.inner, denied),
        below=_refused_among(history.below, denied),
        notes=(*history.notes, *notes),
    )


def _refused_among(calls: Iterable[CallSeen], denied: Mapping[str, Ticket]) -> tuple[CallSeen, ...]:
    found = ((call, denied.get(call.ticket or "")) for call in calls)
    return tuple(
        call if ticket is None or call.status is not Status.PARKED else _refuse(call, ticket) for call, ticket in found
    )


def _refuse(call: CallSeen, ticket: Ticket) -> CallSeen:
    said = _denial(ticket)
    return msgspec.structs.replace(
        call, status=Status.DENIED, reason=Reason.NOT_APPROVED, message=said, ticket=None, refused=True
    )


def _denial(ticket: Ticket) -> str:
    return f"{ticket.decided_by} denied it: {ticket.reason.rstrip('.') or 'no reason given'}"


async def _tickets(ctx: EngineContext, history: History, *states: TicketState) -> list[Ticket]:
    """Those in one of these states, each once: a call that was proposed again waits under the same ticket.

    Also those of the turns that it delegated to: whoever asked there is no longer there to hear of them.
    """
    calls = (*history.calls, *history.below)
    names = dict.fromkeys(call.ticket for call in calls if call.status is Status.PARKED and call.ticket is not None)
    found = [await ctx.store.ticket(name) for name in names]
    now_us = await ctx.store.now_us(ctx.clock.now_us())
    return [ticket for ticket in found if ticket is not None and state_of(ticket, now_us) in states]
