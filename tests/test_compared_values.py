"""Values as a contract knows them: equal ones are one change however they are spelled, and `true` is never 1."""

from __future__ import annotations

from datetime import time
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from interlock import Runtime, Status, Tool, tool

POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "a", "tools": ["*"], "decision": "allow"}],
}
NUMBER = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}


async def made_by(spellings: list[Any], field: str, governed: Tool, made: list[Any]) -> int:
    """How often a change was made that was asked for in these spellings."""
    async with Runtime.open("memory://", policy=POLICY, tools=[governed]) as runtime:
        for spelled in spellings:
            outcome = await runtime.call(governed.name, {field: spelled}, actor="ann")
            assert outcome.status is Status.OK, outcome
    return len(made)


@pytest.mark.parametrize(
    ("spellings", "changes"),
    [
        (["10:00:00Z", "11:00:00+01:00", "10:00Z", "09:30:00-00:30"], 1),
        (["10:00:00Z", "10:00:00+01:00", "10:00:00"], 3),
        (["10:00:00.5Z", "11:00:00.500000+01:00"], 1),
        (["00:30:00+01:00", "23:30:00Z"], 2),  # of two days, and Python's own comparison says so
        (["10:00", "10:00:00"], 1),
    ],
)
async def test_a_time_with_its_zone_is_compared_by_value(spellings: list[str], changes: int) -> None:
    made: list[time] = []

    @tool(effect="send", once_per="actor")
    async def ring(at: time) -> str:
        """Ring."""
        made.append(at)
        return "ok"

    assert await made_by(spellings, "at", ring, made) == changes
    assert len({at.isoformat() for at in made}) == changes


@pytest.mark.parametrize(
    ("spellings", "changes"),
    [
        ([10**22, 1e22], 1),
        ([-(10**22), -1e22], 1),
        ([2**64, float(2**64)], 1),
        ([1e300, int(1e300)], 1),
        ([10**23, 1e23], 2),  # the float is another number
        ([10**22, 10**22 + 1], 2),
        ([0, 0.0, -0.0], 1),
    ],
)
async def test_a_large_number_is_compared_by_value(spellings: list[Any], changes: int) -> None:
    made: list[Any] = []

    async def pay(arguments: dict[str, Any]) -> str:
        made.append(arguments["amount"])
        return "ok"

    governed = Tool.from_schema("pay", pay, schema=NUMBER, effect="send", once_per="actor")
    assert await made_by(spellings, "amount", governed, made) == changes


class Level(IntEnum):
    low = 1
    high = 2


class Mixed(Enum):
    one = 1
    text = "x"
    half = 2.5
    whole = 3.0


class Inner(BaseModel):
    level: Level = Level.low
    kind: Literal[1, "x"] = 1


class First(BaseModel):
    kind: Literal[1]


class Second(BaseModel):
    kind: Literal[2]


@tool(effect="read")
async def take(
    enum: Level | None = None,
    mixed: Mixed | None = None,
    literal: Literal[1, 2] | None = None,
    true: Literal[True] | None = None,
    either: Literal[1] | bool | None = None,
    many: list[Level] | None = None,
    named: dict[str, Literal[1]] | None = None,
    inner: Inner | None = None,
    inners: list[Inner] | None = None,
    tagged: Annotated[First | Second, Field(discriminator="kind")] | None = None,
    member: Literal[Level.low] | None = None,
) -> str:
    """Take something."""
    return "taken"


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("enum", [1, 2], [True, 1.0, "1", 3]),
        ("mixed", [1, "x", 2.5, 3.0, 3], [True, 1.0, False, 4]),
        ("literal", [1, 2], [True, 1.0, 2.0, "1", 3, False]),
        ("true", [True], [1, 1.0, False, "true"]),
        ("either", [1, True, False], [1.0, 2]),
        ("many", [[1, 2]], [[1, True], [1.0]]),
        ("named", [{"a": 1}], [{"a": True}, {"a": 1.0}]),
        ("inner", [{"level": 2, "kind": 1}, {"kind": "x"}], [{"level": True}, {"kind": True}, {"kind": 1.0}]),
        ("inners", [[{"level": 2}]], [[{"level": 2}, {"level": 1.0}]]),
        ("tagged", [{"kind": 1}, {"kind": 2}], [{"kind": True}, {"kind": 1.0}]),
        ("member", [1], [True, 1.0]),
    ],
)
async def test_true_is_not_one_in_a_closed_set_either(field: str, good: list[Any], bad: list[Any]) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=[take]) as runtime:
        for value in good:
            outcome = await runtime.call("take", {field: value}, actor="ann")
            assert outcome.status is Status.OK, (value, outcome.problem)
        for value in bad:
            outcome = await runtime.call("take", {field: value}, actor="ann")
            assert outcome.status is Status.DENIED, value
            assert outcome.problem is not None
            assert field in outcome.problem.message
