"""An approved read says in the ledger that it has spent its approval, whatever becomes of it: no honest history alarms."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from interlock import Outcome, Runtime, Status, tool
from interlock.audit import verify
from interlock.ports import Query
from interlock.state import TicketState
from tests.conftest import expect
from tests.test_forged_tables import Edit, edit  # noqa: F401 - a fixture

POLICY: dict[str, Any] = {
    "version": 1,
    "rule": [{"id": "a", "tools": ["look"], "decision": "review"}],
    "review": {"self_approval": True},
}


@tool(effect="read")
async def look(n: int) -> int:
    """Look at something."""
    return n


class Killed(BaseException):
    """The process ends here."""


class At:
    """Does something at one fault point, once."""

    def __init__(self) -> None:
        self.point = ""
        self.cancels: asyncio.Task[Outcome] | None = None

    def at(self, name: str) -> None:
        if name != self.point:
            return
        self.point = ""
        if self.cancels is None:
            raise Killed
        asyncio.get_running_loop().call_soon(self.cancels.cancel)


async def approved(runtime: Runtime, number: int = 1) -> str:
    asked = await runtime.call("look", {"n": number}, actor="x", call_id=f"c{number}")
    assert asked.status is Status.PARKED
    ticket = expect(asked.ticket)
    await runtime.operations.decide(ticket, approve=True, reason="ok")
    return ticket


async def spent_records(runtime: Runtime) -> list[tuple[str, str, str]]:
    query = Query(status="spent")
    return [(record.kind, record.call, record.tool) async for record in runtime.store.records(query)]


@pytest.mark.parametrize("point", ["perform.begin", "perform.begun", "record.end"])
@pytest.mark.parametrize("ends", ["cancelled", "killed"])
async def test_a_read_that_never_ends_has_spent_its_approval_in_the_ledger_too(
    durable_url: str, point: str, ends: str
) -> None:
    faults = At()
    async with Runtime.open(durable_url, policy=POLICY, tools=[look], faults=faults) as runtime:
        ticket = await approved(runtime)
        task = asyncio.ensure_future(runtime.operations.resume(ticket))
        faults.point, faults.cancels = point, task if ends == "cancelled" else None
        done, _ = await asyncio.wait({task})
        assert done.pop().cancelled() or isinstance(task.exception(), Killed)
        state = expect(await runtime.store.ticket(ticket)).state
        nothing_committed = ends == "killed" and point == "perform.begin"
        assert state is (TicketState.APPROVED if nothing_committed else TicketState.SPENT)
        assert await spent_records(runtime) == ([] if nothing_committed else [("ticket", "c1", "look")])
        report = await verify(runtime.store)
        assert report.problems == ()


async def test_reads_that_are_given_up_at_any_moment_leave_an_intact_ledger(durable_url: str) -> None:
    async with Runtime.open(durable_url, policy=POLICY, tools=[look]) as runtime:
        for number in range(24):
            ticket = await approved(runtime, number)
            try:
                await asyncio.wait_for(runtime.operations.resume(ticket), 0.0003 * (1 + number % 12))
            except TimeoutError:
                pass
        assert (await verify(runtime.store)).problems == ()


async def test_a_read_spends_its_approval_once(durable_url: str) -> None:
    async with Runtime.open(durable_url, policy=POLICY, tools=[look]) as runtime:
        ticket = await approved(runtime)
        assert (await runtime.operations.resume(ticket)).status is Status.OK
        assert await spent_records(runtime) == [("ticket", "c1", "look")]
        assert (await verify(runtime.store)).problems == ()


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_row_that_says_otherwise_is_found(durable_url: str, edit: Edit, resumed: bool) -> None:  # noqa: F811
    async with Runtime.open(durable_url, policy=POLICY, tools=[look]) as runtime:
        ticket = await approved(runtime)
        if resumed:
            await runtime.operations.resume(ticket)
        row = expect(await runtime.store.ticket(ticket))
        forged = TicketState.APPROVED if resumed else TicketState.SPENT
        body = msgspec.json.encode(msgspec.structs.replace(row, state=forged)).decode()
        edit("UPDATE tickets SET body = ?, state = ? WHERE id = ?", (body, forged.value, ticket))
        (problem,) = (await verify(runtime.store)).problems
        assert ticket in problem
