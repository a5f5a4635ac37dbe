"""Every column of every table, edited past the library: `verify` says so, except for a short list with its reasons."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from interlock import Runtime, Status, Tool, tool
from interlock.audit import anchor, load_or_make_key, verify
from interlock.config import Settings
from interlock.errors import InDoubt, InterlockError
from interlock.state import LOCK, ClaimState, Ticket, TicketState
from interlock.stores import open_store
from interlock.testing import ManualClock
from interlock.tools import Limits
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, retitle, running

UNTOLD = {
    ("buckets", "*"): "rates leave no record",
    ("reservations", "*"): "what is set aside leaves no record until it is spent",
    ("records", "payload"): "what lies beside a record may be deleted, and is not read where the record names none",
    ("claims", "expires_us"): "signs of life leave no record",
    ("leases", "expires_us"): "signs of life leave no record",
    ("tickets", "binding"): "the ticket's own text has it, too, and decides",
    ("tickets", "created_us"): "the ticket's own text has it, too, and decides",
}
RAISED = {
    ("leases", "token"): "locks raise it without a record",
}
"""Told if they were set back, and not if they were raised."""
POLICY = OPEN.replace("[review]\n", '[review]\nexpires = "60s"\nescalate = "20s"\n') + (
    '[[rule]]\nid = "both"\ntools = ["pay"]\ndecision = "review"\nquorum = 2\nwhen = "args.amount > 1000"\n'
    '[[budget]]\nid = "day"\nper = "actor"\nwindow = "1d"\ncalls = 100\ncost_usd = 5.0\n'
    '[[rate]]\nid = "often"\ntools = ["pay"]\nrate = "100/minute"\nburst = 50\n'
)
HOUR_US = 3_600_000_000


@tool(effect="send", limits=Limits(cost_usd=0.00002))
async def pay(amount: int) -> str:
    """Pay; of 13 nobody hears whether it arrived."""
    if amount == 13:
        raise InDoubt("the answer was lost")
    return "paid"


@tool(effect="read", limits=Limits(cost_usd=0.00001))
async def look(n: int) -> int:
    """Look at something."""
    return n


def secretly(shelf: Shelf) -> Tool:
    """A write whose keys the ledger does not show."""

    @tool(effect="write", key="s-{id}", resource=shelf, redact={"id", "title"})
    async def secret(id: str, title: str) -> str:
        shelf.items[f"s-{id}"] = title
        return "put"

    return secret


async def history(runtime: Runtime, clock: ManualClock, key: Path) -> None:
    """Reads, writes, sends, undo, tickets of every end, settlements, halts, locks, budgets, rates, a checkpoint."""
    operations = runtime.operations

    async def call(amount: int, status: Status) -> str:
        outcome = await runtime.call("pay", {"amount": amount}, actor="ann", turn=f"t{amount}", call_id=f"c{amount}")
        assert outcome.status is status, outcome
        return outcome.ticket or ""

    await call(1001, Status.PARKED)
    for seconds in (30, 60):  # escalated, and expired; the clock of a server goes its own way
        clock.advance(seconds)
        await operations.sweep()
    for n in range(2):
        for name in ("title", "secret"):
            made = await runtime.call(
                name, {"id": "a", "title": f"t{n}"}, actor="ann", run=f"r{n}", call_id=f"{name}{n}"
            )
            assert made.ok
    await operations.undo(run="r1")
    assert (await runtime.call("title", {"id": "a", "title": "t1"}, actor="ann", run="r1", call_id="again")).ok
    async with runtime.lock("shelf/b") as locks:
        assert (await runtime.call("title", {"id": "a", "title": "u"}, actor="ann", call_id="l", locks=locks)).ok
    await call(5, Status.OK)
    assert (await runtime.call("look", {"n": 1}, actor="cal")).ok  # who makes no change
    await call(13, Status.UNKNOWN)
    (asked,) = await operations.recover()
    await operations.decide(expect(asked.ticket), approve=True, by="user:kim", reason="seen")
    assert (await runtime.call("pay", {"amount": 13}, actor="bob", call_id="doubt")).status is Status.UNKNOWN
    spent, approved, denied, half = [await call(2000 + n, Status.PARKED) for n in range(4)]
    for ticket in (spent, approved, denied, half):
        await operations.decide(ticket, approve=True, by="user:kim", reason="fine")
    for ticket in (spent, approved, denied):
        await operations.decide(ticket, approve=ticket != denied, by="user:lee", reason="so")
    assert (await operations.resume(spent)).ok
    await operations.halt("tool:pay", reason="stop")
    await operations.halt("run:x", reason="stop")
    await operations.unhalt("run:x")
    await anchor(runtime.store, load_or_make_key(key), clock)


class Database:
    """A ledger's database, past the library."""

    def __init__(self, url: str) -> None:
        self.is_file = url.startswith("sqlite")
        self._url = url.removeprefix("sqlite:///")

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self.is_file:
            database = sqlite3.connect(self._url)
            with database:
                database.execute("PRAGMA synchronous = OFF")
                rows = database.execute(statement, parameters).fetchall()
            database.close()
            return rows
        with psycopg.connect(self._url, autocommit=True) as server:
            cursor = server.execute(statement.replace("?", "%s").encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def columns(self) -> dict[str, dict[str, str]]:
        """The columns of each table, with their types."""
        if self.is_file:
            tables = self.run("SELECT name FROM sqlite_master WHERE type = 'table'")
            found = [(t, c, kind) for (t,) in tables for _, c, kind, *_ in self.run(f"PRAGMA table_info({t})")]
        else:
            select = "SELECT table_name, column_name, data_type FROM information_schema.columns"
            found = [(t, c, k) for t, c, k in self.run(f"{select} WHERE table_schema = 'public'")]
        columns: dict[str, dict[str, str]] = {}
        for table, column, kind in found:
            columns.setdefault(table, {})[column] = kind.upper()
        return columns

    def change(self, table: str, row: dict[str, Any], column: str, value: Any) -> bool:
        """Put another value into one cell; False if the database itself refuses it."""
        where = " AND ".join(f"{name} IS NOT DISTINCT FROM ?" for name in row)
        if self.is_file:
            where = " AND ".join(f"{name} IS ?" for name in row)
        try:
            self.run(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row.values()))
        except (sqlite3.IntegrityError, psycopg.Error):
            return False
        return True


