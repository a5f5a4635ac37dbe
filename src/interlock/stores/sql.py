"""The durable store: loads what a group of batches touches, applies them in memory, writes it back, commits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from interlock.errors import StoreBusy, StoreError
from interlock.ports import NOWHERE, Faults, LedgerIdentity, Query, Spent, rolled_back_message
from interlock.records import Checkpoint, LaneHead, Stored
from interlock.state import ChangeFilter, Claimed, Halted, Lease, Ticket, TicketState
from interlock.stores import rows
from interlock.stores import statements as sql
from interlock.stores.claims import LeaseGrant, matches_filter
from interlock.stores.dialect import Connection, Dialect
from interlock.stores.group import Answer, GroupWriter
from interlock.stores.lanes import Lanes
from interlock.stores.open_claims import OpenClaims
from interlock.stores.opening import migrate, missing_heads
from interlock.stores.payload_keys import PayloadKeys
from interlock.stores.renewal import Renewals
from interlock.stores.row_reading import PAGE, UNREADABLE, Page, accounts, explain_damage, first_page, read_typed
from interlock.stores.state import PendingWrites, State, Table, Wanting, receipt
from interlock.stores.stored_payloads import Payloads
from interlock.stores.witness import Witness
from interlock.transitions import (
    Append,
    Batch,
    Committed,
    Receipt,
    Refused,
    RenewClaim,
    Settle,
)

T = TypeVar("T")
_TRIES = 5
_MARGIN_S = 5.0
_TIMELESS: frozenset[Table] = frozenset({"records", "accounts", "buckets"})
"""What claims, tickets and halts have nothing to do with; budgets and rates go by the caller's time."""


