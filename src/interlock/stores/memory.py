"""The store that forgets when the process ends: for tests, trials and the measure of everything else."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from interlock.errors import StoreError
from interlock.ports import LedgerIdentity, Query, Spent, genesis, ledger_name
from interlock.records import Checkpoint, LaneHead, Stored
from interlock.state import ChangeFilter, Claimed, ClaimState, Halted, Lease, Ticket, TicketState, is_wildcard, wildcard
from interlock.stores.claims import matches_filter
from interlock.stores.state import Chain, State, receipt
from interlock.transitions import Append, Batch, Committed, Receipt, RenewClaim, Settle

SCHEMA = 0
_decode = msgspec.json.Decoder(list[Any]).decode
_NO_RECORDS = Committed()


class MemoryStore:
    """One State, one lane, a list of records."""

    def __init__(self) -> None:
        key = os.urandom(32)
        self._identity = LedgerIdentity(ledger=ledger_name(key, 1), digest_key=key, schema=SCHEMA)
        self._state = State()
        self._chain = Chain(lane=0, id=0, count=0, hash=genesis(self._identity.ledger, 0))
        # What was hashed of each record: half of what its row would take, and every call leaves one.
        self._texts: list[bytes] = []
        self._by_turn: dict[str, list[int]] = {}
        self._payloads: dict[int, bytes] = {}
        self._renewals: deque[tuple[int, RenewClaim]] = deque()

    @property
    def identity(self) -> LedgerIdentity:
        return self._identity

    @property
    def missing(self) -> tuple[LaneHead, ...]:
        return ()

    async def commit(self, batch: Batch) -> Receipt:
        if self._renewals:
            self._catch_up()
        state = self._state
        added = state.land(batch)
        if not added and not state.touched:
            return _NO_RECORDS
        if not isinstance(added, list):
            return added
        ids = (self._append(added[0]),) if len(added) == 1 else tuple([self._append(append) for append in added])
        if not state.touched:
            return Committed(ids)
        for record in state.dropped:
            self._payloads.pop(record, None)
        state.dropped.clear()
        wanting, granted = state.drain()
        if any(wanting) and ids:
            state.number(wanting, ids[0])
        state.forget_changes()
        return receipt(ids, granted)

    def _append(self, append: Append) -> int:
        number = self._chain.id + 1
        try:
            text = self._chain.extend_text(append.record, number)
        except (TypeError, ValueError) as error:
            raise StoreError(f"the batch could not be written ({type(error).__name__})") from None
        self._texts.append(text)
        if append.record.turn is not None:
            self._by_turn.setdefault(append.record.turn, []).append(number)
        if append.payload is not None:
            self._payloads[number] = append.payload
        return number

    async def records(self, query: Query) -> AsyncIterator[Stored]:
        # Ids are places in the list: a reader that knows the beginning does not pay for it again.
        source = range(1, len(self._texts) + 1) if query.turn is None else self._by_turn.get(query.turn, [])
        last = len(source) if query.until is None else bisect_right(source, query.until)
        numbers = source[bisect_right(source, query.after, hi=last) : last]
        chosen = [record for record in map(self._read_stored, numbers) if _matches(record, query)]
        for record in chosen if query.newest is None else chosen[::-1][: query.newest]:
            yield record

    def _read_stored(self, number: int) -> Stored:
        """A record as it is read; its hash stands at the head of the next one."""
        _previous, columns, body = self._texts[number - 1].split(b"\n", 2)
        following = self._texts[number : number + 1]
        text = following[0][: len(self._chain.hash)].decode() if following else self._chain.hash
        place, lane, *rest = _decode(columns)
        row: tuple[Any, ...] = (place, lane, text, *rest, body.decode())
        return Stored(*row)

    async def payload(self, record: int) -> bytes | None:
        return self._payloads.get(record)

    async def payload_ids(self) -> AsyncIterator[int]:
        for record in sorted(self._payloads):
            yield record

    async def wipe(self) -> bool:
        return True

    async def heads(self) -> tuple[LaneHead, ...]:
        chain = self._chain
        return (LaneHead(lane=chain.lane, id=chain.id, count=chain.count, hash=chain.hash),)

    async def checkpoints(self) -> tuple[Checkpoint, ...]:
        return tuple(self._state.sealed)

    async def spent(self, scope: str, now_us: int) -> Spent:
        return self._state.spent(scope, now_us)

    async def reservations(self, call: str) -> tuple[Settle, ...]:
        held = [account.held[call] for account in self._state.accounts.values() if call in account.held]
        return tuple(Settle(item.call, item.scope, item.calls, item.cost_micros, item.ms) for item in held)

    async def all_spent(self) -> dict[str, Spent]:
        accounts = sorted(self._state.accounts.items())
        return {scope: Spent(account.calls, account.cost_micros, account.ms) for scope, account in accounts}

    async def buckets(self) -> dict[str, float]:
        return {name: tokens for name, (tokens, _at_us) in sorted(self._state.buckets.items())}

    async def claim(self, name: str) -> Claimed | None:
        self._catch_up()
        return self._state.claims.claims.get(name)

    async def claims(self, which: ChangeFilter) -> tuple[Claimed, ...]:
        found = [claim for claim in self._state.claims.claims.values() if matches_filter(claim, which)]
        return tuple(sorted(found, key=lambda claim: claim.intent or 0))

    async def unsettled_claims(self, now_us: int) -> tuple[Claimed, ...]:
        self._catch_up()
        return tuple(
            row
            for row in self._state.claims.claims.values()
            if row.state is ClaimState.UNKNOWN or (row.state is ClaimState.OPEN and row.expires_us <= now_us)
        )

    async def now_us(self, here_us: int) -> int:
        return here_us

    def renew(self, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
        # From the heart's thread: it only looks, and leaves the change to the thread that makes all others. A lock
        # would be paid for by every commit.
        rows = [(claim, self._state.claims.claims.get(claim.name)) for claim in claims]
        ours = [claim for claim, row in rows if row is not None and row.is_held_by(claim.holder)]
        self._renewals.extend((here_us, claim) for claim in ours)
        return tuple(claim.name for claim in claims if claim not in ours)

    def _catch_up(self) -> None:
        """Renew what the heart asked for since; a claim that was settled meanwhile refuses."""
        while self._renewals:
            here_us, claim = self._renewals.popleft()
            self._state.land(Batch(here_us, (claim,)))
        self._state.drain()
        self._state.forget_changes()

    async def leases(self, keys: tuple[str, ...]) -> tuple[Lease, ...]:
        self._catch_up()
        held = self._state.claims.leases
        named = dict.fromkeys((*keys, *map(wildcard, keys)))
        whole = tuple(key[:-1] for key in keys if is_wildcard(key))
        if whole:  # only then is it worth a walk through all that were ever held
            named |= dict.fromkeys(key for key in held if key.startswith(whole))
        return tuple(held[key] for key in named if key in held)

    async def ticket(self, ticket: str) -> Ticket | None:
        return self._state.tickets.tickets.get(ticket)

    async def tickets(self, state: TicketState | None = None, *, request: str | None = None) -> tuple[Ticket, ...]:
        found = (item for item in self._state.tickets.tickets.values() if state is None or item.state is state)
        return tuple(ticket for ticket in found if request is None or ticket.request == request)

    async def halts(self) -> tuple[Halted, ...]:
        return tuple(halt for _scope, halt in sorted(self._state.halts.halts.items()))

    async def close(self) -> None:
        """Nothing to let go."""


def _matches(record: Stored, query: Query) -> bool:
    return (
        (query.lane is None or record.lane == query.lane)
        and (query.call is None or record.call == query.call)
        and (query.actor is None or record.actor == query.actor)
        and (query.tool is None or record.tool == query.tool)
        and (query.status is None or record.status == query.status)
        and (query.since_us is None or record.at_us >= query.since_us)
        and (query.before_us is None or record.at_us < query.before_us)
    )
