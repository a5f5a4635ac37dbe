"""Tickets: bound to one plan, one turn and one actor; decided by somebody else; spent once."""

from __future__ import annotations

import msgspec

from interlock.changes import plan_difference
from interlock.state import Ticket, TicketKind, TicketState, state_of
from interlock.values import Call, Plan


class Terms(msgspec.Struct, frozen=True):
    """How long a question stays open, when it is put to more people, and whether one may answer one's own."""

    expires_us: int
    escalate_us: int
    self_approval: bool


def open_ticket(terms: Terms, call: Call, plan: Plan, why: str, name: str, now_us: int) -> Ticket:
    """The ticket for a call that waits for a person."""
    return Ticket(
        id=name,
        kind=TicketKind.CHANGE,
        state=TicketState.OPEN,
        # Whose call in which turn, too: an approval is not for whoever proposes the same change next.
        binding=f"{plan.digest}|{call.actor}|{call.turn or ''}|{call.principal}",
        tool=call.tool,
        actor=call.actor,
        asked_by=call.principal,
        call=call.call_id,
        turn=call.turn,
        why=why,
        created_us=now_us,
        expires_us=now_us + terms.expires_us,
        escalate_us=now_us + terms.escalate_us,
        plan=plan.digest,
    )


def rejection_reason(ticket: Ticket | None, call: Call, plan: Plan, now_us: int) -> str | None:
    """Why an approval is not good for this call; None if it is."""
    if ticket is None:
        return f"there is no ticket {call.ticket!r}"
    other = _other_call(ticket, call)
    if other is not None:
        return other
    match state_of(ticket, now_us):
        case TicketState.APPROVED:
            differs = plan_difference(ticket.plan, plan.digest, since="approved")
            return None if differs is None else f"{differs}; ask again"
        case TicketState.OPEN:
            return f"ticket {ticket.id!r} has not been decided yet"
        case TicketState.DENIED:
            return f"{ticket.decided_by} denied ticket {ticket.id!r}: {ticket.reason or 'no reason given'}"
        case TicketState.EXPIRED:
            return f"ticket {ticket.id!r} has expired; ask again"
        case TicketState.SPENT:
            return f"ticket {ticket.id!r} was spent already; an approval is good for one call"


def _other_call(ticket: Ticket, call: Call) -> str | None:
    """Why a ticket belongs to another call than this one."""
    if ticket.kind is not TicketKind.CHANGE:
        about = "whether an answer may leave" if ticket.kind is TicketKind.ANSWER else "whether an effect landed"
        return f"ticket {ticket.id!r} asks {about}; it allows no call"
    if ticket.tool != call.tool:
        return f"ticket {ticket.id!r} is for {ticket.tool!r}, not for {call.tool!r}"
    if ticket.turn != call.turn:
        return f"ticket {ticket.id!r} belongs to another turn"
    if ticket.asked_by != call.principal:
        return f"ticket {ticket.id!r} was asked for by {ticket.asked_by!r}, not by {call.principal!r}"
    if ticket.actor != call.actor:
        return f"ticket {ticket.id!r} was asked for by {ticket.actor!r}, not by {call.actor!r}"
    return None