def other_values(column: str, kind: str, value: Any) -> Iterator[Any]:
    """What could stand in a cell instead."""
    if value is None:
        yield 7 if "INT" in kind else "x"
    elif isinstance(value, bytes):
        yield bytes([*value[:-1], value[-1] ^ 1])
    elif isinstance(value, int | float):
        step = HOUR_US if column.endswith("_us") else 1
        yield from (value + step, value - step)
    elif value.startswith("["):
        yield '["shelf/x"]' if column == "keys" else "[7]"
    elif value in (*ClaimState, *TicketState):
        yield from {*ClaimState, *TicketState} - {value}
    elif column == "body" and value.startswith('{"id"'):
        yield from (msgspec.json.encode(ticket).decode() for ticket in other_tickets(value))
    else:
        yield from (f"{value}0", "")


def other_tickets(body: str) -> Iterator[Ticket]:
    ticket = msgspec.json.decode(body, type=Ticket)
    for field in msgspec.structs.fields(Ticket):
        value: Any = getattr(ticket, field.name)
        values: list[Any]
        if field.name == "state":
            values = [state for state in TicketState if state is not value]
        elif field.name in ("kind", "terms"):
            kinds = {"kind": [kind for kind in type(value) if kind is not value] if field.name == "kind" else []}
            values = kinds["kind"] or [msgspec.structs.replace(value, self_approval=True)]
        elif field.name == "approvals":
            first = (
                [(*value[:-1], msgspec.structs.replace(value[-1], **{name: new})) for name, new in _EDITS]
                if value
                else []
            )
            values = [*first, value[:-1]] if value else []
        elif isinstance(value, bool):
            values = [not value]
        elif field.name == "parties":
            values = [(*value, "user:x"), value[:-1]]
        else:
            values = list(other_values(field.name, "INT" if field.name in ("record", "intent") else "", value))
        yield from (msgspec.structs.replace(ticket, **{field.name: new}) for new in values if new != value)


