"""What counts as the same change: made again from its record, spelled otherwise, in another process, under its id."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, RootModel, field_serializer
from typing_extensions import TypedDict

from interlock import Compensation, Outcome, Runtime, Status, Tool, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import InDoubt, NothingLanded
from interlock.policy import parse_policy
from interlock.state import ChangeFilter
from interlock.tools import RetryRule
from interlock.values import Budget
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, error, mailing, retitle, running

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


@pytest.mark.parametrize("details", [{"run": "r"}, {"turn": "t"}, {"turn": "t", "call_id": "c"}, {"call_id": "c"}])
async def test_what_a_person_released_and_somebody_undid_is_told_so_when_it_is_resumed_once_more(
    store_url: str, details: dict[str, str]
) -> None:
    shelf, made = Shelf(), list[Any]()
    asks = OPEN + '[[rule]]\nid = "ask"\ntools = ["title"]\ndecision = "review"\n'
    async with running(retitle(shelf, made), policy=asks, url=store_url) as runtime:
        waiting = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", **details)  # type: ignore[arg-type]
        ticket = expect(waiting.ticket)
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        resumed = await runtime.operations.resume(ticket)
        await runtime.operations.undo(record=expect(resumed.record))
        again = await runtime.operations.resume(ticket)
        assert (again.status, again.undone, again.repeats) == (Status.OK, True, resumed.record)
        assert (len(made), shelf.items, await runtime.operations.recover()) == (1, {}, ())
        assert (await verify(runtime.store)).problems == ()


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


# In another process: a set comes out of each in another order

PEOPLE = ["ann", "ben", "cat", "dan", "eve"]


@tool(effect="send", once_per="ever")
async def pay_all(people: set[str]) -> str:
    """Pay everybody."""
    return "paid"


def pay_everybody(url: str, *, ask: bool = False, ticket: str | None = None) -> None:
    """What each process does: pay, or wait for a person, or go on when one has approved; it prints what came of it."""

    async def run() -> None:
        policy = parse_policy(OPEN + ('[[rule]]\nid = "ask"\ntools = ["*"]\ndecision = "review"\n' if ask else ""))
        async with Runtime.open(url, policy=policy, tools=[pay_all], principal="user:ann") as runtime:
            if ticket is not None:
                print((await runtime.operations.resume(ticket)).status)
                return
            outcome = await runtime.call("pay_all", {"people": PEOPLE}, actor="ann")
            if outcome.ticket is not None:
                await runtime.operations.decide(outcome.ticket, approve=True, by="user:boss")
            print(outcome.ticket or bool(outcome.attempts))

    asyncio.run(run())


def in_a_process(seed: int, url: str, **what: Any) -> str:
    """What a process prints whose texts hash by this seed."""
    call = f"from tests.test_same_change import pay_everybody as pay; pay({url!r}, **{what!r})"
    told = {"env": {**os.environ, "PYTHONHASHSEED": str(seed)}, "cwd": Path(__file__).parents[1]}
    done: Any = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True, **told)  # type: ignore[call-overload]
    return str(done.stdout).strip()


def test_a_set_of_the_same_texts_is_the_same_change_in_every_process(durable_url: str) -> None:
    assert [in_a_process(seed, durable_url) for seed in (1, 2, 3)] == ["True", "False", "False"]


def test_an_approved_set_can_be_resumed_in_another_process(durable_url: str) -> None:
    ticket = in_a_process(1, durable_url, ask=True)
    assert in_a_process(2, durable_url, ask=True, ticket=ticket) == "ok"


# Spelled otherwise


class Group(BaseModel):
    people: frozenset[str] = Field(alias="who")
    root: str = ""


@dataclass
class Pair:
    people: set[str]


class Row(TypedDict):
    people: set[str]


class Couple(NamedTuple):
    first: str
    people: set[str]


def taking(kind: Any, made: list[Any]) -> Tool:
    """A send that takes one argument of a type."""

    async def pay(x: Any) -> str:
        made.append(x)
        return "paid"

    pay.__annotations__["x"] = kind
    return tool(effect="send", once_per="ever")(pay)


async def test_wherever_a_set_stands_it_is_shown_in_one_order() -> None:
    plain = sorted(PEOPLE)
    told: list[tuple[Any, Any, Any]] = [
        (list[set[str]], [PEOPLE], [plain]),
        (dict[str, set[str]], {"a": PEOPLE}, {"a": plain}),
        (set[frozenset[str]], [PEOPLE, ["a"]], [["a"], plain]),
        (Group, {"who": PEOPLE, "root": "r"}, {"who": plain, "root": "r"}),
        (RootModel[set[str]], PEOPLE, plain),
        (Pair, {"people": PEOPLE}, {"people": plain}),
        (Row, {"people": PEOPLE}, {"people": plain}),
        (Couple, ["a", PEOPLE], ["a", plain]),
        (set[str] | None, PEOPLE, plain),
    ]
    for kind, given, shown in told:
        made: list[Any] = []
        assert taking(kind, made).input.parse({"x": given}).arguments == {"x": shown}, kind


async def test_a_set_that_a_model_writes_in_its_own_way_is_refused() -> None:
    class Joined(BaseModel):
        people: set[str]

        @field_serializer("people")
        def join(self, people: set[str]) -> str:
            return ",".join(people)

    made: list[Any] = []
    async with running(taking(Joined, made)) as runtime:
        refused = await runtime.call("pay", {"x": {"people": PEOPLE}}, actor="ann")
    assert (refused.status, error(refused), made) == (Status.DENIED, "invalid_arguments", [])


EQUAL: list[tuple[Any, Any, Any]] = [
    (float, 0.0, -0.0),
    (Decimal, "10", "10.0"),
    (Decimal, "10", "1e1"),
    (Decimal, "-0.0", "0"),
    (Decimal, "0.50", "0.5"),
    (Decimal, "123456789012345678901234567890.10", "123456789012345678901234567890.1"),
    (Decimal, "1e400", "10e399"),
    (list[Decimal], ["1.0"], ["1"]),
    (dict[Decimal, str], {"1.0": "a"}, {"1": "a"}),
    (set[Decimal], ["1.0", "2"], ["2.00", "1"]),
    (int | float, 1, 1.0),
    (int | Decimal, 10, "10.0"),
    (list[int | float], [1e16], [10**16]),
    (datetime, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
    ({"type": "number"}, 10, 10.0),
    ({"type": "array", "items": {"type": "integer"}}, [10], [10.0]),
]
OTHER: list[tuple[Any, Any, Any]] = [
    (str, "10", "10.0"),
    (str, "caf\u00e9", "cafe\u0301"),
    (str | Decimal, "10", "10.0"),
    (Decimal, "1", "1.0000000000000000000000000000000001"),
    (Decimal, "1e400", "1e401"),
    (int | float, 1, 1.5),
    (datetime, "2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
    (list[str], ["a", "b"], ["b", "a"]),
    ({"type": "number"}, 2**53, 2**53 + 1),
]


async def effects_of(kind: Any, *values: Any) -> list[Any]:
    """What a tool that takes a type is handed, of calls that differ in one argument alone."""
    made: list[Any] = []

    async def noted(arguments: dict[str, Any]) -> str:
        made.append(arguments["x"])
        return "paid"

    if isinstance(kind, dict):
        schema = {"type": "object", "properties": {"x": kind}, "required": ["x"]}
        pay = Tool.from_schema("pay", noted, schema=schema, effect="send", once_per="ever")
    else:
        pay = taking(kind, made)
    async with running(pay) as runtime:
        for value in values:
            assert (await runtime.call("pay", {"x": value}, actor="ann")).ok
    return made


@pytest.mark.parametrize(("kind", "first", "second"), EQUAL)
async def test_equal_values_are_the_same_change_however_they_are_spelled(kind: Any, first: Any, second: Any) -> None:
    assert len(await effects_of(kind, first, second)) == 1


@pytest.mark.parametrize(("kind", "first", "second"), OTHER)
async def test_values_that_are_not_equal_are_changes_of_their_own(kind: Any, first: Any, second: Any) -> None:
    assert len(await effects_of(kind, first, second)) == 2


async def test_the_tool_gets_a_number_as_it_was_written() -> None:
    assert list(map(str, await effects_of(Decimal, "10.00"))) == ["10.00"]


# Under its id


def paying(made: list[Any], *errors: BaseException, **options: Any) -> Tool:
    """A send that takes an amount."""
    left = list(errors)

    @tool(effect="send", retry=ONCE, **options)
    async def pay(amount: int) -> str:
        made.append(amount)
        if left:
            raise left.pop()
        return "paid"

    return pay


ONCE_PER: list[dict[str, Any]] = [
    {"once_per": "turn"},
    {"once_per": "run"},
    {"once_per": "actor"},
    {"once_per": "ever"},
    {"repeatable": True},
]
WITHIN: list[dict[str, Any]] = [{}, {"run": "r"}, {"turn": "t"}, {"turn": "t", "run": "r"}]


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("options", ONCE_PER)
@pytest.mark.parametrize("first_fails", [NothingLanded("down"), InDoubt("lost"), None])
async def test_an_id_that_a_change_was_begun_under_is_refused_for_other_arguments(
    options: dict[str, Any], within: dict[str, Any], first_fails: Exception | None
) -> None:
    made: list[Any] = []
    errors = () if first_fails is None else (first_fails,)
    async with running(paying(made, *errors, **options)) as runtime:
        await runtime.call("pay", {"amount": 10}, actor="ann", call_id="order-17", **within)
        other = await runtime.call("pay", {"amount": 20}, actor="ann", call_id="order-17", **within)
        report = await verify(runtime.store)
    assert (other.status, error(other), made) == (Status.DENIED, "call_id_reused", [10])
    assert "use a new one" in other.summary
    assert report.intact, report


LOOKS = OPEN + '[[rule]]\nid = "many"\ntools = ["pay"]\ndecision = "deny"\nwhen = "turn.calls > 50"\n'


@pytest.mark.parametrize("policy", [OPEN, LOOKS])
@pytest.mark.parametrize("options", ONCE_PER)
async def test_a_redelivery_is_the_same_call_however_its_number_is_written(
    options: dict[str, Any], policy: str
) -> None:
    made: list[Any] = []

    @tool(effect="send", **options)
    async def pay(amount: int | float) -> str:
        made.append(amount)
        return "paid"

    async with running(pay, policy=policy) as runtime:
        first = await runtime.call("pay", {"amount": 10}, actor="ann", turn="t", call_id="c1")
        again = await runtime.call("pay", {"amount": 10.0}, actor="ann", turn="t", call_id="c1")
        other = await runtime.call("pay", {"amount": 20}, actor="ann", turn="t", call_id="c1")
    assert (first.status, again.status, again.repeats) == (Status.OK, Status.OK, first.record)
    assert (other.status, error(other), made) == (Status.DENIED, "call_id_reused", [10])


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("options", ONCE_PER)
async def test_of_two_at_once_under_one_id_one_is_made(
    options: dict[str, Any], within: dict[str, Any], durable_url: str
) -> None:
    made: list[Any] = []
    policy, pay = parse_policy(OPEN), paying(made, **options)
    async with (
        Runtime.open(durable_url, policy=policy, tools=[pay]) as one,
        Runtime.open(durable_url, policy=policy, tools=[pay]) as two,
    ):
        details: dict[str, Any] = {"actor": "ann", "call_id": "order-17", **within}
        calls = [runtime.call("pay", {"amount": n}, **details) for n, runtime in enumerate([one, two] * 3)]
        outcomes = await asyncio.gather(*calls)
        again = await one.call("pay", {"amount": made[0]}, **details)
        report = await verify(one.store)
    assert sorted(outcome.status.value for outcome in outcomes) == ["denied"] * 5 + ["ok"]
    assert {error(outcome) for outcome in outcomes if not outcome.ok} == {"call_id_reused"}
    assert (len(made), again.ok) == (1, True)
    assert report.intact, report


async def test_outside_a_turn_an_id_is_one_call_whatever_run_it_is_used_in(store_url: str) -> None:
    made: list[Any] = []
    async with running(paying(made, once_per="run"), url=store_url) as runtime:
        told: list[dict[str, Any]] = [{}, {"run": "r"}, {"run": "s"}]
        for n, first in enumerate(told):
            outcomes = [
                await runtime.call("pay", {"amount": n}, actor="ann", call_id=f"order-{n}", **details)
                for details in (first, first, *(other for other in told if other != first))
            ]
            assert [outcome.ok for outcome in outcomes] == [True, True, False, False], first
            assert {error(outcome) for outcome in outcomes[2:]} == {"call_id_reused"}
    assert made == [0, 1, 2]


async def test_in_a_turn_an_id_is_its_actors_for_every_tool(store_url: str) -> None:
    made: list[Any] = []
    async with running(paying(made), mailing(made), url=store_url) as runtime:
        paid = await runtime.call("pay", {"amount": 1}, actor="ann", call_id="c", turn="t")
        mailed = await runtime.call("mail", TO, actor="ann", call_id="c", turn="t")
        others = await runtime.call("mail", TO, actor="ben", call_id="c", turn="t")
        next_turn = await runtime.call("pay", {"amount": 2}, actor="ann", call_id="c", turn="u")
    assert (paid.ok, mailed.status, others.ok, next_turn.ok) == (True, Status.DENIED, True, True)
    assert made == [1, "x", 2]


async def test_in_a_turn_an_id_of_a_repeatable_tool_is_its_actors_too(store_url: str) -> None:
    made: list[Any] = []
    async with running(paying(made, repeatable=True), url=store_url) as runtime:
        calls = [("ann", 1), ("ben", 1), ("cat", 2), ("ann", 1), ("ben", 3)]
        outcomes = [
            await runtime.call("pay", {"amount": amount}, actor=actor, call_id="c", turn="t") for actor, amount in calls
        ]
        report = await verify(runtime.store)
    assert [outcome.status.value for outcome in outcomes] == ["ok", "ok", "ok", "ok", "denied"]
    assert (made, outcomes[3].repeats) == ([1, 1, 2], outcomes[0].record)
    assert report.intact, report


async def test_what_failed_under_an_id_is_tried_again_under_it_and_under_another(store_url: str) -> None:
    made: list[Any] = []
    down = [NothingLanded("down"), NothingLanded("down")]
    async with running(paying(made, *down, once_per="ever"), url=store_url) as runtime:
        ids = ["a", "b", "a", "b"]
        outcomes = [await runtime.call("pay", {"amount": 1}, actor="ann", call_id=name) for name in ids]
        journal = [entry.status async for entry in runtime.operations.journal()]
    assert [outcome.status.value for outcome in outcomes] == ["failed", "failed", "ok", "ok"]
    assert (made, journal) == ([1, 1, 1], ["done"])


# Reads under their ids


@pytest.mark.parametrize("redact", [(), ("amount", "at")])
async def test_a_read_that_is_delivered_again_in_other_words_is_the_same_one(
    store_url: str, redact: tuple[str, ...]
) -> None:
    made: list[str] = []

    @tool(effect="read", redact=set(redact))
    async def quote(amount: Decimal, at: datetime, share: float = 1.0) -> str:
        made.append(str(amount))
        return f"quoted {amount}"

    said = {"amount": "10.50", "at": "2026-01-01T11:00:00+01:00", "share": 1.0}
    async with running(quote, url=store_url) as runtime:

        async def call(name: str = "c", **other: Any) -> Any:
            return await runtime.call("quote", {**said, **other}, actor="ann", turn="t", call_id=name)

        first = await call()
        respelled = [await call(amount="10.5"), await call(at="2026-01-01T10:00:00Z"), await call(share=1)]
        others = [await call(amount="10.51"), await call(at="2026-01-01T10:00:01Z"), await call(share=2)]
        elsewhere = await call("d", amount="10.500")
        report = await verify(runtime.store)
    assert first.ok
    assert [(outcome.value, outcome.repeats is None) for outcome in respelled] == [("quoted 10.50", False)] * 3
    assert [error(outcome) for outcome in others] == ["call_id_reused"] * 3
    assert (elsewhere.value, elsewhere.repeats) == ("quoted 10.500", None), "under another id words count"
    assert made == ["10.50", "10.500"]
    assert report.intact, report


async def test_a_read_of_which_nobody_can_say_what_was_asked_for_is_not_taken_for_the_same(store_url: str) -> None:
    @tool(effect="read", redact={"amount"})
    async def quote(amount: Decimal, top: int = 1) -> str:
        return "quoted"

    few = '[[rule]]\nid = "few"\ntools = ["quote"]\ndecision = "clamp"\nwhen = "args.top > 3"\nset = { top = 3 }\n'
    async with running(quote, url=store_url, policy=OPEN + few) as runtime:

        async def call(name: str, amount: str, top: int = 1) -> Any:
            return await runtime.call("quote", {"amount": amount, "top": top}, actor="ann", turn="t", call_id=name)

        forgotten, clamped = await call("f", "1.0"), await call("c", "2.0", top=9)
        await runtime.operations.forget(record=forgotten.record, reason="asked for")
        again = [await call("f", "1.00"), await call("c", "2.00", top=9), await call("c", "2.0", top=9)]
    assert (forgotten.ok, clamped.ok) == (True, True)
    assert [error(outcome) for outcome in again[:2]] == ["call_id_reused"] * 2
    assert again[2].repeats == clamped.record


# Delivered again, whatever happened since


def banking(booked: list[int], fails: list[BaseException] | None = None, **options: Any) -> tuple[Tool, Tool]:
    """A payment that can be taken back, with what takes it back; it raises what is in `fails` first."""

    @tool(effect="send", retry=ONCE, compensate=Compensation("refund", lambda asked, _value: dict(asked)), **options)
    async def pay(amount: int, answer: str = "paid") -> str:
        if fails:
            raise fails.pop(0)
        booked.append(amount)
        return answer if answer != "unusable" else 5  # type: ignore[return-value]

    @tool(effect="send")
    async def refund(amount: int, answer: str = "paid") -> str:
        booked.append(-amount)
        return "refunded"

    return pay, refund


async def pay(runtime: Runtime, call_id: str, **details: Any) -> Outcome:
    return await runtime.call("pay", {"amount": 1}, **{"actor": "ann", "call_id": call_id, **details})


async def set_title(runtime: Runtime, title: str, call_id: str, **details: Any) -> Outcome:
    asked = {"actor": "ann", "call_id": call_id, **details}
    return await runtime.call(asked.pop("tool", "title"), {"id": "a", "title": title}, **asked)


@pytest.mark.parametrize("once_per", ["actor", "ever"])
async def test_a_payment_delivered_again_is_not_made_after_a_later_one_was_made_and_undone(
    once_per: str, store_url: str
) -> None:
    booked: list[int] = []
    async with running(*banking(booked, once_per=once_per), url=store_url) as runtime:
        first = await pay(runtime, "o1")
        await runtime.operations.undo(record=first.record)
        second = await pay(runtime, "o2")
        await runtime.operations.undo(record=second.record)
        third = await pay(runtime, "o3")
        again = [await pay(runtime, name) for name in ("o1", "o2", "o3", "o1")]
        report = await verify(runtime.store)
    assert [outcome.repeats for outcome in again] == [outcome.record for outcome in (first, second, third, first)]
    assert [outcome.undone for outcome in again] == [True, True, False, True]
    assert booked == [1, -1, 1, -1, 1]
    assert report.intact, report


async def test_a_write_delivered_again_is_not_made_over_what_came_after_the_same_one_of_another_call(
    store_url: str,
) -> None:
    shelf = Shelf()
    tools = retitle(shelf, [], once_per="actor"), retitle(shelf, [], name="put")
    async with running(*tools, url=store_url) as runtime:
        first = await set_title(runtime, "one", "f1")
        await set_title(runtime, "two", "p1", tool="put")
        second = await set_title(runtime, "one", "f2")
        await set_title(runtime, "three", "p2", tool="put")
        again = [await set_title(runtime, "one", name) for name in ("f1", "f2")]
        report = await verify(runtime.store)
    assert (first.repeats, second.repeats) == (None, None)
    assert [outcome.repeats for outcome in again] == [first.record, second.record]
    assert shelf.items["a"] == {"title": "three"}
    assert report.intact, report


@pytest.mark.parametrize("within", [{}, {"turn": "t"}])
async def test_a_payment_that_was_answered_from_another_record_is_not_made_once_that_was_undone(
    within: dict[str, Any], store_url: str
) -> None:
    booked: list[int] = []
    async with running(*banking(booked, once_per="ever"), url=store_url) as runtime:
        first = await pay(runtime, "o1", **within)
        answered = await pay(runtime, "o2", **within)
        await runtime.operations.undo(record=first.record)
        again = [await pay(runtime, name, **within) for name in ("o2", "o1", "o2")]
        other = await runtime.call("pay", {"amount": 2}, actor="ann", call_id="o2", **within)
        booked_then = list(booked)
        anew = await pay(runtime, "o3", **within)
        last = await pay(runtime, "o2", **within)
        report = await verify(runtime.store)
    assert answered.repeats == first.record
    assert {(outcome.ok, outcome.repeats, outcome.undone) for outcome in (*again, last)} == {(True, first.record, True)}
    assert (error(other), booked_then) == ("call_id_reused", [1, -1])
    assert (anew.repeats, booked) == (None, [1, -1, 1])
    assert report.intact, report


@pytest.mark.parametrize("within", [{}, {"turn": "t"}])
async def test_a_write_that_was_answered_from_another_record_is_not_made_over_what_came_after_that(
    within: dict[str, Any], store_url: str
) -> None:
    shelf = Shelf()
    tools = retitle(shelf, [], once_per="ever"), retitle(shelf, [], name="put")
    async with running(*tools, url=store_url) as runtime:
        first = await set_title(runtime, "one", "1", **within)
        answered = await set_title(runtime, "one", "2", **within)
        await set_title(runtime, "two", "3", tool="put", **within)
        again = await set_title(runtime, "one", "2", **within)
        report = await verify(runtime.store)
    assert (answered.repeats, again.repeats) == (first.record, first.record)
    assert shelf.items["a"] == {"title": "two"}
    assert report.intact, report


async def test_the_same_id_of_two_actors_in_a_turn_stands_for_what_each_of_them_was_told(store_url: str) -> None:
    booked: list[int] = []
    async with running(*banking(booked), url=store_url) as runtime:
        first = await pay(runtime, "1", turn="t")
        answered = await pay(runtime, "1", turn="t", actor="ben")
        await runtime.operations.undo(record=first.record)
        again = [await pay(runtime, "1", turn="t", actor=actor) for actor in ("ben", "ann")]
        report = await verify(runtime.store)
    assert (answered.repeats, {outcome.repeats for outcome in again}) == (first.record, {first.record})
    assert booked == [1, -1]
    assert report.intact, report


@pytest.mark.parametrize("within", [{}, {"turn": "t"}])
async def test_a_payment_whose_answer_was_unusable_is_not_made_again_after_its_refund(
    within: dict[str, Any], store_url: str
) -> None:
    booked: list[int] = []
    asked, details = {"amount": 1, "answer": "unusable"}, {"actor": "ann", "call_id": "1", **within}
    async with running(*banking(booked), url=store_url) as runtime:
        first = await runtime.call("pay", asked, **details)
        await runtime.operations.undo(record=first.record)
        again = await runtime.call("pay", asked, **details)
        report = await verify(runtime.store)
    assert (error(first), error(again), again.repeats, again.undone) == ("bad_result",) * 2 + (first.record, True)
    assert booked == [1, -1]
    assert report.intact, report


@pytest.mark.parametrize("how", ["unusable", "not as planned", "settled"])
async def test_a_write_of_a_turn_that_landed_and_was_not_ok_is_not_made_over_what_came_after_it(
    how: str, store_url: str
) -> None:
    shelf, made = Shelf(), list[str]()

    async def landed(_arguments: Any, _context: Any) -> bool | None:
        return True if "recovering" in shelf.items else None

    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        probe=landed,
        retry=ONCE,
        simulate=lambda _state, asked: {"title": asked["title"]},
    )
    async def title(id: str, title: str) -> str:
        made.append(title)
        if title == "two" or how == "unusable":
            shelf.items[id] = {"title": title}
            return title if title == "two" else 5  # type: ignore[return-value]
        shelf.items[id] = {"title": title, "half": True}
        if how == "settled":
            raise InDoubt("lost")
        return title

    policy = OPEN.replace('mode = "apply"\n', 'mode = "apply"\nas_planned = ["title"]\n')
    async with running(title, policy=policy, url=store_url) as runtime:
        first = await set_title(runtime, "one", "1", turn="t")
        assert not first.ok
        shelf.items["recovering"] = {}
        assert len(await runtime.operations.recover()) == (how == "settled")
        assert (await set_title(runtime, "two", "2", turn="t")).ok
        again = await set_title(runtime, "one", "1", turn="t")
        report = await verify(runtime.store)
    assert (made, shelf.items["a"]) == (["one", "two"], {"title": "two"})
    assert again.repeats is not None
    assert (again.ok, again.repeats == first.record) == ((True, False) if how == "settled" else (False, True))
    assert report.intact, report


@pytest.mark.parametrize("options", [{}, {"once_per": "ever"}])
async def test_a_replay_that_fails_leaves_an_id_what_it_stood_for(options: dict[str, Any], store_url: str) -> None:
    booked, fails = list[int](), list[BaseException]()
    async with running(*banking(booked, fails=fails, **options), url=store_url) as runtime:
        first = await pay(runtime, "o1", run="r")
        await runtime.operations.undo(record=first.record)
        fails.append(NothingLanded("down"))
        ((_step, replayed),) = await runtime.operations.replay("r")
        again = await pay(runtime, "o1", run="r")
        ((_step, made),) = await runtime.operations.replay("r")
        last = await pay(runtime, "o1", run="r")
        report = await verify(runtime.store)
    assert (expect(replayed).status, again.repeats, again.undone) == (Status.FAILED, first.record, True)
    assert (last.repeats, last.undone, booked) == (expect(made).record, False, [1, -1, 1])
    assert report.intact, report


async def test_what_failed_under_an_id_and_was_made_and_undone_under_another_is_made_under_it(store_url: str) -> None:
    booked: list[int] = []
    async with running(*banking(booked, [NothingLanded("down")], once_per="ever"), url=store_url) as runtime:
        failed = await pay(runtime, "o1")
        second = await pay(runtime, "o2")
        await runtime.operations.undo(record=second.record)
        retried = await pay(runtime, "o1")
        again = [await pay(runtime, name) for name in ("o1", "o2")]
        report = await verify(runtime.store)
    assert (failed.status, retried.ok, retried.repeats) == (Status.FAILED, True, None)
    assert [(outcome.repeats, outcome.undone) for outcome in again] == [(retried.record, False), (second.record, True)]
    assert booked == [1, -1, 1]
    assert report.intact, report


class GatedShelf(Shelf):
    """A shelf that keeps the first who reads it, once it is told to, until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.armed, self.reached, self.opened = False, asyncio.Event(), asyncio.Event()

    async def read_state(self, key: str) -> Any:
        if self.armed:
            self.armed = False
            self.reached.set()
            await self.opened.wait()
        return await super().read_state(key)


