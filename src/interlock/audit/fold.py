"""What the records add up to: the tickets, claims, halts and budgets that a store must hold if nobody edited it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from interlock.ports import Store
from interlock.records import Content, Stored
from interlock.state import ChangeFilter, Claimed, ClaimState, Ticket, TicketState

# Looked for in the text: a pass over millions of records cannot parse each of them.
_SAYS_SOMETHING = ('"change":', '"ticket":')
_KINDS = ("intent", "ticket", "settle", "halt", "turn")
_DOUBT = (ClaimState.OPEN, ClaimState.UNKNOWN)


_YES = ("approved", "done", "released", "corrected")
_NO = ("denied", "failed", "expired", "rejected")


class _Claim(msgspec.Struct):
    state: ClaimState
    intent: int
    last: int


class _Ticket(msgspec.Struct):
    opened: int = 0
    approvals: int = 0
    denied: bool = False
    spent: bool = False


class Fold:
    """Folds records in the order of their ids; what it has at the end is compared with the store's tables."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, int], _Claim] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._halts: set[str] = set()
        self._spent: dict[str, list[int]] = {}
        self.last = 0

    def see(self, record: Stored) -> None:
        """Take one record in."""
        self.last = max(self.last, record.id)
        if type(record.body) is not str:
            return
        if record.kind == "call" and not any(word in record.body for word in _SAYS_SOMETHING):
            return
        if record.kind != "call" and record.kind not in _KINDS:
            return
        try:
            content = record.content()
        except msgspec.DecodeError:
            return  # the chain has said that it is not what was written
        if record.kind in ("call", "intent"):
            self._see_change(record, content)
        elif isinstance(content.arguments, dict):
            self._see_decision(record, content.arguments)

    def _see_change(self, record: Stored, content: Content) -> None:
        change = content.change
        if content.ticket is not None:
            ticket = self._tickets.setdefault(content.ticket, _Ticket())
            if record.status == "parked":
                ticket.opened = ticket.opened or record.id
            elif record.kind == "intent" or content.attempts:
                ticket.spent = True
        if change is None:
            return
        for scope in change.charged:
            spent = self._spent.setdefault(scope, [0, 0])
            spent[0] += 1
            spent[1] += content.cost_micros
        name = (change.claim, change.generation)
        if record.kind == "intent":
            known = self._claims.get(name)
            first = record.id if known is None or known.state is ClaimState.FAILED else known.intent
            self._claims[name] = _Claim(ClaimState.OPEN, first, record.id)
            self._newest[change.claim] = name
        elif change.closed and name in self._claims:
            claim = self._claims[name]
            claim.state, claim.last = ClaimState(change.closed), record.id
            if claim.state is ClaimState.DONE and change.undoes is not None:
                self._undo(change.undoes, record.id)

    def _undo(self, undoes: str, number: int) -> None:
        name, _, generation = undoes.rpartition(".")
        claim = self._claims.get((name, int(generation) if generation.isdecimal() else -1))
        if claim is not None:
            claim.state, claim.last = ClaimState.UNDONE, number

    def _see_decision(self, record: Stored, what: dict[str, object]) -> None:
        scope, ticket, claim = (str(what.get(key) or "") for key in ("scope", "ticket", "claim"))
        if record.kind == "halt":
            (self._halts.add if record.status == "halted" else self._halts.discard)(scope)
            return
        said = str(what.get("status", "")) if record.kind == "turn" else record.status
        answered = what.get("tickets")
        for name in (ticket, *(map(str, answered) if isinstance(answered, list) else ())):
            if name:
                found = self._tickets.setdefault(name, _Ticket())
                found.opened = found.opened or record.id
                found.approvals += said in _YES
                found.denied |= said in _NO
        settled = self._claims.get(self._newest.get(claim, ("", 0))) if record.kind == "settle" else None
        if settled is not None and said in (*_YES, *_NO):
            settled.state, settled.last = (ClaimState.DONE if said in _YES else ClaimState.FAILED), record.id

    async def compare(self, store: Store) -> list[str]:
        """What the store's tables say otherwise than the ledger."""
        claims = {(claim.first_name, claim.generation): claim for claim in await store.claims(ChangeFilter())}
        problems = list(self._claim_faults(claims))
        problems += self._ticket_faults(await store.tickets())
        problems += self._halt_faults({halt.scope for halt in await store.halts()})
        for scope, (calls, cost) in sorted(self._spent.items()):
            spent = await store.spent(scope, 0)
            if spent.calls < calls or spent.cost_micros < cost:
                problems.append(f"budget {scope}: has spent less than the ledger says: it was set back")
        return problems

    def _claim_faults(self, rows: dict[tuple[str, int], Claimed]) -> Iterator[str]:
        for (name, generation), claim in self._claims.items():
            row = rows.get((name, generation))
            where = f"claim {name[:16]}… (record {claim.last})"
            if row is None:
                yield f"{where}: the ledger holds it, and the store does not: it could be made again"
            elif not _agrees(claim.state, row.state) and (row.record or 0) <= self.last:
                yield f"{where}: is {row.state.value} in the store, and {claim.state.value} in the ledger"
        for (name, _generation), row in rows.items():
            unseen = (row.intent or 0) > self.last
            if not row.is_lock and (name, row.generation) not in self._claims and not unseen:
                yield f"claim {name[:16]}…: the store holds it, and the ledger knows of no intent"

    def _ticket_faults(self, rows: Iterable[Ticket]) -> Iterator[str]:
        by_id = {ticket.id: ticket for ticket in rows}
        for name, known in self._tickets.items():
            row = by_id.get(name)
            if row is None:
                yield f"ticket {name}: the ledger holds it, and the store does not"
            elif known.spent and row.state is not TicketState.SPENT:
                yield f"ticket {name}: was spent, and is {row.state.value} in the store"
            elif row.state in (TicketState.APPROVED, TicketState.SPENT) and known.approvals < row.terms.quorum:
                yield f"ticket {name}: is {row.state.value} in the store, and the ledger knows of no approval"
            elif known.denied and not known.approvals and row.state in (TicketState.OPEN, TicketState.APPROVED):
                yield f"ticket {name}: was denied or has expired, and is {row.state.value} in the store"
        for name, row in by_id.items():
            if name not in self._tickets and (row.record or 0) <= self.last:
                yield f"ticket {name}: the store holds it, and the ledger did not open it"

    def _halt_faults(self, rows: set[str]) -> Iterator[str]:
        for scope in sorted(self._halts - rows):
            yield f"halt {scope}: stands in the ledger, and not in the store: it was lifted without a record"
        for scope in sorted(rows - self._halts):
            yield f"halt {scope}: stands in the store, and not in the ledger"


def _agrees(said: ClaimState, row: ClaimState) -> bool:
    return said is row or (said in _DOUBT and row in _DOUBT)
