"""What was read before a change proves nothing about now, however the thing is named: by a text, a number or in a list."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Runtime, Tool, tool
from interlock.answers import Again, Agent, Answers, TurnResult
from interlock.answers.requirements import all_of
from interlock.models import Proposal
from interlock.policy import parse_policy
from tests.test_turns import OPEN


def opened(policy: str = OPEN) -> Runtime:
    prices: dict[Any, int] = {}

    @tool(effect="read")
    async def get_rate(room: int) -> dict[str, Any]:
        return {"room": room, "rate": prices.get(room, 80)}

    @tool(effect="send", key="{room}")
    async def set_rate(room: int, rate: int) -> dict[str, Any]:
        prices[room] = rate
        return {"room": room, "rate": rate}

    @tool(effect="read")
    async def get_price(room_id: str) -> dict[str, Any]:
        return {"room_id": room_id, "price": prices.get(room_id, 80), "beds": 2}

    @tool(effect="send", key="{rooms}")
    async def set_prices(rooms: list[str], price: int) -> dict[str, Any]:
        prices.update(dict.fromkeys(rooms, price))
        return {"rooms": rooms, "price": price}

    @tool(effect="send", key="{room_id}")
    async def raise_price(room_id: str) -> bool:
        prices[room_id] = 88
        return True

    @tool(effect="read")
    async def clerk() -> str:
        return "Miller is on duty"

    tools = [get_rate, set_rate, get_price, set_prices, raise_price, clerk]
    return Runtime.open("memory://", policy=parse_policy(policy), tools=tools)


NAMES = ("get_rate", "set_rate", "get_price", "set_prices", "raise_price", "clerk")
AGENT = Agent(name="desk", tools=NAMES, semantic=False)
CHANGES = {
    "by a number": (
        Proposal("get_rate", {"room": 17}),
        Proposal("set_rate", {"room": 17, "rate": 95}),
        "The rate of room 17 is {}.",
    ),
    "in a list": (
        Proposal("get_price", {"room_id": "r-17"}),
        Proposal("set_prices", {"rooms": ["r-17"], "price": 95}),
        "The price of r-17 is {}.",
    ),
    "without a word of it": (
        Proposal("get_price", {"room_id": "r-17"}),
        Proposal("raise_price", {"room_id": "r-17"}),
        "The price of r-17 is {}.",
    ),
}


@pytest.mark.parametrize("way", CHANGES)
async def test_what_was_read_before_a_change_is_not_so_now(way: str) -> None:
    read, change, says = CHANGES[way]
    runtime = opened()
    async with Answers(runtime).turn("change it", agent=AGENT, requires=all_of(read.tool, change.tool)) as turn:
        await turn.propose([read])
        await turn.propose([change])
        held = await turn.finish(says.format(80))
        assert isinstance(held, Again), held
        assert "80" in held.prompt
        await turn.propose([read])
        found = await turn.finish(says.format(88 if way == "without a word of it" else 95))
    assert isinstance(found, TurnResult)
    assert found.verified, found
    await runtime.close()


async def test_what_was_read_of_another_thing_is_so_still() -> None:
    runtime = opened()
    async with Answers(runtime).turn("change it", agent=AGENT, requires=all_of("get_rate", "set_rate")) as turn:
        await turn.propose([Proposal("get_rate", {"room": 18})])
        await turn.propose([Proposal("set_rate", {"room": 17, "rate": 95})])
        found = await turn.finish("The rate of room 18 is 80.")
    assert isinstance(found, TurnResult)
    assert found.verified, found
    await runtime.close()


async def test_a_change_in_this_turn_ends_what_an_earlier_one_of_the_session_has_read() -> None:
    runtime = opened()
    session = Answers(runtime).session("ann")
    async with session.turn("rate of room 17", agent=AGENT, requires="get_rate") as turn:
        await turn.propose([Proposal("get_rate", {"room": 17})])
        await turn.finish("The rate of room 17 is 80.")
    async with session.turn("set it to 95", agent=AGENT, requires="set_rate") as turn:
        await turn.propose([Proposal("set_rate", {"room": 17, "rate": 95})])
        assert "80" not in {fact.text for fact in await turn.facts()}
        assert isinstance(await turn.finish("The rate of room 17 is 80."), Again)
    await runtime.close()


@pytest.mark.parametrize("by", ["somebody else", "nobody"])
async def test_what_somebody_else_has_changed_since_is_not_handed_to_the_next_turn(by: str) -> None:
    runtime = opened()
    session = Answers(runtime).session("ann")
    async with session.turn("rate of room 17", agent=AGENT, requires="get_rate") as turn:
        await turn.propose([Proposal("get_rate", {"room": 17})])
        await turn.finish("The rate of room 17 is 80.")
    if by == "somebody else":
        assert (await runtime.call("set_rate", {"room": 17, "rate": 95}, actor="bob", call_id="1")).ok
    async with session.turn("who is on duty?", agent=AGENT, requires="clerk") as turn:
        await turn.propose([Proposal("clerk", {})])
        found = await turn.finish("Miller is on duty. The rate of room 17 is 80.")
        assert isinstance(found, Again) == (by == "somebody else"), found
        if isinstance(found, Again):
            await turn.finish("Miller is on duty.")
    await runtime.close()


@pytest.mark.parametrize("field", ["visitor_limit", "approved_amount", "pending_orders", "plan_price"])
@pytest.mark.parametrize("mode", ["apply", "dry_run"])
async def test_what_was_only_asked_for_is_no_value_though_the_field_is_called_so(field: str, mode: str) -> None:
    @tool(effect="read")
    async def get_it(trail: str) -> dict[str, Any]:
        return {"trail": trail, field: 40}

    async def change(_arguments: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True}

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"trail": {"type": "string"}, field: {"type": "integer"}},
        "required": ["trail", field],
    }
    set_it = Tool.from_schema("set_it", change, schema=schema, effect="send", key="{trail}")
    policy = OPEN + f'[[rule]]\nid = "no"\ntools = ["set_it"]\nwhen = "args.{field} == 77"\ndecision = "deny"\n'
    runtime = Runtime.open("memory://", policy=parse_policy(policy + 'reason = "no"\n'), tools=[get_it, set_it])
    agent = Agent(name="trails", tools=("get_it", "set_it"), semantic=False)
    words = field.replace("_", " ")
    async with Answers(runtime).turn("how is it?", agent=agent, requires="get_it", mode=mode) as turn:
        await turn.propose([Proposal("get_it", {"trail": "Waldo Lake"})])
        await turn.propose([Proposal("set_it", {"trail": "Waldo Lake", field: 77})])
        held = await turn.finish(f"Waldo Lake: {words} 77.")
        assert isinstance(held, Again), held
        found = await turn.finish(f"The {words} of Waldo Lake is 40.")
    assert isinstance(found, TurnResult)
    assert found.verified, found
    await runtime.close()


async def test_what_was_changed_until_a_question_is_answered_is_not_given_to_the_answer() -> None:
    runtime = opened()
    session = Answers(runtime).session("ann")
    async with session.turn("rate of room 17", agent=AGENT, requires="get_rate") as turn:
        await turn.propose([Proposal("get_rate", {"room": 17})])
        first = await turn.finish("The rate of room 17 is 80.")
    assert isinstance(first, TurnResult)
    async with session.turn("price of a room", agent=AGENT, requires="get_price") as turn:
        assert turn.asked.given == first.records
        await turn.ask("Which room?", fields=("room_id",))
    assert (await runtime.call("set_rate", {"room": 17, "rate": 95}, actor="bob", call_id="1")).ok
    async with session.turn("r-18", agent=AGENT) as turn:
        assert turn.asked.reply is not None
        assert turn.asked.given == ()
    await runtime.close()
