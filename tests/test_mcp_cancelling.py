"""What a client takes back or loses on the way: a read ends with it, a change goes on, and an answer can be fetched."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from interlock import Runtime, Status, tool
from interlock.adapters.mcp import ToolTerms, mcp_server, mcp_tools
from interlock.adapters.mcp.http import HttpTerms, http_app
from interlock.adapters.mcp.servers import McpServers, check_terms
from interlock.cli.main import main
from interlock.ports import Query
from interlock.toml_text import parse_toml
from tests.mcp_address import served_at

SERVER = str(Path(__file__).with_name("mcp_waiting_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}


async def _until(file: Path, said: str) -> None:
    while not file.exists() or said not in file.read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_read_that_a_client_cancels_is_cancelled_at_the_server(tmp_path: Path, mode: str) -> None:
    done, terms = tmp_path / "done", {"wait": ToolTerms(effect="read")}
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(done)], terms=terms) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
        Client(mcp_server(runtime), mode=mode, cache=None) as client,
    ):
        call = asyncio.create_task(client.call_tool("shop_wait", {"file": str(tmp_path / "go")}))
        await _until(done, "begun")
        call.cancel()
        await _until(done, "cancelled")
    assert done.read_text().splitlines() == ["begun", "cancelled"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_change_that_has_begun_goes_on_and_how_it_ended_is_known(tmp_path: Path, mode: str) -> None:
    done, go = tmp_path / "done", tmp_path / "go"
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(done)]) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
        Client(mcp_server(runtime), mode=mode, cache=None) as client,
    ):
        meta: Any = {"interlock/idempotency-key": "k"}
        call = asyncio.create_task(client.call_tool("shop_wait", {"file": str(go)}, meta=meta))
        await _until(done, "begun")
        call.cancel()
        go.touch()
        await _until(done, "ended")
        again = await client.call_tool("shop_wait", {"file": str(go)}, meta=meta)
        assert not again.is_error
        assert done.read_text().splitlines() == ["begun", "ended"]
        statuses = [one.status async for one in runtime.store.records(Query()) if one.kind == "call"]
        assert statuses[0] == Status.OK.value


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_goes_in_the_middle_of_a_change_leaves_its_server_to_it(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done, go = tmp_path / "done", tmp_path / "go"
    added = await asyncio.to_thread(main, ["mcp", "add", "shop", "--", sys.executable, SERVER, str(done)])
    assert added == 0
    servers = McpServers(check_terms(parse_toml(Path("interlock.toml").read_text())["mcp"]), tmp_path)
    async with Runtime.open("memory://", policy=POLICY, tools=servers.tools) as runtime:

        async def call_and_go() -> None:
            async with Client(mcp_server(runtime, servers=servers), mode=mode, cache=None) as client:
                call = asyncio.create_task(client.call_tool("shop_wait", {"file": str(go)}))
                await _until(done, "begun")
                call.cancel()

        leaving = asyncio.create_task(call_and_go())
        await _until(done, "begun")
        await asyncio.wait([leaving], timeout=1.0)  # it is gone, or waits for its change
        go.touch()
        await leaving
        await _until(done, "ended")
        while not (ended := [one.status async for one in runtime.store.records(Query()) if one.kind == "call"]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await servers.close()
    assert ended == [Status.OK.value]
    assert done.read_text().splitlines() == ["begun", "ended"]


@pytest.mark.parametrize(("effect", "status"), [("read", Status.FAILED), ("send", Status.UNKNOWN)])
async def test_a_deadline_reaches_the_server(tmp_path: Path, effect: str, status: Status) -> None:
    done, terms = tmp_path / "done", {"wait": ToolTerms(effect=effect, timeout_s=1.0)}
    async with (
        await mcp_tools("shop", command=[sys.executable, SERVER, str(done)], terms=terms) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_wait", {"file": str(tmp_path / "never")}, actor="a", call_id="1")
        assert found.status is status
        await _until(done, "cancelled")


HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
BEGIN = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


async def test_an_answer_that_was_lost_on_the_way_is_fetched_by_its_last_event() -> None:
    made, begun, go = list[str](), asyncio.Event(), asyncio.Event()

    @tool(effect="send")
    async def pay(to: str) -> str:
        """Pay somebody."""
        begun.set()
        await go.wait()
        made.append(to)
        return f"paid {to}"

    async with Runtime.open("memory://", policy=POLICY, tools=[pay]) as runtime:
        app = http_app(runtime, HttpTerms())
        async with served_at(app) as url, httpx.AsyncClient(headers=HEADERS, timeout=30) as http:
            first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": BEGIN}
            opened = await http.post(url, json=first)
            session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
            await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
            params = {"name": "pay", "arguments": {"to": "ann"}}
            asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            async with http.stream("POST", url, json=asked, headers=session) as answer:
                last = await _event_id(answer)
                await begun.wait()
            go.set()  # the client has gone, and the call goes on
            async with http.stream("GET", url, headers={**session, "Last-Event-ID": last}) as missed:
                assert "paid ann" in str(await _message(missed, 2))
            again = await http.post(url, json={**asked, "id": 3}, headers=session)
            assert "paid ann" in again.text
    assert made == ["ann"]


async def _event_id(answer: httpx.Response) -> str:
    async for line in answer.aiter_lines():
        if line.startswith("id:"):
            return line.removeprefix("id:").strip()
    raise AssertionError("there was no event to go on from")


async def _message(answer: httpx.Response, number: int) -> Any:
    async for line in answer.aiter_lines():
        if line.startswith("data:") and line.removeprefix("data:").strip():
            said = json.loads(line.removeprefix("data:"))
            if said.get("id") == number:
                return said
    raise AssertionError("the answer was not kept")
