"""Tickets and halts: who may decide what when, the same for every store."""

from __future__ import annotations

from typing import assert_never

import msgspec

from interlock.principals import is_same
from interlock.reasons import RefusalKind
from interlock.state import Approval, Halted, Ticket, TicketState, halt_message, state_of
from interlock.transitions import (
    DecideTicket,
    EscalateTicket,
    Halt,
    Lift,
    OpenTicket,
    Refused,
    RemindTicket,
    RequireNotHalted,
    SettleTicket,
    SpendTicket,
)

TicketTransition = OpenTicket | DecideTicket | SettleTicket | EscalateTicket | RemindTicket | SpendTicket
HaltTransition = Halt | Lift | RequireNotHalted


class TicketTable:
    """Tickets, as far as they are loaded."""

    def __init__(self) -> None:
        self.tickets: dict[str, Ticket] = {}
        self.changed: set[str] = set()
        self.unnumbered: list[tuple[str, int | None]] = []
        """Which wait for the id of a record, and for which of their approvals; None: for their opening."""

    def check(self, ask: TicketTransition, now_us: int) -> Refused | None:
        """Why the transition is refused, or None."""
        if isinstance(ask, OpenTicket):
            if ask.ticket.id in self.tickets:
                return Refused(RefusalKind.TICKET, ask.ticket.id, f"there is a ticket {ask.ticket.id!r} already")
            same = [t for t in self.tickets.values() if t.binding == ask.ticket.binding and is_open(t, now_us)]
            return Refused(RefusalKind.ASKED, same[0].id, "the same question is open already") if same else None
        if isinstance(ask, SettleTicket):
            return None
        ticket = self.tickets.get(ask.ticket)
        if ticket is None:
            return Refused(RefusalKind.TICKET, ask.ticket, f"there is no ticket {ask.ticket!r}")
        match ask:
            case DecideTicket(state=TicketState.EXPIRED):
                due = ticket.state is TicketState.OPEN and ticket.expires_us <= now_us
                return None if due else Refused(RefusalKind.TICKET, ticket.id, "the ticket is not due")
            case DecideTicket():
                return _undecidable(ticket, ask, now_us)
            case RemindTicket():
                due = is_open(ticket, now_us) and ticket.reminder_is_due(now_us)
                return None if due else Refused(RefusalKind.TICKET, ticket.id, "the ticket is not due")
            case EscalateTicket():
                due = is_open(ticket, now_us) and not ticket.escalated and ticket.escalate_us <= now_us
                return None if due else Refused(RefusalKind.TICKET, ticket.id, "the ticket is not due")
            case SpendTicket():
                return self._unspendable(ticket, ask, now_us)
            case _:
                assert_never(ask)

    def apply(self, ask: TicketTransition, now_us: int) -> None:
        """Make a transition that was checked."""
        if isinstance(ask, SettleTicket):
            self._settle(ask, now_us)
            return
        match ask:
            case OpenTicket():
                ticket = ask.ticket
                if ticket.record is None:
                    self.unnumbered.append((ticket.id, None))
                for old in [t for t in self.tickets.values() if t.binding == ticket.binding and t.state == "open"]:
                    self.tickets[old.id] = msgspec.structs.replace(old, state=TicketState.EXPIRED)
                    self.changed.add(old.id)
            case DecideTicket():
                ticket = _decide(self.tickets[ask.ticket], ask, now_us)
                if ask.state is TicketState.APPROVED:
                    self.unnumbered.append((ticket.id, len(ticket.approvals) - 1))
            case RemindTicket():
                ticket = msgspec.structs.replace(self.tickets[ask.ticket], reminded_us=now_us)
            case EscalateTicket():
                ticket = msgspec.structs.replace(self.tickets[ask.ticket], escalated=True, reminded_us=now_us)
            case SpendTicket():
                ticket = msgspec.structs.replace(self.tickets[ask.ticket], state=TicketState.SPENT)
            case _:
                assert_never(ask)
        self.tickets[ticket.id] = ticket
        self.changed.add(ticket.id)

    def _settle(self, ask: SettleTicket, now_us: int) -> None:
        """Close what is open, due or not: nobody's word is needed, and none is added."""
        for old in [t for t in self.tickets.values() if t.binding == ask.binding and t.state is TicketState.OPEN]:
            closed = {"state": TicketState.SETTLED, "decided_us": now_us, "reason": ask.reason}
            self.tickets[old.id] = msgspec.structs.replace(old, **closed)
            self.changed.add(old.id)

    def number(self, wanting: list[tuple[str, int | None]], record: int) -> None:
        """Tell tickets the id of the record of the call that waits for them, or of an approval.

        By its place: of a group of batches several may have approved one ticket before the first of them has a number.
        """
        for name, place in wanting:
            ticket = self.tickets[name]
            if place is None:
                self.tickets[name] = msgspec.structs.replace(ticket, record=record)
            else:
                approvals = list(ticket.approvals)
                approvals[place] = msgspec.structs.replace(approvals[place], record=record)
                self.tickets[name] = msgspec.structs.replace(ticket, approvals=tuple(approvals))

    @staticmethod
    def _unspendable(ticket: Ticket, ask: SpendTicket, now_us: int) -> Refused | None:
        state = state_of(ticket, now_us)
        if state is not TicketState.APPROVED:
            return Refused(RefusalKind.TICKET, ticket.id, f"the ticket is {state.value}, not approved")
        if ticket.binding != ask.binding:
            return Refused(RefusalKind.TICKET, ticket.id, "the ticket was approved for another plan")
        return None


