"""What a governed write costs, as counts: statements, commits, threads and looks. Times differ between machines."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.stores import open_store
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, retitle
from tests.test_store_contract import batch, entry

STATEMENTS = 23
"""Of a write in a turn: three looks before it, and two transactions."""


class Points:
    """Counts the points that a call reaches."""

    def __init__(self) -> None:
        self.reached = Counter[str]()

    def at(self, point: str) -> None:
        self.reached[point] += 1


@asynccontextmanager
async def opened(url: str, *tools: Any, **parts: Any) -> AsyncIterator[Runtime]:
    async with Runtime.open(url, policy=parse_policy(OPEN), tools=tools, **parts) as runtime:
        yield runtime


async def set_title(runtime: Runtime, title: str, **details: Any) -> Any:
    return await runtime.call("title", {"id": "a", "title": title}, actor="ann", **details)


async def test_a_write_is_two_transactions_of_few_statements(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path / 'x.db'}", retitle(Shelf(), [])) as runtime:
        for n in range(3):  # the key of the payloads is noted, what is halted is known, connections are open
            assert (await set_title(runtime, f"t{n}", turn=f"t{n}")).ok
        store: Any = runtime.store
        seen: list[str] = []
        for connection in (store._write, store._read):
            connection.raw.set_trace_callback(seen.append)
        runtime.context.halts.until = float("inf")
        assert (await set_title(runtime, "counted", turn="counted")).ok
        for connection in (store._write, store._read):
            connection.raw.set_trace_callback(None)
    assert seen.count("COMMIT") == seen.count("BEGIN IMMEDIATE") == 2
    assert len(seen) <= STATEMENTS, "\n".join(seen)


async def test_what_a_write_in_a_turn_reads_takes_no_thread(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path / 'x.db'}", retitle(Shelf(), [])) as runtime:
        before = set(threading.enumerate())
        for n in range(5):
            assert (await set_title(runtime, f"t{n}", turn="t", call_id=f"c{n}")).ok
        started = {thread.name for thread in set(threading.enumerate()) - before}
    assert started == {"interlock-heart"}


async def test_a_turn_is_read_whole_whether_it_is_short_or_long(durable_url: str) -> None:
    store = open_store(durable_url)
    for n in range(50):
        await store.commit(batch(entry(n, turn="long" if n % 2 else "short" if n == 10 else None)))

    async def calls(**query: Any) -> list[str]:
        return [record.call async for record in store.records(Query(**query))]

    odd = [f"c{n}" for n in range(1, 50, 2)]
    assert await calls(turn="long") == odd
    assert await calls(turn="long", newest=20) == odd[::-1][:20]
    assert await calls(turn="long", newest=3) == odd[::-1][:3]
    assert await calls(turn="short") == ["c10"]
    await store.close()


async def test_a_long_turn_is_read_while_the_loop_goes_on(tmp_path: Path) -> None:
    """A few records come at once; the rest is read in a thread, however many they are."""
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    await store.commit(batch(*(entry(n, turn="t") for n in range(3000))))
    passed = 0

    async def go_on() -> None:
        nonlocal passed
        while True:
            passed += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(go_on())
    assert len([record async for record in store.records(Query(turn="t"))]) == 3000
    other.cancel()
    await store.close()
    assert passed > 1


async def test_under_its_lease_a_change_does_not_ask_again_what_was_changed_last(durable_url: str) -> None:
    points = Points()
    async with opened(durable_url, retitle(Shelf(), []), faults=points) as runtime:
        points.reached.clear()
        assert (await set_title(runtime, "new", turn="t")).ok
    assert (points.reached["change.leases"], points.reached["store.queued"]) == (1, 2)


@pytest.mark.parametrize("looked_at", [True, False])
async def test_a_state_that_was_left_and_come_back_to_before_the_lease_is_another_version(
    durable_url: str, looked_at: bool
) -> None:
    shelf, asked = Shelf(a={"title": "old"}), []

    async def invariants(_arguments: Any, _before: Any, _after: Any) -> list[str]:
        asked.append(1)
        if len(asked) == (2 if looked_at else 1):  # between the plan and the lease
            for title in ("other", "old"):
                assert (await set_title(other, title, turn=f"{title} meanwhile")).ok
        return []

    made: list[Any] = []
    async with (
        opened(durable_url, retitle(shelf, [])) as other,
        opened(durable_url, retitle(shelf, made, invariants=invariants)) as runtime,
    ):
        plan = None
        if looked_at:
            plan = expect((await set_title(runtime, "new", turn="t", mode="dry_run")).plan).digest
        outcome = await set_title(runtime, "new", turn="t", plan=plan)
        content = [r.content() async for r in runtime.store.records(Query(turn="t")) if r.kind == "intent"]
    versions = [expect(item.change).versions[0].rpartition("@")[2] for item in content]
    if looked_at:
        assert (outcome.status, expect(outcome.problem).reason.value, made) == (Status.DENIED, "plan_moved", [])
    else:
        assert (outcome.ok, versions) == (True, ["0", "2"]), "planned again, and the intent restated"
