"""What a governed write costs, as counts: statements, commits, threads and looks. Times differ between machines."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status
from interlock.audit import verify
from interlock.errors import StoreError, StoreSilent
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.reasons import RefusalKind
from interlock.state import ClaimState
from interlock.stores import open_store
from interlock.testing.store_moves import T0
from interlock.transitions import Batch, CloseClaim, Committed, MarkUndone, OpenClaim, Refused, RenewClaim
from tests.conftest import expect
from tests.test_audit import sql
from tests.test_changes import OPEN, Shelf, retitle
from tests.test_store_contract import batch, entry

STATEMENTS = 18
"""Of a write in a turn: two looks before it, and two transactions."""
PAGES = 13
"""Of a write in a turn where no page is full, so that none is split: one of each table and index, in either commit."""
FRAME = 24 + 4096


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


@contextmanager
def traced(store: Any) -> Iterator[list[str]]:
    """The statements that a store of SQLite runs meanwhile."""
    seen: list[str] = []
    connections = [connection.raw for connection in (store._write, store._read) if connection is not None]
    for connection in connections:
        connection.set_trace_callback(seen.append)
    yield seen
    for connection in connections:
        connection.set_trace_callback(None)


async def set_title(runtime: Runtime, title: str, **details: Any) -> Any:
    return await runtime.call("title", {"id": "a", "title": title}, actor="ann", **details)


async def test_a_write_is_two_transactions_of_few_statements(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path / 'x.db'}", retitle(Shelf(), [])) as runtime:
        for n in range(3):  # the key of the payloads is noted, what is halted is known, connections are open
            assert (await set_title(runtime, f"t{n}", turn=f"t{n}")).ok
        runtime.context.halts.until = float("inf")
        with traced(runtime.store) as seen:
            assert (await set_title(runtime, "counted", turn="counted")).ok
    assert seen.count("COMMIT") == seen.count("BEGIN IMMEDIATE") == 2
    assert len(seen) <= STATEMENTS, "\n".join(seen)


async def test_a_write_touches_few_pages(tmp_path: Path) -> None:
    """Each page is written to the log, and again when that is emptied: it takes longer than the statement."""
    log, pages = tmp_path / "x.db-wal", []
    async with opened(f"sqlite:///{tmp_path / 'x.db'}", retitle(Shelf(), [])) as runtime:
        for n in range(12):
            before = log.stat().st_size
            assert (await set_title(runtime, f"t{n}", turn=f"t{n}")).ok
            pages.append((log.stat().st_size - before) // FRAME)
    assert min(pages) <= PAGES, pages


async def test_what_a_write_in_a_turn_reads_takes_no_thread(tmp_path: Path) -> None:
    tools = [retitle(Shelf(), [])]
    runtime = Runtime.open(f"sqlite:///{tmp_path / 'x.db'}", policy=parse_policy(OPEN), tools=tools)
    before = set(threading.enumerate())
    for n in range(5):
        assert (await set_title(runtime, f"t{n}", turn="t", call_id=f"c{n}")).ok
    assert {thread.name for thread in set(threading.enumerate()) - before} == {"interlock-heart"}
    await runtime.close()


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
    changed = [int(expect(item.change).versions[0].rpartition("@")[2]) for item in content]
    if looked_at:
        assert (outcome.status, expect(outcome.problem).reason.value, made) == (Status.DENIED, "plan_moved", [])
    else:
        assert (outcome.ok, changed[0], changed[1] > 0) == (True, 0, True), "planned again, and the intent restated"


async def test_few_rows_are_looked_up_on_the_writers_connection_while_it_rests(tmp_path: Path) -> None:
    store: Any = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    ask = OpenClaim("one", "r", 1, "h", "c1", "t", ("shelf/a",), 60_000_000)
    assert isinstance(await store.commit(Batch(T0, (ask, *batch(entry(1)).transitions))), Committed)
    assert expect(await store.claim("one")).holder == "h"
    assert store._read is None
    with store._writing:  # as during a transaction: nobody waits for its end
        assert [lease.holder for lease in await store.leases(("shelf/a",))] == ["h"]
    assert store._read is not None
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.claim("one")


async def test_the_end_of_the_lane_is_looked_at_only_where_somebody_else_has_moved_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    ours, theirs = open_store(url), open_store(url)

    async def looks(store: Any, n: int) -> int:
        with traced(store) as seen:
            assert await store.commit(batch(entry(n))) == Committed((n,))
        return len([text for text in seen if text.startswith("SELECT") and "FROM lanes" in text])

    assert [await looks(ours, n) for n in range(1, 5)] == [1, 1, 0, 0]
    assert await looks(theirs, 5) == 1
    assert await looks(ours, 6) == 1
    assert [await looks(theirs, n) for n in (7, 8, 9)] == [1, 1, 0]
    report = await verify(ours)
    assert (report.intact, report.records) == (True, 9)
    for store in (ours, theirs):
        await store.close()


async def test_stores_that_write_the_same_lane_by_turns_keep_one_chain(tmp_path: Path) -> None:
    stores = [open_store(f"sqlite:///{tmp_path / 'x.db'}") for _ in range(3)]

    async def write(k: int) -> None:
        for n in range(40):
            assert isinstance(await stores[k].commit(batch(entry(100 * k + n))), Committed)

    await asyncio.gather(*map(write, range(3)))
    report = await verify(stores[0])
    assert (report.intact, report.records) == (True, 120)
    for store in stores:
        await store.close()


async def test_what_ends_or_renews_a_claim_writes_no_index_of_turns_and_runs(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", own_clock=False)
    await store.commit(batch(entry(1), OpenClaim("n", "r", 1, "h", "c", "t", ("r/a",), 100, "turn", "run")))
    with traced(store) as seen:
        await store.commit(batch(entry(2), RenewClaim("n", "h", 900, restated=True)))
        await store.commit(batch(entry(3), CloseClaim("n", "h", ClaimState.DONE)))
        await store.commit(batch(MarkUndone("n", 1)))
    written = [text for text in seen if "claims" in text and not text.startswith("SELECT")]
    assert len(written) == 3
    assert not any("turn" in text or "run" in text for text in written)
    found = expect(await store.claim("n"))
    assert (found.state, found.intent, found.record) == (ClaimState.UNDONE, 2, 3)
    assert (found.turn, found.run, found.keys, found.tokens) == ("turn", "run", ("r/a",), (T0,))
    await store.close()


OPENED = OpenClaim("n", "r", 1, "h", "c", "t", ("r/a",), 100, "turn", "run")
ELSEWHERE = {
    "given to another": "UPDATE claims SET holder = 'x' WHERE name = 'n'",
    "settled": "UPDATE claims SET state = 'failed' WHERE name = 'n'",
    "deleted": "DELETE FROM claims WHERE name = 'n'",
}


async def test_a_claim_is_ended_as_this_process_has_left_it(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", own_clock=False)
    await store.commit(batch(entry(1), OPENED))
    with traced(store) as seen:
        await store.commit(batch(entry(2), RenewClaim("n", "h", 900)))
        assert await store.commit(batch(entry(3), CloseClaim("n", "h", ClaimState.DONE))) == Committed((3,))
    assert [text for text in seen if text.startswith("SELECT") and "lanes" not in text] == []
    (lease,) = await store.leases(("r/a",))
    assert (lease.holder, lease.changed, lease.expires_us) == ("", T0, 0)
    found = expect(await store.claim("n"))
    assert (found.state, found.record, found.expires_us) == (ClaimState.DONE, 3, T0 + 900)
    refused = await store.commit(batch(CloseClaim("n", "h", ClaimState.DONE)))
    assert isinstance(refused, Refused), "what is over is read, and is not open"
    await store.close()


async def test_a_key_that_is_handed_on_in_one_commit_is_ended_by_whoever_has_it_now(tmp_path: Path) -> None:
    store: Any = open_store(f"sqlite:///{tmp_path / 'x.db'}", own_clock=False)
    await store.commit(batch(entry(1), OPENED))
    names = [f"n{n}" for n in range(20)]
    before = "n"
    for name in names:
        opened = OpenClaim(name, "r", 1, "h", name, "t", ("r/a",), 100)
        # Two batches in one transaction, as when both wait.
        answers = store._land([batch(entry(2), CloseClaim(before, "h", ClaimState.DONE)), batch(entry(3), opened)])
        assert [type(answer) for answer in answers] == [Committed, Committed]
        before = name
    assert isinstance(await store.commit(batch(CloseClaim(before, "h", ClaimState.DONE))), Committed)
    (lease,) = await store.leases(("r/a",))
    assert (lease.holder, lease.changed, lease.token) == ("", T0 + 20, T0 + 20)
    await store.close()


@pytest.mark.parametrize("how", ELSEWHERE)
async def test_a_claim_that_somebody_else_has_changed_is_read_again(durable_url: str, how: str) -> None:
    store = open_store(durable_url)
    await store.commit(batch(entry(1), OPENED))
    sql(durable_url, ELSEWHERE[how])
    for _ in range(2):
        refused = await store.commit(batch(entry(2), CloseClaim("n", "h", ClaimState.DONE)))
        assert isinstance(refused, Refused)
        assert refused.kind is RefusalKind.LOST
    await store.close()


async def test_a_claim_that_another_store_renews_keeps_what_that_wrote(durable_url: str) -> None:
    ours, theirs = open_store(durable_url, own_clock=False), open_store(durable_url, own_clock=False)
    await ours.commit(batch(entry(1), OPENED))
    await theirs.commit(batch(entry(2), RenewClaim("n", "h", 900, restated=True)))
    await ours.commit(batch(entry(3), RenewClaim("n", "h", 50)))
    found = expect(await theirs.claim("n"))
    assert (found.intent, found.expires_us) == (2, T0 + 50)
    assert ours.renew([RenewClaim("n", "h", 500)], T0) == ()
    await ours.commit(batch(entry(4), CloseClaim("n", "h", ClaimState.UNKNOWN)))
    assert expect(await theirs.claim("n")).expires_us == T0 + 500
    for store in (ours, theirs):
        await store.close()


async def test_a_transaction_that_failed_leaves_nothing_to_go_by(tmp_path: Path) -> None:
    class Failing:
        on = False

        def at(self, point: str) -> None:
            if self.on and point == "store.commit":
                raise OSError("no commit")

    faults = Failing()
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", faults=faults)
    await store.commit(batch(entry(1), OPENED))
    faults.on = True
    with pytest.raises(StoreError):
        await store.commit(batch(entry(2), CloseClaim("n", "h", ClaimState.DONE)))
    faults.on = False
    assert expect(await store.claim("n")).state is ClaimState.OPEN
    assert isinstance(await store.commit(batch(entry(2), CloseClaim("n", "h", ClaimState.DONE))), Committed)
    await store.close()


async def test_each_of_those_who_wait_hears_when_its_own_time_is_up(tmp_path: Path) -> None:
    """One timer stands for all of them, at the end of the shortest wait."""
    going = threading.Event()

    class Hanging:
        def at(self, point: str) -> None:
            if point == "store.begun":
                going.wait(30)

    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", faults=Hanging())
    order: list[float] = []

    async def wait(n: int, wait_s: float) -> Any:
        try:
            return await store.commit(Batch(0, (entry(n),), wait_s))
        except StoreSilent as error:
            order.append(wait_s)
            return error

    work = [asyncio.create_task(wait(n, wait_s)) for n, wait_s in enumerate((0.3, 0.01, 60.0, 0.1))]
    silent = [await work[n] for n in (1, 3, 0)]
    assert order == [0.01, 0.1, 0.3]
    assert all(f"within {wait_s:g} s" in str(error) for wait_s, error in zip(order, silent, strict=True))
    assert not work[2].done()
    going.set()
    assert await work[2] == Committed((3,))
    await store.close()


def test_loops_that_have_ended_are_let_go(tmp_path: Path) -> None:
    store: Any = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    for n in range(5):
        asyncio.run(store.commit(batch(entry(n))))
    assert len(store._writer._patience) == 1
    asyncio.run(store.close())
