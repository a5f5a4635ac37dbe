"""What the records say about tickets: as what they were opened, who decided what, and whether they were spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from interlock.audit.signed_times import CLOCKS_US, is_about
from interlock.openings import Digest, ticket_digest
from interlock.ports import Store
from interlock.records import Content, Stored
from interlock.state import Approval, Ticket, TicketState
from interlock.values import Json

_YES = ("approved", "released", "corrected")
_NO = ("denied", "expired", "rejected")


class _Said(msgspec.Struct, frozen=True):
    """One decision of a ticket."""

    by: str
    voice: str | None
    """For whom, where the record says it: that of a released answer does not."""
    at_us: int


class _Settled(msgspec.Struct, frozen=True):
    """That what a ticket asks was found out."""

    reason: str
    at_us: int


class _Ticket(msgspec.Struct):
    opened: int
    digest: str
    approvals: dict[int, _Said] = {}
    refused: TicketState | None = None
    refused_by: str = ""
    settled: _Settled | None = None
    """Counts where people have not decided it before."""
    spent: int = 0
    readers: tuple[str, ...] = ()
    """The calls of reads that have spent it, as a record of its own says."""
    reason: str = ""
    """Of the last decision."""
    decided_us: int = 0
    escalated: bool = False
    reminded_us: int = 0


class TicketFold:
    """Folded in the order of record ids; what it has at the end is compared with the tickets of a store."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
        self._tickets: dict[str, _Ticket] = {}
        self._asked: dict[str, _Ticket] = {}
        """The newest question about each claim in doubt."""
        self._now_us = 0

    def see_call(self, record: Stored, content: Content, name: str, *, restated: bool) -> None:
        """A call opened a ticket, or spent one. `restated`: it says anew what it will do, and has spent it before."""
        self._now_us = max(self._now_us, record.at_us)
        if record.status == "parked" and content.ticket_digest is not None:
            self._tickets[name] = _Ticket(record.id, content.ticket_digest)
            return
        found = self._tickets.get(name)
        begun = content.change is not None and record.kind == "call"  # its intent has spent it
        if found is None or begun or not (record.kind == "intent" or content.attempts):
            return
        if record.call not in found.readers:
            self._spend(record, found, name, restated=restated)

    def _spend(self, record: Stored, found: _Ticket, name: str, *, restated: bool = False) -> None:
        found.spent += not restated
        if found.spent > 1:
            self.faults.append(f"record {record.id}: spends ticket {name}, which was spent before")
        if found.refused is not None:
            self.faults.append(f"record {record.id}: spends ticket {name}, which was denied or had expired")

    def see_decision(self, record: Stored, by: str, what: dict[str, Json]) -> None:
        """What people decided, or what was found out."""
        self._now_us = max(self._now_us, record.at_us)
        opened = what.get("ticket_digest")
        if opened:
            self._tickets[str(what.get("ticket"))] = fresh = _Ticket(record.id, str(opened))
            if record.kind == "settle":
                self._asked[str(what.get("claim"))] = fresh
            return
        if record.kind == "turn" and record.status != "reviewed":
            return
        if record.kind == "settle" and "ticket" not in what:
            question = self._asked.get(str(what.get("claim")))
            if question is not None and question.settled is None:  # else it was about an attempt before
                question.settled = _Settled(str(what.get("reason") or ""), record.at_us)
            return
        name = str(what.get("ticket"))
        found = self._tickets.get(name)
        if found is not None and (record.kind, record.status) == ("ticket", "spent"):
            found.readers += (record.call,)
            self._spend(record, found, name)
        elif found is not None:
            self._decide(record, found, by, what)

    def _decide(self, record: Stored, found: _Ticket, by: str, what: dict[str, Json]) -> None:
        said = str(what.get("status", "")) if record.kind == "turn" else record.status
        if said in ("escalated", "reminded"):
            found.escalated |= said == "escalated"
            found.reminded_us = record.at_us
        if said not in (*_YES, *_NO):
            return
        found.reason, found.decided_us = str(what.get("reason") or ""), record.at_us
        if said in _NO:
            found.refused = TicketState.EXPIRED if said == "expired" else TicketState.DENIED
            found.refused_by = by
            return
        if found.refused is not None:
            name = what.get("ticket")
            self.faults.append(f"record {record.id}: approves ticket {name}, which was denied or had expired")
        voice = None if record.kind == "turn" else str(what.get("in_place_of") or by)
        found.approvals = {**found.approvals, record.id: _Said(by, voice, record.at_us)}

    async def compare(self, store: Store, digest: Digest) -> list[str]:
        """What the store's tickets say otherwise than the ledger."""
        listed = await store.tickets()
        rows = {ticket.id: ticket for ticket in listed}
        problems = [problem for name in self._tickets for problem in self._faults_of(name, rows.get(name), digest)]
        for name in sorted(set(rows) - set(self._tickets)):
            problems.append(f"ticket {name}: the store holds it, and the ledger did not open it")
        twice = [name for name, count in Counter(ticket.id for ticket in listed).items() if count > 1]
        problems += [f"ticket {name}: stands in the store more than once" for name in twice]
        return problems + await _column_faults(store, rows)

    def _faults_of(self, name: str, row: Ticket | None, digest: Digest) -> Iterator[str]:
        known, where = self._tickets[name], f"ticket {name}"
        if row is None:
            yield f"{where}: the ledger holds it, and the store does not"
            return
        if row.record != known.opened or ticket_digest(row, digest) != known.digest:
            yield f"{where}: is not what record {known.opened} opened"
        yield from _approval_faults(where, known, row.approvals)
        yield from self._state_faults(where, known, row)
        if row.escalated is not known.escalated or not is_about(row.reminded_us, known.reminded_us):
            yield f"{where}: was escalated or reminded of otherwise than the ledger says"

    def _state_faults(self, where: str, known: _Ticket, row: Ticket) -> Iterator[str]:
        approved = len(known.approvals) >= row.terms.quorum and len(row.approvals) >= row.terms.quorum
        undecided = TicketState.OPEN if known.settled is None else TicketState.SETTLED
        state = TicketState.APPROVED if approved else known.refused or undecided
        if known.spent:
            state = TicketState.SPENT
        # What nobody decided in time makes way for the same question without a record of its own.
        lapsed = state is TicketState.OPEN and row.expires_us <= self._now_us + CLOCKS_US
        if known.spent and row.state is not TicketState.SPENT:
            yield f"{where}: was spent, and is {row.state.value} in the store"
        elif known.refused is not None and row.state is not known.refused:
            yield f"{where}: was denied or has expired, and is {row.state.value} in the store"
        elif row.state in (TicketState.APPROVED, TicketState.SPENT) and not approved:
            yield f"{where}: is {row.state.value} in the store, and the ledger knows of no approval"
        elif row.state is not state and not (lapsed and row.state is TicketState.EXPIRED):
            yield f"{where}: is {row.state.value} in the store, and {state.value} in the ledger"
        elif not _is_decided_so(known, row, state):
            yield f"{where}: was decided by others, for another reason or at another time than the ledger says"


