"""Rows in and out: what a group of batches touches is loaded and locked, and what it changed is written back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from interlock.state import Claimed, ClaimState, Halted, Lease, Ticket, is_wildcard, wildcard
from interlock.stores import statements as sql
from interlock.stores.claims import ClaimTable
from interlock.stores.dialect import Connection
from interlock.stores.state import TABLE_OF, Account, PendingWrites, State, Table
from interlock.transitions import (
    Append,
    Batch,
    BindCallId,
    OpenClaim,
    OpenTicket,
    Reserve,
    SettleTicket,
)
from interlock.values import Budget


def load(connection: Connection, state: State, asked: dict[Table, list[Any]]) -> State:
    """Read and lock every row that is asked for, in one fixed order, so that two workers cannot wait in a ring."""
    if "accounts" in asked:
        for scope in sorted({ask.scope for ask in asked["accounts"]}):
            load_scope(connection, state, scope, lock=True)
    if "buckets" in asked:
        _load_buckets(connection, state, sorted({ask.bucket for ask in asked["buckets"]}))
    if "checkpoints" in asked:
        connection.rows(sql.LOCK_CHECKPOINTS)
        row = connection.one(sql.LAST_CHECKPOINT)
        state.last_checkpoint = int(row[0]) if row else 0
    if "claims" in asked:
        _load_claims(connection, state, asked["claims"])
    if "tickets" in asked:
        _load_tickets(connection, state, asked["tickets"])
    if "halts" in asked:
        state.halts.halts = {row[0]: Halted(*row) for row in connection.rows(sql.HALTS)}
    return state


def by_table(batches: Sequence[Batch]) -> dict[Table, list[Any]]:
    """What batches ask of each table, but for new records."""
    asked: dict[Table, list[Any]] = {}
    for batch in batches:
        for transition in batch.transitions:
            kind = type(transition)
            if kind is not Append:  # most are, and touch no row but their own
                table = TABLE_OF[kind]
                if table in asked:
                    asked[table].append(transition)
                else:
                    asked[table] = [transition]
    return asked


def _load_buckets(connection: Connection, state: State, buckets: list[str]) -> None:
    for bucket in buckets:
        connection.run(sql.OPEN_BUCKET, (bucket,))
        row = connection.one(sql.READ_BUCKET, (bucket,))
        if row is not None and row[1] != 0:
            state.buckets[bucket] = (float(row[0]), int(row[1]))


def _load_claims(connection: Connection, state: State, asks: list[Any]) -> None:
    names: set[str] = set()
    to_lock: set[str] = set()
    keys: set[str] = set()
    for ask in asks:  # in one pass: a group is mostly one batch
        names.add(ask.name)
        if type(ask) is OpenClaim:
            keys.update(ask.keys)
            to_lock.add(ask.name)
            if ask.call_name:
                to_lock.add(ask.call_name)
        elif type(ask) is BindCallId:
            to_lock.add(ask.name)
    names |= to_lock
    if connection.locks_rows:  # then there must be a row to lock
        connection.run_many(sql.OPEN_CLAIM, sorted((name,) for name in to_lock))
    shared = {wildcard(key) for key in keys} if connection.locks_rows else None
    names.difference_update(state.claims.claims)
    for row in _read_claims(connection, sorted(names)) if names else ():
        if row[2]:
            state.claims.claims[row[0]] = found = claim_of_row(row)
            keys.update(found.keys)
    if shared is not None:
        _lock_leases(connection, state, keys, shared - keys)
    elif keys:
        state.claims.leases.update(leases_by_key(connection, sorted(keys)))


def _read_claims(connection: Connection, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of claims. Where none is locked two come at once: the name of a change and that of its call id."""
    if connection.locks_rows or len(names) <= 1:
        for name in names:
            yield from connection.rows(sql.LOCK_CLAIM, (name,))
        return
    for start in range(0, len(names), 2):
        pair = names[start : start + 2]
        yield from connection.rows(sql.READ_CLAIM_PAIR, pair if len(pair) == 2 else pair * 2)


