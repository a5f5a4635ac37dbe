"""What the records add up to: tickets, claims, leases, halts and budgets that a store must hold if nobody edited it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from interlock.audit.fold_keys import KeyFold, exact_keys
from interlock.audit.signed_times import CLOCKS_US
from interlock.ports import Store
from interlock.records import Changed, Content, Stored
from interlock.state import ChangeFilter, Claimed, ClaimState, Ticket, TicketState, halt_scopes

# Looked for in the text: a pass over millions of records cannot parse each of them.
_SAYS_SOMETHING = ('"change":', '"ticket":')
_KINDS = ("intent", "ticket", "settle", "halt", "turn")
_DOUBT = (ClaimState.OPEN, ClaimState.UNKNOWN)


_YES = ("approved", "done", "released", "corrected")
_NO = ("denied", "failed", "expired", "rejected")
_BEGUN_BEFORE = {
    ClaimState.DONE: "begins a change that record {last} had made already",
    ClaimState.UNDONE: "begins a change that record {last} had made already",
    ClaimState.UNKNOWN: "begins a change that record {last} had left in doubt",
}


class _Claim(msgspec.Struct):
    state: ClaimState
    intent: int
    last: int
    record: int | None = None
    undoes: str | None = None
    shown: tuple[str, ...] = ()
    """Its keys as the record has them,"""
    keys: tuple[str, ...] = ()
    """and as they are, where its tool redacts nothing."""
    tokens: tuple[int, ...] = ()


class _Ticket(msgspec.Struct):
    opened: int = 0
    approvals: int = 0
    denied: bool = False
    spent: int = 0


class Fold:
    """Folds records in the order of their ids; what it has at the end is compared with the store's tables."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, int], _Claim] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._halts: dict[str, int] = {}
        """What is halted, and since when."""
        self._spent: dict[str, list[int]] = {}
        self._keys = KeyFold()
        self._faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
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
            self._see_ticket(record, content, content.ticket)
        if change is None:
            return
        for scope in change.charged:
            spent = self._spent.setdefault(scope, [0, 0, 0])
            spent[0] += 1
            spent[1] += content.cost_micros
            spent[2] += -(-sum(made.duration_us for made in content.attempts) // 1000)
        name = (change.claim, change.generation)
        self._keys.know(content)
        if record.kind == "intent":
            self._begin(record, content, change)
        elif change.closed and name in self._claims:
            claim = self._claims[name]
            claim.tokens = change.tokens
            self._keys.grant(claim.keys, change.tokens)
            self._close(claim, ClaimState(change.closed), record.id)

    def _begin(self, record: Stored, content: Content, change: Changed) -> None:
        name, keys = (change.claim, change.generation), exact_keys(content)
        known, before = self._claims.get(name), self._claims.get((change.claim, change.generation - 1))
        fault = None if before is None else self._again_fault(before)
        if known is not None:
            fault = _BEGUN_BEFORE.get(known.state, "").format(last=known.last)
        if fault:
            self._faults.append(f"record {record.id}: {fault}")
        if known is None or known.state is not ClaimState.OPEN:  # else it says anew what it will do, under its lease
            self._keys.begin(keys, record.id)
            self._check_halts(record, content)
        first = _Claim(ClaimState.OPEN, record.id, record.id, undoes=change.undoes, shown=content.keys, keys=keys)
        self._claims[name], self._newest[change.claim] = first, name

    def _check_halts(self, record: Stored, content: Content) -> None:
        """A change is not begun while it is halted. What was begun beside the halt may come after it by a moment."""
        for scope in halt_scopes(record.tool, record.actor, content.run):
            if record.at_us > self._halts.get(scope, record.at_us) + CLOCKS_US:
                self._faults.append(f"record {record.id}: begins a change, while {scope} was halted")

    def _again_fault(self, before: _Claim) -> str | None:
        """Why a change that stands could not be made again; None if it could, or its keys are not known here."""
        if before.state is not ClaimState.DONE or before.keys != before.shown:
            return None
        if self._keys.changed_since(before.keys, before.last):
            return None
        return f"makes a change again that record {before.last} had made, and nothing was changed since"

    def _see_ticket(self, record: Stored, content: Content, name: str) -> None:
        if record.status == "parked" and content.ticket_digest is not None:
            self._tickets.setdefault(name, _Ticket()).opened = record.id
            return
        found = self._tickets.get(name)
        begun = content.change is not None and record.kind == "call"  # its intent has spent it
        if found is None or begun or not (record.kind == "intent" or content.attempts):
            return
        restated = record.kind == "intent" and content.change is not None and self._is_restated(content.change)
        found.spent += not restated
        if found.spent > 1:
            self._faults.append(f"record {record.id}: spends ticket {name}, which was spent before")
        if found.denied:
            self._faults.append(f"record {record.id}: spends ticket {name}, which was denied or had expired")

    def _is_restated(self, change: Changed) -> bool:
        known = self._claims.get((change.claim, change.generation))
        return known is not None and known.state is ClaimState.OPEN

    def _close(self, claim: _Claim, state: ClaimState, number: int) -> None:
        claim.state, claim.last, claim.record = state, number, number
        if state not in _DOUBT:
            self._keys.free(claim.keys)
        if state is ClaimState.DONE:
            self._keys.land(claim.shown, claim.keys, claim.tokens, number)
        if state is ClaimState.DONE and claim.undoes is not None:
            self._undo(claim.undoes, number)

    def _undo(self, undoes: str, number: int) -> None:
        name, _, generation = undoes.rpartition(".")
        first = name.partition("#")[0]  # of a generation that is kept beside the next one
        claim = self._claims.get((first, int(generation) if generation.isdecimal() else -1))
        if claim is not None:
            claim.state, claim.last = ClaimState.UNDONE, number

    def _see_decision(self, record: Stored, what: dict[str, object]) -> None:
        scope, ticket, claim = (str(what.get(key) or "") for key in ("scope", "ticket", "claim"))
        if record.kind == "halt":
            self._halts.pop(scope, None)
            if record.status == "halted":
                self._halts[scope] = record.at_us
            return
        said = str(what.get("status", "")) if record.kind == "turn" else record.status
        answered = what.get("tickets")
        for name in (ticket, *(map(str, answered) if isinstance(answered, list) else ())):
            if name:
                found = self._tickets.setdefault(name, _Ticket())
                found.opened = found.opened or record.id
                found.approvals += said in _YES
                if found.denied and said in _YES:
                    self._faults.append(f"record {record.id}: approves ticket {name}, which was denied or had expired")
                found.denied |= said in _NO
        settled = self._claims.get(self._newest.get(claim, ("", 0))) if record.kind == "settle" else None
        if settled is not None and said in (*_YES, *_NO):
            self._close(settled, ClaimState.DONE if said in _YES else ClaimState.FAILED, record.id)

    async def compare(self, store: Store) -> list[str]:
        """What the store's tables say otherwise than the ledger."""
        before = await self._keys.read(store)
        found = await store.claims(ChangeFilter())
        claims = {(claim.first_name, claim.generation): claim for claim in found}
        problems = [*self._faults, *self._keys.faults, *self._claim_faults(claims)]
        problems += self._keys.compare(before, found, await self._keys.read(store))
        problems += self._ticket_faults(await store.tickets())
        problems += self._halt_faults({halt.scope for halt in await store.halts()})
        for scope, (calls, cost, ms) in sorted(self._spent.items()):
            spent = await store.spent(scope, 0)
            if spent.calls < calls or spent.cost_micros < cost or spent.ms < ms:
                problems.append(f"budget {scope}: has spent less than the ledger says: it was set back")
        return problems

    def _claim_faults(self, rows: dict[tuple[str, int], Claimed]) -> Iterator[str]:
        for (name, generation), claim in self._claims.items():
            row = rows.get((name, generation))
            where = f"claim {name[:16]}… (record {claim.last})"
            if row is None:
                yield f"{where}: the ledger holds it, and the store does not: it could be made again"
            elif max(row.record or 0, row.intent or 0) > self.last:
                continue  # somebody has written since
            elif not _agrees(claim.state, row.state):
                yield f"{where}: is {row.state.value} in the store, and {claim.state.value} in the ledger"
            elif row.intent != claim.intent or (claim.record is not None and row.record != claim.record):
                yield f"{where}: names other records in the store than the ledger has for it"
            elif (claim.keys and row.keys != claim.keys) or (claim.tokens and row.tokens != claim.tokens):
                yield f"{where}: names other keys or tokens in the store than the ledger has for it"
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
        for scope in sorted(set(self._halts) - rows):
            yield f"halt {scope}: stands in the ledger, and not in the store: it was lifted without a record"
        for scope in sorted(rows - set(self._halts)):
            yield f"halt {scope}: stands in the store, and not in the ledger"


def _agrees(said: ClaimState, row: ClaimState) -> bool:
    return said is row or (said in _DOUBT and row in _DOUBT)
