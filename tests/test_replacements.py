"""Another policy or other tools in a runtime that is open; and how a policy may be given at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import PolicyError, Runtime, Status, tool
from interlock.ports import Query

OPEN = 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
SHUT = OPEN + (
    '[[rule]]\nid = "shut"\ntools = ["look"]\ndecision = "deny"\nreason = "not today"\ninstead = "ask tomorrow"\n'
    'when = "args.thing != null"\n'
)


@tool(effect="read")
async def look(thing: str = "lamp") -> str:
    """Look at a thing."""
    return thing


@tool(effect="read")
async def count() -> int:
    """Count the things."""
    return 3


def runtime_on(policy: Any, *tools: Any) -> Runtime:
    return Runtime.open("memory://", policy=policy, tools=tools or [look, count])


async def statuses(runtime: Runtime) -> list[Status]:
    return [(await runtime.call(name, {}, actor="a")).status for name in ("look", "count")]


async def test_a_policy_is_a_text_a_file_or_a_dict(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(SHUT, encoding="utf-8")
    rule = {"id": "open", "tools": ["count"], "decision": "allow"}
    for policy in (SHUT, str(file), file, {"version": 1, "rule": [rule]}):
        async with runtime_on(policy) as runtime:
            assert await statuses(runtime) == [Status.DENIED, Status.OK]


async def test_whoever_is_refused_hears_what_to_do_instead() -> None:
    async with runtime_on(SHUT) as runtime:
        outcome = await runtime.call("look", {}, actor="a")
    assert outcome.problem is not None
    assert (outcome.problem.message, outcome.problem.hints) == ("not today", ("ask tomorrow",))
    with pytest.raises(PolicyError, match='only a rule with decision = "deny" says what to do instead'):
        runtime_on(SHUT.replace('"deny"', '"review"'))


async def test_a_policy_is_replaced_for_the_calls_that_come_after() -> None:
    async with runtime_on(OPEN) as runtime:
        before = await runtime.call("look", {}, actor="a")
        version = await runtime.replace_policy(SHUT)
        after = await runtime.call("look", {}, actor="a")
        assert (before.status, after.status) == (Status.OK, Status.DENIED)
        assert before.verdict is not None
        assert after.verdict is not None
        assert before.verdict.policy_version != after.verdict.policy_version
        assert await runtime.replace_policy(OPEN) != version
        assert await statuses(runtime) == [Status.OK, Status.OK]
        records = [record async for record in runtime.store.records(Query())]
    said = [record.content().arguments for record in records if (record.kind, record.status) == ("policy", "replaced")]
    assert [(one["to"] == version, one["from"] == version) for one in said] == [(True, False), (False, True)]
    assert set(said[0]["tools"]) == {"look"}, "what applies to the other one is what it was"


async def test_a_policy_that_is_not_in_order_changes_nothing() -> None:
    async with runtime_on(SHUT) as runtime:
        for wrong in ("version = 1\nrules = []\n", OPEN.replace('"*"', '"lok"')):
            with pytest.raises(PolicyError):
                await runtime.replace_policy(wrong)
        assert await statuses(runtime) == [Status.DENIED, Status.OK]
        kinds = [record.kind async for record in runtime.store.records(Query())]
    assert "policy" not in kinds


async def test_a_call_under_way_ends_under_the_policy_and_with_the_tool_it_was_begun_with() -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Wait."""
        begun.set()
        await going_on.wait()
        return "old"

    @tool(effect="read", name="wait")
    async def wait_no_more() -> str:
        """Do not wait."""
        return "new"

    async with runtime_on(OPEN, wait) as runtime:
        old = asyncio.create_task(runtime.call("wait", {}, actor="a"))
        await begun.wait()
        await runtime.replace_tools([wait_no_more], policy=OPEN.replace('"open"', '"other"'))
        new = await runtime.call("wait", {}, actor="a")
        going_on.set()
        outcomes = [await old, new]
    assert [(o.value, o.verdict and o.verdict.rule) for o in outcomes] == [("old", "open"), ("new", "other")]


async def test_tools_are_replaced_and_what_is_gone_is_not_there() -> None:
    async with runtime_on(OPEN, look) as runtime:
        await runtime.replace_tools([count])
        assert [item.name for item in runtime.tools()] == ["count"]
        assert await statuses(runtime) == [Status.DENIED, Status.OK]
        with pytest.raises(PolicyError, match="unknown tool 'look'"):
            await runtime.replace_policy(SHUT)
