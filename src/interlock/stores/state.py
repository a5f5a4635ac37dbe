"""What a batch means: the same arithmetic for every store.

A store loads the few accounts, buckets and heads that a batch touches into a `State`, lets the batch land there, whole
or not at all, and writes the state back. The memory store simply keeps its one State.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from interlock.ports import Spent, link_text
from interlock.reasons import RefusalKind
from interlock.records import Checkpoint, Record
from interlock.stores.claims import ClaimTable, LeaseGrant
from interlock.stores.tickets import HaltTable, TicketTable
from interlock.transitions import (
    Append,
    Batch,
    BindCallId,
    CloseClaim,
    Committed,
    DecideTicket,
    DropPayload,
    EscalateTicket,
    Halt,
    Lift,
    MarkReturning,
    MarkStanding,
    MarkUndone,
    OpenClaim,
    OpenTicket,
    Refused,
    RemindTicket,
    RenewClaim,
    RequireClaim,
    RequireNotHalted,
    Reserve,
    ResolveClaim,
    Seal,
    Settle,
    SettleTicket,
    SpendTicket,
    TakeToken,
    Transition,
)

_encode = msgspec.json.Encoder().encode
_fields = msgspec.structs.astuple

Table = Literal["records", "accounts", "buckets", "checkpoints", "claims", "tickets", "halts"]
TABLE_OF: dict[type[Transition], Table] = {
    Append: "records",
    DropPayload: "records",
    Reserve: "accounts",
    Settle: "accounts",
    TakeToken: "buckets",
    Seal: "checkpoints",
    OpenClaim: "claims",
    BindCallId: "claims",
    RenewClaim: "claims",
    CloseClaim: "claims",
    ResolveClaim: "claims",
    RequireClaim: "claims",
    MarkUndone: "claims",
    MarkReturning: "claims",
    MarkStanding: "claims",
    OpenTicket: "tickets",
    DecideTicket: "tickets",
    SettleTicket: "tickets",
    EscalateTicket: "tickets",
    RemindTicket: "tickets",
    SpendTicket: "tickets",
    Halt: "halts",
    Lift: "halts",
    RequireNotHalted: "halts",
}
"""Which table a transition is about. Looked up by its exact type: a match over all of them costs ten times as much."""

Row = tuple[int, int, str, int, str, str, str | None, str, str, str, str]


@dataclass(slots=True)  # not a struct: those are slow to write to
class Account:
    """What a scope has spent, and what is set aside in it."""

    calls: int = 0
    cost_micros: int = 0
    ms: int = 0
    held: dict[str, Reserve] = field(default_factory=dict)
    held_calls: int = 0
    held_cost_micros: int = 0
    held_ms: int = 0

    def hold(self, item: Reserve) -> None:
        """Set something aside."""
        if item.call in self.held:
            self.settle(Settle(item.call, item.scope))
        self.held[item.call] = item
        self.held_calls += item.calls
        if item.cost_micros:  # most calls cost nothing, and most budgets do not count time
            self.held_cost_micros += item.cost_micros
        if item.ms:
            self.held_ms += item.ms

    def settle(self, done: Settle) -> None:
        """Give back what a call had set aside, if it had, and add what it spent."""
        item = self.held.pop(done.call, None)
        if item is not None:
            self.held_calls -= item.calls
            if item.cost_micros:
                self.held_cost_micros -= item.cost_micros
            if item.ms:
                self.held_ms -= item.ms
        self.calls += done.calls
        if done.cost_micros:
            self.cost_micros += done.cost_micros
        if done.ms:
            self.ms += done.ms

    def lacks(self, ask: Reserve) -> tuple[str, int, int, int] | None:
        """What there is too little of: name, amount left, limit, amount asked for."""
        limits = ask.budget
        if limits.calls is not None and self.calls + self.held_calls + ask.calls > limits.calls:
            return "calls", limits.calls - self.calls - self.held_calls, limits.calls, ask.calls
        if limits.cost_micros is not None:
            used = self.cost_micros + self.held_cost_micros
            if used + ask.cost_micros > limits.cost_micros:
                return limits.unit, limits.cost_micros - used, limits.cost_micros, ask.cost_micros
        if limits.ms is not None:
            used = self.ms + self.held_ms
            if used + ask.ms > limits.ms:
                return "milliseconds", limits.ms - used, limits.ms, ask.ms
        return None


_UNSEEN = Account()
"""A scope in which nothing was ever set aside or spent; looking at it does not open it."""


@dataclass(slots=True)
class Chain:
    """The end of one lane."""

    lane: int
    id: int
    count: int
    hash: str

    def extend(self, record: Record, number: int) -> Row:
        """Put a record at the end of the lane: the row as it is stored, its fields in the order of `Stored`."""
        return self.extend_by((record,), (number,))[0]

    def extend_by(self, records: Iterable[Record], numbers: Iterable[int]) -> list[Row]:
        """The same for several records in their order."""
        rows: list[Row] = []
        lane, last = self.lane, self.hash
        for record, number in zip(records, numbers, strict=True):
            at_us, kind, call, turn, actor, tool, status, content = _fields(record)
            body = _encode(content)
            # The columns are hashed with the body: editing what is searched by is found like editing what is read.
            _text, last = link_text(last, (number, lane, at_us, kind, call, turn, actor, tool, status), body)
            rows.append((number, lane, last, at_us, kind, call, turn, actor, tool, status, body.decode()))
        self.hash, self.id, self.count = last, rows[-1][0], self.count + len(rows)
        return rows

    def extend_text(self, record: Record, number: int) -> bytes:
        """The same as the text that is hashed, which says all that the row does and takes less room."""
        # Every call of the memory store comes by: its fields one by one are half the price of taking the record apart.
        columns = (
            number, self.lane, record.at_us, record.kind, record.call, record.turn, record.actor, record.tool,
            record.status,
        )  # fmt: skip
        text, self.hash = link_text(self.hash, columns, _encode(record.content))
        self.id, self.count = number, self.count + 1
        return text


Wanting = tuple[list[tuple[str, str]], list[tuple[str, int | None]]]
"""Claims and which of their fields; tickets and which of their approvals, or their opening."""


class PendingWrites:
    """What a state has that its store must write back."""

    def __init__(self) -> None:
        self.scopes: set[str] = set()
        self.buckets: set[str] = set()
        self.held: dict[tuple[str, str], Reserve] = {}
        self.released: set[tuple[str, str]] = set()

    def note(self, batch: Batch) -> None:
        """What a batch that landed has set aside and spent."""
        for transition in batch.transitions:
            if type(transition) is Settle:
                self.note_settled(transition)
            elif type(transition) is Reserve:
                self.held[transition.call, transition.scope] = transition

    def note_settled(self, done: Settle) -> None:
        """A scope has spent something, and holds nothing for the call any more."""
        self.scopes.add(done.scope)
        self.released.add((done.call, done.scope))
        self.held.pop((done.call, done.scope), None)


class State:
    """Accounts, reservations, buckets and checkpoints, as far as they are loaded."""

    def __init__(self, changes: PendingWrites | None = None) -> None:
        self.accounts: dict[str, Account] = {}
        self.buckets: dict[str, tuple[float, int]] = {}
        self.last_checkpoint = 0
        self.sealed: list[Checkpoint] = []
        self.claims = ClaimTable()
        self.tickets = TicketTable()
        self.halts = HaltTable()
        self.dropped: list[int] = []
        """Records whose payloads are to be deleted."""
        self.touched = False
        """Whether anything but records and accounts changed since the last `drain`."""
        self._changes = changes

    def land(self, batch: Batch, clock_us: int | None = None) -> Refused | list[Append]:
        """Change the state by a batch, whole or not at all: why it is refused, or the records that it adds.

        Claims, tickets and halts go by `clock_us`, the clock of the store, where it has one: those of its callers may
        differ. Budgets and rates go by the time at which the caller called.
        """
        # The hottest place of the memory store: transitions are told apart by exact type.
        now_us, transitions = batch.now_us, batch.transitions
        clock_us = now_us if clock_us is None else clock_us
        appends: list[Append] = []
        accounts = self.accounts
        transition: Any
        for transition in transitions:
            kind = type(transition)
            if kind is Append:
                appends.append(transition)
            elif kind is not Settle:
                check = self._budget_refusal if kind is Reserve else self._check
                refused = check(transition, now_us, clock_us)
                if refused is not None:
                    return refused
        for transition in transitions:
            kind = type(transition)
            if kind is Settle:
                (accounts.get(transition.scope) or self._open_account(transition.scope)).settle(transition)
            elif kind is Reserve:
                (accounts.get(transition.scope) or self._open_account(transition.scope)).hold(transition)
            elif kind is not Append:
                self.touched = True
                self._change(transition, now_us, clock_us)
        if accounts and self._changes is not None:
            self._changes.note(batch)
        return appends

    def _check(self, transition: Any, now_us: int, clock_us: int) -> Refused | None:
        match TABLE_OF[type(transition)]:
            case "buckets":
                return self._rate_refusal(transition, now_us)
            case "claims":
                return self.claims.check(transition, clock_us)
            case "tickets":
                return self.tickets.check(transition, clock_us)
            case "halts":
                return self.halts.check(transition)
            case "checkpoints":
                return self._checkpoint_refusal(transition)
            case _:
                return None

    def _change(self, transition: Any, now_us: int, clock_us: int) -> None:
        match TABLE_OF[type(transition)]:
            case "claims":
                self.claims.apply(transition, clock_us)
            case "tickets":
                self.tickets.apply(transition, clock_us)
            case "halts":
                self.halts.apply(transition, clock_us)
            case "records":
                self.dropped.append(transition.record)
            case "buckets":
                held = self.buckets.get(transition.bucket)
                tokens = _refill(held, transition, now_us)
                at_us = now_us if held is None else max(held[1], now_us)
                self.buckets[transition.bucket] = (tokens - 1.0, at_us)
                if self._changes is not None:
                    self._changes.buckets.add(transition.bucket)
            case _:
                self.last_checkpoint = transition.checkpoint.n
                self.sealed.append(transition.checkpoint)

    def drain(self) -> tuple[Wanting, tuple[LeaseGrant, ...]]:
        """What wants the id of a record of the batch that just landed, and the keys it was granted."""
        self.touched = False
        wanting = (self.claims.unnumbered, self.tickets.unnumbered)
        granted = self.claims.granted
        self.claims.unnumbered, self.tickets.unnumbered, self.claims.granted = [], [], ()
        return wanting, granted

    def number(self, wanting: Wanting, record: int) -> None:
        """Tell claims and tickets the id of the batch's first record, now that it has one."""
        claims, tickets = wanting
        self.claims.number(claims, record)
        if tickets:
            self.tickets.number(tickets, record)

    def forget_changes(self) -> None:
        """For a store that has nothing to write back."""
        claims = self.claims
        for names in (claims.changed, claims.moved, claims.changed_keys, self.tickets.changed, self.halts.changed):
            names.clear()

    def _open_account(self, scope: str) -> Account:
        account = self.accounts[scope] = Account()
        return account

    def spent(self, scope: str, now_us: int) -> Spent:
        """What a scope has used and what is set aside in it now."""
        self._drop_expired(scope, now_us)
        account = self.accounts.get(scope, _UNSEEN)
        return Spent(
            calls=account.calls,
            cost_micros=account.cost_micros,
            ms=account.ms,
            reserved_calls=account.held_calls,
            reserved_cost_micros=account.held_cost_micros,
            reserved_ms=account.held_ms,
        )

    def _budget_refusal(self, ask: Reserve, now_us: int, _clock_us: int) -> Refused | None:
        if self.accounts.get(ask.scope, _UNSEEN).lacks(ask) is None:
            return None
        self._drop_expired(ask.scope, now_us)
        lacking = self.accounts.get(ask.scope, _UNSEEN).lacks(ask)
        if lacking is None:
            return None
        what, *amounts = lacking
        left, limit, more = (ask.budget.spell(max(0, amount), what) for amount in amounts)
        message = f"budget {ask.budget.id!r} has {left} of {limit} {what} left, and this call needs {more}"
        return Refused(kind=RefusalKind.BUDGET, limit=ask.budget.id, message=message)

    def _checkpoint_refusal(self, ask: Seal) -> Refused | None:
        if ask.checkpoint.n == self.last_checkpoint + 1:
            return None
        return Refused(kind=RefusalKind.CONFLICT, limit="checkpoint", message="another checkpoint was made meanwhile")

    def _rate_refusal(self, ask: TakeToken, now_us: int) -> Refused | None:
        tokens = _refill(self.buckets.get(ask.bucket), ask, now_us)
        if tokens >= 1.0:
            return None
        wait_s = round((1.0 - tokens) / ask.per_s, 3)
        message = f"rate limit {ask.rate!r} is reached; try again in {wait_s:g} s"
        return Refused(kind=RefusalKind.RATE, limit=ask.rate, message=message, retry_after_s=wait_s)

    def _drop_expired(self, scope: str, now_us: int) -> None:
        account = self.accounts.get(scope, _UNSEEN)
        for item in [item for item in account.held.values() if item.expires_us <= now_us]:
            done = Settle(item.call, scope)
            account.settle(done)
            if self._changes is not None:
                self._changes.note_settled(done)


def receipt(ids: tuple[int, ...], granted: tuple[LeaseGrant, ...]) -> Committed:
    """What the caller of a batch that landed hears."""
    if not granted:
        return Committed(ids)
    if len(granted) == 1:
        return Committed(ids, (granted[0].token,), (granted[0].changed,))
    return Committed(ids, tuple([grant.token for grant in granted]), tuple([grant.changed for grant in granted]))


def _refill(held: tuple[float, int] | None, ask: TakeToken, now_us: int) -> float:
    """Tokens in a bucket now; a clock that stepped back adds none and takes none."""
    if held is None:
        return float(ask.burst)
    tokens, at_us = held
    return min(float(ask.burst), tokens + max(0, now_us - at_us) / 1e6 * ask.per_s)
