"""Tickets: bound to one plan, one turn and one actor; decided by somebody else; spent once."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlock.canonical import WHATEVER, canonical
from interlock.changes import plan_difference
from interlock.errors import NotAllowed
from interlock.principals import is_same, kind_of, reads_like
from interlock.review.terms import Terms
from interlock.state import Ticket, TicketKind, TicketState
from interlock.values import Call, Plan, Verdict

Digest = Callable[[bytes], str]


def open_ticket(terms: Terms, call: Call, plan: Plan, verdict: Verdict, now_us: int, digest: Digest) -> Ticket:
    """The ticket for a call that waits for a person; whoever opens it adds an id, and the account it is asked from."""
    return Ticket(
        id="",
        kind=TicketKind.CHANGE,
        state=TicketState.OPEN,
        binding=binding_of(call, plan, digest),
        tool=call.tool,
        actor=call.actor,
        asked_by=call.principal,
        call=call.call_id,
        turn=call.turn,
        why=verdict.reason,
        created_us=now_us,
        expires_us=now_us + terms.expires_us,
        escalate_us=now_us + terms.escalate_us,
        plan=plan.digest,
        on_behalf_of=call.on_behalf_of,
        terms=terms.of(verdict.rule),
        remind_us=terms.remind_us,
        rule=verdict.rule,
        parties=call.parties,
    )


def stamp(ticket: Ticket, now_us: int) -> Ticket:
    """A ticket that is about to be opened, with its times by the clock of the store, which says when it has expired."""
    later_us = now_us - ticket.created_us
    return msgspec.structs.replace(
        ticket,
        created_us=now_us,
        expires_us=ticket.expires_us + later_us,
        escalate_us=ticket.escalate_us + later_us,
    )


def binding_of(call: Call, plan: Plan, digest: Digest) -> str:
    """What an approval is good for: the plan, everything else that rules can see of the call, and which change it is.

    Two requests of equal content under two ids are two changes where only the id says what is the same; each is asked
    about. Where the caller has given none, whoever comes with the approval comes under another.
    """
    change = "" if call.id_is_ours else plan.claim
    seen = [call.actor, call.principal, call.on_behalf_of, call.turn, call.run, call.evidence, call.confidence, change]
    return f"{plan.digest}|{digest(canonical(seen, WHATEVER))}"


def voice_of(ticket: Ticket, by: str, now_us: int) -> str:
    """For whom somebody speaks who decides a ticket: themselves, or one who has delegated it to them.

    `NotAllowed`, with the reason, if they may not.
    """
    terms = ticket.terms
    if not terms.self_approval and is_party(ticket, by):
        raise NotAllowed(_own_question(ticket, by))
    if not terms.approvers:
        alike = [party for party in parties_of(ticket) if reads_like(by, party)]
        if alike and not terms.self_approval:
            raise NotAllowed(f"{by} reads like {alike[0]}, who is a party to this, so somebody else decides")
        return by
    for name in terms.approvers:
        if is_same(name, by):
            return name
    voices = [
        given.of
        for given in terms.delegations
        if is_same(given.to, by)
        and given.until_us > now_us
        and any(is_same(given.of, name) for name in terms.approvers)
    ]
    free = [voice for voice in voices if terms.self_approval or not is_party(ticket, voice)]
    unused = [voice for voice in free if not any(is_same(voice, said.voice) for said in ticket.approvals)]
    if free:
        return (unused or free)[0]
    if voices:
        raise NotAllowed(f"{voices[0]} asked for this, and nobody decides in their place")
    raise NotAllowed(f"{by} may not decide this; {', '.join(terms.approvers)} may")


def is_party(ticket: Ticket, name: str) -> bool:
    """Whether somebody asked for the call or made it, it was made for them, or it was asked from their account."""
    return any(is_same(name, party) for party in parties_of(ticket))


def parties_of(ticket: Ticket) -> tuple[str, ...]:
    """Who asked, for whom, from which account, who acts, where that is the name of a principal, and who had a part in
    it before it was edited; each once."""
    actor = ticket.actor if kind_of(ticket.actor) else ""
    names = (ticket.asked_by, ticket.on_behalf_of, ticket.account, actor, *ticket.parties)
    return tuple(dict.fromkeys(name for name in names if name))


def _own_question(ticket: Ticket, by: str) -> str:
    """Why whoever is a party to a ticket does not decide it, and who can."""
    alone = "(for one person alone: self_approval = true in [review])"
    if any(is_same(by, name) for name in (ticket.asked_by, ticket.on_behalf_of, ticket.actor, *ticket.parties)):
        return f"{by} asked for this, so somebody else decides {alone}"
    return (
        f"this was asked for from the account {by}, in the name of {ticket.asked_by}, so somebody else decides:"
        f" from an account of their own, or with a token {alone}"
    )


def rejection_reason(ticket: Ticket | None, call: Call, plan: Plan, digest: Digest) -> str | None:
    """Why an approval is not good for this call; None if it is. Whether it has expired is in its state."""
    if ticket is None:
        return f"there is no ticket {call.ticket!r}"
    other = _other_call(ticket, call)
    if other is not None:
        return other
    match ticket.state:
        case TicketState.APPROVED:
            differs = plan_difference(ticket.plan, plan.digest, since="approved")
            if differs is None and ticket.binding != binding_of(call, plan, digest):
                differs = "the call id, the run, the evidence or the confidence of the call is not what was approved"
            return None if differs is None else f"{differs}; ask again"
        case TicketState.OPEN:
            return waiting_message(ticket)
        case TicketState.DENIED:
            return denial_message(ticket)
        case TicketState.EXPIRED:
            return f"ticket {ticket.id!r} has expired; ask again"
        case TicketState.SETTLED:
            return f"what ticket {ticket.id!r} asks was found out: {ticket.reason}"
        case TicketState.SPENT:
            return f"ticket {ticket.id!r} was spent already; an approval is good for one call"


def denial_message(ticket: Ticket) -> str:
    """Who denied a ticket, and why."""
    return f"{ticket.decided_by} denied ticket {ticket.id!r}: {ticket.reason or 'no reason given'}"


def waiting_message(ticket: Ticket) -> str:
    """What an open ticket still waits for."""
    if not ticket.approvals:
        return f"ticket {ticket.id!r} has not been decided yet"
    return f"ticket {ticket.id!r} has {len(ticket.approvals)} of the {ticket.terms.quorum} approvals that it needs"


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
    if ticket.on_behalf_of != call.on_behalf_of:
        return f"ticket {ticket.id!r} was asked for on behalf of {ticket.on_behalf_of!r}, not of {call.on_behalf_of!r}"
    if ticket.actor != call.actor:
        return f"ticket {ticket.id!r} was asked for by {ticket.actor!r}, not by {call.actor!r}"
    return None
