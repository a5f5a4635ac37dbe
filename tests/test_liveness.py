"""Who is alive: clocks that differ, an event loop that is busy, a process that was stopped. Nobody pays twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Runtime, Status, Tool, tool
from interlock.config import Settings
from interlock.policy import parse_policy
from interlock.ports import SystemClock
from interlock.state import ChangeFilter, ClaimState
from interlock.stores import open_store
from tests.conftest import expect
from tests.test_changes import OPEN, error

SHORT = Settings(lease_s=1.0, busy_s=30.0)
CALL: dict[str, Any] = {"actor": "ann", "call_id": "order-1", "mode": "apply"}


class Ahead(SystemClock):
    """The clock of another machine."""

    def now_us(self) -> int:
        """A minute on."""
        return super().now_us() + 60_000_000


@pytest.mark.slow
async def test_a_clock_that_is_a_minute_ahead_takes_no_live_holders_claim(postgres: str) -> None:
    entered, release, made = asyncio.Event(), asyncio.Event(), list[str]()

    @tool(effect="send")
    async def pay(order: str) -> str:
        made.append(order)
        entered.set()
        await release.wait()
        return "paid"

    def opened(**parts: Any) -> Runtime:
        return Runtime.open(open_store(postgres), policy=parse_policy(OPEN), tools=[pay], settings=SHORT, **parts)

    async with opened() as here, opened(clock=Ahead()) as there:
        first = asyncio.create_task(here.call("pay", {"order": "1"}, **CALL))
        await entered.wait()
        assert await there.operations.recover() == ()
        again = asyncio.create_task(there.call("pay", {"order": "1"}, **CALL))
        await asyncio.sleep(0)
        async with here.lock("shelf/a"):
            with pytest.raises(Exception, match="is held by somebody else"):
                async with there.lock("shelf/a"):
                    raise AssertionError("a lock that is held was given away")
        release.set()
        outcomes = await asyncio.gather(first, again)
    assert [outcome.value for outcome in outcomes] == ["paid", "paid"]
    assert made == ["1"]


def look_from_another_loop(url: str, tools: list[Tool], until: threading.Event, seen: list[Any]) -> None:
    """Another worker, which settles what it takes for dead, again and again."""

    async def look() -> None:
        async with Runtime.open(url, policy=parse_policy(OPEN), tools=tools, settings=SHORT) as other:
            while not until.is_set():
                seen.append(await other.operations.recover())
                await asyncio.sleep(0.05)

    asyncio.run(look())


@pytest.mark.slow
async def test_a_busy_event_loop_does_not_lose_the_lease(durable_url: str) -> None:
    made, seen, over = list[str](), list[Any](), threading.Event()

    @tool(effect="send", timeout_s=30)
    async def pay(order: str) -> str:
        made.append(order)
        time.sleep(3 * SHORT.lease_s)  # noqa: ASYNC251 - a loop that does nothing else meanwhile is what is tested
        return "paid"

    async with Runtime.open(durable_url, policy=parse_policy(OPEN), tools=[pay], settings=SHORT) as runtime:
        other = threading.Thread(target=look_from_another_loop, args=(durable_url, [pay], over, seen))
        other.start()
        try:
            outcome = await runtime.call("pay", {"order": "1"}, **CALL)
        finally:
            over.set()
            await asyncio.to_thread(other.join)
    assert (outcome.value, made) == ("paid", ["1"])
    assert len(seen) > 3
    assert set(seen) == {()}, "a living holder was settled by somebody else"


class StopsItself:
    """Stops its process, as an operator or a hypervisor would, once its claim is durable."""

    def at(self, point: str) -> None:
        if point == "write.begun":
            os.kill(os.getpid(), signal.SIGSTOP)


def payments(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def paying(file: Path) -> Tool:
    async def has_paid(_arguments: Any, _context: Context) -> bool:
        return bool(payments(file))

    @tool(effect="send", probe=has_paid)
    async def pay(order: str) -> str:
        with file.open("a") as out:
            out.write(f"{order}\n")
        return "paid"

    return pay


def pay_and_be_stopped(url: str, file: Path, answer: Path) -> None:
    async def run() -> None:
        parts: dict[str, Any] = {"faults": StopsItself()}
        policy = parse_policy(OPEN)
        async with Runtime.open(url, policy=policy, tools=[paying(file)], settings=SHORT, **parts) as runtime:
            outcome = await runtime.call("pay", {"order": "1"}, **CALL)
            answer.write_text(f"{outcome.status.value} {error(outcome)}")

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_process_that_was_stopped_for_longer_than_its_lease_does_not_go_on(
    durable_url: str, tmp_path: Path
) -> None:
    file, answer = tmp_path / "payments", tmp_path / "answer"
    child = multiprocessing.get_context("spawn").Process(target=pay_and_be_stopped, args=(durable_url, file, answer))
    child.start()
    pid, status = await asyncio.to_thread(os.waitpid, expect(child.pid), os.WUNTRACED)
    assert (pid, os.WIFSTOPPED(status)) == (child.pid, True)
    async with Runtime.open(durable_url, policy=parse_policy(OPEN), tools=[paying(file)], settings=SHORT) as runtime:
        states = [ClaimState.OPEN]
        while states == [ClaimState.OPEN]:  # its lease runs out by the store's clock; whoever is here sees to it then
            states = [claim.state for claim in await runtime.store.claims(ChangeFilter())]
            await asyncio.sleep(0.05)
        assert states == [ClaimState.FAILED], "its probe says that nothing was paid"
        outcome = await runtime.call("pay", {"order": "1"}, **CALL)
        assert (outcome.status, payments(file)) == (Status.OK, ["1"])
        os.kill(pid, signal.SIGCONT)
        await asyncio.to_thread(child.join, 60)
    assert (child.exitcode, payments(file)) == (0, ["1"])
    assert answer.read_text().split()[0] in ("unknown", "failed")