async def test_an_id_that_was_answered_meanwhile_is_not_made_by_another_delivery_of_it(store_url: str) -> None:
    shelf, made = GatedShelf(), list[Any]()
    async with running(retitle(shelf, made, once_per="ever"), url=store_url) as runtime:
        undo = runtime.operations.undo
        first = await set_title(runtime, "one", "1")
        ((_step, undone),) = await undo(record=first.record)
        shelf.armed = True
        slow = asyncio.create_task(set_title(runtime, "one", "2"))  # it finds that the change was undone
        await shelf.reached.wait()
        assert expect((await undo(record=expect(undone).record))[0][1]).ok  # it stands again
        answered = await set_title(runtime, "one", "2")
        assert expect((await undo(record=first.record))[0][1]).ok
        shelf.opened.set()
        late = await slow
        again = await set_title(runtime, "one", "2")
        report = await verify(runtime.store)
    assert (answered.repeats, again.repeats, again.undone) == (first.record, first.record, True)
    assert (late.ok, late.repeats, late.undone, len(made)) == (True, first.record, True, 1), late.summary
    assert report.intact, report


async def test_of_many_deliveries_at_once_each_id_is_made_or_answered_once(durable_url: str) -> None:
    """Whatever the order in which they, and an undo, come through: the rows of the ids agree with the ledger."""
    booked: list[int] = []
    tools, policy = banking(booked, once_per="ever"), parse_policy(OPEN)
    async with (
        Runtime.open(durable_url, policy=policy, tools=tools) as one,
        Runtime.open(durable_url, policy=policy, tools=tools) as two,
    ):
        first = await pay(one, "o0")
        ids = [f"o{n}" for n in range(4)] * 2
        undo = asyncio.create_task(one.operations.undo(record=first.record))
        await asyncio.gather(*[pay(runtime, name) for name in ids for runtime in (one, two)])
        await undo
        paid = len(booked)
        told = [await pay(two, name) for name in ids]
        rows = [row for row in await two.store.claims(ChangeFilter()) if row.is_call_id]
        report = await verify(two.store)
    assert len(booked) <= paid + 1, "only an id that has heard nothing so far is made"
    assert {outcome.repeats for outcome in told[4:]} == {outcome.repeats or outcome.record for outcome in told[:4]}
    assert (told[0].repeats, len(rows)) == (first.record, 4)
    assert report.intact, report


