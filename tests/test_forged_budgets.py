"""What budgets have spent is what the ledger says they were charged, by reads as by changes; whatever else is found."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from interlock import Limits, Result, Runtime, Status, tool
from interlock.audit import verify
from interlock.audit.fold_budgets import BudgetFold
from interlock.config import Settings
from interlock.errors import InDoubt, NotFound, Unavailable
from interlock.policy import parse_policy
from interlock.ports import Query, Spent
from interlock.records import Charge, Stored
from interlock.state import TicketKind, TicketState
from interlock.stores import MemoryStore
from interlock.testing import ManualClock
from interlock.values import Budget
from tests.conftest import expect
from tests.test_changes import OPEN, running
from tests.test_forged_columns import Database
from tests.test_forged_tables import verify_beside
from tests.test_spent_approvals import At, Killed

DAY = OPEN + '[[budget]]\nid = "day"\nper = "actor"\nwindow = "1d"\ncalls = 5\n'
SEVERAL = (
    OPEN
    + '[[rule]]\nid = "large"\ntools = ["pay"]\ndecision = "review"\nwhen = "args.amount > 1000"\n'
    + '[[budget]]\nid = "minute"\nper = "actor"\nwindow = "1m"\ncalls = 12\n'
    + '[[budget]]\nid = "turn"\nper = "turn"\ncost_usd = 1.0\nseconds = 1000\n'
    + '[[budget]]\nid = "run"\nper = "run"\ncalls = 20\nseconds = 2000\n'
)
EVERY_KIND = {
    *(("call", "look", status) for status in ("ok", "failed", "no_data", "denied")),
    *(("call", "pay", status) for status in ("ok", "unknown", "denied", "parked")),
    *(("settle", "interlock", status) for status in ("approved", "denied")),
}
"""What a history has, by kind, tool and end, but for one or two of them."""


@tool(effect="read", limits=Limits(cost_usd=0.00001), redact={"who"})
async def look(n: int, who: str = "") -> Result[int]:
    """Look at something: it costs what it says, or what was declared, and may fail."""
    if n % 7 == 5:
        raise Unavailable("not now")
    if n % 7 == 6:
        raise NotFound("nothing there")
    return Result(value=n, cost_usd=0.00002 if n % 2 else None)


@tool(effect="send", limits=Limits(cost_usd=0.00003))
async def pay(amount: int) -> str:
    """Pay; of every third nobody hears whether it arrived."""
    if amount % 3 == 2:
        raise InDoubt("the answer was lost")
    return "paid"


async def budget_problems(runtime: Runtime) -> list[str]:
    return [problem for problem in (await verify(runtime.store)).problems if problem.startswith("budget ")]


async def charged(runtime: Runtime, **which: Any) -> list[tuple[Charge, ...]]:
    return [record.content().charged async for record in runtime.store.records(Query(**which))]


async def test_a_budget_that_only_reads_have_spent_cannot_be_set_back_unseen(durable_url: str) -> None:
    database = Database(durable_url)
    async with running(look, policy=DAY, url=durable_url) as runtime:
        for n in range(5):
            assert (await runtime.call("look", {"n": n}, actor="ann")).ok
        assert (await runtime.call("look", {"n": 5}, actor="ann")).status is Status.DENIED
        assert (await verify(runtime.store)).problems == ()
        ((scope, spent),) = (await runtime.store.all_spent()).items()
        assert (spent.calls, spent.cost_micros) == (5, 3 * 10 + 2 * 20)
        values = (spent.calls, spent.cost_micros, spent.ms, scope)
        back = "UPDATE accounts SET calls = ?, cost_micros = ?, ms = ? WHERE scope = ?"
        for column, name in (("calls", "calls"), ("cost_micros", "money"), ("ms", "time")):
            database.run(f"UPDATE accounts SET {column} = {column} - 1")
            less = f"budget {scope}: has spent less than the ledger says ({name}): it was set back"
            assert (await verify(runtime.store)).problems == (less,)
            database.run(f"UPDATE accounts SET {column} = {column} + 2")
            more = f"budget {scope}: has spent more than the ledger says ({name}): it was raised, or invented"
            assert (await verify(runtime.store)).problems == (more,)
            database.run(back, values)
        database.run("UPDATE accounts SET calls = 0, cost_micros = 0, ms = 0")
        assert (await runtime.call("look", {"n": 0}, actor="ann", call_id="once more")).ok, "found, not prevented"
        assert "(calls, money, time): it was set back" in str(await budget_problems(runtime))
        database.run("DELETE FROM accounts")
        gone = f"budget {scope}: has spent something by the ledger, and is not in the store: it was deleted"
        assert await budget_problems(runtime) == [gone]
        database.run("INSERT INTO accounts (scope, calls) VALUES (?, ?)", ("day|actor|bob|1", 5))
        invented = "budget day|actor|bob|1: has spent more than the ledger says (calls): it was raised, or invented"
        assert await budget_problems(runtime) == [gone, invented]


async def test_the_memory_store_is_compared_too() -> None:
    async with running(look, policy=DAY) as runtime:
        assert (await runtime.call("look", {"n": 1}, actor="ann")).ok
        assert (await verify(runtime.store)).problems == ()
        assert isinstance(runtime.store, MemoryStore)
        (account,) = runtime.store._state.accounts.values()
        account.calls = 0
        assert "has spent less than the ledger says (calls)" in str((await verify(runtime.store)).problems)


async def test_the_record_says_which_windows_were_charged_and_how_much(store_url: str) -> None:
    clock = ManualClock(86_400.0 * 20_000)
    policy = DAY + '[[budget]]\nid = "turn"\nper = "turn"\ncalls = 9\n'
    async with running(look, policy=policy, url=store_url, clock=clock) as runtime:
        await runtime.call("look", {"n": 1}, actor="ann", turn="t")
        clock.advance(86_400)
        await runtime.call("look", {"n": 0}, actor="ann")
        await runtime.call("look", {"n": "x"}, actor="ann")  # fits no contract: nothing was done, and nothing charged
        assert await charged(runtime) == [
            (Charge("day|actor|ann|20000", 1, 20, 0), Charge("turn|turn|t", 1, 20, 0)),
            (Charge("day|actor|ann|20001", 1, 10, 0),),
            (),
        ]
        assert await budget_problems(runtime) == []


async def test_a_call_that_no_budget_covers_says_nothing_about_any(store_url: str) -> None:
    async with running(look, policy=OPEN, url=store_url) as runtime:
        await runtime.call("look", {"n": 1}, actor="ann")
        bodies = [record.body async for record in runtime.store.records(Query())]
        assert bodies
        assert not any("charged" in body for body in bodies)


async def test_two_budgets_of_one_name_are_charged_once_and_both_hold(store_url: str) -> None:
    own = (Budget(id="day", per="actor", window_s=86_400, calls=2),)
    async with running(look, policy=DAY, url=store_url) as runtime:
        outcomes = [await runtime.call("look", {"n": n}, actor="ann", budgets=own) for n in range(3)]
        outcomes += [await runtime.call("look", {"n": n}, actor="ann") for n in (7, 8, 9, 10)]
        assert [outcome.ok for outcome in outcomes] == [True, True, False, True, True, True, False]
        assert [spent.calls for spent in (await runtime.store.all_spent()).values()] == [5]
        assert (await verify(runtime.store)).problems == ()


async def test_what_was_charged_stays_when_payloads_are_forgotten(durable_url: str) -> None:
    async with running(look, policy=DAY, url=durable_url) as runtime:
        for n in (1, 2):
            assert (await runtime.call("look", {"n": n, "who": "somebody"}, actor="ann")).ok
        forgotten = await runtime.operations.forget(actor="ann", reason="request 17")
        assert forgotten.records
        assert (await verify(runtime.store)).problems == ()
        Database(durable_url).run("UPDATE accounts SET calls = 1")
        assert "has spent less than the ledger says (calls)" in str((await verify(runtime.store)).problems)


@pytest.mark.parametrize("landed", [True, False])
async def test_what_a_dead_process_had_set_aside_is_charged_or_given_back_by_record(
    durable_url: str, landed: bool
) -> None:
    faults, database = At(), Database(durable_url)
    policy = OPEN + '[[budget]]\nid = "run"\nper = "run"\ncalls = 9\nseconds = 1000\n'
    async with running(pay, policy=policy, url=durable_url, faults=faults) as runtime:
        faults.point = "record.end"
        with pytest.raises(Killed):
            await runtime.call("pay", {"amount": 1}, actor="ann", run="r", call_id="1")
        database.run("UPDATE claims SET expires_us = 0 WHERE state = 'open'")  # nobody has heard of it for long
        (asked,) = await runtime.operations.recover()
        await runtime.operations.decide(expect(asked.ticket), approve=landed, by="user:kim", reason="looked")
        spent = await runtime.store.spent("run|run|r", 0)
        # How long it took nobody knows: it had set aside the time of its deadline, which counted as spent until now.
        most_ms = pay.deadline_us // 1000
        assert spent == (Spent(calls=1, cost_micros=30, ms=most_ms) if landed else Spent())
        said = [charges for charges in await charged(runtime) if charges]
        assert said == ([(Charge("run|run|r", 1, 30, most_ms),)] if landed else [])
        assert await budget_problems(runtime) == []
        database.run("UPDATE accounts SET ms = ms - 1")
        assert (await budget_problems(runtime) == []) is (not landed)


async def test_a_budget_in_use_raises_no_alarm(durable_url: str) -> None:
    policy = OPEN + '[[budget]]\nid = "turn"\nper = "turn"\ncalls = 1000\n'
    async with running(look, pay, policy=policy, url=durable_url) as runtime:

        async def work() -> None:
            for n in range(40):
                calls = [runtime.call("look", {"n": 7 * n}, actor="ann", turn=f"t{m}") for m in range(4)]
                await asyncio.gather(*calls, runtime.call("pay", {"amount": 3 * n}, actor="ann", turn="t0"))

        await verify_beside(runtime, work())
        assert (await runtime.store.spent("turn|turn|t0", 0)).calls == 80  # there was something to be alarmed by


def test_records_of_changes_from_before_are_read_as_they_were_written() -> None:
    body = (
        '{"principal":"p","started_us":1,"duration_us":1,"attempts":[{"waited_us":0,"duration_us":1200}],'
        '"cost_micros":30,"change":{"claim":"c","generation":1,"charged":["day|actor|ann|1"]}}'
    )
    fold = BudgetFold()
    fold.see(Stored(1, 0, "", 1, "call", "c", None, "ann", "pay", "ok", body))
    assert fold._sums == {"day|actor|ann|1": [1, 30, 2]}


class _History:
    """Random honest work of several workers on one store."""

    def __init__(self, random: Random, workers: list[Runtime], faults: list[At], clock: ManualClock) -> None:
        self._random, self._workers, self._faults, self._clock = random, workers, faults, clock
        self._count = 0

    async def step(self) -> None:
        """A few calls side by side, then what people and operators do."""
        random = self._random
        if random.random() < 0.3:
            faults = random.choice(self._faults)
            faults.point = random.choice(["perform.begun", "record.end", "write.begun"])
        calls = [asyncio.ensure_future(self._call()) for _ in range(random.randint(2, 8))]
        if random.random() < 0.2:
            asyncio.get_running_loop().call_soon(calls[0].cancel)
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            assert not isinstance(ended, Exception), ended  # a call that was given up or killed is no other fault
        for faults in self._faults:
            faults.point = ""
        runtime = random.choice(self._workers)
        for ticket in await runtime.store.tickets(TicketState.OPEN):
            if random.random() < 0.8:
                await runtime.operations.decide(ticket.id, approve=random.random() < 0.7, by="user:kim", reason="so")
        for ticket in await runtime.store.tickets(TicketState.APPROVED):
            if ticket.kind is TicketKind.CHANGE:
                await runtime.operations.resume(ticket.id)
        self._clock.advance(random.choice([0.5, 5.0, 15.0]))

    async def recover(self, url: str) -> None:
        """What the dead have left behind."""
        if url == "memory://":
            self._clock.advance(100)
        else:
            Database(url).run("UPDATE claims SET expires_us = 0 WHERE state = 'open'")
        operations = self._workers[0].operations
        for found in await operations.recover():
            if found.ticket is not None:
                landed = self._random.random() < 0.5
                await operations.decide(found.ticket, approve=landed, by="user:lee", reason="looked")

    async def _call(self) -> Status:
        random, self._count = self._random, self._count + 1
        number, runtime = self._count, random.choice(self._workers)
        details: dict[str, Any] = {"actor": random.choice(["ann", "bob"]), "turn": random.choice([None, "t1", "t2"])}
        details["run"] = random.choice([None, "r1"])
        if random.random() < 0.2:
            details["budgets"] = (Budget(id="own", per="run", calls=3),)
        if random.random() < 0.2:
            details["call_id"] = f"again{random.randint(1, 3)}"
        self._clock.advance(0.001)
        if random.random() < 0.6:
            arguments: dict[str, Any] = {"n": number if random.random() < 0.9 else "none", "who": "x"}
            return (await runtime.call("look", arguments, **details)).status
        amount = number + (2000 if random.random() < 0.2 else 0)
        return (await runtime.call("pay", {"amount": amount}, **details)).status


@pytest.mark.parametrize("seed", range(4))
async def test_no_honest_history_raises_an_alarm_and_each_edit_of_it_does(store_url: str, seed: int) -> None:
    random, clock = Random(seed), ManualClock(1_700_000_000.0)
    faults = [At() for _ in range(1 if store_url == "memory://" else 3)]
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(
                Runtime.open(
                    store_url,
                    policy=parse_policy(SEVERAL),
                    tools=[look, pay],
                    faults=each,
                    clock=clock,
                    settings=Settings(heads="none"),
                )
            )
            for each in faults
        ]
        history = _History(random, workers, faults, clock)
        for step in range(18):
            await history.step()
            if step % 3 == 2:
                await history.recover(store_url)
            assert await budget_problems(random.choice(workers)) == [], step
        store = workers[0].store
        records = {(record.kind, record.tool, record.status) async for record in store.records(Query())}
        assert len(EVERY_KIND - records) < 3, EVERY_KIND - records
        spent = await store.all_spent()
        assert len([scope for scope in spent if scope.startswith("minute|actor|ann|")]) > 1, "windows rolled over"
        if store_url == "memory://":
            return
        for scope in random.sample(sorted(spent), 3):
            for column in ("calls", "cost_micros", "ms"):
                for step in (-1, 1):
                    change = f"UPDATE accounts SET {column} = {column} + ? WHERE scope = ?"
                    Database(store_url).run(change, (step, scope))
                    (problem,) = await budget_problems(workers[0])
                    assert problem.startswith(f"budget {scope}: has spent {'less' if step < 0 else 'more'}"), problem
                    Database(store_url).run(change, (-step, scope))
        assert await budget_problems(workers[0]) == []
