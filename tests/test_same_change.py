"""What counts as the same change: made again from its record, spelled otherwise, in another process, under its id."""

from __future__ import annotations

from typing import Any

from interlock import Runtime, Status
from interlock.audit import verify
from interlock.errors import NothingLanded
from interlock.policy import parse_policy
from interlock.tools import RetryRule
from interlock.values import Budget
from tests.conftest import expect
from tests.test_changes import OPEN, error, mailing, running

ASK_MAIL = OPEN + '[[rule]]\nid = "ask"\ntools = ["mail"]\ndecision = "review"\n'
ONCE = RetryRule(max_attempts=1)
TO = {"to": "x"}


async def approve(runtime: Runtime, **details: Any) -> str:
    """The ticket of a mail that waited and was approved."""
    waiting = await runtime.call("mail", TO, actor="ann", **details)
    await runtime.operations.decide(expect(waiting.ticket), approve=True, by="user:boss")
    return expect(waiting.ticket)


# Made again from its record


async def test_what_a_replay_has_made_is_not_made_again_by_its_caller(store_url: str) -> None:
    made: list[Any] = []
    async with running(mailing(made, NothingLanded("down"), retry=ONCE), url=store_url) as runtime:
        failed = await runtime.call("mail", TO, actor="ann", run="r")
        ((_step, replayed),) = await runtime.operations.replay("r")
        again = await runtime.call("mail", TO, actor="ann", run="r")
        report = await verify(runtime.store)
    assert (failed.status, expect(replayed).status, again.status) == (Status.FAILED, Status.OK, Status.OK)
    assert made == ["x", "x"]  # the one that failed, and one that did not
    assert expect(expect(replayed).plan).claim == expect(failed.plan).claim
    assert report.intact, report


async def test_what_a_person_released_is_not_asked_for_and_made_again(store_url: str) -> None:
    made: list[Any] = []
    async with running(mailing(made), policy=ASK_MAIL, url=store_url) as runtime:
        resumed = await runtime.operations.resume(await approve(runtime, run="r"))
        again = await runtime.call("mail", TO, actor="ann", run="r")
    assert (resumed.status, again.status, again.ticket, made) == (Status.OK, Status.OK, None, ["x"])


async def test_a_released_call_spends_the_budget_of_its_outermost_turn(store_url: str) -> None:
    made: list[Any] = []
    policy = ASK_MAIL + '[[budget]]\nid = "few"\nper = "turn"\ncalls = 2\n'
    async with running(mailing(made, repeatable=True), policy=policy, url=store_url) as runtime:
        tickets = [await approve(runtime, turn=f"child{n}", root_turn="root", parent="root") for n in range(3)]
        outcomes = [await runtime.operations.resume(ticket) for ticket in tickets]
    assert [outcome.ok for outcome in outcomes] == [True, True, False]
    assert (error(outcomes[2]), made) == ("budget_exhausted", ["x", "x"])


async def test_a_released_call_spends_the_budgets_that_its_turn_brought(store_url: str) -> None:
    made: list[Any] = []
    two = (Budget("two", "turn", calls=2),)
    tool = mailing(made, repeatable=True, retry=ONCE)
    async with running(tool, policy=ASK_MAIL, url=store_url) as runtime:
        tickets = [await approve(runtime, turn="t", budgets=two, call_id=f"c{n}") for n in range(3)]
        outcomes = [await runtime.operations.resume(ticket) for ticket in tickets]
    assert [outcome.ok for outcome in outcomes] == [True, True, False]
    assert (error(outcomes[2]), made) == ("budget_exhausted", ["x", "x"])


async def test_a_replay_spends_the_budgets_that_the_turn_of_its_call_brought() -> None:
    made: list[Any] = []
    one = (Budget("one", "turn", calls=1),)
    async with running(mailing(made, NothingLanded("down"), retry=ONCE)) as runtime:
        await runtime.call("mail", TO, actor="ann", turn="t", run="r", budgets=one)  # it has spent it
        ((_step, replayed),) = await runtime.operations.replay("r")
    assert (error(expect(replayed)), made) == ("budget_exhausted", ["x"])


async def test_a_call_whose_tool_was_declared_otherwise_since_is_not_made_again_as_another_change(
    durable_url: str,
) -> None:
    made: list[Any] = []
    policy = parse_policy(ASK_MAIL)
    async with Runtime.open(durable_url, policy=policy, tools=[mailing(made)], principal="user:ann") as runtime:
        ticket = await approve(runtime, run="r")
    wider = mailing(made, once_per="ever")
    async with Runtime.open(durable_url, policy=policy, tools=[wider], principal="user:ann") as runtime:
        refused = await runtime.operations.resume(ticket)
    assert (refused.status, error(refused), made) == (Status.DENIED, "moved", [])
    assert "propose it anew" in refused.summary
