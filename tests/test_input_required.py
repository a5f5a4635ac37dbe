"""A tool that has to be told something first: nothing is done, nothing is held, and the same call may be made later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interlock import Runtime, Status, tool
from interlock.answers import Agent, Answers, TurnStatus, run_turn
from interlock.audit import verify
from interlock.errors import InputRequired
from interlock.models import Proposal, Reply
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.tools import Tool
from tests.test_asking import Does

ALL: dict[str, Any] = {"id": "all", "tools": ["*"], "decision": "allow"}
POLICY: dict[str, Any] = {"version": 1, "mode": "apply", "rule": [ALL]}
FORM = {"code": {"type": "string", "title": "the code from your phone"}}


class Bank:
    """Pays once a code was given to it by other means."""

    def __init__(self, requests: object = FORM) -> None:
        self.code, self.paid, self.requests = "", list[float](), requests

    def tool(self, **options: Any) -> Tool:
        @tool(effect="send", key="{order}", **options)
        async def pay(order: str, amount: float) -> float:
            """Pay an order."""
            if not self.code:
                raise InputRequired(f"which code did you get for {order}?", requests=self.requests)
            self.paid.append(amount)
            return amount

        return pay


async def one_record(runtime: Runtime, number: int) -> Stored:
    found = [one async for one in runtime.store.records(Query()) if one.id == number]
    return found[0]


async def test_the_same_call_is_made_once_the_answer_is_there(tmp_path: Path) -> None:
    bank, call = Bank(), {"order": "A1", "amount": 5.0}
    budget = {"id": "day", "tools": ["pay"], "sum": "args.amount", "most": 5.0, "window": "1d", "per": "all"}
    policy, store = {**POLICY, "budget": [budget]}, f"sqlite:///{tmp_path / 'l.db'}"
    async with Runtime.open(store, policy=policy, tools=[bank.tool()]) as runtime:
        asked = await runtime.call("pay", call, actor="a", call_id="c1")
        assert (asked.status, asked.value, asked.metadata) == (Status.INPUT_REQUIRED, None, {"requests": FORM})
        assert asked.problem is not None
        assert (asked.problem.reason, asked.problem.message) == (
            Reason.INPUT_REQUIRED,
            "which code did you get for A1?",
        )
        assert len(asked.attempts) == 1, "it is not tried again by itself"
        bank.code = "123"
        done = await runtime.call("pay", call, actor="a", call_id="c1")
        assert (done.status, bank.paid) == (Status.OK, [5.0]), "the key is free, and the budget is not spent"
        again = await runtime.call("pay", call, actor="a", call_id="c1")
        assert (again.repeats, bank.paid) == (done.record, [5.0])
        assert (await verify(runtime.store)).intact
        assert asked.record is not None
        kept = await one_record(runtime, asked.record)
        assert kept.content().metadata == {"requests": FORM}


async def test_another_change_of_the_same_key_is_not_blocked() -> None:
    bank = Bank()
    async with Runtime.open("memory://", policy=POLICY, tools=[bank.tool()]) as runtime:
        await runtime.call("pay", {"order": "A1", "amount": 5.0}, actor="a", call_id="c1")
        bank.code = "123"
        done = await runtime.call("pay", {"order": "A1", "amount": 6.0}, actor="b", call_id="c2")
        assert (done.status, bank.paid) == (Status.OK, [6.0])


async def test_what_is_asked_for_is_redacted_like_everything_else() -> None:
    bank = Bank({"about": "order A1-0815"})
    async with Runtime.open("memory://", policy=POLICY, tools=[bank.tool(redact=("order",))]) as runtime:
        asked = await runtime.call("pay", {"order": "A1-0815", "amount": 5.0}, actor="a", call_id="c1")
        assert asked.status is Status.INPUT_REQUIRED
        assert asked.record is not None
        kept = await one_record(runtime, asked.record)
        assert "0815" not in str(kept.body)


async def test_what_is_no_json_is_left_out_and_said() -> None:
    bank = Bank(object())
    async with Runtime.open("memory://", policy=POLICY, tools=[bank.tool()]) as runtime:
        asked = await runtime.call("pay", {"order": "A1", "amount": 5.0}, actor="a", call_id="c1")
        assert (asked.status, asked.metadata) == (Status.INPUT_REQUIRED, {})
        assert asked.problem is not None
        assert "no JSON" in asked.problem.hints[0]


async def test_a_turn_asks_and_says_nothing_else() -> None:
    agent = Agent(name="clerk", tools=("pay",), default="pay", semantic=False)
    calls = Reply(proposals=(Proposal("pay", {"order": "A1", "amount": 5.0}),))
    async with Runtime.open("memory://", policy=POLICY, tools=[Bank().tool()]) as runtime:
        opened = Answers(runtime).turn("pay 5 for A1", agent=agent)
        async with opened as turn:
            result = await run_turn(turn, Does(calls, Reply("I have paid 5.")))
    assert result.status is TurnStatus.ASKED
    assert result.answer.startswith("Which code did you get for A1?")


async def test_it_is_asked_also_where_no_answer_needs_the_tool() -> None:
    agent = Agent(name="desk", tools=("pay",), semantic=False)
    calls = Reply(proposals=(Proposal("pay", {"order": "A1", "amount": 5.0}),))
    async with Runtime.open("memory://", policy=POLICY, tools=[Bank().tool()]) as runtime:
        opened = Answers(runtime).turn("hello, pay 5 for A1 please", agent=agent)
        async with opened as turn:
            result = await run_turn(turn, Does(calls, Reply("I have paid 5.")))
    assert result.status is TurnStatus.ASKED
    assert result.answer.startswith("Which code did you get for A1?")