def _approval_faults(where: str, known: _Ticket, rows: Iterable[Approval]) -> Iterator[str]:
    """Each approval of the row has its own record, and each of the ledger is in the row."""
    found = {said.record: said for said in rows}
    by = {said.by for said in found.values()}
    for number, said in found.items():
        recorded = known.approvals.get(number or 0)
        fits = recorded is not None and recorded.by == said.by and recorded.voice in (None, said.voice)
        if not fits or recorded is None or not is_about(said.at_us, recorded.at_us):
            yield f"{where}: has an approval of {said.by} in the store, and the ledger knows of no approval like that"
    for number, recorded in known.approvals.items():
        # That of a released answer may follow one that counted already.
        if number not in found and (recorded.voice is not None or recorded.by not in by):
            yield f"{where}: was approved by {recorded.by} (record {number}), and the store does not say so"


def _is_decided_so(known: _Ticket, row: Ticket, state: TicketState) -> bool:
    if state is TicketState.SETTLED and known.settled is not None:
        found_out = known.settled
        return (row.decided_by, row.reason) == ("", found_out.reason) and is_about(row.decided_us, found_out.at_us)
    names = ""
    if state in (TicketState.APPROVED, TicketState.SPENT):
        names = ", ".join(dict.fromkeys(said.by for said in row.approvals))
    elif state is not TicketState.OPEN:
        names = known.refused_by
    decided_us = 0 if state is TicketState.OPEN else known.decided_us
    return (row.decided_by, row.reason) == (names, known.reason) and is_about(row.decided_us, decided_us)


async def _column_faults(store: Store, rows: dict[str, Ticket]) -> list[str]:
    """Tickets are found by columns beside their text: one that nobody finds is decided by nobody."""
    hidden = [name for name, row in rows.items() if await store.ticket(name) != row]
    for state in TicketState:
        listed = {ticket.id for ticket in await store.tickets(state)}
        hidden += listed ^ {name for name, row in rows.items() if row.state is state}
    return [f"ticket {name}: is not found where it should be: its columns were edited" for name in sorted(set(hidden))]