def _lock_leases(connection: Connection, state: State, keys: set[str], shared: set[str]) -> None:
    connection.run_many(sql.OPEN_LEASE, [(key,) for key in sorted(keys | shared)])
    for key in sorted(keys | shared):
        if key in shared:  # held by whoever changes everything in the resource; others may look at it side by side
            rows = connection.rows(sql.SHARE_LEASE, (key,))
        elif is_wildcard(key):
            rows = connection.rows(sql.LOCK_LEASES, (key[:-1], key[:-1]))
        else:
            rows = connection.rows(sql.LOCK_LEASE, (key,))
        state.claims.leases.update({row[0]: Lease(*row) for row in rows})


def _load_tickets(connection: Connection, state: State, asks: list[Any]) -> None:
    opened = [ask.ticket for ask in asks if type(ask) is OpenTicket]
    settled = {ask.binding for ask in asks if type(ask) is SettleTicket}
    for binding in sorted({asked.binding for asked in opened} | settled):
        for row in connection.rows(sql.SAME_TICKETS, (binding,)):
            found = ticket(row)
            state.tickets.tickets[found.id] = found
    named = {ask.ticket for ask in asks if type(ask) not in (OpenTicket, SettleTicket)}
    for name in sorted(named | {asked.id for asked in opened}):
        one = connection.one(sql.LOCK_TICKET, (name,))
        if one is not None:
            state.tickets.tickets[name] = ticket(one)


def load_scope(connection: Connection, state: State, scope: str, *, lock: bool) -> State:
    """Read one budget scope and what is set aside in it."""
    if lock:
        connection.run(sql.OPEN_ACCOUNT, (scope,))
    read = sql.READ_ACCOUNT if lock else sql.READ_ACCOUNT.replace("{for_update}", "")
    row = connection.one(read, (scope,)) or (0, 0, 0)
    account = state.accounts[scope] = Account(calls=row[0], cost_micros=row[1], ms=row[2])
    for call, budget, expires, calls, cost, ms in connection.rows(sql.READ_HELD, (scope,)):
        account.hold(
            Reserve(
                call=call,
                scope=scope,
                budget=Budget(id=budget, per=""),
                expires_us=expires,
                calls=calls,
                cost_micros=cost,
                ms=ms,
            )
        )
    return state


def save(connection: Connection, state: State, changes: PendingWrites) -> None:
    """Write back what the batches changed."""
    if changes.scopes:
        rows = [(a.calls, a.cost_micros, a.ms, s) for s in changes.scopes if (a := state.accounts[s])]
        connection.run_many(sql.WRITE_ACCOUNT, rows)
    if changes.released:
        connection.run_many(sql.DROP_HELD, list(changes.released))
    if changes.held:
        held = changes.held.values()
        rows_held = [(h.call, h.scope, h.budget.id, h.expires_us, h.calls, h.cost_micros, h.ms) for h in held]
        connection.run_many(sql.ADD_HELD, rows_held)
    if changes.buckets:
        connection.run_many(sql.WRITE_BUCKET, [(*state.buckets[name], name) for name in changes.buckets])
    if state.sealed:
        connection.run_many(sql.ADD_CHECKPOINT, [(c.n, c.body, c.signature, c.public_key) for c in state.sealed])
    if state.dropped:
        connection.run_many(sql.DROP_PAYLOAD, [(record,) for record in sorted(set(state.dropped))])
    _save_claims(connection, state.claims)
    if state.tickets.changed or state.halts.changed:
        _save_tickets(connection, state)


def _save_claims(connection: Connection, claims: ClaimTable) -> None:
    if claims.changed:
        connection.run_many(sql.WRITE_CLAIM, [_claim_row(claims.claims[name]) for name in sorted(claims.changed)])
    if claims.moved:
        moved = sorted(claims.moved - claims.changed)
        connection.run_many(sql.MOVE_CLAIM, [_moved_columns(claims.claims[name]) for name in moved])
    if claims.changed_keys:
        keys = sorted(claims.changed_keys)
        connection.run_many(sql.WRITE_LEASE, [_lease_row(claims.leases[key]) for key in keys])


