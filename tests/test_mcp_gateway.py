"""A runtime as an MCP server, asked by the SDK's own client in both of its revisions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.mcpserver import Image, MCPServer

from interlock import Runtime, tool
from interlock.adapters.mcp import ToolTerms, mcp_server, mcp_tools
from tests.mcp_address import served_at

PAID: list[str] = []


@tool(effect="read")
async def look(key: str) -> dict[str, str]:
    """Look something up."""
    return {"key": key}


@tool(effect="send")
async def pay(to: str, amount: float) -> str:
    """Pay somebody."""
    PAID.append(to)
    return "paid"


@tool(effect="send")
async def lose(to: str) -> str:
    """Pay somebody, and lose the answer."""
    PAID.append(to)
    raise ConnectionResetError("gone")


POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [
        {"id": "all", "tools": ["*"], "decision": "allow"},
        {"id": "large", "tools": ["pay"], "decision": "review", "when": "args.amount > 100.0"},
    ],
}


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def _text(found: types.CallToolResult) -> str:
    (part,) = found.content
    assert isinstance(part, types.TextContent)
    return part.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_sees_the_tools_and_calls_them(mode: str) -> None:
    async with (
        Runtime.open("memory://", policy=POLICY, tools=[look, pay, lose]) as runtime,
        Client(mcp_server(runtime), mode=mode) as client,
    ):
        offered = {one.name: one for one in (await client.list_tools()).tools}
        hints = offered["look"].annotations
        assert hints is not None
        assert (set(offered), hints.read_only_hint) == ({"look", "pay", "lose"}, True)
        found = await client.call_tool("look", {"key": "k"})
        assert (found.is_error, found.structured_content) == (False, {"key": "k"})
        wrong = await client.call_tool("look", {"keys": "k"})
        assert wrong.is_error
        assert "key" in _text(wrong)


async def test_the_same_effect_is_made_once_in_a_session_and_once_for_a_key() -> None:
    async with (
        Runtime.open("memory://", policy=POLICY, tools=[look, pay, lose]) as runtime,
        Client(mcp_server(runtime)) as client,
    ):
        assert _text(await client.call_tool("pay", {"to": "ann", "amount": 5.0})) == "paid"
        paid, said = (await client.call_tool("pay", {"to": "ann", "amount": 5.0})).content
        assert isinstance(paid, types.TextContent)
        assert isinstance(said, types.TextContent)
        assert paid.text == "paid"
        assert "it was not made again" in said.text  # who meant another one is not left to believe that it was
        assert PAID == ["ann"]
        meta: Any = {"interlock/idempotency-key": "second payment"}
        for _delivery in range(2):  # who says which call it is knows
            assert _text(await client.call_tool("pay", {"to": "ann", "amount": 5.0}, meta=meta)) == "paid"
        assert PAID == ["ann", "ann"]


async def test_a_key_that_cannot_be_one_is_refused_in_words_before_anything_is_done() -> None:
    async with (
        Runtime.open("memory://", policy=POLICY, tools=[look, pay, lose]) as runtime,
        Client(mcp_server(runtime)) as client,
    ):
        for key in ("x" * 10_000, "a\x00b"):
            meta: Any = {"interlock/idempotency-key": key}
            with pytest.raises(MCPError) as refused:
                await client.call_tool("pay", {"to": "ann", "amount": 5.0}, meta=meta)
            assert refused.value.code == types.INVALID_PARAMS
            assert len(refused.value.message) < 500
        assert PAID == []


async def test_what_waits_and_what_nobody_knows_is_said_as_an_error() -> None:
    async with (
        Runtime.open("memory://", policy=POLICY, tools=[look, pay, lose]) as runtime,
        Client(mcp_server(runtime)) as client,
    ):
        waits = await client.call_tool("pay", {"to": "ann", "amount": 500.0})
        assert waits.is_error
        assert "interlock review approve" in _text(waits)
        lost = await client.call_tool("lose", {"to": "bob"})
        assert lost.is_error
        assert "Do not try it again" in _text(lost)
        await client.call_tool("lose", {"to": "bob"})
        assert PAID == ["bob"]


GATEWAY = """
import asyncio, sys
from interlock import Runtime
from interlock.adapters.mcp import mcp_tools, serve_mcp

POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}

async def main():
    async with await mcp_tools("shop", command=[sys.executable, *sys.argv[2:]]) as tools:
        async with Runtime.open(sys.argv[1], policy=POLICY, tools=tools) as runtime:
            await serve_mcp(runtime)

asyncio.run(main())
"""


async def test_a_client_a_gateway_and_a_server_each_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "gateway.py").write_text(GATEWAY, encoding="utf-8")
    server, done = Path(__file__).parent / "mcp_server.py", tmp_path / "done.txt"
    arguments = [str(tmp_path / "gateway.py"), f"sqlite:///{tmp_path / 'l.db'}", str(server), str(done)]
    # Where tests keep keys and states is said by variables, which the SDK does not hand on by itself.
    env = {name: value for name, value in os.environ.items() if name.startswith(("INTERLOCK", "XDG", "PYTHON"))}
    meta: Any = {"interlock/idempotency-key": "one payment"}
    for _gateway in range(2):  # started anew in between: its ledger remembers
        async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=env)) as client:
            paid = await client.call_tool("shop_pay", {"to": "ann", "amount": 5.0}, meta=meta)
            assert not paid.is_error, paid
    assert done.read_text(encoding="utf-8").splitlines() == ["paid ann 5.0"]


async def test_a_number_beyond_all_that_tools_take_is_refused_in_words() -> None:
    @tool(effect="read")
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    allow = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
    async with (
        Runtime.open("memory://", policy=allow, tools=[double]) as runtime,
        Client(mcp_server(runtime), cache=None) as client,
    ):
        for number in (10**30, -(10**30)):
            found = await client.call_tool("double", {"number": number})
            assert found.is_error or str(2 * number) in str(found.content)
        assert "42" in str((await client.call_tool("double", {"number": 21})).content)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_large_answer_goes_through_and_one_beyond_the_bound_is_said_to_be_too_large(mode: str) -> None:
    shop, made = MCPServer("shop"), list[int]()

    @shop.tool()
    def draw(size: int) -> Image:
        """Draw something."""
        made.append(size)
        return Image(data=b"x" * size, format="png")

    terms = {"draw": ToolTerms(max_bytes=2_000_000)}
    async with (
        served_at(shop.streamable_http_app()) as url,
        await mcp_tools("shop", url=url, terms=terms) as tools,
        Runtime.open("memory://", policy={**POLICY, "rule": POLICY["rule"][:1]}, tools=tools) as runtime,
        Client(mcp_server(runtime), mode=mode, cache=None) as client,
    ):
        for _delivery in range(2):  # the second one from the record
            (image, *_said) = (await client.call_tool("shop_draw", {"size": 1_000_000})).content
            assert isinstance(image, types.ImageContent)
            assert len(image.data) > 1_000_000
            over = await client.call_tool("shop_draw", {"size": 3_000_000})
            assert over.is_error
            assert "too_large" in _text(over) or "more than the 2,000,000" in _text(over)
            assert "do not make it again" in _text(over)
        assert made == [1_000_000, 3_000_000]


async def test_texts_beside_what_is_recorded_have_the_same_bound() -> None:
    shop = MCPServer("shop")

    @shop.tool()
    def tell(size: int) -> types.CallToolResult:
        """Tell a lot."""
        said = [types.TextContent(text="x" * size)]
        return types.CallToolResult(content=list(said), structured_content={"ok": True})

    async with (
        served_at(shop.streamable_http_app()) as url,
        await mcp_tools("shop", url=url, terms={"tell": ToolTerms(effect="read", max_bytes=1_000)}) as tools,
        Runtime.open("memory://", policy={**POLICY, "rule": POLICY["rule"][:1]}, tools=tools) as runtime,
        Client(mcp_server(runtime), cache=None) as client,
    ):
        assert not (await client.call_tool("shop_tell", {"size": 100})).is_error
        over = await client.call_tool("shop_tell", {"size": 5_000})
        assert over.is_error
        assert len(_text(over)) < 1_000