_EDITS: tuple[tuple[str, Any], ...] = (
    ("by", "user:x"),
    ("voice", "user:x"),
    ("at_us", 1),
    ("record", 1),
    ("record", None),
)


async def problems(url: str) -> tuple[str, ...]:
    try:
        store = open_store(url)
    except InterlockError as error:
        return (str(error),)
    try:
        return (await verify(store)).problems
    except InterlockError as error:
        return (str(error),)
    finally:
        await store.close()


def is_untold(table: str, column: str, value: Any, new: Any) -> bool:
    if (table, column) in RAISED:
        return bool(new > value)
    if (table, column) == ("records", "payload"):
        return value is None
    return (table, column) in UNTOLD or (table, "*") in UNTOLD


async def silent_edits(url: str, rows_each: int | None) -> tuple[list[str], set[str]]:
    """The edits that nobody noticed, and the tables that were edited."""
    database, silent, edited = Database(url), [], set[str]()
    for table, columns in database.columns().items():
        rows = [
            dict(zip(columns, row, strict=True)) for row in database.run(f"SELECT {', '.join(columns)} FROM {table}")
        ]
        if table == "claims":  # locks leave no record; the rows of call ids are all alike
            ids = [row for row in rows if row["tool"] == LOCK and not row["name"].startswith(LOCK)]
            rows = [row for row in rows if row["tool"] != LOCK]
            rows = [*ids[:1], *rows[:rows_each]]
        if table == "leases":  # one that was never granted says nothing
            rows = [row for row in rows if row["token"]]
        # tests/test_audit.py edits all records
        for row in rows[: 3 if table == "records" else None if table == "claims" else rows_each]:
            for column, kind in columns.items():
                for new in other_values(column, kind, row[column]):
                    told = new != row[column] and not is_untold(table, column, row[column], new)
                    if not told or not database.change(table, row, column, new):
                        continue
                    edited.add(table)
                    if not await problems(url):
                        silent.append(f"{table}.{column}: {row[column]!r} -> {new!r}")
                    assert database.change(table, {**row, column: new}, column, row[column])
    return silent, edited


async def test_whatever_cell_is_edited_is_found(durable_url: str, tmp_path: Path) -> None:
    shelf, clock = Shelf(), ManualClock(time.time())
    settings = Settings(heads="none", payload_key="none")
    tools = (pay, look, retitle(shelf, []), secretly(shelf))
    async with running(*tools, policy=POLICY, url=durable_url, settings=settings, clock=clock) as runtime:
        await history(runtime, clock, tmp_path / "audit.key")
    assert await problems(durable_url) == ()
    silent, edited = await silent_edits(durable_url, None if durable_url.startswith("sqlite") else 1)
    assert not silent, "\n".join(silent)
    tables = set(Database(durable_url).columns())
    assert tables - edited == {"buckets", "reservations"}
    assert await problems(durable_url) == (), "and all is as it was"


def test_the_page_names_the_same_cells() -> None:
    page = (Path(__file__).parent.parent / "docs" / "audit.md").read_text()
    named = {
        (table, column)
        for table, columns in re.findall(r"^\| `(\w+)` \| (`[^|]*`|all) \|", page, re.MULTILINE)
        for column in (["*"] if columns == "all" else re.findall(r"`(\w+)`", columns))
    }
    assert named == {*UNTOLD, *RAISED}


@pytest.mark.parametrize("table", ["claims", "tickets"])
async def test_a_row_beside_its_own_is_found(durable_url: str, tmp_path: Path, table: str) -> None:
    clock, settings = ManualClock(time.time()), Settings(heads="none", payload_key="none")
    async with running(pay, policy=POLICY, url=durable_url, settings=settings, clock=clock) as runtime:
        await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1")
        await runtime.call("pay", {"amount": 2000}, actor="ann", call_id="2")
    database = Database(durable_url)
    columns = [name for name in database.columns()[table] if name not in ("name", "id", "binding")]
    own = {"claims": "name", "tickets": "id, binding"}[table]
    other = {"claims": "name || '#x'", "tickets": "id || 'x', binding || 'x'"}[table]
    both = ", ".join(columns)
    database.run(f"INSERT INTO {table} ({own}, {both}) SELECT {other}, {both} FROM {table}")
    assert await problems(durable_url) != ()