class SqlStore:
    """SQLite or PostgreSQL behind the same statements."""

    def __init__(
        self,
        dialect: Dialect,
        faults: Faults | None = None,
        witness: Witness | None = None,
        payload_key: Path | None = None,
    ) -> None:
        self._dialect = dialect
        self._at = NOWHERE if faults is None else faults.at
        connection = dialect.connect()
        try:
            self._identity = migrate(connection, dialect)
            self._witness = Witness(None) if witness is None else witness
            missing = missing_heads(connection, self._witness.heads(self._identity.ledger))
        except dialect.errors as error:
            connection.close()
            raise dialect.explain(error) from None
        except StoreError:
            connection.close()
            raise
        except UNREADABLE as error:
            connection.close()
            raise explain_damage(error) from None
        # A key is made only where one machine has the store: others would each make their own.
        keys = PayloadKeys(payload_key, self._identity.ledger, may_make=dialect.lanes == 1)
        self._payloads = Payloads(keys)
        self._write = connection
        self._committing = False
        self._lingers = False
        """Whether the database still keeps a copy of what was deleted: every commit tries to be rid of it."""
        self._lanes = Lanes(dialect, self._identity.ledger, self._witness, missing, self._payloads.lock)
        self._open = OpenClaims(dialect)
        self._read: Connection | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        """Held by whoever uses the writer's connection."""
        self._closed = False
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="interlock-reader")
        # Longer than the database itself waits for others, so that its own word about it comes first.
        self._patience_s = dialect.busy_s + _MARGIN_S
        self._writer = GroupWriter(self._land_alone, self._patience_s, faults)
        self._renewals = Renewals(dialect)

    @property
    def identity(self) -> LedgerIdentity:
        return self._identity

    @property
    def missing(self) -> tuple[LaneHead, ...]:
        return self._lanes.missing

    def commit(self, batch: Batch) -> Coroutine[Any, Any, Receipt]:
        return self._writer.commit(batch)

    async def records(self, query: Query) -> AsyncIterator[Stored]:
        page: Page | None = first_page(query, reads_at_once=self._dialect.reads_at_once)
        ahead: asyncio.Task[list[Any]] | None = None
        try:
            while page is not None:
                self._at("store.page")
                found = await (ahead or self._on_reader(page.read, few=page.few))
                page = page.after(found)
                # The next part is read while this one is looked at.
                ahead = None if page is None else asyncio.create_task(self._on_reader(page.read))
                for row in found:
                    yield Stored(*row)
        finally:
            if ahead is not None:
                ahead.cancel()

    async def payload(self, record: int) -> bytes | None:
        return await self._on_reader(lambda c: self._payloads.read(c, record), few=True)

    async def payload_ids(self) -> AsyncIterator[int]:
        last, size = 0, PAGE
        while size == PAGE:
            ask = partial(Connection.rows, statement=sql.PAYLOAD_IDS, parameters=(last, PAGE))
            found = await self._on_reader(ask)
            for row in found:
                yield int(row[0])
            size, last = len(found), found[-1][0] if found else last

    async def wipe(self) -> bool:
        return await self._on_reader(partial(self._dialect.wipe, patient=True))

    async def heads(self) -> tuple[LaneHead, ...]:
        return await self._on_reader(lambda c: tuple(read_typed(LaneHead, row) for row in c.rows(sql.LANES)))

    async def checkpoints(self) -> tuple[Checkpoint, ...]:
        return await self._on_reader(lambda c: tuple(read_typed(Checkpoint, row) for row in c.rows(sql.CHECKPOINTS)))

    async def spent(self, scope: str, now_us: int) -> Spent:
        return await self._on_reader(lambda c: rows.load_scope(c, State(), scope, lock=False).spent(scope, now_us))

    async def reservations(self, call: str) -> tuple[Settle, ...]:
        return tuple(Settle(*row) for row in await self._on_reader(lambda c: c.rows(sql.HELD_BY, (call,))))

    async def all_spent(self) -> dict[str, Spent]:
        return await self._on_reader(accounts)

    async def buckets(self) -> dict[str, float]:
        rows = await self._on_reader(lambda c: c.rows(sql.BUCKETS))
        return {name: float(tokens) for name, tokens in rows}

    async def claim(self, name: str) -> Claimed | None:
        found = await self._on_reader(lambda c: list(map(rows.claim_of_row, c.rows(sql.READ_CLAIM, (name,)))), few=True)
        return found[0] if found else None

    async def claims(self, which: ChangeFilter) -> tuple[Claimed, ...]:
        wanted_by = (which.turn, which.turn, which.run, which.run, which.since_us, which.since_us)
        parameters = (*wanted_by, which.record, which.record, which.record)
        found = await self._on_reader(lambda c: list(map(rows.claim_of_row, c.rows(sql.CLAIMS, parameters))))
        return tuple(claim for claim in found if matches_filter(claim, which))

    async def unsettled_claims(self, now_us: int) -> tuple[Claimed, ...]:
        return await self._on_reader(lambda c: tuple(map(rows.claim_of_row, c.rows(sql.UNSETTLED, (now_us,)))))

    async def now_us(self, here_us: int) -> int:
        found = await self._on_reader(self._dialect.now_us, few=True)
        return here_us if found is None else found

    def renew(self, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
        return self._renewals.renew(claims, here_us)

    async def leases(self, keys: tuple[str, ...]) -> tuple[Lease, ...]:
        return await self._on_reader(lambda c: rows.leases(c, keys), few=True)

    async def ticket(self, ticket: str) -> Ticket | None:
        found = await self._on_reader(lambda c: list(map(rows.ticket, c.rows(sql.READ_TICKET, (ticket,)))), few=True)
        return found[0] if found else None

    async def tickets(self, state: TicketState | None = None, *, request: str | None = None) -> tuple[Ticket, ...]:
        wanted = None if state is None else state.value
        return await self._on_reader(partial(rows.tickets, state=wanted, request=request))

    async def halts(self) -> tuple[Halted, ...]:
        return tuple(Halted(*row) for row in await self._on_reader(lambda c: c.rows(sql.HALTS), few=True))

    async def close(self) -> None:
        self._at("store.close")
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closed = True
        if not self._writer.close():
            # It hangs in the database: the line is cut, and what was in doubt stays in doubt.
            self._dialect.cut(self._write)
        else:
            self._writing.acquire(timeout=self._dialect.busy_s)  # kept: nobody looks there any more
            if self._lingers:
                self._dialect.wipe(self._write, patient=True)
        if self._read is not None and not self._reading.acquire(timeout=self._dialect.busy_s):
            self._dialect.cut(self._read)
        self._renewals.close()
        self._reads.shutdown()
        for connection in (self._write, self._read):
            if connection is not None:
                connection.close()
        self._dialect.close()
        self._witness.close()

    async def _on_reader(self, ask: Callable[[Connection], T], *, few: bool = False) -> T:
        """Ask on the reader's connection: in its thread, or at once where a few rows are so quick."""
        self._at("store.read")
        if few and self._dialect.reads_at_once and not self._closed:
            return self._ask_at_once(ask)
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.get_running_loop().run_in_executor(self._reads, self._ask_locked, ask)
        except TimeoutError:
            raise StoreBusy(f"the store gave no answer within {self._patience_s:g} s; try again later") from None
        except RuntimeError:
            raise StoreError("the store is closed") from None

    def _ask_at_once(self, ask: Callable[[Connection], T]) -> T:
        """On the writer's connection while that rests: it knows the pages that it has just written, and another one has
        to read them again after every commit."""
        if not self._writing.acquire(blocking=False):
            return self._ask_locked(ask)
        try:
            return self._ask_on(self._write, ask)
        finally:
            self._writing.release()

    def _ask_locked(self, ask: Callable[[Connection], T]) -> T:
        with self._reading:
            return self._ask(ask)

    def _ask(self, ask: Callable[[Connection], T]) -> T:
        if self._read is None:
            self._read = self._connect_reader()
        try:
            return self._ask_on(self._read, ask)
        except StoreError:
            if not _is_broken(self._read):
                raise
        self._read = self._connect_reader()
        return self._ask_on(self._read, ask)

    def _connect_reader(self) -> Connection:
        try:
            return self._dialect.connect()
        except self._dialect.errors as error:
            raise self._dialect.explain(error) from None

    def _ask_on(self, connection: Connection, ask: Callable[[Connection], T]) -> T:
        try:
            return ask(connection)
        except self._dialect.errors as error:
            raise self._dialect.explain(error) from None
        except UnicodeEncodeError:
            raise  # what was asked for, not what was found
        except UNREADABLE as error:
            raise explain_damage(error) from None

    def _land_alone(self, batches: Sequence[Batch]) -> list[Answer]:
        with self._writing:
            return self._land(batches)

    def _land(self, batches: Sequence[Batch]) -> list[Answer]:
        """One transaction for all; if it fails before its commit, one for each, so that only the guilty one fails."""
        for attempt in range(_TRIES):
            try:
                return list(self._transact(batches))
            except self._dialect.errors as error:
                committing, broken = self._committing, self._roll_back()
                if self._dialect.is_conflict(error) and attempt + 1 < _TRIES:
                    continue
                if committing and broken:
                    return [
                        StoreError("the connection broke during the commit: it is not known whether it landed")
                    ] * len(batches)
                if self._lanes.missing and broken:
                    return [StoreError(rolled_back_message(self._lanes.missing))] * len(batches)
                if broken and attempt == 0:
                    continue  # nothing was sent to be committed, so the group may be tried on a new connection
                known = self._dialect.explain(error)
                if type(known) is not StoreError:
                    return [known] * len(batches)
                failure = known
            except Exception as error:  # noqa: BLE001 - the writer thread must answer whatever happens
                self._roll_back()
                failure = (
                    error
                    if isinstance(error, StoreError)
                    else StoreError(f"the batch could not be written ({type(error).__name__})")
                )
            if len(batches) == 1:
                return [failure]
            return [answer for batch in batches for answer in self._land([batch])]
        return [StoreError("other writers kept winning; try again")] * len(batches)

    def _roll_back(self) -> bool:
        """Leave the transaction; whether the connection was broken (and has been made anew, if that is possible)."""
        self._open.forget()
        try:
            self._write.run("ROLLBACK")
        except self._dialect.errors:
            pass  # there was none, or the connection is gone
        if not _is_broken(self._write):
            return False
        try:
            self._write = self._dialect.connect()
            self._lanes.on_reconnect(self._write)
        except StoreError:
            pass  # still away; the next batch will say so
        except self._dialect.errors:
            pass  # gone again
        return True

    def _transact(self, batches: Sequence[Batch]) -> list[Receipt]:
        connection = self._write
        self._committing, self._payloads.agreeing = False, False
        self._lanes.begin()
        self._dialect.begin(connection)
        self._at("store.begun")
        changes = PendingWrites()
        asked = rows.by_table(batches)
        state = State(changes)
        if "claims" in asked:
            self._open.recall(connection, state.claims, asked["claims"])
        rows.load(connection, state, asked)
        # After the rows are locked: whoever had to wait for them is judged by the time at which it got them.
        clock_us = None if asked.keys() <= _TIMELESS else self._dialect.now_us(connection)
        landed: list[Refused | int] = []  # why a batch was refused, or how many records it adds
        appends: list[Append] = []
        numbered: list[tuple[Wanting, int]] = []  # claims, and which append is their record
        granted: dict[int, tuple[LeaseGrant, ...]] = {}
        for batch in batches:
            transitions = batch.transitions
            if len(transitions) == 1 and type(transitions[0]) is Append:  # most batches: nothing to check or change
                appends.append(transitions[0])
                landed.append(1)
                continue
            added = state.land(batch, clock_us)
            if isinstance(added, Refused):
                landed.append(added)
                continue
            if state.touched:
                wanting, granted[len(landed)] = state.drain()
                if added and any(wanting):
                    numbered.append((wanting, len(appends)))
            appends += added
            landed.append(len(added))
        numbers = self._lanes.append(connection, appends) if appends else []
        for wanting, first in numbered:
            state.number(wanting, numbers[first])
        rows.save(connection, state, changes)
        ids = iter(numbers)
        self._at("store.commit")
        self._dialect.check_place()
        self._committing = True
        connection.run("COMMIT")
        self._at("store.committed")
        self._payloads.on_commit()
        if state.dropped or self._lingers:
            self._lingers = not self._dialect.wipe(connection, patient=bool(state.dropped))
        self._lanes.on_commit()
        self._open.on_commit(state.claims)
        return _receipts(landed, ids, granted)


def _receipts(
    landed: list[Refused | int], ids: Iterator[int], granted: dict[int, tuple[LeaseGrant, ...]]
) -> list[Receipt]:
    """What each batch of a group hears: the ids of its records and the keys it was granted, or its refusal."""
    if not granted and landed.count(1) == len(landed):  # most groups: a record each, and nothing else
        return [Committed((number,)) for number in ids]
    receipts: list[Receipt] = []
    for place, item in enumerate(landed):
        if isinstance(item, Refused):
            receipts.append(item)
        elif item == 1 and not granted.get(place):  # most batches: one record and nothing else
            receipts.append(Committed((next(ids),)))
        else:
            receipts.append(receipt(tuple(islice(ids, item)), granted.get(place, ())))
    return receipts


def _is_broken(connection: Connection | None) -> bool:
    return connection is not None and bool(getattr(connection.raw, "closed", False))
