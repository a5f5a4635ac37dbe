"""Budgets and rates hold: per turn, run and actor, across 64 callers in 4 processes."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import Limits, PolicyError, Result, Status, tool
from interlock.audit import verify
from interlock.errors import Permanent
from interlock.ports import Query
from interlock.stores import open_store
from interlock.testing import ManualClock
from tests.conftest import ALLOW, echo, expect, running


def budget(**keys: Any) -> str:
    lines = "".join(f"{key} = {value!r}\n" for key, value in keys.items())
    return f"{ALLOW}[[budget]]\nid = 'b'\n{lines}"


async def statuses(runtime: Any, count: int, tool_name: str = "echo", **details: Any) -> list[str]:
    calls = [runtime.call(tool_name, {"text": str(n)}, **{"actor": "a", **details}) for n in range(count)]
    return [outcome.status.value for outcome in await asyncio.gather(*calls)]


async def test_calls_are_counted_per_turn_run_and_actor() -> None:
    for per, details, others in (
        ("turn", {"turn": "t1"}, {"turn": "t2"}),
        ("run", {"run": "r1"}, {"run": "r2"}),
        ("actor", {"actor": "ann"}, {"actor": "bob"}),
    ):
        async with running(policy=budget(per=per, calls=3)) as runtime:
            assert sorted(await statuses(runtime, 5, **details)) == ["denied", "denied", "ok", "ok", "ok"]
            assert await statuses(runtime, 2, **others) == ["ok", "ok"]
            if per != "actor":
                assert await statuses(runtime, 5) == ["ok"] * 5


@pytest.mark.parametrize("per", ["turn", "run"])
@pytest.mark.parametrize("effect", ["read", "send"])
async def test_a_call_in_no_turn_is_one_of_its_own(durable_url: str, per: str, effect: str) -> None:
    ran = []

    @tool(effect=effect, limits=Limits(cost_usd=0.5), timeout_s=2, deadline_s=5)
    async def paid(text: str) -> str:
        ran.append(text)
        return text

    limits: list[tuple[dict[str, Any], str]] = [
        ({"calls": 1, "cost_usd": 0.5, "seconds": 5}, ""),
        ({"cost_usd": 0.4}, f"is 400000 micro-dollars for each {per}, and this call, which is in no {per} and so one"),
        ({"seconds": 4}, f"is 4000 milliseconds for each {per}"),
        ({"cost_usd": 0.4, "actors": ["somebody-else"]}, ""),
    ]
    for limit, sentence in limits:
        policy = 'mode = "apply"\n' + budget(per=per, **limit)
        async with running(paid, policy=policy, store=durable_url) as runtime:
            outcomes = [
                await runtime.call("paid", {"text": str(n)}, actor="a", call_id=f"{sentence}{limit}{n}") for n in (1, 2)
            ]
        if not sentence:
            assert [outcome.status.value for outcome in outcomes] == ["ok", "ok"]
            continue
        for outcome in outcomes:
            assert (outcome.status, expect(outcome.problem).reason) == (Status.DENIED, "budget_exhausted")
            assert sentence in expect(outcome.problem).message
    assert len(ran) == 4


async def test_an_exhausted_budget_says_what_is_left() -> None:
    async with running(policy=budget(per="actor", calls=1)) as runtime:
        await runtime.call("echo", {"text": "a"}, actor="a")
        outcome = await runtime.call("echo", {"text": "b"}, actor="a")
    assert (outcome.status, expect(outcome.problem).reason) == (Status.DENIED, "budget_exhausted")
    assert "budget 'b' has 0 of 1 calls left" in expect(outcome.problem).message
    verdict = expect(outcome.verdict)
    assert (verdict.decision.value, verdict.rule) == ("deny", "budget_exhausted")
    assert "budget 'b' has 0 of 1 calls left" in verdict.reason


async def test_a_budget_may_be_for_some_actors_only() -> None:
    async with running(policy=budget(per="actor", calls=1, actors=["ann"])) as runtime:
        assert await statuses(runtime, 3, actor="bob") == ["ok"] * 3
        assert (await statuses(runtime, 3, actor="ann")).count("ok") == 1


async def test_a_window_starts_afresh() -> None:
    clock = ManualClock()
    async with running(policy=budget(per="actor", calls=1, window="1h"), clock=clock) as runtime:
        assert (await statuses(runtime, 2)).count("ok") == 1
        clock.advance(3600)
        assert (await statuses(runtime, 2)).count("ok") == 1


async def test_money_is_set_aside_by_the_contract_and_settled_by_what_the_tool_reports() -> None:
    @tool(effect="read", limits=Limits(cost_usd=0.4))
    async def paid(text: str) -> Result[str]:
        if text == "0":
            return Result(value="x", cost_usd=0.05)
        if text == "1":
            raise Permanent("no")
        return Result(value="x")

    async with running(paid, policy=budget(per="actor", cost_usd=1.0)) as runtime:
        outcomes = [await runtime.call("paid", {"text": str(n)}, actor="a") for n in range(4)]
        spent = await runtime.store.spent("b|actor|a", 0)
        costs = [record.content().cost_micros async for record in runtime.store.records(Query())]
    assert [outcome.status.value for outcome in outcomes] == ["ok", "failed", "ok", "denied"]
    assert costs == [50_000, 400_000, 400_000, 0]
    assert (spent.cost_micros, spent.reserved_cost_micros) == (850_000, 0)


async def test_seconds_are_set_aside_by_the_deadline_and_settled_by_the_clock() -> None:
    @tool(effect="read", timeout_s=2, deadline_s=4)
    async def nap(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    async with running(nap, policy=budget(per="actor", seconds=10)) as runtime:
        assert (await statuses(runtime, 3, "nap")).count("ok") == 2
        spent = await runtime.store.spent("b|actor|a", 0)
        assert 20 <= spent.ms < 2000
        assert await statuses(runtime, 2, "nap") == ["ok", "ok"]


async def test_a_rate_limit_is_a_token_bucket_per_actor_and_tool() -> None:
    clock = ManualClock()
    policy = ALLOW + "[[rate]]\nid = 'r'\ntools = ['echo']\nrate = '60/minute'\nburst = 2\n"
    async with running(policy=policy, clock=clock) as runtime:
        assert (await statuses(runtime, 4)).count("ok") == 2
        refused = await runtime.call("echo", {"text": "x"}, actor="a")
        assert (expect(refused.problem).reason, expect(refused.problem).retry_after_s) == ("rate_limited", 1.0)
        assert (await statuses(runtime, 4, actor="b")).count("ok") == 2
        clock.advance(1.0)
        assert (await statuses(runtime, 4)).count("ok") == 1


async def test_a_rate_limit_may_be_shared_by_all_actors_or_all_tools() -> None:
    @tool(effect="read")
    async def other(text: str) -> str:
        return text

    policy = (
        ALLOW + "[[rate]]\nid = 'r'\ntools = ['*']\nper = ['tool']\nrate = '1/day'\nburst = 1\nactors = ['a', 'b']\n"
    )
    async with running(echo, other, policy=policy, clock=ManualClock()) as runtime:
        assert await statuses(runtime, 1, actor="a") == ["ok"]
        assert await statuses(runtime, 1, actor="b") == ["denied"]
        assert await statuses(runtime, 1, actor="c") == ["ok"]
        assert await statuses(runtime, 1, "other", actor="b") == ["ok"]
    policy = policy.replace("['tool']", "['actor']")
    async with running(echo, other, policy=policy, clock=ManualClock()) as runtime:
        assert await statuses(runtime, 1, actor="a") == ["ok"]
        assert await statuses(runtime, 1, "other", actor="a") == ["denied"]


CALLERS = """
import asyncio, logging, sys
from interlock import Runtime, tool
from interlock.policy import parse_policy
logging.getLogger("interlock").setLevel(logging.CRITICAL)
@tool(effect="read")
async def work(n: int) -> int:
    await asyncio.sleep(0.002)
    return n
