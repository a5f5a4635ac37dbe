"""What the records add up to: tickets, claims, leases, halts and budgets that a store must hold if nobody edited it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from interlock.audit.fold_budgets import BudgetFold
from interlock.audit.fold_call_ids import CallIdFold
from interlock.audit.fold_keys import KeyFold, Landing, exact_keys
from interlock.audit.fold_tickets import TicketFold
from interlock.audit.signed_times import CLOCKS_US, is_about
from interlock.openings import Digest, claim_digest
from interlock.ports import Store, digest_of, keyed_digest
from interlock.records import Changed, Content, Stored
from interlock.state import LANDED, ChangeFilter, Claimed, ClaimState, Halted, halt_scopes
from interlock.values import Json

_KINDS = ("intent", "ticket", "settle", "halt", "turn")
_DOUBT = (ClaimState.OPEN, ClaimState.UNKNOWN)


_SETTLED = {
    "approved": ClaimState.DONE,
    "done": ClaimState.DONE,
    "denied": ClaimState.FAILED,
    "failed": ClaimState.FAILED,
}
_MARKS: dict[ClaimState, tuple[ClaimState | None, ClaimState]] = {
    ClaimState.OPEN: (None, ClaimState.RETURNING),
    ClaimState.DONE: (ClaimState.UNDONE, ClaimState.DONE),
    ClaimState.FAILED: (None, ClaimState.UNDONE),
}
"""With the state of what takes a change back: that of what it takes back, and of what that had taken back."""
_BEGUN_BEFORE = {
    ClaimState.DONE: "begins a change that record {last} had made already",
    ClaimState.UNDONE: "begins a change that record {last} had made already",
    ClaimState.RETURNING: "begins a change that record {last} had made already",
    ClaimState.UNKNOWN: "begins a change that record {last} had left in doubt",
}


class _Claim(msgspec.Struct):
    state: ClaimState
    intent: int
    last: int
    at_us: int
    """When it was begun."""
    opened: str = ""
    """The digest of its row as it was opened: keys, tool, call, turn, run, request and holder."""
    record: int | None = None
    undoes: str | None = None
    shown: tuple[str, ...] = ()
    """Its keys as the record has them,"""
    keys: tuple[str, ...] = ()
    """and as they are, where its tool redacts nothing."""
    tokens: tuple[int, ...] | None = None
    """None until a record says them."""
    stands: dict[str, int] = {}
    """By which record each key became what it is by this change: its own, or that of what has made it again."""
    closed_us: int = 0
    untouched: tuple[int, ...] = ()


class Fold:
    """Folds records in the order of their ids; what it has at the end is compared with the store's tables."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, int], _Claim] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._halts: dict[str, Halted] = {}
        self._budgets = BudgetFold()
        self._keys = KeyFold()
        self._call_ids = CallIdFold()
        self._tickets = TicketFold()
        self._faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
        self.last = 0

    def see(self, record: Stored) -> None:
        """Take one record in."""
        if record.id > self.last:
            self.last = record.id
        body = record.body  # looked for in the text: a pass over millions of records cannot parse each of them
        if type(body) is not str:
            return
        if '"charged":' in body:
            self._budgets.see(record)
        if record.kind == "call":
            if '"change":' not in body and '"ticket":' not in body and '"same_as":' not in body:
                return
        elif record.kind not in _KINDS:
            return
        try:
            content = record.content()
        except msgspec.DecodeError:
            return  # the chain has said that it is not what was written
        if record.kind in ("call", "intent"):
            self._see_change(record, content)
        elif isinstance(content.arguments, dict):
            self._see_decision(record, content.principal, content.arguments)

    def _see_change(self, record: Stored, content: Content) -> None:
        change = content.change
        if content.ticket is not None:
            restated = record.kind == "intent" and change is not None and self._is_restated(change)
            self._tickets.see_call(record, content, content.ticket, restated=restated)
        if content.same_as is not None and content.repeats is not None:
            self._call_ids.answer(record, content.same_as, content.repeats)
        if change is None:
            return
        name = (change.claim, change.generation)
        self._keys.know(content)
        if record.kind == "intent":
            self._begin(record, content, change)
        elif change.closed and name in self._claims:
            claim = self._claims[name]
            claim.tokens, claim.untouched = change.tokens, change.untouched
            self._keys.grant(claim.keys, change.tokens)
            self._close(claim, ClaimState(change.closed), record)

    def _begin(self, record: Stored, content: Content, change: Changed) -> None:
        if not self._is_restated(change):
            self._call_ids.begin(record, change)
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
        since_us = known.at_us if known is not None and known.state is ClaimState.OPEN else record.at_us
        claim = _Claim(ClaimState.OPEN, record.id, record.id, since_us, change.opened)
        claim.undoes, claim.shown, claim.keys = change.undoes, content.keys, keys
        self._claims[name], self._newest[change.claim] = claim, name
        self._mark(claim, ClaimState.OPEN, record.id)

    def _check_halts(self, record: Stored, content: Content) -> None:
        """A change is not begun while it is halted. What was begun beside the halt may come after it by a moment."""
        for scope in halt_scopes(record.tool, record.actor, content.run):
            halt = self._halts.get(scope)
            if halt is not None and record.at_us > halt.at_us + CLOCKS_US:
                self._faults.append(f"record {record.id}: begins a change, while {scope} was halted")

    def _again_fault(self, before: _Claim) -> str | None:
        """Why a change that stands could not be made again; None if it could, or its keys are not known here."""
        if before.state is ClaimState.RETURNING:
            return f"makes a change again that record {before.last} was about to make again"
        if before.state is not ClaimState.DONE or before.keys != before.shown:
            return None
        if self._keys.changed_since(before.stands):
            return None
        return f"makes a change again that record {before.last} had made, and nothing was changed since"

    def _is_restated(self, change: Changed) -> bool:
        known = self._claims.get((change.claim, change.generation))
        return known is not None and known.state is ClaimState.OPEN

    def _close(self, claim: _Claim, state: ClaimState, record: Stored) -> None:
        number, claim.closed_us = record.id, record.at_us
        claim.state, claim.last, claim.record = state, number, number
        if state not in _DOUBT:
            self._keys.free(claim.keys)
        if state is ClaimState.DONE:
            claim.stands = dict.fromkeys(claim.keys, number)
            self._keys.land(claim.shown, claim.keys, claim.tokens or (), number)
        self._mark(claim, state, number)

    def _mark(self, claim: _Claim, state: ClaimState, number: int) -> None:
        """What becomes of the changes that one takes back, with the state that it comes to by a record: of the chain of
        them every other one stands."""
        back, again = _MARKS.get(state, (None, None))
        for place, link in enumerate(self._links(claim.undoes)):
            marked = again if place % 2 else back
            if marked is not None:
                link.state, link.last = marked, number
            if marked is ClaimState.DONE:  # of the keys that it has made again; the others are as they were
                link.stands |= dict.fromkeys(claim.keys, number)

    def _links(self, undoes: str | None) -> list[_Claim]:
        """What a change takes back, what that had taken back, and so on."""
        links: dict[int, _Claim] = {}
        while undoes is not None:
            name, _, generation = undoes.rpartition(".")
            first = name.partition("#")[0]  # of a generation that is kept beside the next one
            claim = self._claims.get((first, int(generation) if generation.isdecimal() else -1))
            if claim is None or id(claim) in links:  # round and round goes only what was forged
                break
            links[id(claim)], undoes = claim, claim.undoes
        return list(links.values())

    def _see_decision(self, record: Stored, by: str, what: dict[str, Json]) -> None:
        if record.kind == "halt":
            scope = str(what.get("scope") or "")
            self._halts.pop(scope, None)
            if record.status == "halted":
                self._halts[scope] = Halted(scope, by, str(what.get("reason") or ""), record.at_us)
            return
        self._tickets.see_decision(record, by, what)
        settled = self._claims.get(self._newest.get(str(what.get("claim") or ""), ("", 0)))
        if record.kind != "settle" or settled is None:
            return
        if record.status in _SETTLED:
            tokens = what.get("tokens")
            settled.tokens = tuple(tokens) if isinstance(tokens, list) else settled.tokens
            untouched = what.get("untouched")
            settled.untouched = tuple(untouched) if isinstance(untouched, list) else ()
            self._close(settled, _SETTLED[record.status], record)
        elif settled.state is ClaimState.OPEN:  # people were asked, as nobody knows
            self._close(settled, ClaimState.UNKNOWN, record)

    async def look_ahead(self, store: Store) -> None:
        """Look at what grows while it is compared, before the last of the records are read."""
        await self._budgets.look(store)

    async def compare(self, store: Store) -> list[str]:
        """What the store's tables say otherwise than the ledger."""
        digest = partial(digest_of, keyed_digest(store.identity.digest_key))
        before = await self._keys.read(store)
        found = await store.claims(ChangeFilter())
        after = await self._keys.read(store)
        problems = [*self._faults, *self._keys.faults, *self._call_ids.faults, *self._tickets.faults]
        problems += await self._tickets.compare(store, digest)
        problems += self._halt_faults({halt.scope: halt for halt in await store.halts()})
        # Read after the tables: what these name was written before, or never.
        end = max((head.id for head in await store.heads()), default=0)
        problems += self._claim_faults(found, digest, end)
        problems += self._call_ids.compare(found, digest, range(self.last + 1, end + 1))
        problems += self._keys.compare(before, found, after, self._landings(found))
        problems += await self._budgets.compare(store)
        return problems

    def _row_name(self, name: tuple[str, int]) -> str:
        """The name of a claim's row: that of the newest generation is its own."""
        first, generation = name
        return first if self._newest[first] == name else f"{first}#{generation}"

    def _claim_faults(self, found: Iterable[Claimed], digest: Digest, end: int) -> Iterator[str]:
        rows = {row.name: row for row in found}
        for name, claim in self._claims.items():
            row = rows.pop(self._row_name(name), None)
            where = f"claim {name[0][:16]}… (record {claim.last})"
            if row is None:
                yield f"{where}: the ledger holds it, and the store does not: it could be made again"
                continue
            newest = max(row.record or 0, row.intent or 0)
            if self.last < newest <= end:
                continue  # somebody has written since
            fault = _row_fault(claim, name[1], row, digest)
            if fault is not None:
                yield f"{where}: {fault}"
        for row in rows.values():
            if not row.is_lock and not self.last < (row.intent or 0) <= end:
                yield f"claim {row.name[:16]}…: the store holds it, and the ledger knows of no intent"

    def _landings(self, rows: Iterable[Claimed]) -> dict[tuple[str, int], Landing]:
        """When, and in which run, changes landed: by key and token."""
        landings = {}
        for row in rows:
            claim = self._claims.get((row.first_name, row.generation))
            if claim is not None and row.state in LANDED:
                for place, pair in enumerate(zip(row.keys, row.tokens, strict=False)):
                    landings[pair] = Landing(claim.closed_us, row.run or row.turn or "", place in claim.untouched)
        return landings

    def _halt_faults(self, rows: dict[str, Halted]) -> Iterator[str]:
        for scope in sorted(set(self._halts) - set(rows)):
            yield f"halt {scope}: stands in the ledger, and not in the store: it was lifted without a record"
        for scope, row in sorted(rows.items()):
            known = self._halts.get(scope)
            if known is None:
                yield f"halt {scope}: stands in the store, and not in the ledger"
            elif (row.by, row.reason) != (known.by, known.reason) or not is_about(row.at_us, known.at_us):
                yield f"halt {scope}: the store says by whom, when or why otherwise than the ledger"


def _row_fault(claim: _Claim, generation: int, row: Claimed, digest: Digest) -> str | None:
    """What a claim's row says otherwise than the ledger; None if nothing."""
    if row.state is not claim.state:
        return f"is {row.state.value} in the store, and {claim.state.value} in the ledger"
    if (row.intent, row.record, row.generation) != (claim.intent, claim.record, generation):
        return "names other records in the store than the ledger has for it"
    if (claim.keys and row.keys != claim.keys) or claim.tokens not in (None, row.tokens):
        return "names other keys or tokens in the store than the ledger has for it"
    if claim.opened and claim_digest(row, digest) != claim.opened:
        return f"its keys, tool, call, turn, run, request or holder are not those that record {claim.intent} has begun"
    if not is_about(row.at_us, claim.at_us):
        return f"was begun at another time than record {claim.intent} says, or a clock was off by minutes"
    return None
