"""Tools of MCP servers on the one path: a real server as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from starlette.middleware.gzip import GZipMiddleware

from interlock import Runtime, Status
from interlock.adapters.mcp import McpTools, ToolTerms, Upstream, mcp_tools, pin_mcp_tools
from interlock.adapters.mcp.pins import PinsFile
from interlock.errors import ConfigError
from interlock.values import Effect, Trust
from tests.mcp_address import served_at

SERVER = Path(__file__).parent / "mcp_server.py"
POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
}


def _command(folder: Path) -> list[str]:
    return [sys.executable, str(SERVER), str(folder / "done.txt")]


def _done(folder: Path) -> list[str]:
    file = folder / "done.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[McpTools]:
    terms = {"look": ToolTerms(effect=Effect.READ), "hang": ToolTerms(timeout_s=5.0)}
    async with await mcp_tools("shop", command=_command(tmp_path), terms=terms) as tools:
        yield tools


async def test_a_call_takes_the_path_and_comes_back(served: McpTools, tmp_path: Path) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=served) as runtime:
        seen = await runtime.call("shop_look", {"key": "k"}, actor="a", turn="t")
        assert (seen.status, seen.value, seen.trust) == (Status.OK, {"key": "k", "seen": "yes"}, Trust.UNTRUSTED)
        wrong = await runtime.call("shop_pay", {"to": "ann"}, actor="a", turn="t")
        assert wrong.status is Status.DENIED  # by the server's own schema, before it is asked
    assert _done(tmp_path) == []


async def test_the_same_call_pays_once(served: McpTools, tmp_path: Path) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=served) as runtime:
        for _delivery in range(3):
            paid = await runtime.call("shop_pay", {"to": "ann", "amount": 5.0}, actor="a", call_id="c1")
            assert paid.ok
    assert _done(tmp_path) == ["paid ann 5.0"]


async def test_a_server_that_dies_after_it_has_paid_leaves_it_in_doubt_and_is_started_again(
    served: McpTools, tmp_path: Path
) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=served) as runtime:
        lost = await runtime.call("shop_pay_and_die", {"to": "ann"}, actor="a", call_id="c1")
        assert lost.status is Status.UNKNOWN
        again = await runtime.call("shop_pay_and_die", {"to": "ann"}, actor="a", call_id="c1")
        assert again.status is Status.UNKNOWN
        assert _done(tmp_path) == ["paid ann"]
        # A read is tried again until the server is back.
        seen = await runtime.call("shop_look", {"key": "k"}, actor="a", turn="t")
        assert seen.ok


async def test_no_answer_in_time_is_in_doubt(served: McpTools, tmp_path: Path) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=served) as runtime:
        lost = await runtime.call("shop_hang", {"to": "ann"}, actor="a", call_id="c1")
    assert (lost.status, _done(tmp_path)) == (Status.UNKNOWN, ["paid ann"])


@pytest.mark.parametrize("tool", ["shop_fail", "shop_refuse"])
async def test_an_answer_that_is_an_error_means_that_nothing_was_done(served: McpTools, tool: str) -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=served) as runtime:
        ended = await runtime.call(tool, {"why": "no such account"}, actor="a", call_id="c1")
    assert ended.status is Status.FAILED
    assert ended.problem is not None
    assert "no such account" in ended.problem.message


async def test_that_a_tool_only_reads_is_believed_of_trusted_servers_alone(tmp_path: Path) -> None:
    async with await mcp_tools("shop", command=_command(tmp_path)) as doubted:
        assert {tool.name: tool.effect for tool in doubted}["shop_look"] is Effect.SEND
    async with await mcp_tools("shop", command=_command(tmp_path), trusted=True) as believed:
        effects = {tool.name: tool.effect for tool in believed}
        assert (effects["shop_look"], effects["shop_pay"]) == (Effect.READ, Effect.SEND)


async def test_a_server_that_does_not_start_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'gone' did not start"):
        await mcp_tools("gone", command=[str(tmp_path / "no-such-program")])
    with pytest.raises(ConfigError, match="a command that starts it, or its url"):
        Upstream("both", command=["x"], url="http://127.0.0.1:1/")


async def test_what_is_not_as_it_was_pinned_is_switched_off(tmp_path: Path) -> None:
    pins, command = tmp_path / "interlock.mcp.json", _command(tmp_path)
    async with await mcp_tools("shop", command=command, pins=pins) as unseen:
        assert list(unseen) == []
        assert set(unseen.switched_off.values()) == {"nobody has pinned it"}
    assert "pay" in await pin_mcp_tools("shop", pins, command=command)
    async with await mcp_tools("shop", command=command, pins=pins) as seen:
        assert seen.switched_off == {}
    # The server has changed what a tool says since it was looked at.
    held = PinsFile.read(pins)
    pinned = held.servers["shop"]["pay"]
    changed = types.Tool.model_validate({**pinned.offered, "description": "Pay somebody else."})
    PinsFile(held.servers).pin("shop", [changed]).write(pins)
    async with await mcp_tools("shop", command=command, pins=pins) as after:
        assert list(after) == []
        assert '-  "description": "Pay somebody else."' in after.switched_off["pay"]
        assert '+  "description": "Pay somebody."' in after.switched_off["pay"]


@pytest.mark.parametrize("hidden", ["\u200b", "\U000e0041", "\u202e"])
def test_a_tool_that_hides_something_in_its_words_is_switched_off_even_if_pinned(hidden: str) -> None:
    offered = types.Tool(name="pay", description=f"Pay{hidden} somebody.", input_schema={"type": "object"})
    assert (
        "it hides something: the invisible character"
        in PinsFile().pin("shop", [offered]).switched_off("shop", [offered])["pay"]
    )


def test_pins_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    (tmp_path / "pins.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be read"):
        PinsFile.read(tmp_path / "pins.json")


async def test_a_server_behind_an_address() -> None:
    server = MCPServer("shop")

    @server.tool()
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    terms = {"*": ToolTerms(effect="read")}
    async with (
        served_at(server.streamable_http_app()) as url,
        await mcp_tools("shop", url=url, terms=terms) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_double", {"number": 21}, actor="a", turn="t")
        assert found.value == {"result": 42}


async def test_a_server_that_has_only_the_older_transport() -> None:
    server = MCPServer("shop")

    @server.tool()
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    async with (
        served_at(server.sse_app(), "/sse") as url,
        await mcp_tools("shop", url=url, sse=True, terms={"*": ToolTerms(effect="read")}) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_double", {"number": 21}, actor="a", turn="t")
        assert found.value == {"result": 42}


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end_from_an_address_is_cut_off(packed: bool) -> None:
    server = MCPServer("shop")

    @server.tool()
    def get(much: bool) -> str:
        """Something, or a great deal."""
        return "x" * (100_000_000 if much else 10)

    app: Any = server.streamable_http_app()
    app = GZipMiddleware(app) if packed else app
    async with (
        served_at(_deaf_to_encodings(app) if packed else app) as url,
        await mcp_tools("shop", url=url, terms={"*": ToolTerms(timeout_s=60)}) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_get", {"much": True}, actor="a", call_id="1")
        assert found.status is Status.UNKNOWN
        assert (await runtime.call("shop_get", {"much": False}, actor="a", call_id="2")).status is Status.OK


def _deaf_to_encodings(app: Any) -> Any:
    """A server that packs what it sends, whatever it is asked for."""

    async def deaf(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"accept-encoding", b"gzip")]}
        await app(scope, receive, send)

    return deaf


async def test_a_server_that_has_to_be_told_something_first_holds_no_claim() -> None:
    asked = types.ElicitRequestFormParams(
        message="Which account?", requested_schema={"type": "object", "properties": {}}
    )

    async def offer(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="pay", input_schema={"type": "object"})])

    async def answer(_ctx: Any, _params: Any) -> types.InputRequiredResult:
        return types.InputRequiredResult(input_requests={"account": types.ElicitRequest(params=asked)})

    server = Server[Any]("shop", on_list_tools=offer, on_call_tool=answer)
    async with (
        served_at(server.streamable_http_app()) as url,
        await mcp_tools("shop", url=url) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        for _time in range(2):  # the same call may be made again: nothing is held
            ended = await runtime.call("shop_pay", {}, actor="a", call_id="c1")
            assert ended.status is Status.INPUT_REQUIRED
            assert "Which account?" in str(ended.metadata["requests"])
