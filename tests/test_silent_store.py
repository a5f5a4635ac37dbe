"""A store that takes a batch and does not answer: a call ends by its deadline, and nothing is made twice afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from interlock import Runtime, Status, Tool, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.policy import parse_policy
from interlock.ports import Query
from tests.test_changes import OPEN, Shelf, error

# What the store itself waits for others: longer than any test, so that it is the call that ends the wait.
PATIENT = Settings(busy_s=600.0)
CALL: dict[str, Any] = {"actor": "ann", "call_id": "order-1", "mode": "apply"}
Hang = Callable[[], AbstractContextManager[None]]

pytestmark = pytest.mark.timeout(120)


@contextmanager
def locked_file(url: str) -> Iterator[None]:
    """Another process holds the file."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def stopped_server(url: str) -> Iterator[None]:
    """The server's processes for this database are stopped, as by a hypervisor."""
    with psycopg.connect(url, autocommit=True) as own:
        others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        pids = [row[0] for row in own.execute(others).fetchall()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


@pytest.fixture
def hang(durable_url: str) -> Hang:
    stops = locked_file if durable_url.startswith("sqlite") else stopped_server
    return lambda: stops(durable_url)


def opened(url: str, *tools: Tool) -> Runtime:
    return Runtime.open(url, policy=parse_policy(OPEN), tools=tools, settings=PATIENT)


def paying(made: list[str], *, within_s: float, locks: Callable[..., list[str]] | None = None) -> Tool:
    """A tool that pays at once, under a deadline."""

    @tool(effect="send", timeout_s=within_s, deadline_s=within_s, locks=locks)
    async def pay(order: str) -> str:
        made.append(order)
        return "paid"

    return pay


async def landed(runtime: Runtime) -> list[tuple[str, str]]:
    return [(record.kind, record.status) async for record in runtime.store.records(Query())]


async def test_a_call_ends_by_its_deadline_before_its_intent_and_can_be_made_afterwards(
    durable_url: str, hang: Hang
) -> None:
    made: list[str] = []
    async with opened(durable_url, paying(made, within_s=1)) as runtime:
        with hang():
            with ends_within(12):  # its deadline of a second, and two for the record; the store hangs on
                outcome = await runtime.call("pay", {"order": "1"}, **CALL)
            assert (outcome.status, made) == (Status.FAILED, [])
            assert error(outcome) in ("store_unavailable", "timeout")
        again = await runtime.call("pay", {"order": "1"}, **CALL)
        assert (again.status, again.value, made) == (Status.OK, "paid", ["1"])
        assert await runtime.operations.recover() == ()


async def test_past_its_intent_it_is_unknown_and_the_record_lands_when_the_store_is_back(
    durable_url: str, hang: Hang
) -> None:
    made: list[str] = []

    async with opened(durable_url, _pay_into(made, hang, released := asyncio.Event())) as runtime:
        with ends_within(12):  # its deadline of a second, and two for the record
            outcome = await runtime.call("pay", {"order": "1"}, **CALL)
        assert (outcome.status, made) == (Status.UNKNOWN, ["1"])
        released.set()
        again = await runtime.call("pay", {"order": "1"}, **CALL)
        while again.status is not Status.OK:  # behind what the store had taken
            again = await runtime.call("pay", {"order": "1"}, **CALL)
        assert (again.value, made) == ("paid", ["1"])
        assert [kind for kind, _status in await landed(runtime)][:2] == ["intent", "call"]


def _pay_into(
    made: list[str],
    hang: Hang,
    released: asyncio.Event,
    *,
    within_s: float = 1,
    hangs: asyncio.Event | None = None,
    goes_on: asyncio.Event | None = None,
) -> Tool:
    """A tool during which the store begins to hang, until that is released."""
    tasks: list[asyncio.Task[None]] = []
    hangs = hangs or asyncio.Event()

    @tool(effect="send", timeout_s=within_s, deadline_s=within_s)
    async def pay(order: str) -> str:
        made.append(order)

        async def until_released() -> None:
            with hang():
                hangs.set()
                await released.wait()

        tasks.append(asyncio.create_task(until_released()))
        await hangs.wait()
        if goes_on is not None:
            await goes_on.wait()
        return "paid"

    return pay


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    """Several times what it should take, and a fraction of what it would take if nothing bounded it."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.mark.parametrize("locks", [None, lambda order: ["books/1", "till/1"]], ids=["alone", "under locks"])
async def test_whoever_gives_up_while_the_store_hangs_is_heard_long_before_the_deadline(
    durable_url: str, hang: Hang, locks: Callable[..., list[str]] | None
) -> None:
    made: list[str] = []
    async with opened(durable_url, paying(made, within_s=40, locks=locks)) as runtime:
        with hang():
            with ends_within(12), pytest.raises(TimeoutError):
                await asyncio.wait_for(runtime.call("pay", {"order": "1"}, **CALL), 0.2)
            assert made == []
        again = await runtime.call("pay", {"order": "1"}, **CALL)
        assert (again.status, made) == (Status.OK, ["1"])
        assert await runtime.operations.recover() == ()


async def test_whoever_gives_up_during_an_effect_is_heard_when_it_is_over_though_the_store_hangs(
    durable_url: str, hang: Hang
) -> None:
    made: list[str] = []
    hangs, gave_up, released = asyncio.Event(), asyncio.Event(), asyncio.Event()
    pay = _pay_into(made, hang, released, within_s=40, hangs=hangs, goes_on=gave_up)
    async with opened(durable_url, pay) as runtime:
        call = asyncio.create_task(runtime.call("pay", {"order": "1"}, **CALL))
        await hangs.wait()
        call.cancel()
        gave_up.set()
        try:
            with ends_within(12), pytest.raises(asyncio.CancelledError):
                await call
        finally:
            released.set()
        again = await runtime.call("pay", {"order": "1"}, **CALL)  # behind the record, which has stayed in line
        assert (again.status, again.value, made) == (Status.OK, "paid", ["1"])
        assert [kind for kind, _status in await landed(runtime)][:2] == ["intent", "call"]


class HangsAt:
    """The store hangs from a fault point on, at which the caller gives up."""

    def __init__(self, hang: Hang, point: str) -> None:
        self.call: asyncio.Task[Any] | None = None
        self.stack = ExitStack()
        self._hang, self._point = hang, point

    def at(self, point: str) -> None:
        if self._point == point:
            self._point = ""
            self.stack.enter_context(self._hang())
            assert self.call is not None
            asyncio.get_running_loop().call_soon(self.call.cancel)


async def test_whoever_gives_up_between_the_intent_and_the_effect_is_heard_and_nothing_is_made(
    durable_url: str, hang: Hang
) -> None:
    made, moved = list[str](), list[str]()

    class Moves(Shelf):
        async def read_state(self, key: str) -> Any:
            moved.append(key)
            return {"title": "old", "reads": len(moved)}  # another one under the lease than when it was planned

    @tool(effect="write", key="{id}", resource=Moves(), timeout_s=40, deadline_s=40)
    async def title(id: str) -> str:
        made.append(id)
        return "titled"

    faults, arguments = HangsAt(hang, "write.replan"), {"id": "a"}
    runtime = Runtime.open(durable_url, policy=parse_policy(OPEN), tools=[title], settings=PATIENT, faults=faults)
    async with runtime:
        faults.call = asyncio.create_task(runtime.call("title", arguments, **CALL))
        with faults.stack, ends_within(12), pytest.raises(asyncio.CancelledError):
            await faults.call
        assert made == []
        again = await runtime.call("title", arguments, **CALL)
        assert (again.status, made) == (Status.OK, ["a"])
        assert (await verify(runtime.store)).problems == ()
        ends = [status for kind, status in await landed(runtime) if kind == "call"]
        assert ends == ["failed", "ok"], "that it was given up is in the ledger"
        assert await runtime.operations.recover() == ()


async def test_whoever_gives_up_while_a_resource_is_looked_at_under_the_claim_is_heard_at_once() -> None:
    made, looks, looking, never = list[str](), list[str](), asyncio.Event(), asyncio.Event()

    class Hangs(Shelf):
        async def read_state(self, key: str) -> Any:
            looks.append(key)
            if len(looks) == 2:
                looking.set()
                await never.wait()
            return {"title": "old"}

    @tool(effect="write", key="{id}", resource=Hangs(), timeout_s=40, deadline_s=40)
    async def title(id: str) -> str:
        made.append(id)
        return "titled"

    async with opened("memory://", title) as runtime:
        call = asyncio.create_task(runtime.call("title", {"id": "a"}, **CALL))
        await looking.wait()
        call.cancel()
        with ends_within(12), pytest.raises(asyncio.CancelledError):
            await call
        assert made == []
        assert (await runtime.call("title", {"id": "a"}, **CALL)).ok
        assert made == ["a"]


async def test_whoever_gives_up_a_read_while_the_store_hangs_is_heard(durable_url: str, hang: Hang) -> None:
    @tool(effect="read", timeout_s=40, deadline_s=40)
    async def look() -> str:
        return "seen"

    async with opened(durable_url, look) as runtime:
        with hang(), ends_within(12), pytest.raises(TimeoutError):
            await asyncio.wait_for(runtime.call("look", {}, actor="ann"), 0.2)
        assert (await runtime.call("look", {}, actor="ann")).value == "seen"
        assert len(await landed(runtime)) == 2


async def test_a_read_with_a_budget_ends_by_its_deadline(durable_url: str, hang: Hang) -> None:
    @tool(effect="read", timeout_s=1, deadline_s=1)
    async def look() -> str:
        return "seen"

    budget = '[[budget]]\nid = "day"\nper = "actor"\nwindow = "1d"\ncalls = 10\n'
    runtime = Runtime.open(durable_url, policy=parse_policy(OPEN + budget), tools=[look], settings=PATIENT)
    async with runtime:
        with hang():
            outcome = await runtime.call("look", {}, actor="ann")
            assert (outcome.status, outcome.value) == (Status.FAILED, None)
        assert (await runtime.call("look", {}, actor="ann")).value == "seen"


@pytest.mark.slow
async def test_a_store_can_be_closed_while_its_server_is_stopped(postgres: str) -> None:
    @tool(effect="send", timeout_s=1, deadline_s=1)
    async def pay(order: str) -> str:
        return order

    short = Settings(busy_s=1.0)
    runtime = Runtime.open(postgres, policy=parse_policy(OPEN), tools=[pay], settings=short)
    assert (await runtime.call("pay", {"order": "1"}, **CALL)).ok
    with stopped_server(postgres):
        waiting = asyncio.create_task(runtime.call("pay", {"order": "2"}, actor="ann", call_id="2", mode="apply"))
        assert (await waiting).status is Status.FAILED
        await runtime.close()  # would wait for ever for an answer
