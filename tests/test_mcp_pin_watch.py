"""Whether a tool is still what was pinned: seen before it is called, by whoever calls it, and not for ever."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from interlock import Runtime
from interlock.adapters.mcp import mcp_server, pin_mcp_tools
from interlock.adapters.mcp.pin_watch import PinWatch
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.servers import PINS, McpServers
from interlock.adapters.mcp.terms import ServerTerms
from interlock.adapters.mcp.upstream import Upstream

ODD = str(Path(__file__).with_name("mcp_odd_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
AS_PINNED = types.Tool(name="go", description="Go.", input_schema={"type": "object"})
CHANGED = types.Tool(name="go", description="Go elsewhere.", input_schema={"type": "object"})


class _Server:
    """Lists its tools when it is let."""

    def __init__(self) -> None:
        self.offers, self.may, self.asked = [AS_PINNED], asyncio.Event(), 0

    async def list_tools(self) -> list[types.Tool]:
        self.asked += 1
        await self.may.wait()
        return self.offers


async def _watched() -> tuple[PinWatch, _Server]:
    watch, server = PinWatch("shop", PinsFile().pin("shop", [AS_PINNED])), _Server()
    server.may.set()
    await watch.compare_if_due(server.list_tools)
    return watch, server


async def test_whoever_comes_while_tools_are_compared_waits_for_what_is_seen() -> None:
    watch, server = await _watched()
    server.may.clear()
    server.offers, watch.told = [CHANGED], True
    first = asyncio.create_task(watch.compare_if_due(server.list_tools))
    await asyncio.sleep(0)
    second = asyncio.create_task(watch.compare_if_due(server.list_tools))
    await asyncio.sleep(0)
    assert watch.is_due
    server.may.set()
    await second
    assert "go" in watch.switched_off
    await first
    assert server.asked == 2, "one look for both"


async def test_what_could_not_be_looked_at_is_still_to_be_looked_at() -> None:
    watch, server = await _watched()
    server.may.clear()
    watch.told = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(watch.compare_if_due(server.list_tools), 0.01)
    assert watch.is_due


async def test_a_tool_that_is_as_pinned_again_is_found_so(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, server = await _watched()
    server.offers, watch.told = [CHANGED], True
    await watch.compare_if_due(server.list_tools)
    assert watch.why_off("go") is not None
    server.offers = [AS_PINNED]
    monkeypatch.setattr("interlock.adapters.mcp.pin_watch._COMPARE_S", 0.0)
    assert watch.why_off("go") is None, "it is looked at before the call"
    await watch.compare_if_due(server.list_tools)
    assert watch.switched_off == {}


async def test_nobody_waits_long_for_a_list_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.adapters.mcp.upstream._REFRESH_S", 0.01)
    upstream, server = Upstream("shop", command=["x"], pins=PinsFile().pin("shop", [AS_PINNED])), _Server()
    monkeypatch.setattr(upstream, "_client", object())
    monkeypatch.setattr(upstream._listed, "read", lambda _client: server.list_tools())
    assert not await upstream.refresh()
    server.may.set()
    assert await upstream.refresh()


def _command(folder: Path) -> tuple[str, ...]:
    return (sys.executable, ODD, str(folder / "done"))


async def test_a_server_hides_no_tool_of_another_one(tmp_path: Path) -> None:
    for name in ("a", "a_b"):
        await pin_mcp_tools(name, tmp_path / PINS, command=_command(tmp_path))
    servers = McpServers({name: ServerTerms(command=_command(tmp_path)) for name in ("a", "a_b")}, tmp_path)
    servers.upstreams["a"].watch.switched_off = {"b_go": "nobody has pinned it"}
    async with (
        Runtime.open("memory://", policy=POLICY, tools=servers.tools) as runtime,
        Client(mcp_server(runtime, servers=servers), cache=None) as client,
    ):
        assert {one.name for one in (await client.list_tools()).tools} == {"a_go", "a_b_go"}


async def test_what_one_client_has_seen_changed_is_off_for_that_client(tmp_path: Path) -> None:
    """Each has its own process of the server, which may be another version."""
    await pin_mcp_tools("odd", tmp_path / PINS, command=_command(tmp_path))
    servers = McpServers({"odd": ServerTerms(command=_command(tmp_path))}, tmp_path)
    async with Runtime.open("memory://", policy=POLICY, tools=servers.tools) as runtime:
        server: Any = mcp_server(runtime, servers=servers)
        async with (
            Client(server, mode="legacy", cache=None) as mine,
            Client(server, mode="legacy", cache=None) as theirs,
        ):
            for client in (mine, theirs):
                assert not (await client.call_tool("odd_go", {"x": "first"})).is_error
            (tmp_path / "changed").touch()
            await mine.call_tool("odd_go", {"x": "flood"})
            assert "switched off" in str((await mine.call_tool("odd_go", {"x": "next"})).content)
            (tmp_path / "changed").unlink()
            assert (await mine.list_tools()).tools == []
            assert not (await theirs.call_tool("odd_go", {"x": "theirs"})).is_error
            assert len((await theirs.list_tools()).tools) == 1
    await servers.close()