def _save_tickets(connection: Connection, state: State) -> None:
    tickets, halts = state.tickets, state.halts
    if tickets.changed:
        asked = sorted([tickets.tickets[name] for name in tickets.changed], key=lambda t: (t.state == "open", t.id))
        rows_asked = [(t.id, t.state.value, t.binding, t.created_us, _encode(t).decode()) for t in asked]
        connection.run_many(sql.WRITE_TICKET, rows_asked)
    for scope in halts.changed:
        halt = halts.halts.get(scope)
        if halt is None:
            connection.run(sql.DROP_HALT, (scope,))
        else:
            connection.run(sql.WRITE_HALT, (scope, halt.by, halt.reason, halt.at_us))


def leases(connection: Connection, keys: Iterable[str]) -> tuple[Lease, ...]:
    """Keys that were ever held, with what stands for their whole resource; for that, every key in it."""
    return tuple(leases_by_key(connection, keys).values())


def leases_by_key(connection: Connection, keys: Iterable[str]) -> dict[str, Lease]:
    """The same, by key."""
    found: dict[str, Lease] = {}
    for key in keys:
        if is_wildcard(key):
            rows = connection.rows(sql.READ_LEASES, (key[:-1], key[:-1]))
        else:
            rows = connection.rows(sql.READ_LEASE, (key, wildcard(key)))
        for row in rows:
            found[row[0]] = Lease(*row)
    return found


class _ClaimRow(msgspec.Struct, array_like=True, gc=False):
    """What the columns of a claim hold, unless somebody else wrote them. A struct: a type like `tuple[str, ...]` is
    taken apart anew by each `convert`, which takes longer than to find the row."""

    name: str
    request: str
    state: ClaimState
    generation: int
    holder: str
    call: str
    tool: str
    keys: str
    tokens: str
    expires_us: int
    intent: int | None
    record: int | None
    turn: str | None
    run: str | None
    at_us: int


def claim_of_row(row: Sequence[Any]) -> Claimed:
    """A claim from its row."""
    held = msgspec.convert(row, _ClaimRow)
    return Claimed(
        held.name, held.request, held.state, held.generation, held.holder, held.call, held.tool,
        tuple(_decode(held.keys)), tuple(_decode(held.tokens)), held.expires_us, held.intent, held.record,
        held.turn, held.run, held.at_us,
    )  # fmt: skip


def ticket(row: Sequence[Any]) -> Ticket:
    """A ticket from its row."""
    return msgspec.json.decode(row[0], type=Ticket)


def tickets(connection: Connection, state: str | None, request: str | None) -> tuple[Ticket, ...]:
    """Tickets, oldest first. A request is looked for in the text of the rows: a ledger may hold many thousands."""
    text = None if request is None else f"%{request}%"
    found = map(ticket, connection.rows(sql.TICKETS, (state, state, text, text)))
    return tuple(item for item in found if request is None or item.request == request)


def _claim_row(claim: Claimed) -> tuple[Any, ...]:
    return (
        claim.request, claim.state._value_, claim.generation, claim.holder, claim.call, claim.tool,
        _encode(claim.keys).decode(), _encode(claim.tokens).decode(), claim.expires_us, claim.intent, claim.record,
        claim.turn, claim.run, claim.at_us, claim.name,
    )  # fmt: skip


def _moved_columns(claim: Claimed) -> tuple[Any, ...]:
    return claim.state._value_, claim.expires_us, claim.intent, claim.record, claim.name


def _lease_row(lease: Lease) -> tuple[Any, ...]:
    return (
        lease.holder, lease.token, lease.changed, lease.expires_us, lease.changed_us, lease.changed_run,
        lease.others_us, lease.others_run, lease.key,
    )  # fmt: skip


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