class HaltTable:
    """What is halted, all of it."""

    def __init__(self) -> None:
        self.halts: dict[str, Halted] = {}
        self.changed: set[str] = set()

    def check(self, ask: HaltTransition) -> Refused | None:
        """Why the transition is refused, or None."""
        match ask:
            case Halt():
                return None
            case Lift():
                return (
                    None
                    if ask.scope in self.halts
                    else Refused(RefusalKind.HALT, ask.scope, f"{ask.scope!r} is not halted")
                )
            case RequireNotHalted():
                for scope in ask.scopes:
                    if scope in self.halts:
                        return Refused(RefusalKind.HALTED, scope, halt_message(self.halts[scope]))
                return None
            case _:
                assert_never(ask)

    def apply(self, ask: HaltTransition, now_us: int) -> None:
        """Make a transition that was checked."""
        match ask:
            case Halt():
                self.halts[ask.scope] = Halted(ask.scope, ask.by, ask.reason, now_us)
                self.changed.add(ask.scope)
            case Lift():
                del self.halts[ask.scope]
                self.changed.add(ask.scope)
            case RequireNotHalted():
                return
            case _:
                assert_never(ask)


def _undecidable(ticket: Ticket, ask: DecideTicket, now_us: int) -> Refused | None:
    if not is_open(ticket, now_us):
        return Refused(RefusalKind.TICKET, ticket.id, f"the ticket is {state_of(ticket, now_us).value}, not open")
    voice = ask.voice or ask.by
    if ask.state is TicketState.APPROVED and any(is_same(voice, said.voice) for said in ticket.approvals):
        return Refused(RefusalKind.TICKET, ticket.id, f"{voice} has approved it already; somebody else is needed")
    return None


def _decide(ticket: Ticket, ask: DecideTicket, now_us: int) -> Ticket:
    """The ticket after one more decision: approved only when as many have said so as its terms want."""
    state, approvals = ask.state, ticket.approvals
    if state is TicketState.APPROVED:
        approvals = (*approvals, Approval(ask.by, ask.voice or ask.by, now_us))
        state = state if len(approvals) >= ticket.terms.quorum else TicketState.OPEN
    names = dict.fromkeys([said.by for said in approvals]) if state is TicketState.APPROVED else [ask.by]
    closed = state is not TicketState.OPEN
    return msgspec.structs.replace(
        ticket,
        state=state,
        approvals=approvals,
        decided_by=", ".join(names) if closed else "",
        decided_us=now_us if closed else 0,
        reason=ask.reason,
    )


def is_open(ticket: Ticket, now_us: int) -> bool:
    """Whether the ticket can still be decided."""
    return state_of(ticket, now_us) is TicketState.OPEN