async def main():
    runtime = Runtime.open(sys.argv[1], policy=parse_policy(sys.argv[2]), tools=[work])
    async def caller(k):
        return [(await runtime.call("work", {"n": k * 100 + i}, actor="a", run="r")).status.value for i in range(5)]
    found = await asyncio.gather(*(caller(k) for k in range(16)))
    await runtime.close()
    print(sum(row.count("ok") for row in found), sum(row.count("denied") for row in found))
asyncio.run(main())
"""


@pytest.mark.parametrize("limit", ["budget", "rate"])
@pytest.mark.slow
async def test_64_callers_in_4_processes_cannot_overspend(durable_url: str, limit: str) -> None:
    policy = "version = 1\n[[rule]]\nid = 'o'\ntools = ['*']\ndecision = 'allow'\n"
    if limit == "budget":
        policy += "[[budget]]\nid = 'b'\nper = 'run'\ncalls = 37\n"
    else:
        policy += "[[rate]]\nid = 'r'\ntools = ['work']\nper = ['tool']\nrate = '1/day'\nburst = 37\n"
    command = [sys.executable, "-c", CALLERS, durable_url, policy]
    children = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        for _ in range(4)
    ]
    found = [child.communicate(timeout=600) for child in children]
    assert all(child.returncode == 0 for child in children), found
    allowed, denied = (sum(int(out.split()[place]) for out, _err in found) for place in (0, 1))
    assert (allowed, denied) == (37, 4 * 16 * 5 - 37)
    store = open_store(durable_url)
    ok = [record.id async for record in store.records(Query(status="ok"))]
    assert len(ok) == 37
    if limit == "budget":
        spent = await store.spent("b|run|r", 0)
        assert (spent.calls, spent.reserved_calls) == (37, 0)
    await store.close()


@tool(effect="send")
async def pay(to: str, amount: float) -> str:
    """Pay somebody."""
    if to == "nobody":
        raise Permanent("there is no such account")
    return to


@tool(effect="send")
async def pay_several(payments: list[dict[str, float]]) -> int:
    """Pay several at once."""
    return len(payments)


APPLY = 'mode = "apply"\n'
PAID = APPLY + budget(per="all", window="1d", tools=["pay"], sum="args.amount", most=1000)


async def paid(runtime: Any, amount: float, **details: Any) -> str:
    to = details.pop("to", "ann")
    outcome = await runtime.call("pay", {"to": to, "amount": amount}, **{"actor": "a", **details})
    return f"{outcome.status.value} {outcome.problem.message if outcome.problem else ''}".strip()


async def test_the_sum_of_an_argument_is_held_for_everybody_together(durable_url: str) -> None:
    clock = ManualClock()
    async with running(pay, echo, policy=PAID, store=durable_url, clock=clock) as runtime:
        assert await paid(runtime, 400.5, call_id="1") == "ok"
        assert await paid(runtime, 400, call_id="2", actor="b") == "ok"
        lacking = "denied budget 'b' has 199.5 of 1000 'amount' left, and this call needs 200"
        assert await paid(runtime, 200, call_id="3") == lacking
        assert (await paid(runtime, -200, call_id="4")).startswith("denied"), "a minus makes no room"
        assert (await paid(runtime, 100, call_id="5", to="nobody")).startswith("failed"), "nothing was paid"
        assert await paid(runtime, 199.5, call_id="6") == "ok"
        assert (await paid(runtime, 0.01, call_id="7")).startswith("denied")
        assert (await runtime.call("echo", {"text": "x"}, actor="a")).ok, "it is not for this tool"
        clock.advance(86_400)
        assert await paid(runtime, 1000, call_id="8") == "ok"
        report = await verify(runtime.store)
    assert report.intact, report


async def test_payments_side_by_side_do_not_pay_more_than_there_is() -> None:
    async with running(pay, policy=PAID) as runtime:
        all_at_once = await asyncio.gather(*(paid(runtime, 300, call_id=str(n)) for n in range(8)))
    assert sum(one == "ok" for one in all_at_once) == 3


async def test_a_sum_goes_through_lists_and_what_is_not_said_is_denied() -> None:
    policy = APPLY + budget(per="turn", tools=["pay_several"], sum="args.payments.amount", most=10)
    with pytest.raises(PolicyError, match=r"'pay_several' has no number 'payments.amount'"):
        async with running(pay_several, policy=policy):
            pass

    class Payment(BaseModel):
        amount: float | None = None

    @tool(effect="send", name="pay_several")
    async def pay_them(payments: list[Payment]) -> int:
        return len(payments)

    async with running(pay_them, policy=policy) as runtime:
        said = []
        every: list[list[float | None]] = [[4, 5], [0.5, 0.5], [1], [None], []]
        for n, amounts in enumerate(every):
            given = {"payments": [{} if amount is None else {"amount": amount} for amount in amounts]}
            outcome = await runtime.call("pay_several", given, actor="a", turn="t", call_id=str(n))
            said.append(outcome.problem.message if outcome.problem else "ok")
    unsaid = "budget 'b' adds up 'payments.amount', and this call does not say how much that is"
    lacking = "budget 'b' has 0 of 10 'payments.amount' left, and this call needs 1"
    assert said == ["ok", "ok", lacking, unsaid, unsaid]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"sum": "args.amount"}, "go together"),
        ({"most": 5}, "go together"),
        ({"sum": "amount", "most": 5}, "sum names an argument"),
        ({"sum": "args.amount", "most": 5, "cost_usd": 1}, "needs a budget of its own"),
        ({"sum": "args.amonut", "most": 5}, "'pay' has no number 'amonut'"),
        ({"sum": "args.to", "most": 5}, "'pay' has no number 'to'"),
        ({"calls": 5, "tools": ["pya"]}, "unknown tool 'pya'; did you mean 'pay'?"),
    ],
)
async def test_a_sum_that_means_nothing_is_refused(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(sentence)):
        async with running(pay, policy=budget(per="turn", **keys)):
            pass
