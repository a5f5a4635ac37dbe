"""Tools that a server of 2025-11-25 runs as tasks alone: begun, waited for, and taken for what they are when they are lost."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from mcp import Client

from interlock import Runtime, Status
from interlock.adapters.mcp import ToolTerms, mcp_server, mcp_tools
from tests.conftest import expect

SERVER = str(Path(__file__).with_name("mcp_task_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}


@pytest.mark.parametrize(
    ("tool", "to", "status", "done"),
    [
        ("pay", "ann", Status.OK, ["begun", "paid ann"]),
        ("pay", "broke", Status.FAILED, ["begun", "paid broke"]),
        ("pay", "nobody", Status.FAILED, []),
        ("tip", "ann", Status.OK, []),
    ],
)
async def test_a_task_is_begun_once_and_waited_for(
    tmp_path: Path, tool: str, to: str, status: Status, done: list[str]
) -> None:
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(tmp_path / "done")]) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        for _delivery in range(2 if status is Status.OK else 1):  # what has failed may be tried again
            found = await runtime.call(f"shop_{tool}", {"to": to}, actor="a", call_id="1")
            assert found.status is status
    file = tmp_path / "done"
    assert (file.read_text().splitlines() if file.exists() else []) == done


@pytest.mark.parametrize(("to", "status"), [("lost", Status.UNKNOWN), ("refused", Status.FAILED)])
async def test_an_error_about_a_task_is_an_answer_only_if_the_task_has_failed(
    tmp_path: Path, to: str, status: Status
) -> None:
    done = tmp_path / "done"
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(done)]) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        for _delivery in range(2 if status is Status.UNKNOWN else 1):
            found = await runtime.call("shop_pay", {"to": to}, actor="a", call_id="1")
            assert found.status is status, found.summary
    assert done.read_text().splitlines().count(f"paid {to}") == 1


@pytest.mark.parametrize("to", ["never", "late"])
async def test_a_task_whose_time_is_up_is_cancelled_and_in_doubt(tmp_path: Path, to: str) -> None:
    done = tmp_path / "done"
    async with (
        await mcp_tools(
            "shop", command=[sys.executable, SERVER, str(done)], terms={"pay": ToolTerms(timeout_s=1.0)}
        ) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_pay", {"to": to}, actor="a", call_id="1")
        assert found.status is Status.UNKNOWN
        assert "gave no answer" in expect(found.problem).message
        async with asyncio.timeout(60.0):
            while "cancelled t0" not in done.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_of_the_gateway_calls_it_as_any_other_tool(tmp_path: Path, mode: str) -> None:
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(tmp_path / "done")]) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
        Client(mcp_server(runtime), mode=mode, cache=None) as client,
    ):
        listed = {one.name: one for one in (await client.list_tools()).tools}
        assert listed["shop_pay"].execution is None
        assert "paid ann" in str((await client.call_tool("shop_pay", {"to": "ann"})).content)