@pytest.mark.parametrize("repeats", ["answer", "stop", "allow"])
@pytest.mark.parametrize("fails", [[], [NothingLanded("down")], [InDoubt("lost")]])
async def test_an_id_that_a_change_was_begun_under_is_refused_for_a_read_of_its_turn(
    fails: list[BaseException], repeats: Any
) -> None:
    @tool(effect="read")
    async def look(q: str) -> str:
        return q

    async with running(*banking([], list(fails)), look, settings=Settings(repeats=repeats)) as runtime:
        await pay(runtime, "1", turn="t")
        read = await runtime.call("look", {"q": "x"}, actor="ann", turn="t", call_id="1")
        others = await runtime.call("look", {"q": "x"}, actor="ben", turn="t", call_id="1")
    assert (error(read), others.ok) == ("call_id_reused", True)


@pytest.mark.parametrize("repeats", ["answer", "stop", "allow"])
async def test_a_read_delivered_again_is_answered_from_the_record_whatever_is_said_of_identical_ones(
    repeats: Any, store_url: str
) -> None:
    made: list[str] = []

    @tool(effect="read")
    async def look(q: str) -> int:
        made.append(q)
        return len(made)

    async with running(look, url=store_url, settings=Settings(repeats=repeats)) as runtime:
        details: dict[str, Any] = {"actor": "ann", "turn": "t", "call_id": "1"}
        first, again = [await runtime.call("look", {"q": "x"}, **details) for _ in range(2)]
        other = await runtime.call("look", {"q": "y"}, **details)
        identical = await runtime.call("look", {"q": "x"}, actor="ann", turn="t", call_id="2")
        unnamed = [await runtime.call("look", {"q": "z"}, actor="ann", turn="u") for _ in range(2)]
    assert (first.value, again.value, again.repeats) == (1, 1, first.record)
    assert error(other) == "call_id_reused"
    assert (identical.ok, identical.repeats is None) == (repeats != "stop", repeats != "answer")
    assert (unnamed[1].ok, made.count("z")) == (repeats != "stop", 2 if repeats == "allow" else 1)
